// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/test/apitest"
)

// tracer has recorded a packet and its copies, one of them not sent.
func tracer() *apitest.Backend {
	at := time.Date(2026, 5, 6, 7, 8, 9, 123456789, time.Local)
	psn := func(v api.PSN) *api.PSN { return &v }
	qpn := func(v api.QPN) *api.QPN { return &v }
	source, group, receiver := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.0.0.2")
	b := apitest.Switch()
	b.Traced = []api.TracePacket{
		api.TracePacket{Time: at, Port: "eth1", Direction: api.TraceIn, Kind: api.TraceReceived, From: source, To: group, Opcode: "WRITE_MIDDLE", PSN: psn(0x10), QPN: qpn(0x676c6d),
			Text: "new data of the source, 1 copy", Length: 1090, Data: bytes.Repeat([]byte{1}, 54)},
		api.TracePacket{Time: at, Port: "eth2", Direction: api.TraceOut, Kind: api.TraceCopy, From: group, To: receiver, Opcode: "WRITE_MIDDLE", PSN: psn(0x110), QPN: qpn(0x11), PSNBefore: psn(0x10), QPNBefore: qpn(0x676c6d),
			Rules: []string{"R18"}, Text: "copy for 10.0.0.2", Length: 1090, Data: bytes.Repeat([]byte{2}, 54), Lost: 7},
		api.TracePacket{Time: at, Direction: api.TraceNotSent, Kind: api.TraceCopy, From: source, To: group, Drop: "no_location", Text: "copy for 10.0.0.3 not sent", Length: 60, Data: make([]byte, 60)},
	}
	return b
}

// A trace is one line a packet; notes and sums are messages.
func TestTraceText(t *testing.T) {
	b := tracer()
	b.TraceNotes = []string{"the fast path is on"}
	stdout, stderr, code := run(t, serve(t, b), "trace", "10.9.0.1", "--count", "3")
	const want = `07:08:09.123456 eth1 in       10.0.0.1 > 10.9.0.1 WRITE_MIDDLE psn 0x000010 qp 0x676c6d: new data of the source, 1 copy
(7 packets not recorded)
07:08:09.123456 eth2 out      10.9.0.1 > 10.0.0.2 WRITE_MIDDLE psn 0x000110 qp 0x000011: copy for 10.0.0.2 [R18]
07:08:09.123456 -    not-sent 10.0.0.1 > 10.9.0.1 copy for 10.0.0.3 not sent
`
	if stdout != want || code != cli.ExitOK || stderr != "gleam: the fast path is on\n3 packets\n" {
		t.Errorf("%d, %s\n%s", code, stderr, stdout)
	}
}

// What members have cost the group follows the sum; those behind one switch share a line. Standard output has
// the packets alone, also those of a file.
func TestTraceCosts(t *testing.T) {
	b := tracer()
	ip := netip.MustParseAddr
	b.TraceCosts = []api.TraceCost{
		{Member: ip("10.0.0.2"), Cost: api.Cost{NAKs: 3, RNRNAKs: 1, Repaired: 17, Probes: 2, RTTp50: 0.000_1, RTTp99: 0.02, Waited: 1.5}},
		{Member: ip("10.0.0.3"), Switch: "s2", Cost: api.Cost{}},
		{Member: ip("10.0.0.4"), Switch: "s2", Cost: api.Cost{}},
	}
	const want = `3 packets

MEMBER     NAKS  RNR  REPAIRED  PROBES  RTT P50  RTT P99  WAITED
10.0.0.2   3     1    17        2       100µs    20ms     1.5s
switch s2  0     0    0         0       -        -        -
`
	for _, args := range [][]string{nil, {"-w", "-"}} {
		stdout, stderr, code := run(t, serve(t, b), append([]string{"trace", "10.9.0.1", "--count", "3"}, args...)...)
		if stderr != want || code != cli.ExitOK || strings.Contains(stdout, "WAITED") {
			t.Errorf("%v: %d, %s\n%s", args, code, stderr, stdout)
		}
	}
}

// In JSON it is one object a line, as the API has it, and the end's line as the API has that.
func TestTraceJSON(t *testing.T) {
	b := tracer()
	b.TraceCosts = []api.TraceCost{{Member: netip.MustParseAddr("10.0.0.2"), Cost: api.Cost{NAKs: 3}}}
	stdout, _, code := run(t, serve(t, b), "trace", "--count", "2", "-o", "json")
	d := json.NewDecoder(strings.NewReader(stdout))
	for i := range 2 {
		var p api.TracePacket
		if err := d.Decode(&p); err != nil || code != cli.ExitOK {
			t.Fatal(code, err)
		}
		if p.Time = p.Time.Local(); !reflect.DeepEqual(p, b.Traced[i]) {
			t.Errorf("%+v, want %+v", p, b.Traced[i])
		}
	}
	var l api.TraceLine
	if err := d.Decode(&l); err != nil || !reflect.DeepEqual(l.End, &api.TraceEnd{Reason: "count", Packets: 2, Costs: b.TraceCosts}) || d.More() {
		t.Errorf("%+v, %v", l.End, err)
	}
}

