// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import "sync/atomic"

// slots are the slots of all rings of one kind. A ring has a power of two of them, which
// begin at a multiple of their number.
type slots struct{ used []bool } // by minRing slots

// minRing is the smallest ring, MaxRing the largest: with more slots the processor's
// caches cost more than a packet's other work.
const (
	minRing = 16
	MaxRing = 1 << 12
)

func newSlots(n int) slots { return slots{make([]bool, n/minRing)} }

// RingSize returns the number of slots of the smallest ring that has n.
func RingSize(n int) int {
	size := minRing
	for size < n {
		size *= 2
	}
	return size
}

// find returns the first of n free slots, and false if there are none.
func (s *slots) find(n int) (first int, ok bool) {
	n /= minRing
next:
	for at := 0; at+n <= len(s.used); at += n {
		for _, used := range s.used[at : at+n] {
			if used {
				continue next
			}
		}
		return at * minRing, true
	}
	return 0, false
}

// take is find, and the slots are used from now on.
func (s *slots) take(n int) (first int, ok bool) {
	if first, ok = s.find(n); ok {
		s.mark(first/minRing, n/minRing, true)
	}
	return first, ok
}

func (s *slots) give(first, n int) { s.mark(first/minRing, n/minRing, false) }

func (s *slots) mark(at, n int, used bool) {
	for i := range n {
		s.used[at+i] = used
	}
}

// pool is the slots of one kind, and what says how groups share them. Maps.mu guards what is not atomic.
type pool struct {
	slots
	rings int // rings that there are
	none  int // 1: the last group that asked has got none; it waits

	fair  atomic.Int32 // slots of a ring, if all that there are had as many
	whole atomic.Int32 // slots of the largest ring that there is room for
	short atomic.Bool  // a group has found fewer slots than its share: rings that have more are to shrink

	wanted atomic.Int32 // slots of a ring that a group has use for: idle ones are to give theirs back until there is room
}

func newPool(n int) *pool {
	p := &pool{slots: newSlots(n)}
	p.note()
	return p
}

// share returns the slots of a ring, if that many rings had as many.
func (p *pool) share(rings int) int {
	n := MaxRing
	for n > minRing && n*rings > len(p.used)*minRing {
		n /= 2
	}
	return n
}

// note notes what is free.
func (p *pool) note() {
	p.fair.Store(int32(p.share(max(p.rings+p.none, 1))))
	n := MaxRing
	for n >= minRing {
		if _, ok := p.find(n); ok {
			break
		}
		n /= 2
	}
	p.whole.Store(int32(n))
}

// takeUpTo takes the slots of a ring that is to have most, of which it gets its share among that many rings; with
// full all that there are. false: there are none.
func (p *pool) takeUpTo(most, rings int, full bool) (first, n int, ok bool) {
	want := min(most, p.share(max(rings, p.rings+1)))
	n = want
	if full {
		n = min(most, max(want, int(p.whole.Load())))
	}
	p.none = 1
	for ; n >= minRing; n /= 2 {
		if first, ok = p.take(n); ok {
			p.rings, p.none = p.rings+1, 0
			break
		}
	}
	p.short.Store(n < want)
	p.wanted.Store(0)
	if n < want {
		p.wanted.Store(int32(want))
	}
	p.note()
	return first, n, ok
}

// giveRing gives the slots of a ring back.
func (p *pool) giveRing(first, n int) {
	p.give(first, n)
	p.rings--
	p.note()
}
