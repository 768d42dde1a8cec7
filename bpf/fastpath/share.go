// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

// Rings are shared by need: a group gets at first what there would be for each if all groups that may ask had a
// ring, and more when that was not enough, up to what there is for each of those that have one. A ring that is
// larger than that shrinks when another group finds less.

// Offer tells that n more groups may ask for a ring, or fewer. Any goroutine may call it.
func (m *Maps) Offer(n int) { m.offered.Add(int64(n)) }

// IsShort reports whether the last group that asked for a ring of a kind has got less than its share. Any
// goroutine may call it.
func (m *Maps) IsShort() bool { return m.small.short.Load() || m.large.short.Load() }

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

// MayGrow reports whether a ring of twice as many slots, and at most that many, is no more than the group's share, and
// there are some.
func (g *Group) MayGrow(most int, full bool) bool {
	p := g.pool()
	share := int(p.fair.Load())
	if !full {
		share = min(share, p.share(int(g.maps.offered.Load())))
	}
	if 2*g.slots > min(most, share) {
		return false
	}
	if int(p.whole.Load()) < 2*g.slots {
		p.short.Store(true)
		return false
	}
	return true
}
