// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// XDP and tc verdicts.
const (
	xdpDrop     = 1
	xdpPass     = 2
	xdpRedirect = 4
	tcShot      = 2
	tcUnspec    = 0xFFFFFFFF
)

var (
	sourceIP = netip.MustParseAddr("10.77.0.1")
	path     = &rocev2.Path{SrcMAC: rocev2.MAC{2, 0, 0, 0, 0, 1}, DstMAC: rocev2.MAC{2, 0, 0, 0, 0, 2}, Src: sourceIP, Dst: groupIP, SrcPort: 0xC001}
	back     = &rocev2.Path{SrcMAC: rocev2.MAC{2, 0, 0, 0, 0, 3}, DstMAC: rocev2.MAC{2, 0, 0, 0, 0, 4}, Src: netip.MustParseAddr("10.77.0.2"), Dst: groupIP}
)

// harness is a generator whose program the test runs itself, once at a time.
type harness struct {
	*liveGenerator
	sinks *sinks
}

func newHarness(t *testing.T, payload int) *harness {
	t.Helper()
	labtest.Enter(t)
	sinks, err := newSinks(1)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := benchCase{payload: payload}.dataFrame(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	ack, err := build(back, &rocev2.Packet{Op: rocev2.Acknowledge, DestQP: virtualQPN, Syndrome: rocev2.SyndromeACK}, nil)
	if err != nil {
		t.Fatal(err)
	}
	lo := generatorPort{in: func(f func() error) error { return f() }, ifindex: 1}
	g, err := newLiveGenerator(generatorConfig{
		groups: []groupFrames{{data: frame, acks: [][]byte{ack, ack}, acked: []rocev2.PSN{999, 1999}}}, out: []generatorPort{lo, lo, lo}, arrived: sinks.arrived, cpu: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeAll(g, sinks); err != nil {
			t.Error(err)
		}
	})
	return &harness{g, sinks}
}

// set changes the generator's control block.
func (h *harness) set(t *testing.T, change func(*controlValue)) {
	t.Helper()
	c, err := h.control()
	if err != nil {
		t.Fatal(err)
	}
	change(&c)
	if err := h.objects.Control.Put(uint32(0), &c); err != nil {
		t.Fatal(err)
	}
}

// step runs the program once, on a frame of rubbish, and returns the frame that it
// made.
func (h *harness) step(t *testing.T) (verdict uint32, out []byte) {
	t.Helper()
	rubbish := bytes.Repeat([]byte{0xEE}, len(h.frame))
	copy(rubbish[64:], h.frame[64:len(h.frame)-4]) // the kernel never touches the payload
	out = make([]byte, len(h.frame))
	o := &ebpf.RunOptions{Data: rubbish, DataOut: out}
	verdict, err := h.objects.Generate.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return verdict, o.DataOut
}

// The generator's frames are those of the builder of package rocev2, for every PSN,
// whatever was in the page before.
func TestGenerateData(t *testing.T) {
	for _, payload := range []int{64, 1024, 2048} {
		h := newHarness(t, payload)
		for _, psn := range []rocev2.PSN{0, 1, 0xFF, 0x100, 0xABCDEF, 0xFFFFFE, 0xFFFFFF, 0} {
			if _, err := h.next(psn); err != nil {
				t.Fatal(err)
			}
			verdict, out := h.step(t)
			want, err := benchCase{payload: payload}.dataFrame(path, psn)
			if err != nil {
				t.Fatal(err)
			}
			if verdict != xdpRedirect || !bytes.Equal(out, want) {
				t.Fatalf("payload %d, PSN %#x: verdict %d, got\n%x, want\n%x", payload, psn, verdict, out, want)
			}
			if next, _ := h.next(); next != psn.Next() {
				t.Fatalf("PSN after %#x is %#x", psn, next)
			}
		}
		if s, _ := h.sent(); s.data != 8 || s.acks != 0 || s.waited != 0 {
			t.Errorf("counters: %+v", s)
		}
	}
}

// A generator sends no frame before its next burst is due; then a burst.
func TestGeneratePaced(t *testing.T) {
	h := newHarness(t, 64)
	h.set(t, func(c *controlValue) { c.Interval, c.Due, c.Burst = 1<<62, 1<<62, 2 })
	for range 3 {
		if v, _ := h.step(t); v != xdpDrop {
			t.Fatalf("verdict %d before its time", v)
		}
	}
	// In one system call, the time between calls is the time that was waited.
	start := time.Now()
	if _, err := h.objects.Generate.Run(&ebpf.RunOptions{Data: h.frame, Repeat: 10_000}); err != nil {
		t.Fatal(err)
	}
	if s, _ := h.sent(); s.waited <= 0 || s.waited > time.Since(start) {
		t.Errorf("waited %v in %v", s.waited, time.Since(start))
	}
	h.set(t, func(c *controlValue) { c.Due = 0 })
	for i, want := range []uint32{xdpRedirect, xdpRedirect, xdpDrop} {
		if v, _ := h.step(t); v != want {
			t.Fatalf("frame %d: verdict %d, want %d", i, v, want)
		}
	}
	if s, _ := h.sent(); s.data != 2 {
		t.Errorf("counters: %+v", s)
	}
}

// A source with a window sends no packet beyond it before the switch has acknowledged more.
func TestGenerateWindow(t *testing.T) {
	h := newHarness(t, 64)
	h.set(t, func(c *controlValue) { c.Burst, c.Window, c.PSN = 32, 3, 0xFFFFFF })
	steps := func(acked uint32, want ...uint32) {
		t.Helper()
		if err := h.sinks.setLast(0, lastValue{PSN: acked}); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if v, _ := h.step(t); v != w {
				t.Fatalf("acknowledged %#x, step %d: verdict %d, want %d", acked, i, v, w)
			}
		}
	}
	steps(0xFFFFFE, xdpRedirect, xdpRedirect, xdpRedirect, xdpDrop, xdpDrop)
	steps(0, xdpRedirect, xdpRedirect, xdpDrop)
	steps(psnNone, xdpRedirect) // no ACK yet
	h.set(t, func(c *controlValue) { c.Window = 0 })
	steps(0, xdpRedirect, xdpRedirect)
	if s, _ := h.sent(); s.data != 8 {
		t.Errorf("counters: %+v", s)
	}
}

