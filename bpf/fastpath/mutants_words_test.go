// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// wordMutants are mistakes in what user space does with the words and slots.
var _ = []mutant.Mutant{
	mutant.New("two rings have slots in common", "fast path", mutant.In((*slots).take,
		"s.mark(first/minRing, n/minRing, true)",
		"s.mark(first/minRing, 1, true)")),
	mutant.New("nobody shrinks for a group that finds no ring", "memory by need", mutant.In((*pool).takeUpTo,
		"p.none = 1",
		"p.none = 0")),
	mutant.New("a group that was full gets no more than its share", "memory by need", mutant.In((*Group).MayGrow,
		"return 2*g.slots <= min(most, max(share, whole))",
		"return 2*g.slots <= min(most, share)")),
	mutant.New("a group grows although others may ask", "memory by need", mutant.In((*Group).MayGrow,
		"share = min(share, p.share(int(g.maps.offered.Load())))",
		"")),
	mutant.New("the copies of a gate count into its next PSN", "fast path", mutant.In(Gate.word,
		"g.Copies&copiesMask<<gateCopies",
		"g.Copies&copiesMask")),
	mutant.New("a limit that was closed is that of before", "LimitWords", mutant.In(limitAt,
		"+ limitCount",
		"")),
}
