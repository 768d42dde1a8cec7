// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// A wrong way to make room in the journal.
var _ = []mutant.Mutant{
	mutant.New("a flood of one key's events displaces those of others", "JournalOfOthersStays", mutant.In((*Journal).makeRoom,
		"if e.origin != most || n == 0 {",
		"if n == 0 {")),
}
