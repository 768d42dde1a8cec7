// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to pass on the question where a source is.
var _ = []mutant.Mutant{
	mutant.New("a switch with members answers for them", "R105", mutant.In((*tree).passOn,
		"t.knows(k) >= positionLearnt && t.hasReceivers(true)",
		"false")),
	mutant.New("the highest answer counts", "R105", mutant.In((*tree).answerRelay,
		"if b.psn.Less(all.psn) {\n\t\t\tall.psn = b.psn\n\t\t}",
		"if all.psn.Less(b.psn) {\n\t\t\tall.psn = b.psn\n\t\t}")),
	mutant.New("what members here have does not count", "R105", mutant.In((*tree).answerRelay,
		"known: t.knows(MemberID(r.member)) < positionLearnt && t.hasReceivers(true)",
		"known: false")),
	mutant.New("one switch below has had the end of a message, and all is at its end", "R105", mutant.In((*tree).answerRelay,
		"all.ends && b.ends && b.psn == all.psn && b.next == all.next",
		"all.ends && b.ends")),
	mutant.New("an answer says nothing of what was had beyond it", "R105", mutant.In((*tree).answerRelay,
		"all.next = rocev2.MaxPSN(all.next, b.next)",
		"")),
	mutant.New("who knows nothing is waited for", "R105", mutant.In((*tree).position,
		"g.members[k].leg == l && (t.isIgnorant(MemberID(k)) || r.nothing && r.member == k)",
		"false")),
	mutant.New("a switch without members waits for those who know nothing", "R90_MembersOf", mutant.In((*tree).position,
		"(t.isIgnorant(MemberID(k)) || r.nothing && r.member == k)",
		"t.isIgnorant(MemberID(k))")),
	mutant.New("members that wait for a first message keep the question", "R90_MembersOf", mutant.In((*tree).passOn,
		"t.isUnknown(k) || !over || t.hasReceivers(false)",
		"t.isUnknown(k) || !over || t.hasReceivers(true)")),
	mutant.New("members that may have data are passed by", "R90_MembersOf", mutant.In((*tree).passOn,
		"t.isUnknown(k) || !over || t.hasReceivers(false)",
		"t.isUnknown(k) || !over")),
	mutant.New("what the source passes over is not said of it", "R105", mutant.In((*tree).takePosition,
		"case at.Over && int32(k) == t.edges.relay.member && (upstream || t.relays(l)):",
		"case at.Over && int32(k) == t.edges.relay.member && t.relays(l):")),
	mutant.New("a question is not passed on again", "R105", mutant.In((*tree).passOn,
		"!r.asking && t.mayPoll(now)",
		"false")),
	mutant.New("a doubt about the turn under way comes before a question", "R105", mutant.In((*tree).needs,
		"case t.relays(l):\n\t\treturn g.numberOf(MemberID(t.edges.relay.member))\n\tcase g.src.member != none && b.flags&isReceiver != 0 && g.isUnconfirmed() && (b.acked.Less(g.fwd.nxt.Prev()) || g.endUnknown()):\n\t\treturn g.numberOf(MemberID(g.src.member))",
		"case g.src.member != none && b.flags&isReceiver != 0 && g.isUnconfirmed() && (b.acked.Less(g.fwd.nxt.Prev()) || g.endUnknown()):\n\t\treturn g.numberOf(MemberID(g.src.member))\n\tcase t.relays(l):\n\t\treturn g.numberOf(MemberID(t.edges.relay.member))")),
	mutant.New("only who has learnt a position passes the question on", "R105", mutant.In((*tree).joinNeeded,
		"case int32(k) == g.src.member || was == positionKnown || g.is(learning):",
		"case int32(k) == g.src.member || was == positionKnown || was == $1 || g.is(learning):", positionUnknown)),
	mutant.New("an answer about the present source is one to a question of before", "R89_Trees", mutant.In((*tree).takePosition,
		"case int32(k) == t.edges.relay.member && t.relays(l):",
		"case int32(k) == t.edges.relay.member:")),
}