// interrupting is an output that interrupts the command at its first line.
type interrupting struct {
	said   bytes.Buffer
	cancel context.CancelFunc
}

func (w *interrupting) Write(b []byte) (int, error) {
	w.cancel()
	return w.said.Write(b)
}

// An interrupted trace is read to its end, however long what was recorded takes to come.
func TestTraceInterrupted(t *testing.T) {
	b := tracer()
	b.TracePause, b.TraceNotes = 900*time.Millisecond, []string{"a note"} // 2.7 s in all
	var stdout bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	stderr := &interrupting{cancel: cancel} // at the note
	code := cli.Run(ctx, &cli.Env{Stdout: &stdout, Stderr: stderr, Socket: serve(t, b)}, []string{"trace"})
	if strings.Count(stdout.String(), "\n") != 4 || !strings.Contains(stderr.said.String(), "\n3 packets, 3 not recorded") {
		t.Errorf("%d, %s\n%s", code, &stderr.said, &stdout)
	}
}

func TestTraceUsage(t *testing.T) {
	socket := serve(t, tracer())
	for _, c := range []struct{ args, says string }{
		{"group", "is not an IP address"},
		{"10.9.0.1 10.9.0.2", "takes one argument"},
		{"--member x", `member address "x"`},
		{"--psn 0x1000000", "24 bits"},
		{"--psn 1-2-3", "24 bits"},
		{"--op rite", `no opcode has the name "rite"`},
		{"--snap 9000", "8192"},
		{"--rate -1", "rate -1"},
		{"--count -1", "count -1"},
		{"--duration -1s", "time -1 s"},
		{"--slow", "needs a group"},
		{"--ring 3", "--ring needs -w"},
		{"-w - --ring 3", "cannot be standard output"},
		{"-w x --ring 1", "2 files or more"},
		{"-w x --ring 2 --ring-size 0", "1 MB or more"},
		{"-w x -o json", "does not go with"},
	} {
		_, stderr, code := run(t, socket, append([]string{"trace"}, strings.Fields(c.args)...)...)
		if code != cli.ExitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: %d, %s; want %s", c.args, code, stderr, c.says)
		}
	}
	if _, stderr, code := run(t, socket, "trace", "-w", t.TempDir()+"/no/such", "--count", "1"); code != cli.ExitFailed || !strings.Contains(stderr, "no such file") {
		t.Errorf("a file that cannot be made: %d, %s", code, stderr)
	}
}

// readNg returns the comments of a pcapng file's packets, by interface.
func readNg(t *testing.T, in io.Reader) (comments []string) {
	t.Helper()
	ng, err := pcapgo.NewNgReader(in, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, ci, opts, err := ng.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return comments
		}
		if err != nil {
			t.Fatal(err)
		}
		i, err := ng.Interface(ci.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		s := i.Name + ": " + strings.Join(opts.Comments, "|")
		if opts.DropCount != nil {
			s += " after a loss"
		}
		if (opts.Flags.Direction == pcapgo.NgEpbFlagDirectionInbound) != (i.Name == "eth1 in") {
			t.Errorf("%s: flags %+v", i.Name, opts.Flags)
		}
		comments = append(comments, s)
	}
}

func TestTracePcapng(t *testing.T) {
	stdout, _, _ := run(t, serve(t, tracer()), "trace", "-w", "-", "--count", "3")
	want := []string{"eth1 in: new data of the source, 1 copy", "eth2 out: copy for 10.0.0.2 [R18] after a loss", "not-sent: copy for 10.0.0.3 not sent"}
	if got := readNg(t, strings.NewReader(stdout)); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A ring has the newest files, each complete, and no file is larger than it says by more than a
// packet. Only the owner may read them.
func TestTraceRing(t *testing.T) {
	b := tracer()
	big := b.Traced[0]
	big.Data = make([]byte, api.MaxTraceSnap)
	b.Traced = nil
	for range 500 { // 4.1 MB
		b.Traced = append(b.Traced, big)
	}
	dir := t.TempDir()
	if _, stderr, code := run(t, serve(t, b), "trace", "-w", filepath.Join(dir, "ring.pcapng"), "--ring", "2", "--ring-size", "1", "--count", "500"); code != cli.ExitOK {
		t.Fatal(stderr)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 || files[0].Name() != "ring-000004.pcapng" || files[1].Name() != "ring-000005.pcapng" {
		t.Fatalf("%v, %v", files, err)
	}
	total := 0
	for _, e := range files {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		total += len(readNg(t, f))
		i, err := f.Stat()
		if err != nil || i.Size() > 1e6+2*api.MaxTraceSnap || i.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, mode %v, %v", e.Name(), i.Size(), i.Mode(), err)
		}
		f.Close()
	}
	if total < 121 || total > 250 {
		t.Errorf("%d packets in two files", total)
	}
}
