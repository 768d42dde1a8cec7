// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// counters reads /proc/net/snmp or snmp6 as one map.
func counters(t *testing.T, ns *lab.Namespace, file string) map[string]uint64 {
	t.Helper()
	var b []byte
	if err := ns.Do(func() (err error) { b, err = os.ReadFile(file); return err }); err != nil {
		t.Fatal(err)
	}
	m := make(map[string]uint64)
	var names []string
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case strings.HasSuffix(file, "6"):
			m[f[0]], _ = strconv.ParseUint(f[1], 10, 64)
		case names == nil:
			names = f
		default:
			for i := 1; i < len(f); i++ {
				m[strings.TrimSuffix(f[0], ":")+names[i]], _ = strconv.ParseUint(f[i], 10, 64)
			}
			names = nil
		}
	}
	return m
}

func (p *pair) postWrite(t testing.TB, id uint64, n int) {
	t.Helper()
	_, err := p.qp[0].PostSend(endpoint.SendWR{
		ID: id, Op: endpoint.Write, Local: endpoint.Segment{MR: p.send, Len: n}, RemoteAddr: p.recv.Addr(), RKey: p.recv.RKey(),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLinkGoesDown takes the sender's interface down during a transfer. No frame is lost
// silently: frames that could not be sent are counted, and sent again later.
func TestLinkGoesDown(t *testing.T) {
	const size = 8 << 20
	p := newPair(t, pairConfig{pathMTU: 1024, memory: size, qp: endpoint.QPConfig{Timeout: 10}})
	fill(p.send.Bytes(), 5)
	h := p.star.Hosts[0]
	if err := h.NS.SetDown(h.Interface); err != nil {
		t.Fatal(err)
	}
	p.postWrite(t, 1, size)
	until(t, p.dev[0], "frames given up", func(s Stats) bool { return s.TxDropped > 0 && s.TxStalls > 0 })
	if err := h.NS.SetUp(h.Interface); err != nil {
		t.Fatal(err)
	}
	poll(t, p.ctx, p.qp[0], 1)
	if !bytes.Equal(p.send.Bytes(), p.recv.Bytes()) {
		t.Error("other bytes arrived")
	}
	if s := p.qp[0].Stats(); s.Retransmitted == 0 || s.Timeouts == 0 {
		t.Errorf("repaired without a retransmission: %+v", s)
	}
}

// TestSuspend stops the receiver's device in a transfer. It takes nothing until it is resumed.
func TestSuspend(t *testing.T) {
	const size = 1 << 20
	p := newPair(t, pairConfig{pathMTU: 1024, memory: size, qp: endpoint.QPConfig{Timeout: 10, RetryCount: 7}})
	fill(p.send.Bytes(), 5)
	resume, err := p.dev[1].Suspend()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(resume)
	p.postWrite(t, 1, size)
	until(t, p.dev[0], "frames sent again", func(s Stats) bool { return s.TxFrames > 2*size/1024 })
	if !bytes.Equal(p.recv.Bytes(), make([]byte, size)) {
		t.Error("a device that is stopped has taken data")
	}
	resume()
	resume()
	poll(t, p.ctx, p.qp[0], 1)
	if !bytes.Equal(p.send.Bytes(), p.recv.Bytes()) {
		t.Error("other bytes arrived")
	}
	if err := p.dev[1].Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.dev[1].Suspend(); !errors.Is(err, endpoint.ErrClosed) {
		t.Errorf("suspend of a closed device: %v", err)
	}
}

// TestLinkVanishes deletes the sender's interface during a transfer.
func TestLinkVanishes(t *testing.T) {
	p := newPair(t, pairConfig{pathMTU: 1024, memory: 1 << 20, qp: endpoint.QPConfig{Timeout: 8, RetryCount: 2}})
	h := p.star.Hosts[0]
	if err := h.NS.DeleteLink(h.Interface); err != nil {
		t.Fatal(err)
	}
	p.postWrite(t, 1, 1<<20)
	c := make([]endpoint.Completion, 1)
	if _, err := p.qp[0].Poll(p.ctx, c); err != nil {
		t.Fatal(err)
	}
	if c[0].Status != endpoint.RetryExceeded || !strings.Contains(c[0].Err().Error(), "stopped answering") {
		t.Errorf("completion %+v: %v", c[0], c[0].Err())
	}
	if s := p.dev[0].Stats(); s.SocketErrors == 0 || s.TxDropped == 0 {
		t.Errorf("nothing counted: %+v", s)
	}
}

// TestNeighbourMoves makes a queue pair send to its peer's former Ethernet address.
// Timeouts make it ask the kernel again.
func TestNeighbourMoves(t *testing.T) {
	p := newPair(t, pairConfig{pathMTU: 1024, memory: 1 << 20, qp: endpoint.QPConfig{Timeout: 10}})
	fill(p.send.Bytes(), 3)
	if err := p.dev[0].do(func() { p.qp[0].(*qp).path.DstMAC[5] ^= 0x80 }); err != nil {
		t.Fatal(err)
	}
	p.postWrite(t, 1, 1<<20)
	poll(t, p.ctx, p.qp[0], 1)
	if !bytes.Equal(p.send.Bytes(), p.recv.Bytes()) {
		t.Error("other bytes arrived")
	}
	if s := p.dev[0].Stats(); s.NeighbourMoves != 1 {
		t.Errorf("found at another address %d times", s.NeighbourMoves)
	}
}

// TestTimeoutOfMicroseconds has a retransmission timeout shorter than an iteration of the
// loop: slow, but answers are still read.
func TestTimeoutOfMicroseconds(t *testing.T) {
	p := newPair(t, pairConfig{pathMTU: 256, memory: 64 << 10, qp: endpoint.QPConfig{Timeout: 1}})
	p.transfer(t, []int{0, 1, 64 << 10})
	if p.qp[0].Stats().Timeouts == 0 {
		t.Error("no timeout: this shows nothing")
	}
}

// TestCloseWhileConnecting closes the device during a Connect that waits for ARP.
func TestCloseWhileConnecting(t *testing.T) {
	s := labtest.Star(t, lab.StarConfig{Hosts: 1})
	d := openDevice(t, s.Hosts[0], Config{ResolveTimeout: time.Minute})
	qp, err := d.CreateQP(endpoint.QPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		result <- qp.Connect(context.Background(), endpoint.Remote{IP: netip.MustParseAddr("10.77.254.1"), QPN: 0x4000, PathMTU: 1024})
	}()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, endpoint.ErrClosed) {
		t.Errorf("connect gave %v", err)
	}
}

// TestReceiverNotReady posts the receive only after the sender has received an RNR NAK.
func TestReceiverNotReady(t *testing.T) {
	p := newPair(t, pairConfig{pathMTU: 1024, memory: 4096})
	fill(p.send.Bytes(), 9)
	if _, err := p.qp[0].PostSend(endpoint.SendWR{ID: 1, Op: endpoint.Send, Local: endpoint.Segment{MR: p.send, Len: 4096}}); err != nil {
		t.Fatal(err)
	}
	for p.qp[0].Stats().RNRs == 0 {
		if p.ctx.Err() != nil {
			t.Fatal("no RNR NAK came")
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := p.qp[1].PostRecv(endpoint.RecvWR{ID: 2, Local: endpoint.Segment{MR: p.recv, Len: 4096}}); err != nil {
		t.Fatal(err)
	}
	poll(t, p.ctx, p.qp[0], 1)
	poll(t, p.ctx, p.qp[1], 1)
	if !bytes.Equal(p.send.Bytes(), p.recv.Bytes()) {
		t.Error("other bytes arrived")
	}
}

func TestCloseFlushes(t *testing.T) {
	p := newPair(t, pairConfig{pathMTU: 1024, memory: 4096})
	c := make([]endpoint.Completion, 8)
	ctx, cancel := context.WithCancel(p.ctx)
	waiting := make(chan error)
	go func() { _, err := p.qp[1].Poll(ctx, make([]endpoint.Completion, 1)); waiting <- err }()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled poll gave %v", err)
	}
	for id := range uint64(3) {
		if _, err := p.qp[1].PostRecv(endpoint.RecvWR{ID: id, Local: endpoint.Segment{MR: p.recv, Len: 10}}); err != nil {
			t.Fatal(err)
		}
	}
	fresh, err := p.dev[1].CreateQP(endpoint.QPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.PostRecv(endpoint.RecvWR{ID: 7}); err != nil {
		t.Fatal(err)
	}
	if err := p.dev[1].Close(); err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		endpoint.QP
		n int
	}{{p.qp[1], 3}, {fresh, 1}} {
		n, err := q.Poll(p.ctx, c)
		if n != q.n || err != nil {
			t.Errorf("%d completions, %v, want %d", n, err, q.n)
		}
		for _, c := range c[:n] {
			if c.Status != endpoint.WRFlushErr {
				t.Errorf("completion %+v", c)
			}
		}
		if _, err := q.Poll(p.ctx, c); !errors.Is(err, endpoint.ErrClosed) {
			t.Errorf("poll after close: %v", err)
		}
		if err := q.Close(); err != nil {
			t.Errorf("close after the device: %v", err)
		}
	}
	if _, err := p.dev[1].RegisterMemory(make([]byte, 1), 0, 0); !errors.Is(err, endpoint.ErrClosed) {
		t.Errorf("register memory after close: %v", err)
	}
	if _, err := p.dev[1].CreateQP(endpoint.QPConfig{}); !errors.Is(err, endpoint.ErrClosed) {
		t.Errorf("create QP after close: %v", err)
	}
	if err := p.recv.Close(); err != nil {
		t.Errorf("close memory after the device: %v", err)
	}
}

// TestSteadyStateAllocatesNothing counts the allocations of both ends.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	const size = 16 << 20
	p := newPair(t, pairConfig{pathMTU: 1024, memory: size})
	p.postWrite(t, 1, size) // lets buffers grow to their size
	poll(t, p.ctx, p.qp[0], 1)
	var before, after runtime.MemStats
	packets := p.dev[0].Stats().TxFrames
	runtime.ReadMemStats(&before)
	p.postWrite(t, 2, size)
	poll(t, p.ctx, p.qp[0], 1)
	runtime.ReadMemStats(&after)
	packets = p.dev[0].Stats().TxFrames - packets
	if n := after.Mallocs - before.Mallocs; packets < size/1024 || n > 200 {
		t.Errorf("%d allocations for %d packets", n, packets)
	}
}

func TestTrace(t *testing.T) {
	var file bytes.Buffer
	p := newPair(t, pairConfig{pathMTU: 256, memory: 2000, device: Config{VLAN: &VLAN{ID: 9, PCP: 1}}, trace: &file})
	p.transfer(t, []int{0, 2000})
	if err := p.dev[0].Close(); err != nil {
		t.Fatal(err)
	}
	stats := p.dev[0].Stats()
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for ; ; n++ {
		b, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var f rocev2.Frame
		if r := rocev2.Decode(b, &f); r != rocev2.OK || f.Kind != rocev2.KindRoCE || !f.VerifyICRC() {
			t.Fatalf("frame %d: %v", n, r)
		}
		if tags, tci := f.VLAN(); tags != 1 || tci != 1<<13|9 {
			t.Fatalf("frame %d has %d tags, TCI 0x%x", n, tags, tci)
		}
	}
	if n == 0 || n != stats.TxFrames+stats.RxFrames || stats.TraceErrors != 0 {
		t.Errorf("%d frames in the trace, %d sent, %d received, %d errors", n, stats.TxFrames, stats.RxFrames, stats.TraceErrors)
	}
}
