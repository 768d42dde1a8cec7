// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Rings do not overlap, begin at a multiple of their size, and what is given back is
// taken again.
func TestSlots(t *testing.T) {
	s := newSlots(100) // 6 times 16
	take := func(n, want int) {
		t.Helper()
		if first, ok := s.take(n); ok != (want >= 0) || ok && first != want {
			t.Errorf("%d slots at %d, %v; want %d", n, first, ok, want)
		}
	}
	take(32, 0)
	take(16, 32)
	take(32, 64)
	take(64, -1)
	take(32, -1)
	take(16, 48)
	take(16, -1)
	s.give(0, 32)
	take(16, 0)
	take(16, 16)
	if n := RingSize(17); n != 32 || RingSize(1) != minRing {
		t.Errorf("a ring for 17 packets has %d slots, one for 1 %d", n, RingSize(1))
	}
}

// Words are what fast.h says, and a gate survives the way into its word and back.
func TestWords(t *testing.T) {
	if s := stateOf(5<<wordIncarnation | wordFast | 0xABCDEF<<wordEnds | 0x123456); s != (State{Hi: 0x123456, Ends: 0xABCDEF, Fast: true}) {
		t.Errorf("state %+v", s)
	}
	if s := stateOf(wordOpen); s != (State{Open: true}) {
		t.Errorf("state %+v", s)
	}
	for _, g := range []Gate{{}, {Next: rocev2.PSNMask, Copies: copiesMask}, {Next: 1, Copies: 2, Shut: true}} {
		if is := gateOf(g.word()); is != g {
			t.Errorf("gate %+v becomes %+v", g, is)
		}
	}
}

// A configuration without room for anything is refused, with the reason.
func TestConfig(t *testing.T) {
	one := []Size{{Legs: 1, Groups: 1}}
	for name, c := range map[string]Config{
		"no port":      {Sizes: one},
		"no group":     {Ports: 1},
		"no leg":       {Ports: 1, Sizes: []Size{{Groups: 1}}},
		"too many":     {Ports: 1, Sizes: []Size{{Legs: MaxGroupLegs + 1, Groups: 1}}},
		"slots":        {Ports: 1, Sizes: one, Slots: -1},
		"large slots":  {Ports: 1, Sizes: one, LargeSlots: -1},
		"none of them": {Ports: 1, Sizes: []Size{{Legs: 1}}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
