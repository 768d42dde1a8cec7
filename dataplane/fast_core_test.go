// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// coreCase is a group on the fast path, and the same group in a core.
type coreCase struct {
	*fastCase
	t        *testing.T
	x        *fastNet
	w        *worker
	g        *fastpath.Group
	sentinel *fastpath.Group // a group of the other address family: counts the packets behind those of the test
	marker   []byte
	markers  uint64
	status   mcast.GroupStatus
}

func newCoreCase(t *testing.T, r *rand.Rand, x *fastNet, v6 bool) *coreCase {
	c := &coreCase{t: t, x: x, w: bareWorker(t, len(x.Ports))}
	c.fastCase = drawFastCase(r, c.w, x, 0, v6, false)
	c.spec.Window = fastpath.Window{Base: 0x10000, Len: 0x4000, RKey: 0xABCD}
	c.spec.PMTU = 256
	other := fastCase{r: r, v6: !v6}
	window := mcast.Window{Base: c.spec.Window.Base, Len: c.spec.Window.Len, RKey: c.spec.Window.RKey}
	spec := mcast.GroupSpec{IP: c.spec.IP, GroupParams: mcast.GroupParams{QPN: c.spec.QPN, PathMTU: c.spec.PMTU}, Window: window}
	for i := range 3 {
		spec.Legs = append(spec.Legs, mcast.LegSpec{Port: mcast.Port(i)})
		m := mcast.MemberSpec{MemberRecord: mcast.MemberRecord{IP: c.newAddr(spec.Members), QPN: rocev2.QPN(100 + i), SQPSN: c.next, Window: window}, Leg: mcast.LegID(i)}
		if i == 0 {
			m.IP = c.spec.Source.IP
		} else {
			c.spec.Legs = append(c.spec.Legs, fastpath.LegSpec{Port: i, Ifindex: x.ifindex[i], IP: m.IP, QPN: m.QPN, Gate: fastpath.Gate{Shut: true}})
		}
		spec.Members = append(spec.Members, m)
	}
	if err := c.w.core.Apply(0, mcast.PutGroup{Spec: spec}, &c.w.out); err != nil {
		t.Fatal(err)
	}
	c.g = x.put(t, &c.spec, c.next, false)
	o := fastpath.GroupSpec{IP: other.addr(1), QPN: 1, PMTU: 256, Source: c.spec.Source}
	o.Source.IP = other.addr(2)
	c.sentinel = x.put(t, &o, 0, false)
	c.sentinel.Revoke()
	path := rocev2.Path{Src: o.Source.IP, Dst: o.IP, SrcMAC: o.Source.MAC}
	c.marker = make([]byte, 512)
	c.marker = c.marker[:rocev2.BuildPacket(c.marker, &path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 1}, nil)]
	return c
}

// newAddr draws the address of a receiver: neither the source's nor one of members.
func (c *coreCase) newAddr(members []mcast.MemberSpec) netip.Addr {
	for {
		ip := c.addr(2)
		if ip != c.spec.Source.IP && !slices.ContainsFunc(members, func(m mcast.MemberSpec) bool { return m.IP == ip }) {
			return ip
		}
	}
}

// draw builds a packet that is nearly the next one.
func (c *coreCase) draw(b []byte) []byte {
	r := c.r
	path := rocev2.Path{Src: c.spec.Source.IP, Dst: c.spec.IP, SrcMAC: c.spec.Source.MAC, SrcPort: 1, Tagged: r.IntN(4) == 0}
	k := rocev2.Packet{
		Op: requests[r.IntN(12)], DestQP: c.spec.QPN, PSN: c.next, AckReq: r.IntN(2) == 0,
		VA: c.spec.Window.Base + r.Uint64N(64), RKey: c.spec.Window.RKey,
	}
	n := []int{0, 1, 200, 255, 256}[r.IntN(5)]
	if k.Op.Is(rocev2.OpFirst | rocev2.OpMiddle) {
		n = 256
	}
	k.DMALen = uint32(n)
	if k.Op.Is(rocev2.OpFirst) {
		k.DMALen++
	}
	for range r.IntN(3) {
		switch r.IntN(9) {
		case 0:
			k.Op = rocev2.Opcode(r.IntN(0x20))
		case 1:
			k.PSN = c.next.Add(r.Int32N(7) - 3)
		case 2:
			k.PSN = rocev2.PSN(r.Uint32()) & rocev2.PSNMask
		case 3:
			k.DMALen += r.Uint32N(4) - 2
		case 4:
			k.DMALen = r.Uint32()
		case 5:
			k.VA += r.Uint64N(0x8000) - 0x2000
		case 6:
			n = r.IntN(260)
		case 7:
			k.RKey++
		case 8:
			k.DestQP++
		}
	}
	if k.Op == rocev2.AtomicWrite || k.Op == rocev2.AtomicAck {
		n = 8
	} else if !k.Op.Is(rocev2.OpPayload) {
		n = 0
	}
	frame := b[:rocev2.BuildPacket(b, &path, &k, make([]byte, n))]
	if len(frame) == 0 { // no opcode of RC
		frame = b[:rocev2.BuildPacket(b, &path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: c.spec.QPN, PSN: k.PSN}, nil)]
		frame[path.HeaderLen()] = byte(k.Op)
	}
	if r.IntN(3) == 0 {
		frame[12+r.IntN(len(frame)-12)] ^= byte(1 + r.IntN(255)) // MAC addresses aside
	}
	switch r.IntN(16) {
	case 0:
		frame = frame[:len(frame)-1-r.IntN(8)]
	case 1:
		frame = append(frame, make([]byte, 1+r.IntN(8))...)
	}
	return frame
}

