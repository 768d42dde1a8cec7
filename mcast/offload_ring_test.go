// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestOffloadSlots: the ring of a grant is as large as the driver has said before it, and is not changed in between.
func TestOffloadSlots(t *testing.T) {
	s, out := offloaded(t, nil)
	s.SetOffloadSlots(0, 2)
	if got := s.Group(0).OffloadLimit(); got != 8 {
		t.Errorf("the limit is %d after a change while the group is offloaded, want 8", got)
	}
	s.Revoked(0, 0, out)
	s.SetOffloadSlots(0, 2)
	if got := s.Group(0).OffloadLimit(); got != 2 || !s.Group(0).HasOffloadRoom() {
		t.Errorf("the limit is %d, want 2, and the next packet has a slot: %v", got, s.Group(0).HasOffloadRoom())
	}
	if s.SetOffloadSlots(0, 1); s.Group(0).HasOffloadRoom() {
		t.Error("the next packet has a slot, although the ring is full")
	}
	if _, ok := s.Offload(2*time.Second, 0, out); ok {
		t.Error("granted with a full ring")
	}
	s.SetOffloadSlots(0, 16)
	if g, ok := s.Offload(2*time.Second, 0, out); !ok || g.Limit != 16 {
		t.Errorf("granted %+v, %v", g, ok)
	}
	s.SetOffloadSlots(7, 16)
	if s.Group(7).HasOffloadRoom() || s.Group(7).RetainsBefore(9) {
		t.Error("of no group")
	}
}

// TestRetainsBefore: packets are retained until all receivers have acknowledged them.
func TestRetainsBefore(t *testing.T) {
	s, out := offloaded(t, nil)
	s.InputForwarded(0, 0, dataOf(1), out)
	if g := s.Group(0); !g.RetainsBefore(1) || g.RetainsBefore(0) {
		t.Error("packet 0 is not retained, or one before it is")
	}
	for i, n := range []string{"B", "C"} {
		s.Input(0, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf(n), Op: 0x11, Syndrome: 0x1F, PSN: 0, Verified: true}, out)
		if g := s.Group(0); g.RetainsBefore(1) != (i == 0) || !g.RetainsBefore(2) {
			t.Errorf("after %d ACKs of packet 0: %v, %v", i+1, g.RetainsBefore(1), g.RetainsBefore(2))
		}
	}
}

// TestDueAreThoseThatAreServed: the groups that are due are those that the heap gives at that time, and they stay in it.
func TestDueAreThoseThatAreServed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := New(Limits{})
	s.timers.grow(200)
	for id := range GroupID(200) {
		if r.IntN(3) > 0 {
			s.timers.arm(id, time.Duration(r.IntN(100)))
		}
	}
	for _, now := range []time.Duration{-1, 0, 30, 99} {
		got := s.Due(now, nil)
		var want []GroupID
		for id := range GroupID(200) {
			if at, ok := s.timers.deadline(id); ok && at <= now {
				want = append(want, id)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("at %d: %v, want %v", now, got, want)
		}
	}
}
