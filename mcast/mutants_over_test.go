// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to act on what a source passes over (R115).
var _ = []mutant.Mutant{
	mutant.New("who joins waits for a first message that has passed", "R115", mutant.In((*group).removeJoining,
		"if g.legs[i].joining {",
		"if g.legs[i].joining && i < 0 {")),
	mutant.New("who joins is removed, though it waits where the source goes on", "R115", mutant.In((*group).isPassedOver,
		"g.agg.acked.Next().Less(psn)",
		"g.agg.acked.Less(psn)")),
	mutant.New("what a source passes over is not said", "R115", mutant.In((*tree).position,
		"psn, at.Over = over, true",
		"at.Over = false")),
	mutant.New("what a source passes over is said as had", "R115", mutant.In((*tree).position,
		"psn, at.Over = over, true",
		"psn = over")),
	mutant.New("what is said of a source is not acted on", "R115", mutant.In((*tree).takePosition,
		"!g.is(learning|unplaced) && g.isNear(psn) && g.isPassedOver(psn)",
		"false")),
	mutant.New("a switch without a position hears only what the source passes over", "R115", mutant.In((*tree).takePosition,
		"if next := rocev2.PSN(at.Next); next.Less(psn) {\n\t\t\tt.learn(k, next, out)",
		"if next := rocev2.PSN(at.Next); next.Less(psn) && false {\n\t\t\tt.learn(k, next, out)")),
	mutant.New("what a source passes over is had", "R115", mutant.In((*tree).takePosition,
		"if next := rocev2.PSN(at.Next); next.Less(psn) {\n\t\t\tt.learn(k, next, out)",
		"if next := rocev2.PSN(at.Next); next.Less(psn) {\n\t\t\tt.learn(k, psn, out)")),
	mutant.New("a source never goes back", "R115", mutant.In((*group).noteResumed,
		"r.unconfirmed && r.goneBack < strandedAfter && r.seen && psn.LessEq(r.last)",
		"r.unconfirmed && r.goneBack < strandedAfter && r.seen && psn.LessEq(r.last) && r.goneBack > strandedAfter")),
	mutant.New("a switch behind a gap asks nobody", "R115", mutant.In((*group).noteResumed,
		"t.poll(now, LegID(g.src.leg), out)",
		"")),
	mutant.New("a switch that was away takes part in a turn from its first packet on", "R90_MembersOf", mutant.In((*group).beginTurn,
		"g.tree().joinLate()",
		"g.$1 = g.$1", group{}.gates)),
}
