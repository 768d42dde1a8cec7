// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import "math/bits"

// longCast is HPL's bandwidth-reducing broadcast (HPL_blong): the root's blocks are spread
// by halves, one for each rank, then rolled: in each of n-1 steps a rank exchanges a
// block with a neighbour.
type longCast struct {
	ranks  int
	bytes  int64
	sync   bool // a step of the roll waits until its own block is completed, too
	spread [][]step
}

func newLong(ranks int, bytes int64, sync bool) *longCast {
	l := &longCast{ranks: ranks, bytes: bytes, sync: sync, spread: make([][]step, ranks)}
	for r := range ranks {
		for half := 1 << (bits.Len(uint(ranks-1)) - 1); half > 0; half >>= 1 {
			other := r ^ half
			switch {
			case r&(half-1) != 0 || other >= ranks:
			case r&half != 0:
				l.spread[r] = append(l.spread[r], receive(other))
			default:
				off, n := l.blocks(other, half)
				st := send(other, off, n)
				st.sent = true // HPL_ssend
				l.spread[r] = append(l.spread[r], st)
			}
		}
	}
	return l
}

// blocks returns the range of n blocks, as far as there are any. The last of all takes
// the remainder.
func (l *longCast) blocks(first, n int) (off, bytes int64) {
	size := max(l.bytes/int64(l.ranks), 1)
	off = min(int64(first)*size, l.bytes)
	if first+n >= l.ranks {
		return off, l.bytes - off
	}
	return off, min(int64(n)*size, l.bytes-off)
}

func (l *longCast) step(rank, k int) (step, bool) {
	if k < len(l.spread[rank]) {
		return l.spread[rank][k], true
	}
	k -= len(l.spread[rank])
	if k >= l.ranks-1 {
		return step{}, false
	}
	partner, block, _ := rollStep(l.ranks, rank, k)
	off, bytes := l.blocks(block, 1)
	return step{to: partner, off: off, bytes: bytes, from: partner, sent: l.sync}, true
}

// longModified is HPL's blonM: the root sends everything to rank 1 first, then the
// others do as in longCast without it.
type longModified struct {
	longCast *longCast // the longCast of one rank less
}

func (l longModified) step(rank, k int) (step, bool) {
	switch {
	case rank == 1:
		return receive(0), k == 0
	case rank == 0 && k == 0:
		st := send(1, 0, l.longCast.bytes)
		st.sent = l.longCast.sync
		return st, true
	case rank == 0:
		k--
	default:
		rank--
	}
	st, ok := l.longCast.step(rank, k)
	if st.to > 0 {
		st.to++
	}
	if st.from > 0 {
		st.from++
	}
	return st, ok
}

// exchange is the binary exchange of all bytes between ranks whose numbers differ in one bit.
type exchange struct {
	ranks int // a power of two
	bytes int64
}

func (e exchange) step(rank, k int) (step, bool) {
	if 1<<k >= e.ranks {
		return step{}, false
	}
	other := rank ^ 1<<k
	return step{to: other, bytes: e.bytes, from: other}, true
}
