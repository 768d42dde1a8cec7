// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestR70_RoomIsALegsOwn: copies that the port of one leg does not take wait for that
// port, and resends to other legs do not. The part of a burst that the port takes goes
// out.
func TestR70_RoomIsALegsOwn(t *testing.T) {
	s, in := unsentGroup(t, 100_000)
	for psn := rocev2.PSN(0); psn < 4; psn++ {
		in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: psn, Frame: Handle(psn)})
	}
	room := []int{0, 0, 9} // by leg: B's port takes nothing
	until := 5 * time.Millisecond
	asked := 0
	out := in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: 4, Frame: 4})
	out.PortRoom = func(id GroupID, leg LegID) (int, time.Duration) {
		asked++
		return room[leg], until
	}
	nak := func(name string, psn rocev2.PSN) {
		in(0, Packet{Src: ipOf(name), Op: rocev2.Acknowledge, PSN: psn, Syndrome: rocev2.SyndromeNAKSequence})
	}
	if nak("B", 100); len(out.Copies) != 0 || len(out.Feedback) != 0 {
		t.Fatalf("B's port takes nothing: %+v", *out)
	}
	if nak("C", 200); !slices.Equal(sentTo(out, 2), []rocev2.PSN{200, 201, 202, 203, 204}) || len(sentTo(out, 1)) != 0 {
		t.Fatalf("C's port takes all: %v", out.Copies)
	}
	if n := asked; n != 2 {
		t.Errorf("asked for room %d times, want once for each NAK", n)
	}
	if nak("B", 100); len(out.Copies)+len(out.Feedback) != 0 || asked != 2 {
		t.Errorf("a NAK of what waits for the port: %+v", *out)
	}
	if at, ok := s.NextDeadline(); !ok || at > until {
		t.Fatalf("next deadline %v, %v; want %v at the latest", at, ok, until)
	}
	s.Advance(until-1, out)
	if len(sentTo(out, 1)) != 0 {
		t.Fatalf("before its port may take more B gets %v", out.Copies)
	}
	room[1] = 2
	now := until
	until = 9 * time.Millisecond
	s.Advance(now, out)
	if got := sentTo(out, 1); !slices.Equal(got, []rocev2.PSN{100, 101}) {
		t.Fatalf("with room for two B gets %v", got)
	}
	s.Advance(until, out)
	if got := sentTo(out, 1); !slices.Equal(got, []rocev2.PSN{102, 103}) {
		t.Fatalf("with room for two again B gets %v", got)
	}
	room[1] = 9
	s.Advance(until+1, out)
	if got := sentTo(out, 1); !slices.Equal(got, []rocev2.PSN{104}) {
		t.Fatalf("the rest is %v", got)
	}
	if s.groups[0].acks[1].flags&recovering != 0 {
		t.Error("a receiver that was sent everything is late")
	}
}

// TestR70_FullPortUsesUpNothing: PortRoom is not called for a leg without resends, and a
// full port does not use up MaxResends.
func TestR70_FullPortUsesUpNothing(t *testing.T) {
	s, in := unsentGroup(t, 100_000)
	for psn := rocev2.PSN(0); psn < 4; psn++ {
		in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: psn, Frame: Handle(psn)})
	}
	out := in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: 4, Frame: 4})
	out.PortRoom = func(_ GroupID, leg LegID) (int, time.Duration) {
		if leg == 2 {
			return 9, 0
		}
		return -1, time.Millisecond // a negative number means none
	}
	in(0, Packet{Src: ipOf("B"), Op: rocev2.Acknowledge, PSN: 100, Syndrome: rocev2.SyndromeNAKSequence})
	out.MaxResends = 5
	in(0, Packet{Src: ipOf("C"), Op: rocev2.Acknowledge, PSN: 200, Syndrome: rocev2.SyndromeNAKSequence})
	if got := sentTo(out, 2); len(got) != 5 {
		t.Errorf("C gets %v, want all five", got)
	}
	if _, ok := s.NextDeadline(); !ok {
		t.Error("nobody will look after B")
	}
}

// TestR70_LegsOfOneCall: of legs with the same deadline, those with room in their ports
// do not wait for one without.
func TestR70_LegsOfOneCall(t *testing.T) {
	s, in := unsentGroup(t, 100_000)
	out := in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly})
	for _, c := range slices.Clone(out.Copies) {
		if !s.Requeue(&c, time.Millisecond) {
			t.Fatal("lost")
		}
	}
	out.PortRoom = func(_ GroupID, leg LegID) (int, time.Duration) { return int(leg) - 1, 5 * time.Millisecond }
	s.Advance(time.Millisecond, out)
	if len(sentTo(out, 1)) != 0 || len(sentTo(out, 2)) != 1 {
		t.Errorf("copies %v, want C's alone", out.Copies)
	}
	if at, ok := s.NextDeadline(); !ok || at <= time.Millisecond {
		t.Errorf("next deadline %v, %v: nothing is to be done before B's port may take more", at, ok)
	}
}

// TestR106_RoomForNamedPackets: of the packets that a selective NAK names, a leg gets those that its port takes.
func TestR106_RoomForNamedPackets(t *testing.T) {
	r, room := paced(t)
	for psn := range rocev2.PSN(4) {
		r.data(psn, 0, 1000)
	}
	*room = 2
	r.out.reset()
	r.sw.group(0).selectiveNAKReceived(r.now, 1, &Packet{PSN: 0, Syndrome: selectiveNAK | 3}, &r.out)
	if got := sentTo(&r.out, 1); !slices.Equal(got, []rocev2.PSN{0, 1}) {
		t.Errorf("with room for two B gets %v", got)
	}
}
