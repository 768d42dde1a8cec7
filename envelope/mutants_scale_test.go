// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "github.com/gleam-rdma/gleam/test/mutants/mutant"

// Wrong ways to keep account of many groups.
var _ = []mutant.Mutant{
	mutant.New("a renewal leaves the lease where it was among the others", "Leases", mutant.In((*leases).extend,
		"heap.Fix(l, g.lease-1)",
		"")),
	mutant.New("a group that is replaced keeps its lease", "Leases", mutant.In((*Registrar).put,
		"r.leases.stop(old)",
		"")),
	mutant.New("leases that end together end in any order", "Leases", mutant.In((*leases).ended,
		"slices.SortFunc(gs, func(a, b *group) int { return a.reg.Group.Compare(b.reg.Group) })",
		"")),
	mutant.New("a member that has gone is its key's for ever", "Quota", mutant.In((*Registrar).lose,
		"r.book(g.reg.Group, 1)",
		"")),
}
