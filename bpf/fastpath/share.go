// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

// Rings are shared by need: a group gets at first what there would be for each if all groups that may ask had a
// ring, and what is free when that was not enough. A ring that is larger than what there is for each of those
// that have one shrinks when another group finds less.

// Offer tells that n more groups may ask for a ring, or fewer. Any goroutine may call it.
func (m *Maps) Offer(n int) { m.offered.Add(int64(n)) }

// Wanted returns the slots of the largest ring that a group has use for, and finds no room for; 0: there is none. Any
// goroutine may call it.
func (m *Maps) Wanted() int { return max(m.small.lacks(), m.large.lacks()) }

func (p *pool) lacks() int {
	if n := p.wanted.Load(); n > p.whole.Load() {
		return int(n)
	}
	return 0
}

func (g *Group) pool() *pool {
	if g.slotBytes == largeSlotBytes {
		return g.maps.large
	}
	return g.maps.small
}

// Room returns the legs that the group's place has room for.
func (g *Group) Room() int { return g.room }

// Slots returns the slots of the ring.
func (g *Group) Slots() int { return g.slots }

// HasExcess reports whether the ring is to shrink: it is larger than its share, and another group lacks slots.
func (g *Group) HasExcess() bool {
	p := g.pool()
	return p.short.Load() && g.slots > int(p.fair.Load())
}

// MayGrow reports whether there is room for a ring with at least twice as many slots, and at most that many: for a group
// whose ring was full all that is free, for others their share.
func (g *Group) MayGrow(most int, full bool) bool {
	p := g.pool()
	share, whole := int(p.fair.Load()), int(p.whole.Load())
	switch {
	case full && whole < 2*g.slots && 2*g.slots <= most:
		p.wanted.Store(int32(2 * g.slots))
		return false
	case full:
		return 2*g.slots <= min(most, max(share, whole))
	}
	share = min(share, p.share(int(g.maps.offered.Load())))
	return 2*g.slots <= min(most, share, whole)
}
