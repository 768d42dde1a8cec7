// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import "math/bits"

// rowSwap is HPL's row swap "spread then roll" (HPL_pdlaswp01): the rows of U that the root has go to
// the ranks that have pivots, as many to each as it has; the equilibration makes all pieces of one size (HPL_equil);
// and the pieces are rolled, as in longCast. What is exchanged at a rank has the size of what came.
type rowSwap struct {
	ranks  int
	sync   bool
	before [][]step // the steps of each rank, before the roll
	at     []int64  // where each rank's piece begins, and the end
}

// newRowSwap returns the swap with pieces that begin at the given places, before the equilibration.
func newRowSwap(at []int64, sync bool) *rowSwap {
	n := len(at) - 1
	s := &rowSwap{ranks: n, sync: sync, before: make([][]step, n), at: at}
	s.spreadRight(0, at)
	if n > 2 {
		s.equilibrate()
	}
	return s
}

// uniformPivots returns pieces of one size, those of ranks whose pivots are spread evenly.
func uniformPivots(ranks int, bytes int64) []int64 {
	at := make([]int64, ranks+1)
	for i := range at {
		at[i] = balanced(i, ranks, bytes)
	}
	return at
}

// centralPivots returns the pieces if all pivots are at one rank. HPL sorts ranks by the length of
// their pieces, so it is the one next to the root.
func centralPivots(ranks int, bytes int64) []int64 {
	at := make([]int64, ranks+1)
	for i := 2; i <= ranks; i++ {
		at[i] = bytes
	}
	return at
}

// balanced returns where the piece of rank i begins, if the first ranks have one more than the others.
func balanced(i, ranks int, bytes int64) int64 {
	n := int64(ranks)
	return int64(i)*(bytes/n) + min(int64(i), bytes%n)
}

// send adds a message, for which its sender waits, to the steps of both.
func (s *rowSwap) send(from, to int, begin, end int64) {
	if end <= begin {
		return
	}
	st := send(to, begin, end-begin)
	st.sent = true // MPI_Send, which waits for the receiver of a long message
	s.before[from] = append(s.before[from], st)
	s.before[to] = append(s.before[to], receive(from))
}

// spread calls f for each message of a spread by halves over n ranks, in the order of each rank's steps.
// Ranks are distances from the source.
func spread(n int, f func(from, to, half int)) {
	for half := 1 << bits.Len(uint(n-1)) >> 1; half > 0; half >>= 1 {
		for to := half; to < n; to += 2 * half {
			f(to-half, to, half)
		}
	}
}

// spreadRight lets rank source send the pieces of all ranks above it.
func (s *rowSwap) spreadRight(source int, at []int64) {
	n := s.ranks - source
	spread(n, func(from, to, half int) {
		s.send(source+from, source+to, at[source+to], at[source+min(to+half, n)])
	})
}

// spreadLeft lets rank source send the pieces of all ranks below it. As in HPL, a message has the
// piece of one rank more.
func (s *rowSwap) spreadLeft(source int, at []int64) {
	spread(source+1, func(from, to, half int) {
		last := source - to
		s.send(source-from, last, at[max(last-half, 0)], at[last+1])
	})
}

// equilibrate lets each rank in turn send what is beyond its part to those to whom it belongs: first to its
// left, then to its right.
func (s *rowSwap) equilibrate() {
	n, bytes := s.ranks, s.at[s.ranks]
	equal := true
	for i := range n {
		size := s.at[i+1] - s.at[i]
		equal = equal && size >= bytes/int64(n) && size <= (bytes+int64(n)-1)/int64(n)
	}
	if equal {
		return
	}
	for source := range n {
		begin, end := s.at[source], s.at[source+1]
		if begin == end {
			continue
		}
		at := make([]int64, n+1) // of what this rank has: the part of each
		for i := range at {
			at[i] = min(max(balanced(i, n, bytes), begin), end)
		}
		if begin < balanced(source, n, bytes) {
			s.spreadLeft(source, at)
		}
		if end > balanced(source+1, n, bytes) {
			s.spreadRight(source, at)
		}
	}
	s.at = uniformPivots(n, bytes)
}

func (s *rowSwap) step(rank, k int) (step, bool) {
	if k < len(s.before[rank]) {
		return s.before[rank][k], true
	}
	k -= len(s.before[rank])
	if k >= s.ranks-1 {
		return step{}, false
	}
	partner, mine, other := rollStep(s.ranks, rank, k)
	st := step{to: None, from: None}
	if n := s.at[mine+1] - s.at[mine]; n > 0 {
		st.to, st.off, st.bytes, st.sent = partner, s.at[mine], n, s.sync
	}
	if s.at[other+1] > s.at[other] {
		st.from = partner
	}
	return st, true
}

// rollStep returns with whom a rank exchanges blocks in step k of a roll, and which ones.
func rollStep(n, rank, k int) (partner, mine, other int) {
	half := k / 2
	if (rank+k)&1 != 0 {
		return (rank - 1 + n) % n, (rank + half) % n, (rank - half - 1 + n) % n
	}
	return (rank + 1) % n, (rank - half + n) % n, (rank + half + 1) % n
}
