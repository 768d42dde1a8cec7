// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/bits"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// NCCL is a broadcast as NCCL does it, in all communicators at a time.
type NCCL struct {
	Algorithm string // one of NCCLAlgorithms
	Bytes     int64
	Chunk     int64         // bytes; DefaultNCCLChunk is NCCL's step buffer of the protocol Simple
	Overhead  topology.Time // the time of each chunk at its sender; NCCL's is 6 µs with the protocol Simple, 1 µs with LL
}

// NCCLAlgorithms are NCCL's ring, its double binary tree, and a Gleam group.
var NCCLAlgorithms = []string{"ring", "tree", "group"}

// DefaultNCCLChunk is 1/8 of NCCL's buffer of 4 MiB.
const DefaultNCCLChunk = 512 << 10

// New returns the program.
func (c NCCL) New(cs []Communicator) (*Script, error) {
	if c.Chunk < 1 {
		return nil, fmt.Errorf("workload: chunks of %d bytes; want 1 or more", c.Chunk)
	}
	chunks := func(bytes int64) int { return int(min((bytes+c.Chunk-1)/c.Chunk, maxSeq)) }
	if err := checkSize(c.Bytes, max(chunks(c.Bytes), 1)); err != nil {
		return nil, err
	}
	var schedules func(int) []schedule
	switch c.Algorithm {
	case "ring":
		schedules = func(n int) []schedule {
			return []schedule{newTree(n, c.Bytes, chunks(c.Bytes), posted, inChain)}
		}
	case "tree":
		schedules = func(n int) []schedule {
			first, second := c.Bytes-c.Bytes/2, c.Bytes/2
			return []schedule{newDoubleTree(n, 0, first, chunks(first), false), newDoubleTree(n, first, second, max(chunks(second), 1), true)}
		}
	case "group":
		schedules = func(int) []schedule { return []schedule{multicast{c.Bytes, chunks(c.Bytes)}} }
	default:
		return nil, fmt.Errorf("workload: NCCL algorithm %q; want one of %v", c.Algorithm, NCCLAlgorithms)
	}
	return newScript(cs, c.Overhead, false, schedules)
}

// upInTree returns the parent of a rank in NCCL's first tree, None for rank 0: the lowest
// bit that is set is moved up by one, or removed if there is no such rank.
func upInTree(ranks, rank int) int {
	if rank == 0 {
		return None
	}
	bit := 1 << bits.TrailingZeros(uint(rank))
	up := rank ^ bit | bit<<1
	if up >= ranks {
		up = rank ^ bit
	}
	return up
}

// doubleTree is one of NCCL's two trees with its part of the message. In the second one the ranks
// are mirrored, or shifted by one if their number is odd, so that its inner ranks are
// leaves of the first. The source, rank 0, sends to its root.
type doubleTree struct {
	treeCast
	first int64 // offset of the part
}

func newDoubleTree(ranks int, first, bytes int64, chunks int, second bool) *doubleTree {
	in := func(rank int) int { return rank } // the number in the tree
	out := in
	switch {
	case second && ranks%2 == 0:
		in = func(rank int) int { return ranks - 1 - rank }
		out = in
	case second:
		in = func(rank int) int { return (rank - 1 + ranks) % ranks }
		out = func(number int) int { return (number + 1) % ranks }
	}
	t := &doubleTree{first: first, treeCast: treeCast{parent: make([]int, ranks), children: make([][]int, ranks), bytes: bytes, chunks: chunks, pace: posted}}
	for r := range ranks {
		up := None
		if n := upInTree(ranks, in(r)); n != None {
			up = out(n)
		}
		switch {
		case r == 0: // it has everything
			up = None
		case up == None:
			up = 0
		}
		t.parent[r] = up
		if up != None {
			t.children[up] = append(t.children[up], r)
		}
	}
	return t
}

func (t *doubleTree) step(rank, k int) (step, bool) {
	st, ok := t.treeCast.step(rank, k)
	st.off += t.first
	return st, ok
}
