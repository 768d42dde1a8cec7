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
	mutant.New("a switch commits before all below it are prepared", "Tree", mutant.In((*Registrar).proceed,
		"if b.checked && !b.waits() {",
		"if b.checked {")),
	mutant.New("members here need not be located", "Tree", mutant.In((*Registrar).proceed,
		"if b.checked && !b.waits() {",
		"if !b.waits() {")),
	mutant.New("a failed attempt is not ended below", "Tree", mutant.In((*Registrar).abandon,
		"r.endAt(now, b.children[i].to, g, NotEnded, out)",
		"_ = i")),
	mutant.New("the end of a group stays at its switch", "Tree", mutant.In((*Registrar).endElsewhere,
		"if n != b.endedBy {",
		"if n == b.endedBy {")),
	mutant.New("a child that is silent keeps its group", "Tree", mutant.In((*Registrar).advanceRequests,
		"if q.kind == relayRenew {",
		"if q.kind == 11 {")),
	mutant.New("a relay counts again", "Relay", mutant.In((*neighbour).fresh,
		"case n.newest-seq >= 64 || n.seen&(1<<(n.newest-seq)) != 0 || seq == 0:",
		"case n.newest-seq >= 64 || seq == 0:")),
	mutant.New("a relay of another session counts", "Relay", mutant.In((*Registrar).openRelay,
		"case be.Uint64(b[relaySessionOffset:]) != n.Session:",
		"case be.Uint64(b[relaySessionOffset:]) == 0:")),
	mutant.New("a relay of another switch counts", "Relay", mutant.In((*Registrar).openRelay,
		"case SwitchID(be.Uint64(b[relaySenderOffset:])) != n.ID:",
		"case be.Uint64(b[relaySenderOffset:]) == 0:")),
	mutant.New("the parent is a way to members below", "Tree", mutant.In((*Registrar).usable,
		"if r.neighbours[n] != nil && (g.branch == nil || n != g.branch.parent) {",
		"if r.neighbours[n] != nil {")),
	mutant.New("a second parent is taken", "Tree", mutant.In((*Registrar).prepareRelay,
		"case g == nil || from != g.branch.parent:",
		"case g == nil:")),
	mutant.New("groups do not spread", "TreeSpreads", mutant.In((*Registrar).enlist,
		"if len(b.entries) > 0 {",
		"if n := g.reg.Group; n.IsValid() {")),
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
