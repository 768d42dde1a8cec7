// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutants/mutant"
)

// Wrong ways to deal with members that fail, come and go.
var _ = []mutant.Mutant{
	mutant.New("a slow member that speaks is evicted", "R23", mutant.In((*group).isSilent,
		"now-max(l.watched, l.heard) >= g.deadAfter",
		"now-l.watched >= g.deadAfter")),
	mutant.New("silence of all evicts all", "R23", mutant.In((*group).checkLiveness,
		`alive := false
	best := g.a`,
		`alive := true
	best := g.a`)),
	mutant.New("a member that owes nothing is evicted for silence", "R23", mutant.In((*group).isSilent,
		"return g.deadAfter > 0 && g.branches[i].a.Less(l.watch) && now-max",
		"return g.deadAfter > 0 && now-max")),
	mutant.New("silence counts while the source waits out an RNR timer", "R23", mutant.In((*group).checkLiveness,
		"if g.owed() {",
		"if g.owed() && false {")),
	mutant.New("the time for an answer begins before the source is back", "R23", mutant.In((*group).handleData,
		`		if !g.seen && g.deadAfter > 0 {
			g.rewatch(now)`,
		`		if !g.seen && g.deadAfter > 0 {
			_ = now`)),
	mutant.New("silent members are kept for ever", "R23", mutant.In((*group).checkLiveness,
		"case alive && (g.rewound || g.behind(i)):",
		"case alive && g.rewound && g.behind(i) && g.$1 == g.$2:", ackState{}.acked, group{}.nxt)),
	mutant.New("silence of the last packets is not noticed", "R23", mutant.In((*group).checkLiveness,
		`			if !b.a.Less(l.watch) { // did what it had to; from here it has more to do
				l.watch, l.watched = g.hi.Prev(), now
			}
			if t := max(l.watched, l.heard) + g.deadAfterOf(i); g.deadAfter > 0 && t < g.deadline {
				g.deadline = t
			}
		case alive && (g.rewound || g.behind(i)):`,
		`			if !b.a.Less(l.watch) { // did what it had to; from here it has more to do
				l.watch, l.watched = g.hi.Prev(), now
			}
			if t := max(l.watched, l.heard) + g.deadAfterOf(i); g.deadAfter > 0 && t < g.deadline {
				g.deadline = t
			}
		case alive && g.behind(i) && b.a != g.a:`)),
	mutant.New("a new receiver behind a quorum is judged by what A has counted", "R52", mutant.In((*group).acksUnread,
		"if !exact || acks.Less(g.a) {",
		"if !exact {")),
	mutant.New("a rewind hides a fatal NAK", "R25", mutant.In((*group).forward,
		"if d == 1 && b.pend != noPend && b.pend != sevFatal {",
		"if d == 1 && b.pend != noPend {")),
	mutant.New("a fatal NAK is not repeated to the source", "R25", mutant.In((*group).slowPath,
		"if psn == g.failPSN && g.failCode != 0 {",
		"if psn == g.failPSN.$1() {", rocev2.PSN.Prev)),
	mutant.New("a failed group takes feedback", "R25", mutant.In((*group).handleFeedback,
		`if g.dead {
		return GroupDead
	}`,
		"")),
	mutant.New("a fatal NAK does not end a strict group", "R25", mutant.In((*group).fail,
		"g.dead, g.failPSN, g.failCode = true, psn, code",
		"g.failPSN, g.failCode = psn, code")),
	mutant.New("fatal NAKs become sequence NAKs", "R25", mutant.In(severityOf,
		`	}
	return sevFatal`,
		`	}
	return $1`, sevSequence)),
	mutant.New("the last receiver is evicted", "R26", mutant.In((*group).setPolicy,
		`case Evict:
		g.keep = 1`,
		`case Evict:
		g.keep = 0`)),
	mutant.New("strict groups evict", "R26", mutant.In((*group).setPolicy,
		`g.keep = math.MaxInt
	case Evict:`,
		`g.keep = math.MaxInt >> 62
	case Evict:`)),
	mutant.New("an eviction is not evaluated", "R03", mutant.In((*group).evaluate,
		`g.evict(who, code, out)
			continue`,
		`g.evict(who, code, out)
			return`)),
	mutant.New("an eviction is not reported", "R26", mutant.In((*group).evict,
		"g.event(out, MemberEvicted, MemberID(m), a, why)",
		"_, _ = a, why")),
	mutant.New("members join inside a message", "R30", mutant.In((*group).handleData,
		"(g.njoin == 0 || !starts)",
		"g.njoin == 0"), mutant.In((*group).handleData,
		"\t\tif !psn.Less(g.hi) && g.waits(now, psn, starts, out)",
		"\t\tif !psn.Less(g.hi) && g.waits(now, psn, true, out)")),
	mutant.New("members join at a retransmission", "R30", mutant.In((*group).handleData,
		`		if !psn.Less(g.hi) && g.waits(now, psn, starts, out) {
			return AwaitsMembers
		}
		if g.slack < 0 {
			return g.turnDown(now, psn, rocev2.SyndromeNAKOpErr, QuorumLost, out)
		}
		if update && !g.note(psn, p.Targets) {
			return UpdatesFull
		}
		if psn.Less(g.hi) {
			g.repeated(psn, out)`,
		`		if !psn.Less(g.hi) && g.waits(now, psn, starts, out) {
			return AwaitsMembers
		}
		if g.slack < 0 {
			return g.turnDown(now, psn, rocev2.SyndromeNAKOpErr, QuorumLost, out)
		}
		if update && !g.note(psn, p.Targets) {
			return UpdatesFull
		}
		if psn.Less(g.hi) {
			g.repeated(psn, out)
			if starts && g.$1 > 0 {
				g.$2(psn)
			}`, group{}.numJoining, (*group).admitJoining)),
	mutant.New("members join at once", "R30", mutant.In((*group).joinAtNextMessage,
		"g.setJoining(int(i), g.src != nobody)",
		`if g.src != nobody {
			g.$1(int(i), g.$2)
		}`, (*group).startReceiving, group{}.nxt)),
	mutant.New("a joiner's first packet counts as acknowledged", "R30", mutant.In((*group).startReceiving,
		`b.a = psn.Prev()
	b.delta = 0`,
		`b.a = psn
	b.delta = 0`)),
	mutant.New("a joiner without a verified packet", "R33", mutant.In((*group).handleData,
		`	plain := psn == g.hi && code == 0 && !g.dead && g.refused.code == 0 && !update && g.turn.ends == 0 &&
		g.nrecv > 0 && g.slack >= 0 && (g.njoin == 0 || !starts) && !g.numbers.busy()
	if !p.Verified && (!plain ||`,
		`	plain := psn == g.hi && code == 0 && !g.dead && g.refused.code == 0 && !update && g.turn.ends == 0 &&
		g.nrecv > 0 && g.slack >= 0 && (g.njoin == 0 || !starts) && !g.numbers.busy()
	if !p.Verified && (!plain && (g.njoin == 0 || psn != g.hi) ||`)),
	mutant.New("a member that leaves is still waited for", "R31", mutant.In((*group).afterRemoval,
		`return
	}
	g.eval(out)
}`,
		`}
}`)),
	mutant.New("a leaving member leaves its NAK", "R31", mutant.In((*group).stopReceiving,
		`g.setPend(b, noPend, 0)
	g.setInLine(i)
	g.receivers(g.nrecv - 1)`,
		"g.receivers(g.nrecv - 1)")),
	mutant.New("a leaving member takes its switch's others along", "R31", mutant.In((*group).removeMember,
		`case l.members == 0:
		g.cut(int(m.leg))`,
		`case l.members < 3:
		g.cut(int(m.leg))`)),
	mutant.New("a source may leave with data in flight", "R31", mutant.In((*group).sourceRemoved,
		`if g.open || !g.level() {
		g.fail(`,
		`if g.open {
		g.fail(`)),
	mutant.New("data of one who is no member is forwarded", "C57", mutant.In((*group).handleRequest,
		"if g.src != nobody && keyOf(p.Src) == g.srcKey && p.Neighbor == g.srcNbr {",
		"if g.src != nobody && p.Neighbor == g.srcNbr {")),
	mutant.New("a removed address shadows those behind it in the table", "R21", mutant.In((*addrIndex[uint16]).remove,
		"t.slots[i], i = t.slots[j], j",
		"break")),
}
