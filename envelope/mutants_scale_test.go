// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to keep account of many groups.
var _ = []mutant.Mutant{
	mutant.New("a member that has gone is its key's for ever", "Quota", mutant.In((*Registrar).lose,
		"r.book(g.reg.Group, 1)",
		"")),
	mutant.New("an assembly that is given up counts for its key", "Assembly", mutant.In((*Registrar).forgetAssembly,
		"if r.pendingUnder[k.key]--; r.pendingUnder[k.key] == 0 {",
		"if r.pendingUnder[k.key] == 0 {")),
}
