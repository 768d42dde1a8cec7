// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/wireshark"
)

// traceCommand is `gleam trace` with a rig's switch, by its API on a Unix socket.
type traceCommand struct {
	t      testing.TB
	stdout bytes.Buffer
	stderr bytes.Buffer
	stop   context.CancelFunc
	ended  chan int // the exit code
	end    *api.TraceEnd
}

// trace runs `gleam trace` with args until stop, and returns when the switch records.
func (r *rig) trace(args ...string) *traceCommand { return traceOf(r.t, r.engine, r.notes, args...) }

func traceOf(t testing.TB, e *control.Engine, says *notes, args ...string) *traceCommand {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "api.sock")
	ln, err := api.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	serving, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- api.Serve(serving, ln, e, api.Version{}, api.Access{}) }()
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	before := says.count("trace packets") // in the audit, when it runs
	c := &traceCommand{t: t, ended: make(chan int, 1)}
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	t.Cleanup(stop)
	go func() {
		c.ended <- cli.Run(ctx, &cli.Env{Stdout: &c.stdout, Stderr: &c.stderr, Socket: socket}, append([]string{"trace"}, args...))
	}()
	until(t, "a trace", func() bool { return says.count("trace packets") > before })
	return c
}

// wait waits for the command's end.
func (c *traceCommand) wait() {
	c.t.Helper()
	if code := <-c.ended; code != cli.ExitOK && code != cli.ExitInterrupted {
		c.t.Fatalf("exit code %d: %s", code, &c.stderr)
	}
}

// packets ends the trace, which was run with -o json, and returns its packets.
func (c *traceCommand) packets() (list []api.TracePacket) {
	c.t.Helper()
	c.stop()
	c.wait()
	for d := json.NewDecoder(&c.stdout); ; {
		var l struct {
			api.TracePacket
			End *api.TraceEnd
		}
		if err := d.Decode(&l); err != nil {
			c.t.Fatalf("%v, before the line of the end", err)
		}
		if c.end = l.End; l.End != nil {
			return list
		}
		list = append(list, l.TracePacket)
	}
}

// A trace of a transfer over a lossy link has each packet as it came, and its copies with
// QPN, PSN and address of their receivers; losses are repaired from the store.
func TestTraceBeforeAndAfter(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, device: func(host int, c *soft.Config) {
		if host == 1 {
			c.Loss = 0.03
		}
	}})
	r.join()
	r.fill(0)
	r.write(0, 20_000) // what members cost here is not the trace's
	c := r.trace(r.group.String(), "-o", "json", "--rate", "1000000", "--slow")
	r.write(0, 20_000)
	r.same(0)
	all := c.packets()
	if r.t.Failed() || len(all) == 0 {
		t.Fatalf("%d packets: %s", len(all), &c.stderr)
	}
	source := r.hosts[0].qp.Info()
	copies, repairs, acks := map[string]int{}, map[string]int{}, 0
	var last *api.TracePacket // the last packet that came
	for i := range all {
		p := &all[i]
		if p.Lost > 0 {
			t.Fatalf("%d packets were not recorded", p.Lost)
		}
		switch {
		case p.Direction == api.TraceIn:
			last = p
			if p.To != r.group {
				t.Fatalf("packet for %s: %+v", p.To, p)
			}
		case p.Kind == api.TraceOwn && p.Opcode == rocev2.Acknowledge.Name() && p.To == r.hosts[0].ip:
			acks++
		case p.Kind == api.TraceCopy && p.Direction == api.TraceOut, p.Kind == api.TraceRepair:
			h := r.hosts[slices.IndexFunc(r.hosts, func(h *rigHost) bool { return h.ip == p.To })]
			to := h.qp.Info()
			if *p.QPN != api.QPN(to.QPN) || *p.QPNBefore != virtualQPN {
				t.Fatalf("QPN 0x%x of 0x%x: %+v", *p.QPN, *p.QPNBefore, p)
			}
			if n, was := rocev2.PSN(*p.PSN).Sub(to.RQPSN), rocev2.PSN(*p.PSNBefore).Sub(source.SQPSN); n != was {
				t.Fatalf("PSN 0x%x of 0x%x: %d and %d from the first", *p.PSN, *p.PSNBefore, n, was)
			}
			if !slices.Contains(p.Rules, "R18") || p.From != r.group {
				t.Fatalf("a copy from %s with the rules %v", p.From, p.Rules)
			}
			if p.Kind == api.TraceRepair {
				repairs[h.Name]++
				break
			}
			copies[h.Name]++
			if last == nil || *last.PSN != *p.PSNBefore || last.From != source.IP {
				t.Fatalf("a copy of PSN 0x%x comes after %+v", *p.PSNBefore, last)
			}
		}
	}
	packets := 0 // of the transfer
	for off := 0; off < r.c.memory; off += 20_000 {
		packets += (min(20_000, r.c.memory-off) + r.c.pathMTU - 1) / r.c.pathMTU
	}
	for _, h := range r.hosts[1:] {
		if n := copies[h.Name] + repairs[h.Name]; n < packets { // a receiver that recovers gets new data from the store, too
			t.Errorf("%d copies and repairs for %s of %d packets", n, h.Name, packets)
		}
	}
	if repairs["h2"] == 0 || acks == 0 {
		t.Errorf("%d repairs, %d ACKs to the source", repairs["h2"], acks)
	}
	if len(c.end.Costs) != 2 {
		t.Fatalf("costs of %d receivers: %+v", len(c.end.Costs), c.end)
	}
	for i, h := range r.hosts[1:] {
		lossy := h.Name == "h2"
		if x := &c.end.Costs[i]; x.Member != h.ip || x.Cost.Repaired > uint64(repairs[h.Name]) || lossy != (x.Cost.NAKs > 0) || lossy && x.Cost.Repaired == 0 {
			t.Errorf("%s has cost %+v, and has had %d packets from the store", h.Name, x, repairs[h.Name])
		}
	}
}

