// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import "math/bits"

// pace says how a rank of a tree sends to several children.
type pace int

const (
	posted   pace = iota // all at once
	together             // a chunk to all children, and the next one when these are completed
	oneByOne             // a message to one child, and the next one when it is completed
)

// treeCast passes chunks from the root down a tree.
type treeCast struct {
	parent   []int // None at the root
	children [][]int
	bytes    int64
	chunks   int
	pace     pace
}

// span returns offset and length of a chunk. All but the last are equally long.
func span(bytes int64, chunks, i int) (off, n int64) {
	size := (bytes + int64(chunks) - 1) / int64(chunks)
	off = min(size*int64(i), bytes)
	return off, min(size, bytes-off)
}

func (t *treeCast) step(rank, k int) (step, bool) {
	receives := 0
	if t.parent[rank] != None {
		receives = 1
	}
	children := t.children[rank]
	per := receives + len(children)
	if per == 0 || k >= per*t.chunks {
		return step{}, false
	}
	chunk, i := k/per, k%per-receives
	if i < 0 {
		return receive(t.parent[rank]), true
	}
	off, n := span(t.bytes, t.chunks, chunk)
	st := send(children[i], off, n)
	st.sent = t.pace == oneByOne || t.pace == together && i == len(children)-1
	return st, true
}

// longest returns how often the whole message is sent, one after another, until the last rank has it, and
// over how many hops. What a rank sends to its children at the same time shares its link.
func (t *treeCast) longest() (copies, hops int) {
	var below func(rank, sent, deep int)
	below = func(rank, sent, deep int) {
		if sent > copies || sent == copies && deep > hops {
			copies, hops = sent, deep
		}
		for i, c := range t.children[rank] {
			n := len(t.children[rank])
			if t.pace == oneByOne {
				n = i + 1
			}
			below(c, sent+n, deep+1)
		}
	}
	below(0, 0, 0)
	return copies, hops
}

// Tree returns treeCast.longest of the first communicator, if all go down a tree with whole messages.
func (s *Script) Tree() (copies, hops int, ok bool) {
	if len(s.lanes[0]) != 1 {
		return 0, 0, false
	}
	t, ok := s.lanes[0][0].(*treeCast)
	if !ok || t.chunks != 1 {
		return 0, 0, false
	}
	copies, hops = t.longest()
	return copies, hops, true
}

// newTree makes the tree in which each rank has the parent that a function returns. A
// parent has its children in the order of their numbers.
func newTree(ranks int, bytes int64, chunks int, p pace, parent func(rank int) int) *treeCast {
	t := &treeCast{parent: make([]int, ranks), children: make([][]int, ranks), bytes: bytes, chunks: chunks, pace: p}
	for r := range ranks {
		t.parent[r] = None
		if r > 0 {
			up := parent(r)
			t.parent[r] = up
			t.children[up] = append(t.children[up], r)
		}
	}
	return t
}

// Parents of the usual trees.

func inChain(rank int) int { return rank - 1 }
func inStar(int) int       { return 0 }

// inBinomial is Open MPI's binomial tree: the rank without its highest bit.
func inBinomial(rank int) int { return rank ^ 1<<(bits.Len(uint(rank))-1) }

// inKnomial is the tree of a radix: the rank without its lowest digit that is not 0.
func inKnomial(radix int) func(int) int {
	return func(rank int) int {
		mask := 1
		for rank%(mask*radix) == 0 {
			mask *= radix
		}
		return rank / (mask * radix) * (mask * radix)
	}
}

// inBinary is Open MPI's binary tree: ranks 2^l-1 to 2^(l+1)-2 are on level l, and the
// children of a rank of level l are the rank + 2^l and the rank + 2*2^l.
func inBinary(rank int) int {
	if rank <= 2 {
		return 0
	}
	level := bits.Len(uint(rank+1)) - 1
	first, delta := 1<<level-1, 1<<(level-1)
	for rank >= first {
		rank -= delta
	}
	return rank
}
