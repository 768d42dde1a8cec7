// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// Broadcast is MPI_Bcast in all communicators at a time.
type Broadcast struct {
	// Algorithm is one of BroadcastAlgorithms. "tuned" is Open MPI's choice by the number of
	// ranks and bytes.
	Algorithm string
	Bytes     int64

	Rendezvous bool          // a message between ranks is sent when its receiver waits for it
	Overhead   topology.Time // the time of each message at its sender
}

// BroadcastAlgorithms are those of Open MPI 4.1, its choice, and a Gleam group.
var BroadcastAlgorithms = []string{"tuned", "linear", "chain", "pipeline", "split-binary", "binary", "binomial", "knomial", "scatter-allgather", "scatter-ring", "group"}

// New returns the program.
func (b Broadcast) New(cs []Communicator) (*Script, error) {
	if err := checkSize(b.Bytes, 1); err != nil {
		return nil, err
	}
	if b.schedule("linear", 2) == nil || b.Algorithm != "tuned" && b.schedule(b.Algorithm, 4) == nil {
		return nil, fmt.Errorf("workload: MPI algorithm %q; want one of %v", b.Algorithm, BroadcastAlgorithms)
	}
	return newScript(cs, b.Overhead, b.Rendezvous, func(ranks int) []schedule {
		algorithm := b.Algorithm
		if algorithm == "tuned" {
			algorithm = Tuned(ranks, b.Bytes)
		}
		return []schedule{b.schedule(algorithm, ranks)}
	})
}

// schedule returns that of an algorithm, nil if there is none of that name. Open MPI's fixed decisions
// have no segments: a chain, too, stores and forwards the whole message.
func (b Broadcast) schedule(algorithm string, ranks int) schedule {
	tree := func(parent func(int) int) *treeCast { return newTree(ranks, b.Bytes, 1, together, parent) }
	switch algorithm {
	case "linear":
		return tree(inStar)
	case "chain", "pipeline":
		return tree(inChain)
	case "split-binary":
		if ranks < 3 || b.Bytes < 2 {
			return tree(inChain)
		}
		return newSplitBinary(ranks, b.Bytes)
	case "binary":
		return tree(inBinary)
	case "binomial":
		return tree(inBinomial)
	case "knomial":
		return newKnomial(ranks, b.Bytes)
	case "scatter-allgather":
		return newScatterDoubling(ranks, b.Bytes)
	case "scatter-ring":
		return newScatterRing(ranks, b.Bytes)
	case "group":
		return multicast{b.Bytes, 1}
	}
	return nil
}

// knomialRadix is the default of Open MPI's coll_tuned_bcast_algorithm_knomial_radix.
const knomialRadix = 4

// newKnomial is the k-nomial tree; the children with the largest subtrees come first, in
// the order of their numbers.
func newKnomial(ranks int, bytes int64) *treeCast {
	t := newTree(ranks, bytes, 1, together, inKnomial(knomialRadix))
	for r := range ranks {
		var children []int
		mask := 1
		for mask*knomialRadix < ranks*knomialRadix && r%(mask*knomialRadix) == 0 {
			mask *= knomialRadix
		}
		for mask /= knomialRadix; mask > 0; mask /= knomialRadix {
			for i := 1; i < knomialRadix && r+mask*i < ranks; i++ {
				children = append(children, r+mask*i)
			}
		}
		t.children[r] = children
	}
	return t
}

// decision is a row of the table: messages shorter than below take the algorithm.
type decision struct {
	below     int64
	algorithm string
}

// always is the limit of the last row.
const always = math.MaxInt64

// tuned is ompi_coll_tuned_bcast_intra_dec_fixed of Open MPI 4.1: by the number of ranks from which
// the rows hold.
var tuned = []struct {
	ranks int
	rows  []decision
}{
	{2, []decision{{32, "pipeline"}, {256, "binary"}, {512, "pipeline"}, {1 << 10, "knomial"}, {32 << 10, "linear"}, {128 << 10, "binary"}, {256 << 10, "chain"}, {512 << 10, "linear"}, {1 << 20, "binomial"}, {always, "binary"}}},
	{4, []decision{{64, "binary"}, {128, "binomial"}, {2 << 10, "binary"}, {8 << 10, "binomial"}, {1 << 20, "linear"}, {always, "chain"}}},
	{8, []decision{{8, "knomial"}, {64, "binary"}, {4 << 10, "knomial"}, {16 << 10, "binary"}, {32 << 10, "binomial"}, {always, "linear"}}},
	{16, []decision{{4 << 10, "knomial"}, {1 << 20, "binomial"}, {always, "scatter-allgather"}}},
	{32, []decision{{2 << 10, "binomial"}, {always, "knomial"}}},
	{64, []decision{{always, "knomial"}}},
	{128, []decision{{2, "binomial"}, {16 << 10, "binary"}, {32 << 10, "linear"}, {64 << 10, "binary"}, {always, "knomial"}}},
	{256, []decision{{16 << 10, "knomial"}, {32 << 10, "split-binary"}, {always, "knomial"}}},
	{1024, []decision{{512 << 10, "knomial"}, {always, "scatter-allgather"}}},
	{2048, []decision{{256 << 10, "knomial"}, {always, "scatter-allgather"}}},
	{4096, []decision{{8 << 10, "knomial"}, {16 << 10, "binary"}, {256 << 10, "knomial"}, {always, "scatter-allgather"}}},
}

// Tuned returns the algorithm that Open MPI 4.1 takes for a broadcast.
func Tuned(ranks int, bytes int64) string {
	rows := tuned[0].rows
	for _, t := range tuned {
		if ranks >= t.ranks {
			rows = t.rows
		}
	}
	for _, d := range rows {
		if bytes < d.below {
			return d.algorithm
		}
	}
	return rows[len(rows)-1].algorithm
}