// Each packet that is not served is in a trace of drops, with the reason under which it is
// counted, and nothing else is.
func TestTraceNamesDrops(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	r.join()
	r.fill(0)
	r.write(0, 20_000)
	taps := []*tap{newTap(t, r.star.Hosts[0]), newTap(t, r.star.Hosts[1]), newTap(t, r.star.Hosts[2])}
	psn := r.quiet()
	for _, c := range append(newForger(r).impostors(psn), newForger(r).malformed(psn)...) {
		if c.xdp != "" {
			continue // XDP drops it: no worker sees it
		}
		t.Run(c.name, func(t *testing.T) {
			x := r.trace("--drops", "-o", "json", "--snap", "2048")
			r.refuse(t, taps, c, psn)
			list := x.packets()
			if len(list) != 1 {
				t.Fatalf("%d packets, want 1: %+v", len(list), list)
			}
			if p := &list[0]; p.Drop != c.counter || p.Direction != api.TraceIn || !bytes.HasPrefix(p.Data, c.frame) || p.Port != r.star.Ports[c.from] {
				t.Errorf("%s by %s, %d bytes of %d, want %s by %s: %s", p.Drop, p.Port, len(p.Data), len(c.frame), c.counter, r.star.Ports[c.from], p.Text)
			}
		})
	}
}

// `gleam trace -w` writes pcapng that its own library and tshark read: interfaces, comments, and
// no payload by default.
func TestTraceFile(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: 100_000})
	r.join()
	r.fill(0)
	file := filepath.Join(t.TempDir(), "trace.pcapng")
	const count = 600
	c := r.trace(r.group.String(), "-w", file, "--count", strconv.Itoa(count), "--slow")
	for range 3 {
		r.write(0, 20_000)
	}
	c.wait()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ng, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for {
		b, ci, opts, err := ng.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		i, err := ng.Interface(ci.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		if len(opts.Comments) != 1 || opts.Comments[0] == "" {
			t.Fatalf("comments %q", opts.Comments)
		}
		if ci.Length > 200 && len(b) > 100 {
			t.Fatalf("%d of %d bytes are recorded: payload is", len(b), ci.Length)
		}
		seen[i.Name]++
	}
	if seen["p1 in"] == 0 || seen["p2 out"] == 0 || seen["p3 out"] == 0 || seen["p1 out"] == 0 {
		t.Errorf("interfaces with packets: %v", seen)
	}
	total := 0
	for _, n := range seen {
		total += n
	}
	if total != count {
		t.Errorf("%d packets, want %d", total, count)
	}
	r.readByTshark(t, file, total)
}

