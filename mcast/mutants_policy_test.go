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
	mutant.New("one fewer than the quorum is enough", "R36", mutant.In((*group).quorumAcked,
		"at := n - int(g.policy.quorum)",
		"at := min(n-int(g.policy.quorum)+1, n-1)")),
	mutant.New("a joiner is one of the quorum for what it never got", "R36", mutant.In((*group).quorumAcked,
		"b.flags&(isReceiver|joinedInFlight) == isReceiver {",
		"b.flags&isReceiver != 0 {")),
	mutant.New("a joiner is never one of the quorum", "R36", mutant.In((*group).raiseAcked,
		"if g.recv.joinedInFlight != 0 && g.recv.inFlightUntil.LessEq(m) {",
		"if g.recv.joinedInFlight != 0 && g.recv.inFlightUntil.$1(1000).LessEq(m) {", rocev2.PSN.Add)),
	mutant.New("what the quorum has is not repeated to the others", "R37", mutant.In((*group).handleData,
		"if g.policy.quorum != 0 && g.numLacking(psn) != 0 {",
		"if g.policy.quorum > 1000 && g.numLacking(psn) != 0 {")),
	mutant.New("a stranded receiver is kept", "R37", mutant.In((*group).evaluate,
		"if g.policy.quorum != 0 && g.agg.numPending != 0 && g.removeStranded(out) {",
		"if g.policy.quorum > 1000 && g.agg.numPending != 0 && g.removeStranded(out) {")),
	mutant.New("a receiver is stranded though the source comes back", "R37", mutant.In((*group).removeStranded,
		"if b.pending != sevFatal && g.expectedFromSource(b.acked.Next()) {",
		"if b.pending != sevFatal && g.expectedFromSource(b.acked.Next()) && false {")),
	mutant.New("the lag limit removes the last receiver", "R38", mutant.In((*group).judge,
		"case cause == Lagging && (!spare || g.isKept(i)):\n\t\treturn false",
		"case cause == Lagging && !g.isKept(i):\n\t\tg.$1(i, cause, $arg3)", (*group).evict)),
	mutant.New("the lag limit in time counts from the first packet on", "R38", mutant.In((*group).exceedsLagTime,
		"l.lagPSN, l.lagSince = best, now",
		"l.lagPSN = best")),
	mutant.New("a dead receiver ends the group at its newest packet", "R39", mutant.In((*group).failBecauseOf,
		"una := g.agg.acked.Next()",
		"una := g.$2.$1", forwarding{}.nxt, group{}.fwd)),
	mutant.New("a dead receiver ends the group by a sequence NAK", "R39", mutant.In((*group).failBecauseOf,
		`code = rocev2.SyndromeNAKOpErr
	}`,
		`code = rocev2.$1
	}`, rocev2.SyndromeNAKSequence)),
	mutant.New("fewer than the quorum get the next message", "R40", mutant.In((*group).setReceivers,
		"g.agg.allowedBehind < 0",
		"g.agg.allowedBehind < -1000")),
	mutant.New("fewer than the quorum leave what is in flight open", "R40", mutant.In((*group).afterRemoval,
		"if g.recv.count-g.recv.joinedInFlight < g.policy.quorum && g.agg.acked != g.fwd.nxt.Prev() {",
		"if g.recv.count-g.recv.joinedInFlight < g.policy.quorum && g.agg.acked == g.fwd.nxt {")),
	mutant.New("removals are judged in the order of the list", "R60", mutant.In((*Switch).updateMembers,
		`if int32(m) != g.src.member {
			g.removeMember(now, m, out)
		}`,
		"g.removeMember(now, m, out)"), mutant.In((*Switch).updateMembers,
		`if int32(m) == g.src.member {
			g.removeMember(now, m, out)
		}`,
		"_ = m")),
	mutant.New("a source that leaves is judged by what A was", "R60", mutant.In((*group).sourceRemoved,
		"if g.fwd.midMessage || g.is(unplaced) || !g.allCaughtUp() {",
		"if g.fwd.midMessage || g.$4.$1 != g.$5.$2.$3() {", aggregation{}.acked, forwarding{}.nxt, rocev2.PSN.Prev, group{}.agg, group{}.fwd)),
	mutant.New("a quorum without a lag limit has none", "R61", mutant.In((*group).setPolicy,
		"if g.policy.quorum != 0 && g.lag.psns == 0 {",
		"if g.policy.quorum > 1000 && g.lag.psns == 0 {")),
	mutant.New("a fast path may go any distance ahead of A", "R61", mutant.In((*group).offloadLimit,
		"g.agg.acked.Add(maxAhead+1)",
		"g.agg.acked.Add(maxAhead+2)")),
	mutant.New("a duplicate is no passage", "R62", mutant.In((*group).answerDuplicate,
		"g.noteReceived(now, psn)",
		"r := g.$1.$2\n\tg.noteReceived(now, psn)\n\tg.$1.$2 = r", group{}.agg, aggregation{}.request)),
	mutant.New("any PSN below A is a duplicate", "R63", mutant.In((*group).handleData,
		"if d <= -g.src.ackedCount || d > maxAhead {",
		"if d < -$1 || d > maxAhead {", maxBehind)),
	mutant.New("any PSN below its last is a former source's duplicate", "R63", mutant.In((*group).requestOfNonSource,
		"if d < -m.ackedCount {",
		"if d < -$1 {", maxBehind)),
	mutant.New("a source's second epoch has no past", "R63", mutant.In((*group).startTurn,
		"g.agg.acked, g.src.ackedCount = m.sqPSN.Prev(), m.ackedCount",
		"g.agg.acked, g.src.ackedCount = m.sqPSN.Prev(), 0")),
	mutant.New("a source's past is that of its last epoch at most", "R63", mutant.In((*group).endTurn,
		"m.sqPSN, m.messages, m.ackedCount = g.fwd.nxt, g.agg.messages.completed, g.src.ackedCount",
		"m.sqPSN, m.messages, m.ackedCount = g.fwd.nxt, g.agg.messages.completed, 0")),
	mutant.New("who sends from below is served at once", "R68", mutant.In((*group).quarantineMember,
		"g.newHistory(k).quarantinedUntil = now + quarantine",
		"")),
	mutant.New("a quarantine ends with the turn", "R68", mutant.In((*group).endTurn,
		"g.newHistory(MemberID(g.src.member)).quarantinedUntil = g.src.quarantinedUntil",
		"")),
	mutant.New("what is in flight keeps a leg's old targets", "R41", mutant.In((*targets).forgetLeg,
		`for i := range t.ring {
		t.ring[i].legs[leg] = target{}
	}`,
		"")),
}
