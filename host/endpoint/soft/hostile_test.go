// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// inject sends raw frames from a host's interface.
func (p *pair) inject(t *testing.T, host int, frames ...[]byte) {
	t.Helper()
	fd := -1
	err := p.star.Hosts[host].NS.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	sa := &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: p.dev[host].ifindex}
	for _, f := range frames {
		if err := unix.Sendto(fd, f, 0, sa); err != nil {
			t.Fatal(err)
		}
	}
}

// until waits for a condition on a device's counters.
func until(t *testing.T, d *Device, what string, ok func(Stats) bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(d.Stats()); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 10 s: %+v", what, d.Stats())
		}
		time.Sleep(time.Millisecond)
	}
}

// TestHostileFrames sends frames that must not reach the queue pair, each kind with its
// own counter, and then checks that the connection is unaffected.
func TestHostileFrames(t *testing.T) {
	p := newPair(t, pairConfig{pathMTU: 1024, memory: 4096})
	a, b := p.qp[0].Info(), p.qp[1].Info()
	good := rocev2.Path{SrcMAC: p.dev[0].mac, DstMAC: p.dev[1].mac, Src: a.IP, Dst: b.IP, SrcPort: 50000}
	write := rocev2.Packet{
		Op: rocev2.WriteOnly, AckReq: true, DestQP: b.QPN, PSN: b.RQPSN, VA: p.recv.Addr(), RKey: p.recv.RKey(), DMALen: 8,
	}
	build := func(path rocev2.Path, k rocev2.Packet) []byte {
		f := make([]byte, 256)
		return f[:rocev2.BuildPacket(f, &path, &k, []byte("intruder"))]
	}
	path := func(f func(*rocev2.Path)) []byte { c := good; f(&c); return build(c, write) }
	packet := func(f func(*rocev2.Packet)) []byte { c := write; f(&c); return build(good, c) }
	bytesOf := func(f func([]byte)) []byte { c := build(good, write); f(c); return c }
	for _, c := range []struct {
		name    string
		frame   []byte
		counter func(Stats) uint64
	}{
		{"bad ICRC", bytesOf(func(b []byte) { b[len(b)-1] ^= 1 }), func(s Stats) uint64 { return s.RxBadICRC }},
		{"flipped payload", bytesOf(func(b []byte) { b[len(b)-6] ^= 1 }), func(s Stats) uint64 { return s.RxBadICRC }},
		{"other QPN", packet(func(k *rocev2.Packet) { k.DestQP ^= 0x800 }), func(s Stats) uint64 { return s.RxNoQP }},
		{"other partition", packet(func(k *rocev2.Packet) { k.PKey = 0x8001 }), func(s Stats) uint64 { return s.RxPKey }},
		{"other source", path(func(c *rocev2.Path) { c.Src = netip.MustParseAddr("10.77.0.9") }), func(s Stats) uint64 { return s.RxOtherPeer }},
		{"other own address", path(func(c *rocev2.Path) {
			c.Src, c.Dst = netip.MustParseAddr("fd77::1"), netip.MustParseAddr("fd77::2")
		}), func(s Stats) uint64 { return s.RxOtherIP }},
		{"broadcast", path(func(c *rocev2.Path) { c.DstMAC = rocev2.MAC{255, 255, 255, 255, 255, 255} }), func(s Stats) uint64 { return s.RxOtherMAC }},
		{"unknown opcode", bytesOf(func(b []byte) { b[42] = 0x15 }), func(s Stats) uint64 { return s.Malformed[rocev2.ReasonUnknownOpcode] }},
		{"UDP length lies", bytesOf(func(b []byte) { b[39]++ }), func(s Stats) uint64 { return s.Malformed[rocev2.ReasonBadUDPLength] }},
		{"ACK with payload", bytesOf(func(b []byte) { b[42] = 0x11 }), func(s Stats) uint64 { return s.Malformed[rocev2.ReasonBadBTHLength] }},
	} {
		before := c.counter(p.dev[1].Stats())
		p.inject(t, 0, c.frame)
		until(t, p.dev[1], c.name, func(s Stats) bool { return c.counter(s) == before+1 })
	}
	if !bytes.Equal(p.recv.Bytes(), make([]byte, p.recv.Len())) {
		t.Error("memory was written")
	}
	if s := p.qp[1].Stats(); s.RxPackets != 0 || s.TxPackets != 0 {
		t.Errorf("the queue pair saw something: %+v", s)
	}
	p.transfer(t, []int{0, 100, 4096})
	// A negative control: the frame that the others were made from is accepted, once its
	// PSN is expected.
	p.inject(t, 0, packet(func(k *rocev2.Packet) { k.PSN = p.nextPSN(t) }))
	for end := time.Now().Add(10 * time.Second); !bytes.HasPrefix(p.snapshot(t), []byte("intruder")); {
		if time.Now().After(end) {
			t.Fatal("the control frame has no effect")
		}
		time.Sleep(time.Millisecond)
	}
}

// nextPSN is host 1's ePSN.
func (p *pair) nextPSN(t *testing.T) (psn rocev2.PSN) {
	t.Helper()
	if err := p.dev[1].do(func() { psn = p.qp[1].(*qp).rc.ExpectedPSN() }); err != nil {
		t.Fatal(err)
	}
	return psn
}

