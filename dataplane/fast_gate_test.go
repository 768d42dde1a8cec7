// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/rocev2"
)

// fastStream sends packets of a group with legs to members, and tells their copies apart
// by QPN.
type fastStream struct {
	t    *testing.T
	x    *fastNet
	g    *fastpath.Group
	spec fastpath.GroupSpec
	path rocev2.Path

	served bool // the group is in the maps
}

const fastFirst = rocev2.PSN(0xFFFFFD)

// newFastStream makes a group with a leg behind each of these ports, FAST from fastFirst
// on.
func newFastStream(t *testing.T, slots int, ports ...int) *fastStream {
	x := newFastNet(t, 3)
	s := &fastStream{t: t, x: x}
	h := x.Hosts[0]
	group := fastPrefixes[0].Addr().Next()
	s.path = rocev2.Path{Src: h.IPv4, Dst: group, SrcMAC: rocev2.MAC(h.MAC), DstMAC: rocev2.MAC{2, 1}}
	s.spec = fastpath.GroupSpec{
		IP: group, QPN: 7, PMTU: 256, Slots: slots, Source: fastpath.Source{IP: h.IPv4, MAC: rocev2.MAC(h.MAC), Ifindex: x.ifindex[0]},
	}
	for i, p := range ports {
		s.spec.Legs = append(s.spec.Legs, fastpath.LegSpec{
			Port: p, Ifindex: x.ifindex[p], MAC: rocev2.MAC(x.Hosts[p].MAC), IP: x.Hosts[p].IPv4, QPN: rocev2.QPN(100 + i), Gate: fastpath.Gate{Next: fastFirst},
		})
	}
	s.g, s.served = x.put(t, &s.spec, fastFirst, false), true
	return s
}

// left is how many packets were left to user space.
func (s *fastStream) left() (n uint64) {
	s.t.Helper()
	c, err := s.g.Counters()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, k := range c {
		n += k
	}
	return n
}

func (s *fastStream) until(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			s.t.Fatalf("%s: not within 20 s; the group is at %+v", what, s.g.State())
		}
		runtime.Gosched()
	}
}

// frame builds the packet with a PSN, whose payload is made of it.
func (s *fastStream) frame(b []byte, psn rocev2.PSN) []byte {
	payload := bytes.Repeat([]byte{byte(psn), byte(psn >> 8)}, 64)
	return b[:rocev2.BuildPacket(b, &s.path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 7, PSN: psn}, payload)]
}

// send sends a packet, of which copies leave for some legs, by port.
func (s *fastStream) send(psn rocev2.PSN, legs ...int) {
	s.t.Helper()
	var b [1024]byte
	was := s.left()
	s.x.taps[0].Send(s.frame(b[:], psn))
	if len(legs) == 0 && s.served {
		s.until("the packet is left to user space", func() bool { return s.left() == was+1 })
	}
	missing := make(map[rocev2.QPN]bool)
	for _, l := range legs {
		missing[s.spec.Legs[l].QPN] = true
	}
	for _, l := range legs {
		var f rocev2.Frame
		rocev2.Decode(s.x.taps[s.spec.Legs[l].Port].Next(), &f)
		if q := f.BTH().DestQP(); f.BTH().PSN() != psn || !missing[q] {
			s.t.Fatalf("PSN %06x: a copy of %06x for QPN %d; want one for %v", psn, f.BTH().PSN(), q, missing)
		} else {
			missing[q] = false
		}
	}
	for _, tap := range s.x.taps {
		tap.Idle()
	}
}

func (s *fastStream) gate(leg int, next rocev2.PSN, copies uint64, shut bool) {
	s.t.Helper()
	if g := s.g.Gate(leg); g != (fastpath.Gate{Next: next, Copies: copies, Shut: shut}) {
		s.t.Fatalf("gate of leg %d: %+v, want next %06x, %d copies, shut %v", leg, g, next, copies, shut)
	}
}

// A leg that is shut gets nothing, and the others go on. Opened at a PSN that has passed
// it gets nothing either, until it is opened at the next one. So it never gets a packet
// out of order.
func TestFastGates(t *testing.T) {
	s := newFastStream(t, 16, 1, 1, 2)
	p := fastFirst
	s.send(p, 0, 1, 2)
	if g := s.g.Shut(1); g.Next != p.Next() || g.Shut {
		t.Fatalf("shut at %+v", g)
	}
	s.send(p.Add(1), 0, 2)
	s.send(p.Add(2), 0, 2)
	s.gate(0, p.Add(3), 3, false)
	s.gate(1, p.Add(1), 1, true)
	s.gate(2, p.Add(3), 3, false)
	s.g.Open(1, p.Add(2)) // one has passed meanwhile
	s.send(p.Add(3), 0, 2)
	s.gate(1, p.Add(2), 1, false)
	s.g.Open(1, p.Add(4))
	s.send(p.Add(4), 0, 1, 2)
	s.gate(1, p.Add(5), 2, false)
	if st := s.g.State(); st.Hi != p.Add(5) || !st.Fast {
		t.Fatalf("the group is at %+v", st)
	}
}

