// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to keep account of many groups.
var _ = []mutant.Mutant{
	mutant.New("a renewal leaves the lease where it was among the others", "Leases", mutant.In((*timers[*group]).set,
		"heap.Fix(q, t.index-1)",
		"")),
	mutant.New("a group that is replaced keeps its lease", "Leases", mutant.In((*Registrar).put,
		"r.leases.stop(&old.lease)",
		"")),
	mutant.New("leases that end together end in any order", "Leases", mutant.In(inOrder,
		"slices.SortFunc(gs, func(a, b *group) int { return a.reg.Group.Compare(b.reg.Group) })",
		"")),
	mutant.New("a member that has gone is its key's for ever", "Quota", mutant.In((*Registrar).lose,
		"r.book(g.reg.Group, 1)",
		"")),
	mutant.New("a group whose members are located is tried again", "Proofs", mutant.In((*Registrar).located,
		"r.tries.stop(&g.try)",
		"_ = g")),
	mutant.New("an acknowledged Gone is repeated", "Gone", mutant.In((*goneEvents).remove,
		"x.repeats.stop(&e.repeat)",
		"")),
	mutant.New("a Gone that was given up is under way", "Gone", mutant.In((*goneEvents).remove,
		"delete(x.about, goneAbout{e.body, e.to})",
		"")),
	mutant.New("an assembly that is given up counts for its key", "Assembly", mutant.In((*Registrar).forgetAssembly,
		"if r.pendingUnder[k.key]--; r.pendingUnder[k.key] == 0 {",
		"if r.pendingUnder[k.key] == 0 {")),
}