// A sink lets its frames pass to sockets where it is told to; it counts them all the same.
func TestSinkPasses(t *testing.T) {
	labtest.Enter(t)
	f, err := newSinks(1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.load(1, benchCase{payload: 64}.frameLen(), expectedFrame{mac: path.DstMAC, dst: groupIP, qpn: virtualQPN}, true); err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{xdpPass, xdpDrop} {
		if err := f.pass(1, want == xdpPass); err != nil {
			t.Fatal(err)
		}
		frame, err := benchCase{payload: 64}.dataFrame(path, rocev2.PSN(i))
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := f.programs[0].Test(frame); err != nil || got != want {
			t.Errorf("verdict %d, error %v; want %d", got, err, want)
		}
	}
	if got, err := f.counts(1); err != nil || got.Good != 2 {
		t.Errorf("counted %+v, %v", got, err)
	}
}

// Each receiver acknowledges every 8th of its received packets, and a receiver that is
// far behind all of them at once.
func TestGenerateAcks(t *testing.T) {
	h := newHarness(t, 1024)
	h.set(t, func(c *controlValue) { c.Interval, c.Due, c.AckEvery, c.Jump = 1<<62, 1<<62, 8, 100 })
	arrive := func(leg int, psn uint32) {
		t.Helper()
		if err := h.sinks.arrived.Put(uint32(leg), &lastValue{PSN: psn}); err != nil {
			t.Fatal(err)
		}
	}
	// Receiver 1 has 16 packets and 3; receiver 2 has 200.
	arrive(1, 1000+18)
	arrive(2, 2000+199)
	got := make(map[rocev2.PSN]int)
	for range 8 {
		v, out := h.step(t)
		if v == xdpDrop {
			continue
		}
		var f rocev2.Frame
		if r := rocev2.Decode(out, &f); v != xdpRedirect || r != rocev2.OK || f.Op != rocev2.Acknowledge || !f.VerifyICRC() {
			t.Fatalf("verdict %d, decoded %v: %x", v, r, out)
		}
		if f.BTH().DestQP() != virtualQPN || f.Dst() != groupIP || f.AETH().Syndrome() != rocev2.SyndromeACK {
			t.Errorf("ACK is wrong: %x", out)
		}
		got[f.BTH().PSN()]++
	}
	if len(got) != 3 || got[1007] != 1 || got[1015] != 1 || got[2199] != 1 {
		t.Errorf("acknowledged %v; want 1007, 1015 and 2199 once each", got)
	}
	if s, _ := h.sent(); s.acks != 3 || s.data != 0 {
		t.Errorf("counters: %+v", s)
	}
	// A receiver without a due ACK is checked again.
	arrive(1, 1000+23)
	for turns := 0; ; turns++ {
		if v, _ := h.step(t); v == xdpRedirect {
			break
		}
		if turns == 2*2*8 {
			t.Fatal("no ACK of what arrived after a look that found none due")
		}
	}
}

// A sink counts its own frames, wrong ones, and ACKs; and drops these. Other frames go
// to the host.
func TestSinkCounts(t *testing.T) {
	labtest.Enter(t)
	want := expectedFrame{mac: path.DstMAC, dst: groupIP, qpn: virtualQPN}
	frame := func(p rocev2.Path, k rocev2.Packet, n int) []byte {
		b, err := build(&p, &k, make([]byte, n))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	data := rocev2.Packet{Op: dataOp, DestQP: virtualQPN, PSN: 77}
	otherMAC, otherIP, otherQPN := *path, *path, data
	otherMAC.DstMAC[5]++
	otherIP.Dst = otherIP.Dst.Next()
	otherQPN.DestQP++
	udp := make([]byte, 200)
	udp = udp[:rocev2.BuildUDP(udp, path, 4797, make([]byte, 64))]
	for name, c := range map[string]struct {
		frame []byte
		seen  seenValue
		pass  bool
	}{
		"good":        {frame: frame(*path, data, 64), seen: seenValue{Good: 1}},
		"another MAC": {frame: frame(otherMAC, data, 64), seen: seenValue{Wrong: 1}},
		"another IP":  {frame: frame(otherIP, data, 64), seen: seenValue{Wrong: 1}},
		"another QPN": {frame: frame(*path, otherQPN, 64), seen: seenValue{Wrong: 1}},
		"too short":   {frame: frame(*path, data, 60), seen: seenValue{Wrong: 1}},
		"ACK":         {frame: frame(*path, rocev2.Packet{Op: rocev2.Acknowledge, DestQP: 5}, 0), seen: seenValue{Acks: 1}},
		"other UDP":   {frame: udp, pass: true},
		"ARP":         {frame: binary.BigEndian.AppendUint16(make([]byte, 12, 60), 0x0806)[:60], pass: true},
	} {
		for _, xdp := range []bool{false, true} {
			f, err := newSinks(1)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.load(3, benchCase{payload: 64}.frameLen(), want, xdp); err != nil {
				t.Fatal(err)
			}
			passed, dropped := uint32(tcUnspec), uint32(tcShot)
			if xdp {
				passed, dropped = xdpPass, xdpDrop
			}
			verdict := passed
			if !c.pass {
				verdict = dropped
			}
			p := f.programs[0]
			if got, _, err := p.Test(c.frame); err != nil || got != verdict {
				t.Errorf("%s, XDP %v: verdict %d, error %v; want %d", name, xdp, int32(got), err, int32(verdict))
			}
			if got, err := f.counts(3); err != nil || got != c.seen {
				t.Errorf("%s, XDP %v: counted %+v, error %v; want %+v", name, xdp, got, err, c.seen)
			}
			if last, err := lastAt(f.arrived, 3); err != nil || (last == 77) != (c.seen.Good == 1) || (last == 0) != (c.seen.Acks == 1) {
				t.Errorf("%s: the last PSN is %#x, error %v", name, last, err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A PSN counts once; a PSN behind the last one is a repetition, across the wrap too.
func TestSinkCountsRepetitions(t *testing.T) {
	labtest.Enter(t)
	f, err := newSinks(1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.load(1, benchCase{payload: 64}.frameLen(), expectedFrame{mac: path.DstMAC, dst: groupIP, qpn: virtualQPN}, false); err != nil {
		t.Fatal(err)
	}
	for _, psn := range []rocev2.PSN{0xFFFFFD, 0xFFFFFE, 0xFFFFFE, 0xFFFFFD, 1, 0xFFFFFF, 1, 2} {
		frame, err := benchCase{payload: 64}.dataFrame(path, psn)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.programs[0].Test(frame); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := f.counts(1); err != nil || got != (seenValue{Good: 4, Again: 4}) {
		t.Errorf("counted %+v, %v; want 4 and 4 again", got, err)
	}
}

// The copy of a broadcast gets the port's MAC addresses and is otherwise the same.
func TestEgressRewritesMACs(t *testing.T) {
	labtest.Enter(t)
	spec, err := loadReplicate()
	if err != nil {
		t.Fatal(err)
	}
	dst, src := rocev2.MAC{1, 2, 3, 4, 5, 6}, rocev2.MAC{7, 8, 9, 10, 11, 12}
	if err := spec.Variables["egress_dst"].Set(macWord(dst)); err != nil {
		t.Fatal(err)
	}
	if err := spec.Variables["egress_src"].Set(macWord(src)); err != nil {
		t.Fatal(err)
	}
	// The kernel does not run a program of a devmap for a test; loaded as a program of
	// an interface it is the same.
	p := spec.Programs["egress"].Copy()
	p.AttachType = ebpf.AttachXDP
	var o struct {
		Egress *ebpf.Program `ebpf:"egress"`
	}
	spec.Programs["egress"] = p
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		t.Fatal(err)
	}
	defer o.Egress.Close()
	in, err := benchCase{payload: 64}.dataFrame(path, 5)
	if err != nil {
		t.Fatal(err)
	}
	verdict, out, err := o.Egress.Test(in)
	if err != nil || verdict != xdpPass {
		t.Fatalf("verdict %d, %v", verdict, err)
	}
	want := append(append(append([]byte{}, dst[:]...), src[:]...), in[12:]...)
	if !bytes.Equal(out, want) {
		t.Errorf("got %x, want %x", out[:20], want[:20])
	}
}
