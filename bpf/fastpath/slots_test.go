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

// A ring gets its share of the slots, and less if there are not as many; then others whose rings are larger are to
// shrink. One that was full gets what is free.
func TestShare(t *testing.T) {
	p := newPool(1 << 10)
	m := &Maps{small: p, large: newPool(0)}
	take := func(most, rings int, full bool, want int) *Group {
		t.Helper()
		first, n, ok := p.takeUpTo(most, rings, full)
		if ok != (want > 0) || ok && n != want {
			t.Errorf("a ring of %d slots at most among %d has %d, %v; want %d", most, rings, n, ok, want)
		}
		return &Group{maps: m, ringFirst: first, slots: n}
	}
	expect := func(is, want bool, what string) {
		t.Helper()
		if is != want {
			t.Errorf("%s: %v", what, is)
		}
	}
	hog := take(1<<10, 1, false, 1<<10)
	expect(hog.HasExcess() || m.Wanted() != 0, false, "the only ring is too large")
	take(1<<10, 1, false, 0)
	expect(hog.HasExcess() && m.Wanted() == 512, true, "nobody shrinks for a group that has found nothing")
	p.giveRing(hog.ringFirst, hog.slots)
	expect(m.Wanted() == 0, true, "slots are wanted that are free")
	hog = take(1<<10, 2, false, 512)
	late := take(1<<10, 2, false, 512)
	expect(hog.HasExcess() || late.HasExcess(), false, "a share is too much")
	p.giveRing(late.ringFirst, late.slots)
	m.Offer(4)
	late = take(1<<10, 4, false, 256)
	expect(late.MayGrow(1<<10, false), false, "a group grows beyond what there would be for each")
	expect(late.MayGrow(256, true), false, "a group grows beyond what it may have")
	expect(late.MayGrow(512, true) || m.Wanted() != 512, false, "a full group is to have what there is not, or nobody hears of it")
	p.giveRing(hog.ringFirst, hog.slots)
	expect(late.MayGrow(512, true) && m.Wanted() == 0, true, "a full group does not grow into free slots")
	m.Offer(-3)
	expect(late.MayGrow(1<<10, false), true, "a group does not grow when others have gone")
	take(1<<10, 1, true, 512)
	p, m = newPool(1<<10), &Maps{large: newPool(0)}
	m.small = p
	m.Offer(4)
	first := take(1<<10, 4, false, 256)
	expect(first.MayGrow(1<<10, false), false, "the first of several groups that may ask takes what the others are to have")
	for range 3 {
		take(64, 4, false, 64)
	}
	expect(first.MayGrow(1<<10, true), true, "a full group does not grow into what is free, beyond its share")
	expect(first.MayGrow(1<<10, false), false, "a group that was not full does")
}
