// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways for several workers to share a switch. dataplane/doc.go has the rules.
var _ = []mutant.Mutant{
	mutant.New("what is reserved goes back to the depot", "Several workers", mutant.In((*Pool).Reserve,
		"p.max = max(p.max, n+p.batch)",
		"")),
	mutant.New("a pool hoards", "Several workers", mutant.In((*Pool).GiveOne,
		"if len(p.free) > p.max {",
		"if len(p.free) > 1<<30 {")),
}
