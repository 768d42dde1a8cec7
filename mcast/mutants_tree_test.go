// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to take turns in a tree of switches.
var _ = []mutant.Mutant{
	mutant.New("a member sends before the token has come", "R84", mutant.In((*group).requestInTree,
		"!(t.request(now, k, out) && g.isQuiescent())",
		"!(t.request(now, k, out) || g.isQuiescent())")),
	mutant.New("data is taken from a neighbour without the token", "R84", mutant.In((*group).requestInTree,
		`case !t.machine.Accepts(t.legOf(m.leg)):
			return NoToken`,
		"")),
	mutant.New("a neighbour's source begins while another one's data is under way", "R84", mutant.In((*group).requestInTree,
		`case !free && !g.endUnknown():
			return NotSource
		}
	} else`,
		`}
	} else`)),
	mutant.New("any packet of a member asks for the token", "R84", mutant.In((*group).requestInTree,
		"} else if !free && p.PSN&rocev2.PSNMask != m.sqPSN {",
		"} else if p == nil {")),
	mutant.New("a damaged packet asks for the token", "R84", mutant.In((*group).requestInTree,
		"if !p.Verified {",
		"if p == nil {")),
	mutant.New("a waiting member is told to come soon for ever", "R84", mutant.In((*group).requestInTree,
		"if now-g.historyOf(k).waits >= turnReserved {",
		"if now < 0 {")),
	mutant.New("the source goes on without the token", "R86", mutant.In((*group).handleData,
		"if g.src.frozen && !g.failed {",
		"if g.src.frozen && g.failed {")),
	mutant.New("a frozen source is forwarded in order", "R86", mutant.In((*group).handleData,
		"g.turn.endingSince == 0 && !g.src.frozen &&",
		"g.turn.endingSince == 0 &&")),
	mutant.New("a frozen source is not told to wait", "R86", mutant.In((*group).holdBack,
		"g.turn.messageRefused = true",
		"")),
	mutant.New("a frozen source is told to wait only when all is acknowledged", "R86", mutant.In((*group).worstPending,
		"(g.fwd.nxt == g.agg.acked.Next() || g.src.frozen && sev < sevRNR)",
		"g.fwd.nxt == g.agg.acked.Next()")),
	mutant.New("another switch answers a frozen source", "R86", mutant.In((*group).holdBack,
		`if g.src.neighbor != 0 {
		return NoToken
	}`,
		"")),
	mutant.New("an unfinished source is not reported", "R86", mutant.In((*tree).Unfinished,
		"case g.failed:",
		"case g != nil:")),
	mutant.New("a source that may go on is held back", "R86", mutant.In((*tree).carryOut,
		"g.src.hasLastPSN, g.turn.messageRefused = false, false",
		"g.src.hasLastPSN = false")),
	mutant.New("the source at rest keeps the token", "R85", mutant.In((*tree).rests,
		"return t.machine.Wanted() &&",
		"return false && t.machine.Wanted() &&")),
	mutant.New("a turn ends before it begins", "R85", mutant.In((*tree).rests,
		"t.machine.Wanted() && t.begun() &&",
		"t.machine.Wanted() &&")),
	mutant.New("no turn ends by time in a tree", "R85", mutant.In((*tree).advance,
		"t.g.turn.endingSince = max(now, 1)",
		"")),
	mutant.New("who does not come keeps the turn in a tree", "R85", mutant.In((*tree).turnDeadline,
		"if !begun && !t.unfinished() && g.historyOf(k).waits != 0 {",
		"if begun && !t.unfinished() && g.historyOf(k).waits != 0 {")),
	mutant.New("the silence of a source in a tree begins with the request", "R85", mutant.In((*tree).turnDeadline,
		"since = max(since, g.src.lastPSNAt)",
		"")),
	mutant.New("a silent source in a tree loses its turn within a message", "R85", mutant.In((*tree).giveUp,
		`if t.unfinished() {
		t.g.abandonSource(out)
	}
	if t.g.failed || !t.g.isQuiescent() {
		return
	}`,
		"")),
	mutant.New("a session that is known begins anew", "R84", mutant.In((*Switch).SetSession,
		"} else if session = token.SessionOf(session, t.place.Epoch); t.machine.Session(leg) != session {",
		"} else if session = token.SessionOf(session, t.place.Epoch); session != 0 {")),
	mutant.New("a former parent is waited for as a child", "R90", mutant.In((*Switch).SetSession,
		"if leg > token.Parent && g.legs[t.legID(leg)].members == 0 {",
		"if leg < token.Parent && g.legs[t.legID(leg)].members == 0 {")),
	mutant.New("a member that leaves keeps its place in the queue", "R84", mutant.In((*tree).leave,
		"t.machine.Leave(now, t.g.numberOf(k), &t.out)",
		"")),
	mutant.New("a group is deleted without a word to its source", "R88", mutant.In((*group).refuseUnfinished,
		"if !g.failed && g.src",
		"if g.failed && g.src")),
	mutant.New("a source behind another switch is answered at the end", "R88", mutant.In((*group).refuseUnfinished,
		"g.src.neighbor == 0 && ",
		"")),
	mutant.New("feedback of another registration counts", "R87", mutant.In((*group).legOf,
		"p.MSN != g.tagOf(MemberID(g.src.member))",
		"p == nil")),
	mutant.New("the tag does not depend on the epoch", "R87", mutant.In((*group).tagOf,
		"epoch*tagStep + uint32(g.numberOf(k))",
		"epoch*0 + uint32(g.numberOf(k))")),
	mutant.New("the tag does not depend on the member's number", "R87", mutant.In((*group).tagOf,
		"+ uint32(g.numberOf(k))",
		"+ uint32(k) + 1")),
	mutant.New("a source at this switch gets the tag", "R87", mutant.In((*group).msnTo,
		"if g.legs[g.members[k].leg].connected() {",
		"if g.legs[g.members[k].leg].connected() && k < 0 {")),
	mutant.New("a CNP needs the tag", "R87", mutant.In((*group).legOf,
		"p.Op == rocev2.Acknowledge && p.MSN",
		"p.MSN")),
	mutant.New("a leg without members keeps its part in the term", "R84", mutant.In((*tree).leave,
		"leg > token.Parent && t.g.legs[l].members == 0",
		"leg > token.Parent && t == nil")),
}
