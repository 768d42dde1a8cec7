// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to do with fewer than all: quorums, lag limits, dead receivers,
// changes of members.
var _ = []mutant.Mutant{
	mutant.New("who takes over a leg takes over its PSNs", "R35", mutant.In((*group).renew,
		"g.members[id] = newMember(m)",
		`r := g.members[id].$1
	g.members[id] = newMember(m)
	g.members[id].$1 = r`, member{}.ePSN)),
	mutant.New("an address of one who leaves is not free", "R35", mutant.In((*Switch).checkJoin,
		"g.members[j].live && !c.leaving[MemberID(j)] {",
		"g.members[j].live {")),
	mutant.New("two may take over one leg", "R35", mutant.In((*Switch).checkJoinLeg,
		"c.taken[at] = true",
		"")),
	mutant.New("one fewer than the quorum is enough", "R36", mutant.In((*group).quorumAcked,
		"at := n - int(g.policy.quorum)",
		"at := min(n-int(g.policy.quorum)+1, n-1)")),
	mutant.New("a joiner is one of the quorum for what it never got", "R36", mutant.In((*group).quorumAcked,
		"b.bits&(receiving|fresh) == receiving {",
		"b.bits&receiving != 0 {")),
	mutant.New("a joiner is never one of the quorum", "R36", mutant.In((*group).raiseAcked,
		"if g.recv.nfresh != 0 && g.recv.freshTo.LessEq(m) {",
		"if g.recv.nfresh != 0 && g.recv.freshTo.$1(1000).LessEq(m) {", rocev2.PSN.Add)),
	mutant.New("the source changes while a receiver is behind the quorum", "R36", mutant.In((*group).isComplete,
		"&& (g.policy.quorum == 0 || g.level())",
		"")),
	mutant.New("what the quorum has is not repeated to the others", "R37", mutant.In((*group).handleData,
		"if g.policy.quorum != 0 && g.npast(psn) != 0 {",
		"if g.policy.quorum > 1000 && g.npast(psn) != 0 {")),
	mutant.New("a stranded receiver is kept", "R37", mutant.In((*group).evaluate,
		"if g.policy.quorum != 0 && g.agg.npend != 0 && g.strand(out) {",
		"if g.policy.quorum > 1000 && g.agg.npend != 0 && g.strand(out) {")),
	mutant.New("a receiver is stranded though the source comes back", "R37", mutant.In((*group).removeStranded,
		"if b.pend != sevFatal && g.coming(b.a.Next()) {",
		"if b.pend != sevFatal && g.coming(b.a.Next()) && false {")),
	mutant.New("the lag limit is off by one", "R38", mutant.In((*group).evictLaggards,
		"best.Sub(b.a) > g.lagPSNsOf(i) && g.spare(i)",
		"best.Sub(b.a) >= g.lagPSNsOf(i) && g.spare(i)")),
	mutant.New("the lag limit removes the last receiver", "R38", mutant.In((*group).evictLaggards,
		"best.Sub(b.a) > g.lagPSNsOf(i) && g.spare(i)",
		"best.Sub(b.a) > g.lagPSNsOf(i)")),
	mutant.New("the lag limit in time counts from the first packet on", "R38", mutant.In((*group).exceedsLagTime,
		"l.mark, l.marked = best, now",
		"l.mark = best")),
	mutant.New("a dead receiver that cannot be spared is waited for", "R39", mutant.In((*group).removeOrFail,
		"case g.branches[i].a.LessEq(g.agg.a):",
		"case g.branches[i].a.LessEq(g.agg.a) && false:")),
	mutant.New("a dead receiver ends the group at its newest packet", "R39", mutant.In((*group).failBecauseOf,
		"g.agg.nout, g.agg.nsev, g.agg.seen = g.agg.a.Next(), sevFatal, false",
		"g.agg.nout, g.agg.nsev, g.agg.seen = g.$2.$1, sevFatal, false", forwarding{}.nxt, group{}.fwd)),
	mutant.New("a dead receiver ends the group by a sequence NAK", "R39", mutant.In((*group).failBecauseOf,
		`code = rocev2.SyndromeNAKOpErr
	}`,
		`code = rocev2.$1
	}`, rocev2.SyndromeNAKSequence)),
	mutant.New("fewer than the quorum get the next message", "R40", mutant.In((*group).setReceivers,
		"g.agg.allowedBehind < 0",
		"g.agg.allowedBehind < -1000")),
	mutant.New("fewer than the quorum leave what is in flight open", "R40", mutant.In((*group).afterRemoval,
		"if g.recv.nrecv-g.recv.nfresh < g.policy.quorum && g.agg.a != g.fwd.hi.Prev() {",
		"if g.recv.nrecv-g.recv.nfresh < g.policy.quorum && g.agg.a == g.fwd.hi {")),
	mutant.New("removals are judged in the order of the list", "R60", mutant.In((*Switch).updateMembers,
		`if int32(m) != g.src.member {
			g.remove(now, m, out)
		}`,
		"g.remove(now, m, out)"), mutant.In((*Switch).updateMembers,
		`if int32(m) == g.src.member {
			g.remove(now, m, out)
		}`,
		"_ = m")),
	mutant.New("a source that leaves is judged by what A was", "R60", mutant.In((*group).sourceRemoved,
		"if g.fwd.open || g.is(unplaced) || !g.level() {",
		"if g.fwd.open || g.$4.$1 != g.$5.$2.$3() {", aggregation{}.acked, forwarding{}.nxt, rocev2.PSN.Prev, group{}.agg, group{}.fwd)),
	mutant.New("a source that leaves inside a message leaves no trace", "R60", mutant.In((*group).sourceRemoved,
		"if g.fwd.open || g.is(unplaced) || !g.level() {",
		"if !g.level() {")),
	mutant.New("a quorum without a lag limit has none", "R61", mutant.In((*group).setPolicy,
		"if g.policy.quorum != 0 && g.lag.lagPSNs == 0 {",
		"if g.policy.quorum > 1000 && g.lag.lagPSNs == 0 {")),
	mutant.New("data may be any distance ahead of A", "R61", mutant.In((*group).handleData,
		"if d <= -g.src.past || d > aheadWindow {",
		"if d <= -g.src.past {")),
	mutant.New("a fast path may go any distance ahead of A", "R61", mutant.In((*group).offloadLimit,
		"g.agg.acked.Add(maxAhead+1)",
		"g.agg.acked.Add(maxAhead+2)")),
	mutant.New("the source is expected to come back for ever", "R62", mutant.In((*group).raiseAcked,
		"g.agg.nsev, g.agg.seen = noPend, false",
		"g.agg.nsev, g.agg.seen = g.agg.nsev, g.agg.seen")),
	mutant.New("a duplicate is no passage", "R62", mutant.In((*group).answerDuplicate,
		`rewind := g.src.hasPrev && psn.LessEq(g.src.prev)
	if g.agg.nsev != noPend && psn == g.agg.nout {
		g.agg.seen = true
	}`,
		"rewind := g.src.hasPrev && psn.LessEq(g.src.prev)")),
	mutant.New("any PSN below A is a duplicate", "R63", mutant.In((*group).handleData,
		"if d <= -g.src.past || d > aheadWindow {",
		"if d < -$1 || d > aheadWindow {", maxBehind)),
	mutant.New("any PSN below its last is a former source's duplicate", "R63", mutant.In((*group).requestOfNonSource,
		"if d < -m.past {",
		"if d < -$1 {", maxBehind)),
	mutant.New("a source's second epoch has no past", "R63", mutant.In((*group).startTurn,
		"g.agg.acked, g.src.ackedCount = m.sqPSN.Prev(), m.ackedCount",
		"g.agg.acked, g.src.ackedCount = m.sqPSN.Prev(), 0")),
	mutant.New("a source's past is that of its last epoch at most", "R63", mutant.In((*group).endTurn,
		"m.p, m.msgs, m.past = g.fwd.hi, g.agg.msgs.done, g.src.past",
		"m.p, m.msgs, m.past = g.fwd.hi, g.agg.msgs.done, 0")),
	mutant.New("a quarantine ends with the turn", "R68", mutant.In((*group).endTurn,
		"g.newHistory(MemberID(g.src.member)).quarantinedUntil = g.src.quarantinedUntil",
		"")),
	mutant.New("the targets of a leg are those of who was there before", "R41", mutant.In((*group).takeOver,
		"g.fwd.targets.forget(int(m.Leg))",
		"")),
	mutant.New("what is in flight keeps a leg's old targets", "R41", mutant.In((*targets).forgetLeg,
		`for i := range t.ring {
		t.ring[i].legs[leg] = target{}
	}`,
		"")),
}