// readByTshark checks that tshark reads a trace, with Gleam's dissector, if it is there.
func (r *rig) readByTshark(t *testing.T, file string, packets int) {
	wireshark.Find(t)
	if bad := wireshark.Lines(t, file, "-Y", "_ws.malformed"); len(bad) > 0 {
		t.Errorf("tshark takes %d packets for malformed, such as %s", len(bad), bad[0])
	}
	from := fmt.Sprintf("frame.interface_name == \"p2 out\" && infiniband.bth.destqp == 0x%x && frame.comment contains \"R18\"", uint32(r.hosts[1].qp.Info().QPN))
	if len(wireshark.Lines(t, file, "-Y", from)) == 0 {
		t.Errorf("tshark finds no packet with %s", from)
	}
	lines, cut := wireshark.Lines(t, file), 0
	if n := len(lines); n != packets {
		t.Errorf("tshark reads %d packets, want %d", n, packets)
	}
	for _, line := range lines {
		switch {
		case strings.Contains(line, "Malformed"):
			t.Fatalf("tshark takes a packet without its payload for malformed: %s", line)
		case strings.HasSuffix(line, "[payload not captured]"):
			if cut++; !strings.Contains(line, " RC RDMA WRITE ") || !strings.Contains(line, " QP=0x") {
				t.Fatalf("tshark does not say what a packet without its payload is: %s", line)
			}
		}
	}
	if cut == 0 {
		t.Error("tshark finds no packet without its payload")
	}
	// The frame's length is that of the packet as it was sent: Ethernet's header, and what IP says.
	for _, line := range wireshark.Lines(t, file, "-Y", "frame.cap_len < frame.len", "-T", "fields", "-e", "frame.len", "-e", "ip.len") {
		var frame, ip int
		if _, err := fmt.Sscan(line, &frame, &ip); err != nil || frame != ip+14 {
			t.Fatalf("length and IP length of a cut frame: %q (%v)", line, err)
		}
	}
}

// A trace of a switch in a tree has what it says to its neighbours, and tshark takes each message
// apart.
func TestTraceBetweenSwitches(t *testing.T) {
	wireshark.Find(t)
	r := newFabricRig(t, fabric.Config{Topology: twoSwitches(t)}, "", false)
	file := filepath.Join(t.TempDir(), "tree.pcapng")
	e := r.engines["l1"]
	c := traceOf(t, e.Engine, &e.notes, "--port", r.innerPort("l1"), "-w", file, "--snap", "4096", r.fabricGroup(0).String(), "--slow")
	m := r.join(r.fabricGroup(0), 64<<10, r.hosts...)
	for _, from := range []int{0, 3} { // the token crosses the link
		m.fill(from)
		m.mustSend(from, treeMessage)
	}
	m.leave()
	c.stop()
	c.wait()
	infos := wireshark.Tshark(t, file, "-Y", "gleam || gleam.relay || gleam.token", "-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info")
	for _, want := range []string{"GLEAM-RELAY\tPrepare epoch", "GLEAM-RELAY\tPrepared epoch", "GLEAM-RELAY\tCommit epoch", "GLEAM-RELAY\tCommitted epoch", "GLEAM-RELAY\tEnd epoch", "GLEAM-TOKEN\tToken of group " + m.ip.String()} {
		if !strings.Contains(infos, want) {
			t.Errorf("no message %q in\n%s", want, infos)
		}
	}
	if bad := wireshark.Lines(t, file, "-Y", "_ws.malformed || gleam.malformed || gleam.relay.malformed || gleam.token.malformed"); len(bad) > 0 {
		t.Errorf("tshark takes %d packets for malformed, such as %s", len(bad), bad[0])
	}
	for _, u := range wireshark.Uncovered(t, file) {
		if u != "" && u != wireshark.NoMessage {
			t.Error(u)
		}
	}
	if n := len(wireshark.Lines(t, file, "-Y", "frame.comment contains \"R24\"")); n < 64 {
		t.Errorf("%d copies for the next switch, want 64", n)
	}
}

// innerPort returns the port of a switch that leads to a neighbour, once that is up.
func (r *fabricRig) innerPort(name string) (port string) {
	r.t.Helper()
	until(r.t, name+" has a neighbour", func() bool {
		top, err := r.engines[name].Topology()
		if err != nil {
			r.t.Fatal(err)
		}
		for _, n := range top.Neighbours {
			if n.State == api.LinkUp {
				port = n.Port
			}
		}
		return port != ""
	})
	return port
}
