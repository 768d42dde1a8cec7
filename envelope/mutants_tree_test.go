// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to register a group through a tree of switches. The rules are in
// docs/TREES.md.
var _ = []mutant.Mutant{
	mutant.New("a switch installs before those below it", "Tree", mutant.In((*Registrar).proceed,
		"} else if !b.waits() {",
		"} else {")),
	mutant.New("a child that is silent keeps its group", "Tree", mutant.In((*Registrar).advanceRequests,
		"if q.kind == relayRenew {",
		"if q.kind == 11 {")),
	mutant.New("a relay of another session counts", "Relay", mutant.In((*Registrar).openRelay,
		"case be.Uint64(b[relaySessionOffset:]) != n.Session:",
		"case be.Uint64(b[relaySessionOffset:]) == 0:")),
	mutant.New("a relay of another switch counts", "Relay", mutant.In((*Registrar).openRelay,
		"case SwitchID(be.Uint64(b[relaySenderOffset:])) != n.ID:",
		"case be.Uint64(b[relaySenderOffset:]) == 0:")),
	mutant.New("groups do not spread", "TreeSpreads", mutant.In((*Registrar).enlist,
		"if len(b.entries) > 0 {",
		"if len(b.entries) >= 0 {")),
	mutant.New("an End that is late ends the attempt that follows", "TreeJoinsWhereTheLastHasLeft", mutant.In((*Registrar).removeGroup,
		"case succeeded && g.endedByParent(): // which has ended the attempt as well, or has it begin anew here",
		"case false:")),
	mutant.New("a lost neighbour keeps its groups", "TreeCut", mutant.In((*Registrar).SetNeighbour,
		"last: old.Adjacency, lost: true, ",
		"last: old.Adjacency, ")),
	mutant.New("a neighbour that is back is not asked", "TreeForgets", mutant.In((*Registrar).SetNeighbour,
		"next: len(r.over[n])}",
		"next: 0}")),
	mutant.New("a parent answers no child", "TreeFlaps", mutant.In((*Registrar).renewRelay,
		"if a := r.attempt(m.group, m.id); a != nil && a.branch.child(from) != nil {",
		"if a := r.attempt(m.group, m.id); a != nil && a.branch.child(from) == nil {")),
	mutant.New("all groups over a neighbour end in one call", "TreeCutOfManyGroups", mutant.In((*Registrar).endOver,
		"for range neighbourBatch {",
		"for range 1 << 20 {")),
	mutant.New("two masters end each other's attempts", "TreeTwoMasters", mutant.In((*Registrar).supersede,
		"if by := r.rootOf(g); by != l.branch.id.root {",
		"if by := r.rootOf(g); by == 0 {")),
	mutant.New("a member that has gone stays at other switches", "TreeMembersGo", mutant.In((*Registrar).goneRelay,
		"r.table.RemoveMember(m.group, gone.Member, gone.EndReason)",
		"_ = r")),
	mutant.New("silence does not double with the levels", "TreeUnsupported", mutant.In((*Registrar).prepared,
		"(1<<63-1)>>diameter) << diameter",
		"(1<<63-1)>>diameter)")),
}