// claimed sends a frame and reports whether the program has taken it.
func (c *coreCase) claimed(frame []byte) bool {
	c.t.Helper()
	hi := c.g.State().Hi
	c.x.taps[0].Send(frame)
	c.x.taps[0].Send(c.marker)
	c.markers++
	for end := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		n, err := c.sentinel.Counters()
		if err != nil || time.Now().After(end) {
			c.t.Fatalf("the packet behind is not counted in 20 s: %v, %v", n, err)
		}
		if n[fastpath.Slow] == c.markers {
			return c.g.State().Hi != hi
		}
	}
}

// forwards gives a frame to the core, as the worker would but without its ICRC verified, and
// reports whether it is forwarded at once to both receivers.
func (c *coreCase) forwards(frame []byte) bool {
	w := c.w
	if rocev2.Decode(frame, &w.frame) != rocev2.OK || w.frame.Kind != rocev2.KindRoCE || w.frame.Dst() != c.spec.IP {
		return false
	}
	packetOf(&w.frame, 0, &w.pkt)
	w.core.InputGroup(0, 0, &w.pkt, &w.out)
	return w.out.Drop == mcast.None && !w.out.NeedVerify && len(w.out.Copies) == 2
}

// What the programs take is what the core would have forwarded at once, for packets that
// are nearly the next one of their source: the one exception is the length of a message,
// which the receivers check (R67). What is the next one, they take.
func TestFastTakesWhatTheCoreForwards(t *testing.T) {
	x := newFastNet(t, 3)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for _, v6 := range []bool{false, true} {
		c := newCoreCase(t, r, x, v6)
		w := c.w
		// The member becomes the source by its first packet, which the worker has verified.
		var buf [1024]byte
		path := rocev2.Path{Src: c.spec.Source.IP, Dst: c.spec.IP}
		first := buf[:rocev2.BuildPacket(buf[:], &path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: c.spec.QPN, PSN: c.next}, nil)]
		if rocev2.Decode(first, &w.frame) != rocev2.OK {
			t.Fatal("decode")
		}
		packetOf(&w.frame, 0, &w.pkt)
		w.pkt.Verified = true
		w.core.InputGroup(0, 0, &w.pkt, &w.out)
		taken, missed := 0, 0
		for i := range 3000 {
			if !w.core.Group(0).Snapshot(&c.status) {
				t.Fatal("no group")
			}
			c.next = c.status.Nxt
			if st := c.g.State(); st.Hi != c.next || i == 0 {
				c.g.Revoke()
				c.g.Grant(c.next, false, c.next.Add(1<<20))
			}
			c.g.SetLimit(c.next.Add(1 << 20))
			frame := c.draw(buf[:])
			claimed, forwards := c.claimed(frame), c.forwards(frame)
			switch op := w.pkt.Op; {
			case claimed && !forwards && op != rocev2.WriteMiddle && op != rocev2.WriteLast && op != rocev2.WriteLastImm:
				t.Fatalf("packet %d (%v, PSN %06x, next %06x): the program takes it, and the core does not: %v, verify %v, %d copies\n%x",
					i, op, w.pkt.PSN, c.next, w.out.Drop, w.out.NeedVerify, len(w.out.Copies), frame)
			case claimed:
				taken++
			case forwards:
				missed++
			}
		}
		t.Logf("IPv6 %v: %d of 3000 packets taken, %d left to the core that it forwards", v6, taken, missed)
		if taken < 500 || missed > taken/10 {
			t.Errorf("IPv6 %v: %d packets taken, %d left to the core that it forwards", v6, taken, missed)
		}
		for _, g := range []*fastpath.Group{c.g, c.sentinel} {
			if err := g.Delete(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
