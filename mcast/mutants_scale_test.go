// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to serve many groups at once.
var _ = []mutant.Mutant{
	mutant.New("Advance looks at all groups", "R81", mutant.In((*Switch).Advance,
		`for _, id := range s.timers.expire(now) {
		g := s.groups[id]`,
		`s.timers.expire(now)
	for _, g := range s.groups {
		if g == nil {
			continue
		}`)),
	mutant.New("an earlier deadline does not count", "R81", mutant.In((*timers).arm,
		"case t.heap[i].at <= at:",
		"default:")),
	mutant.New("a group that stops leaves the heap in disorder", "R81", mutant.In((*timers).stop,
		`case i > 0 && last.before(t.heap[(i-1)/4]):
		t.up(i, last)`,
		"")),
	mutant.New("memory is taken from a group with data in flight", "R82", mutant.In((*group).isAtRest,
		"(g.isQuiescent() || g.endUnknown() && !g.waitsForFile()) && (g.repair.store == nil || g.repair.store.bytes == 0) &&",
		"")),
	mutant.New("a group keeps the memory of its first probes", "R82", mutant.In((*Switch).Advance,
		"g.restUntilData()\n\t\ts.rearm(g)",
		"s.rearm(g)")),
	mutant.New("a group that goes on after a restart keeps the memory of its probes", "R82", mutant.In((*group).isAtRest,
		"g.isQuiescent() || g.endUnknown() && !g.waitsForFile()",
		"g.isQuiescent()")),
	mutant.New("a restart needs the memory for data though nothing is on its way", "R82", mutant.In((*group).startResume,
		"wait > 0",
		"true")),
	mutant.New("a group has the memory for data from the beginning", "R82", mutant.In((*Switch).newGroup,
		"g.repair.store = &store{limit: r.Bytes, sw: s}",
		`g.repair.store = &store{limit: r.Bytes, sw: s}
		g.repair.store.$1(1 << 5)`, (*store).reach)),
	mutant.New("a group that was idle is not made ready for a change", "R82", mutant.In((*Switch).updateMembers,
		"if g.activity == nil && g.src.member != none {",
		"if false {")),
	mutant.New("a group that was idle has no memory to end its turn", "R82", mutant.In((*group).openTurn,
		"g.activate(now)\n\tg.endTurn(out)",
		"g.endTurn(out)")),
	mutant.New("a timer that passes with data in flight does nothing", "R45", mutant.In((*group).nothingOwed,
		"g.agg.acked == g.fwd.nxt.Prev()",
		"g.agg.acked != g.fwd.nxt.Prev()")),
	mutant.New("the last of four waiting groups is first", "R81", mutant.In((*timers).firstOf4,
		"j := 2 + h[3].less(h[2])",
		"j := 2 + h[2].less(h[3])")),
	mutant.New("groups of one time are served in any order", "R81", mutant.In((timer).less,
		"bits.Sub64(uint64(a.id), uint64(b.id), 0)",
		"bits.Sub64(uint64(a.id), uint64(a.id), 0)")),
}