// Up to the limit packets are forwarded, and none beyond it, so that no slot is lost that
// is needed. Moving the limit on lets the next one through.
func TestFastRingFull(t *testing.T) {
	s := newFastStream(t, 16, 1)
	p := fastFirst
	for i := range int32(16) {
		s.send(p.Add(i), 0)
	}
	s.send(p.Add(16))
	c, err := s.g.Counters()
	if err != nil || c[fastpath.Limit] != 1 {
		t.Fatalf("counters %v, %v", c, err)
	}
	var b, want [1024]byte
	for i := range int32(16) {
		if got, _ := loadFromRing(t, s.g, p.Add(i), b[:]); !bytes.Equal(got, s.frame(want[:], p.Add(i))) {
			t.Fatalf("PSN %06x: the ring has %x", p.Add(i), got)
		}
	}
	s.g.SetLimit(p.Add(17))
	s.send(p.Add(16), 0)
	if _, _, ok := s.g.Load(p, b[:]); ok {
		t.Fatal("the slot of the first packet is in use again, and still gives it")
	}
	loadFromRing(t, s.g, p.Add(16), b[:])
}

// After Set nothing that was stored before is found, and what user space stores is, beside
// what the program does.
func TestFastIncarnation(t *testing.T) {
	s := newFastStream(t, 16, 1)
	var b, frame [1024]byte
	s.send(fastFirst, 0)
	loadFromRing(t, s.g, fastFirst, b[:])
	if err := s.g.Set(&s.spec); err == nil {
		t.Fatal("a group on the fast path was changed")
	}
	if st := s.g.Revoke(); st != (fastpath.State{Hi: fastFirst.Next(), Ends: 1, Fast: true}) {
		t.Fatalf("revoked at %+v", st)
	}
	s.send(fastFirst.Next())
	if err := s.x.Switch.Do(func() error { return s.g.Set(&s.spec) }); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := s.g.Load(fastFirst, b[:]); ok {
		t.Fatal("a packet of before is found")
	}
	if !s.g.Store(fastFirst, s.frame(frame[:], fastFirst)) {
		t.Fatal("a packet was not stored")
	}
	s.g.Open(0, fastFirst.Next())
	s.g.Grant(fastFirst.Next(), false, fastFirst.Add(16))
	s.send(fastFirst.Next(), 0)
	for i := range int32(2) {
		if got, _ := loadFromRing(t, s.g, fastFirst.Add(i), b[:]); !bytes.Equal(got, s.frame(frame[:], fastFirst.Add(i))) {
			t.Fatalf("PSN %06x: the ring has %x", fastFirst.Add(i), got)
		}
	}
	if err := s.g.Delete(); err != nil {
		t.Fatal(err)
	}
	s.served = false
	s.send(fastFirst.Add(2))
}

// A reader that is beside the writer gets the packet that it asked for, whole, or nothing.
func TestFastRingIsReadWhileWritten(t *testing.T) {
	s := newFastStream(t, 16, 1)
	const packets = 20000
	var done atomic.Bool
	var reader sync.WaitGroup
	read := 0
	reader.Go(func() {
		r := rand.New(rand.NewPCG(1, 2))
		var got, want [1024]byte
		for !done.Load() {
			psn := s.g.State().Hi.Add(-1 - r.Int32N(17))
			if k, _, ok := s.g.Load(psn, got[:]); ok {
				if read++; !bytes.Equal(got[:k], s.frame(want[:], psn)) {
					t.Errorf("PSN %06x: the ring has %x", psn, got[:k])
					return
				}
			}
		}
	})
	var b [1024]byte
	for i := range int32(packets) {
		// Without regard to what the reader reads: slots are lost under it.
		s.g.SetLimit(fastFirst.Add(i + 1))
		s.x.taps[0].Send(s.frame(b[:], fastFirst.Add(i)))
		s.until("the switch takes the packets", func() bool { return fastFirst.Add(i).Sub(s.g.State().Hi) < 64 })
	}
	s.until("the last packet is forwarded", func() bool { return s.g.State().Hi == fastFirst.Add(packets) })
	done.Store(true)
	reader.Wait()
	t.Logf("%d packets read", read)
}
