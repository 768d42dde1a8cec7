// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to keep account of gaps in the source's packets.
var _ = []mutant.Mutant{
	mutant.New("what all have is still a gap", "R109", mutant.In((*group).raiseAcked,
		"if g.numbering.gap {",
		"if false {")),
	mutant.New("a gap that some have is none", "R109", mutant.In((*numbering).closeGapBelow,
		"n.gap = una.Less(n.gapNext)",
		"n.gap = false")),
	mutant.New("a gap is closed from above", "R109", mutant.In((*numbering).closeGapBelow,
		"if n.gapFrom.Less(una) {",
		"if true {")),
	mutant.New("messages that are found before the first one of a receiver are its own", "R109", mutant.In((*group).correctMessagesBefore,
		"if more == 0 {",
		"if true {")),
	mutant.New("a message that was none is still counted before the first one of a receiver", "R109", mutant.In((*messages).correctEnd,
		"return -1",
		"return 0")),
}
