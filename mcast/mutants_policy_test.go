// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutants/mutant"
)

// Wrong ways to do with fewer than all: quorums, lag limits, dead receivers,
// changes of members.
var _ = []mutant.Mutant{
	mutant.New("who takes over a leg takes over its PSNs", "R35", mutant.In((*group).takeOver,
		"g.members[id] = newMember(m)",
		`r := g.members[id].r
	g.members[id] = newMember(m)
	g.members[id].r = r`)),
	mutant.New("an address of one who leaves is not free", "R35", mutant.In((*Switch).checkJoin,
		"g.members[j].live && !c.leaving[MemberID(j)] {",
		"g.members[j].live {")),
	mutant.New("two may take over one leg", "R35", mutant.In((*Switch).checkJoinLeg,
		"c.taken[at] = true",
		"")),
	mutant.New("one fewer than the quorum is enough", "R36", mutant.In((*group).quorumAcked,
		"at := n - int(g.quorum)",
		"at := min(n-int(g.quorum)+1, n-1)")),
	mutant.New("a joiner is one of the quorum for what it never got", "R36", mutant.In((*group).quorumAcked,
		"b.bits&(receiving|fresh) == receiving {",
		"b.bits&receiving != 0 {")),
	mutant.New("a joiner is never one of the quorum", "R36", mutant.In((*group).raiseAcked,
		"if g.nfresh > 0 && g.freshTo.LessEq(m) {",
		"if g.nfresh > 0 && g.freshTo.$1(1000).LessEq(m) {", rocev2.PSN.Add)),
	mutant.New("the source changes while a receiver is behind the quorum", "R36", mutant.In((*group).isQuiescent,
		"&& (g.quorum == 0 || g.level())",
		"")),
	mutant.New("what the quorum has is not repeated to the others", "R37", mutant.In((*group).handleData,
		"if g.quorum > 0 && g.npast(psn) > 0 {",
		"if g.quorum > 1000 && g.npast(psn) > 0 {")),
	mutant.New("a stranded receiver is kept", "R37", mutant.In((*group).evaluate,
		"if g.quorum > 0 && g.npend > 0 && g.strand(out) {",
		"if g.quorum > 1000 && g.npend > 0 && g.strand(out) {")),
	mutant.New("a receiver is stranded though the source comes back", "R37", mutant.In((*group).removeStranded,
		"if b.pend != sevFatal && g.coming(b.a.Next()) {",
		"if b.pend != sevFatal && g.coming(b.a.Next()) && false {")),
	mutant.New("the lag limit is off by one", "R38", mutant.In((*group).evictLaggards,
		"best.Sub(b.a) > g.lagPSNs && g.spare(i)",
		"best.Sub(b.a) >= g.lagPSNs && g.spare(i)")),
	mutant.New("the lag limit removes the last receiver", "R38", mutant.In((*group).evictLaggards,
		"best.Sub(b.a) > g.lagPSNs && g.spare(i)",
		"best.Sub(b.a) > g.lagPSNs")),
	mutant.New("the lag limit in time counts from the first packet on", "R38", mutant.In((*group).exceedsLagTime,
		"l.mark, l.marked = best, now",
		"l.mark = best")),
	mutant.New("a dead receiver that cannot be spared is waited for", "R39", mutant.In((*group).removeOrFail,
		"case g.branches[i].a.LessEq(g.a):",
		"case g.branches[i].a.LessEq(g.a) && false:")),
	mutant.New("a dead receiver ends the group at its newest packet", "R39", mutant.In((*group).failBecauseOf,
		"g.nout, g.nsev, g.seen = g.a.Next(), sevFatal, false",
		"g.nout, g.nsev, g.seen = g.$1, sevFatal, false", group{}.nxt)),
	mutant.New("a dead receiver ends the group by a sequence NAK", "R39", mutant.In((*group).failBecauseOf,
		`code = rocev2.SyndromeNAKOpErr
	}`,
		`code = rocev2.$1
	}`, rocev2.SyndromeNAKSequence)),
	mutant.New("fewer than the quorum get the next message", "R40", mutant.In((*group).handleData,
		"if g.slack < 0 {",
		"if g.slack < -1000 {")),
	mutant.New("fewer than the quorum leave what is in flight open", "R40", mutant.In((*group).afterRemoval,
		"if g.nrecv-g.nfresh < g.quorum && g.a != g.hi.Prev() {",
		"if g.nrecv-g.nfresh < g.quorum && g.a == g.hi {")),
	mutant.New("removals are judged in the order of the list", "R60", mutant.In((*Switch).updateMembers,
		`if int32(m) != g.src {
			g.remove(now, m, out)
		}`,
		"g.remove(now, m, out)"), mutant.In((*Switch).updateMembers,
		`if int32(m) == g.src {
			g.remove(now, m, out)
		}`,
		"_ = m")),
	mutant.New("a source that leaves is judged by what A was", "R60", mutant.In((*group).sourceRemoved,
		"if g.open || !g.level() {",
		"if g.open || g.$1 != g.$2.$3() {", group{}.acked, group{}.nxt, rocev2.PSN.Prev)),
	mutant.New("a source that leaves inside a message leaves no trace", "R60", mutant.In((*group).sourceRemoved,
		"if g.open || !g.level() {",
		"if !g.level() {")),
	mutant.New("a quorum without a lag limit has none", "R61", mutant.In((*group).setPolicy,
		"if g.quorum > 0 && g.lagPSNs == 0 {",
		"if g.quorum > 1000 && g.lagPSNs == 0 {")),
	mutant.New("data may be any distance ahead of A", "R61", mutant.In((*group).handleData,
		"if d <= -g.past || d > aheadWindow {",
		"if d <= -g.past {")),
	mutant.New("a fast path may go any distance ahead of A", "R61", mutant.In((*Switch).Forwarded,
		"case hi.Prev().Sub(g.a) > aheadWindow:",
		"case hi.Prev().Sub(g.a) > 2*aheadWindow:")),
	mutant.New("the source is expected to come back for ever", "R62", mutant.In((*group).raiseAcked,
		"g.nsev, g.seen = noPend, false",
		"g.nsev, g.seen = g.nsev, g.seen")),
	mutant.New("a duplicate is no passage", "R62", mutant.In((*group).answerDuplicate,
		`rewind := g.hasPrev && psn.LessEq(g.prev)
	if g.nsev != noPend && psn == g.nout {
		g.seen = true
	}`,
		"rewind := g.hasPrev && psn.LessEq(g.prev)")),
	mutant.New("any PSN below A is a duplicate", "R63", mutant.In((*group).handleData,
		"if d <= -g.past || d > aheadWindow {",
		"if d < -$1 || d > aheadWindow {", maxBehind)),
	mutant.New("any PSN below its last is a former source's duplicate", "R63", mutant.In((*group).requestOfNonSource,
		"if d < -m.past {",
		"if d < -$1 {", maxBehind)),
	mutant.New("a source's second epoch has no past", "R63", mutant.In((*group).startTurn,
		"g.hi, g.a, g.past = m.p, m.p.Prev(), m.past",
		"g.hi, g.a, g.past = m.p, m.p.Prev(), 0")),
	mutant.New("a source's past is that of its last epoch at most", "R63", mutant.In((*group).endTurn,
		"m.p, m.msgs, m.past = g.hi, g.msgs.done, g.past",
		"m.p, m.msgs, m.past = g.hi, g.msgs.done, 0")),
	mutant.New("the targets of a leg are those of who was there before", "R41", mutant.In((*group).takeOver,
		"g.targets.forget(int(m.Leg))",
		"")),
	mutant.New("what is in flight keeps a leg's old targets", "R41", mutant.In((*targets).forgetLeg,
		`for i := range t.ring {
		t.ring[i].legs[leg] = target{}
	}`,
		"")),
}
