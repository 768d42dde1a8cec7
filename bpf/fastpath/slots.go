// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

// slots are the slots of all rings of one size. A ring has a power of two of them, which
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

// take returns the first of n slots, and false if there are none.
func (s *slots) take(n int) (first int, ok bool) {
	n /= minRing
next:
	for at := 0; at+n <= len(s.used); at += n {
		for _, used := range s.used[at : at+n] {
			if used {
				continue next
			}
		}
		s.mark(at, n, true)
		return at * minRing, true
	}
	return 0, false
}

func (s *slots) give(first, n int) { s.mark(first/minRing, n/minRing, false) }

func (s *slots) mark(at, n int, used bool) {
	for i := range n {
		s.used[at+i] = used
	}
}
