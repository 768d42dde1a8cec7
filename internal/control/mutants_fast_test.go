// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Mistakes in which groups are refused where the fast path is required.
var _ = []mutant.Mutant{
	mutant.New("members behind a switch count as legs", "fast path", mutant.In(countLegs,
		"to == envelope.NoNeighbour {",
		"to == to {")),
	mutant.New("groups are refused where the fast path is not required", "fast path", mutant.In((*directory).neverFast,
		"if !d.defaults.fastRequired {",
		"if false {")),
	mutant.New("a group with too many receivers behind a port is accepted", "fast path", mutant.In((*directory).neverFast,
		"behind[pi] > fastpath.MaxPortLegs+1",
		"behind[pi] > fastpath.MaxPortLegs+2")),
}