// snapshot reads host 1's memory in its loop, where it is written.
func (p *pair) snapshot(t *testing.T) (b []byte) {
	t.Helper()
	if err := p.dev[1].do(func() { b = bytes.Clone(p.recv.Bytes()) }); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKernelStaysSilent checks that the packets reach UDP in the receiving host's kernel,
// and that no ICMP error leaves.
func TestKernelStaysSilent(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		p := newPair(t, pairConfig{pathMTU: 1024, memory: 301 * 1024, v6: v6})
		p.transfer(t, []int{1000, 300 * 1024})
		for i, h := range p.star.Hosts {
			file, unreachable, seen := "/proc/thread-self/net/snmp", "IcmpOutDestUnreachs", "UdpInErrors"
			if v6 {
				file, unreachable, seen = "/proc/thread-self/net/snmp6", "Icmp6OutDestUnreachs", "Udp6InErrors"
			}
			n := counters(t, h.NS, file)
			if n[unreachable] != 0 || n[seen] == 0 {
				t.Errorf("host %d, v6 %v: %d ICMP unreachable sent, %d packets dropped at UDP", i, v6, n[unreachable], n[seen])
			}
		}
	}
}

func TestErrors(t *testing.T) {
	p := newPair(t, pairConfig{pathMTU: 1024, memory: 4096, qp: endpoint.QPConfig{MaxSend: 2, MaxRecv: 2}})
	whole := endpoint.Segment{MR: p.send, Len: 4096}
	other, err := p.dev[1].CreateQP(endpoint.QPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		qp endpoint.QP
		wr endpoint.SendWR
		is string
	}{
		"not connected":  {other, endpoint.SendWR{Op: endpoint.Send}, "not connected"},
		"no operation":   {p.qp[0], endpoint.SendWR{}, "unknown operation"},
		"past the end":   {p.qp[0], endpoint.SendWR{Op: endpoint.Send, Local: endpoint.Segment{MR: p.send, Offset: 1, Len: 4096}}, "outside of its memory region"},
		"before the MR":  {p.qp[0], endpoint.SendWR{Op: endpoint.Send, Local: endpoint.Segment{MR: p.send, Offset: -1, Len: 2}}, "outside of its memory region"},
		"negative":       {p.qp[0], endpoint.SendWR{Op: endpoint.Send, Local: endpoint.Segment{MR: p.send, Len: -1}}, "outside of its memory region"},
		"foreign memory": {p.qp[0], endpoint.SendWR{Op: endpoint.Send, Local: endpoint.Segment{MR: p.recv, Len: 1}}, "not one of this device"},
		"no memory":      {p.qp[0], endpoint.SendWR{Op: endpoint.Send, Local: endpoint.Segment{Len: 1}}, "not one of this device"},
	} {
		if n, err := c.qp.PostSend(c.wr); n != 0 || err == nil || !bytes.Contains([]byte(err.Error()), []byte(c.is)) {
			t.Errorf("%s: posted %d, error %v", name, n, err)
		}
	}
	if _, err := p.qp[0].PostRecv(endpoint.RecvWR{Local: whole}); err == nil {
		t.Error("a receive into memory without LocalWrite was taken")
	}
	checkWrongRKey(t, p, whole)
}

// checkWrongRKey checks the error of the first request, the flush of the second, a full
// queue, and the flush of requests posted afterwards.
func checkWrongRKey(t *testing.T, p *pair, whole endpoint.Segment) {
	t.Helper()
	bad := endpoint.SendWR{ID: 1, Op: endpoint.Write, Local: whole, RemoteAddr: p.recv.Addr(), RKey: p.recv.RKey() + 1}
	ok := bad
	ok.ID, ok.RKey = 2, p.recv.RKey()
	third := ok
	third.ID = 3
	n, err := p.qp[0].PostSend(bad, ok, third)
	if n != 2 || !errors.Is(err, endpoint.ErrQueueFull) {
		t.Errorf("posted %d with room for 2, error %v", n, err)
	}
	var got []endpoint.Completion
	for len(got) < 2 {
		cs := make([]endpoint.Completion, 4)
		n, err := p.qp[0].Poll(p.ctx, cs)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, cs[:n]...)
	}
	if got[0].ID != 1 || got[0].Status != endpoint.RemoteAccessErr || got[1].ID != 2 || got[1].Status != endpoint.WRFlushErr {
		t.Errorf("completions %+v", got)
	}
	var se *endpoint.StatusError
	if err := got[0].Err(); !errors.As(err, &se) || !strings.Contains(err.Error(), "wrong R_Key") {
		t.Errorf("error %v", err)
	}
	if _, err := p.qp[0].PostSend(third); err != nil {
		t.Fatal(err)
	}
	cs := make([]endpoint.Completion, 1)
	if n, err := p.qp[0].Poll(p.ctx, cs); n != 1 || err != nil || cs[0].ID != 3 || cs[0].Status != endpoint.WRFlushErr {
		t.Errorf("after the error: %d %v %+v", n, err, cs)
	}
	if !bytes.Equal(p.recv.Bytes(), make([]byte, 4096)) {
		t.Error("memory was written under a wrong R_Key, or after the failure")
	}
}
