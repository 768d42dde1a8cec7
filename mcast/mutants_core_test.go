// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to treat members that only receive, come back, or are behind a quorum.
var _ = []mutant.Mutant{
	mutant.New("a member that only receives may send", "R76", mutant.In((*group).requestOfNonSource,
		`if m.role == receivesOnly {
		return g.rejectReceiveOnly(MemberID(k), p, out)
	}
	if g.is(failed) {
		return g.rejectFailed`,
		`if m.role == receivesOnly && false {
		return g.rejectReceiveOnly(MemberID(k), p, out)
	}
	if g.is(failed) {
		return g.rejectFailed`)),
	mutant.New("a member that only receives may send if the group is at rest", "R76", mutant.In((*group).requestOfNonSource,
		`if m.role == receivesOnly {
		return g.rejectReceiveOnly(MemberID(k), p, out)
	}
	if g.is(failed) {
		return g.rejectFailed`,
		`if m.role == receivesOnly && !g.$1() {
		return g.rejectReceiveOnly(MemberID(k), p, out)
	}
	if g.is(failed) {
		return g.rejectFailed`, (*group).isQuiescent)),
	mutant.New("a member that only receives hears nothing", "R76", mutant.In((*group).rejectReceiveOnly,
		`if p.PSN&rocev2.PSNMask != m.sqPSN {
		return NotSender`,
		`if p.PSN&rocev2.PSNMask != m.sqPSN || $recv.$2.$1 > 0 {
		return NotSender`, receivers{}.count, group{}.recv)),
	mutant.New("any packet of a member that only receives is answered", "R76", mutant.In((*group).rejectReceiveOnly,
		`if p.PSN&rocev2.PSNMask != m.sqPSN {
		return NotSender`,
		`if p.PSN&rocev2.PSNMask != m.sqPSN && m.sqPSN > rocev2.PSNMask {
		return NotSender`)),
	mutant.New("an unverified packet is refused for its sender's role", "R33", mutant.In((*group).rejectReceiveOnly,
		`return NotSender
	}
	if !p.Verified {`,
		`return NotSender
	}
	if !p.Verified && false {`)),
	mutant.New("every packet of a member that only receives is an event", "R76", mutant.In((*group).rejectReceiveOnly,
		`g.newHistory(k).refusalReported = true
		g.emitEvent(out, Event{Kind: SourceRefused, Group: g.id, Member: k, PSN: m.sqPSN, Syndrome: rocev2.SyndromeNAKAccess, Cause: ReceivesOnly})`,
		`g.newHistory(k).refusalReported = false
		g.emitEvent(out, Event{Kind: SourceRefused, Group: g.id, Member: k, PSN: m.sqPSN, Syndrome: rocev2.SyndromeNAKAccess, Cause: ReceivesOnly})`)),
	mutant.New("who was removed is forgotten", "R73", mutant.In((*group).removeMember,
		`m.live = false
	g.noteDeparture(now, id)`,
		"m.live = false")),
	mutant.New("who was evicted for a NAK is forgotten", "R73", mutant.In((*Switch).InputGroup,
		`if len(out.Events) != 0 {
		g.noteEvictions`,
		`if len(out.Events) > 9 {
		g.noteEvictions`)),
	mutant.New("who was evicted by the clock is forgotten", "R73", mutant.In((*Switch).Advance,
		"g.noteEvictions(now, out.Events[events:])",
		"g.noteEvictions(now, out.Events[len(out.Events):][:min(events, 0)])")),
	mutant.New("members of a group that is put again are new", "R73", mutant.In((*Switch).putGroup,
		`old.clearStore(0, out)
		old.noteAllDepartures(now)`,
		"old.clearStore(0, out)")),
	mutant.New("members of a deleted group are forgotten", "R73", mutant.In((*Switch).deleteGroup,
		`g.clearStore(0, out)
	g.noteAllDepartures(now)`,
		"g.clearStore(0, out)")),
	mutant.New("who comes back is probed at once", "R73", mutant.In((*departures).add,
		"now + quarantine + p.txDelay,",
		"now + p.txDelay,")),
	mutant.New("what waits in a port's queue is not waited for", "R73", mutant.In((*departures).add,
		"now + quarantine + p.txDelay,",
		"now + quarantine,")),
	mutant.New("every member comes back", "R73", mutant.In((*departures).recentUntil,
		"e.group == group && e.member == member {",
		"e.group == group {")),
	mutant.New("members of other groups come back", "R73", mutant.In((*departures).recentUntil,
		"e.group == group && e.member == member {",
		"e.member == member {")),
	mutant.New("departures beyond those remembered are forgotten", "R73", mutant.In((*departures).add,
		"d.overflowUntil = max(d.overflowUntil, d.at(0).endsAt(h))",
		"")),
	mutant.New("pauses count before one who has left comes back", "R73", mutant.In((*departure).endsAt,
		"return e.until + h.port(e.port).paused - e.pausesApplied }",
		"return e.until + h.port(e.port).$1*0 }", portTime{}.txDelay)),
	mutant.New("pauses count while one who is back is waited for", "R73", mutant.In((*group).applyPauses,
		`l.recovery.expectedSince += d
	l.probedFrom += d`,
		`l.recovery.expectedSince += d`)),
	mutant.New("one answer is enough of one who is back", "R73", mutant.In((*group).keepaliveAnswer,
		"if v.returning && !v.probedAgain {",
		"if v.returning && !v.probedAgain && false {")),
	mutant.New("two answers to one probe are enough", "R73", mutant.In((*group).keepaliveAnswer,
		"if v.returning && !v.probedAgain {",
		"if v.returning && !v.$1 {", verification{}.answeredOnce)),
	mutant.New("two answers that differ are enough", "R73", mutant.In((*group).keepaliveAnswer,
		"v.answeredOnce, v.probedAgain = false, false",
		"")),
	mutant.New("the second probe waits for the next round", "R73", mutant.In((*group).keepaliveAnswer,
		`v.answeredOnce = true
				g.restartKeepalives(now)`,
		"v.answeredOnce = true")),
	mutant.New("who is back is not probed after the last round", "R73", mutant.In((*group).sendKeepalives,
		"!g.is(blocked) && later == 0 && n.rounds >= maxIdleRounds",
		"!g.is(blocked) && n.rounds >= maxIdleRounds")),
	mutant.New("who is back is probed in the others' rounds", "R73", mutant.In((*group).sendKeepalives,
		"next = min(next, later)",
		"")),
	mutant.New("who is back is probed as seldom as the others are by then", "R73", mutant.In((*group).sendKeepalives,
		"n.backoff, n.rounds = n.interval, 0",
		"")),
	mutant.New("a member is silent before it is probed", "R55", mutant.In((*group).judgeProbed,
		"!g.is(blocked) || v.probesSent == 0 ||",
		"!g.is(blocked) ||")),
	mutant.New("a member is silent from the time when the message began to wait", "R55", mutant.In((*group).sendKeepalives,
		`n.backoff, n.rounds = n.interval, 0
			}
			g.noteProbedFrom(now, int(n.nextLeg))`,
		`n.backoff, n.rounds = n.interval, 0
			}`)),
	mutant.New("a member is silent before a message waits for it", "R55", mutant.In((*group).blockMessage,
		"g.noteProbedFrom(now, i)",
		"")),
	mutant.New("silence to probes ends with a round of probes", "R55", mutant.In((*group).sendKeepalives,
		"g.is(blocked) && now < t {",
		"g.is(blocked) && now > t {")),
	mutant.New("the switch's pauses are silence to probes", "R58", mutant.In((*group).silentToProbes,
		"g.applyPauses(i)",
		"")),
	mutant.New("a NAK that meets what it asks for strands its receiver", "R74", mutant.In((*group).nakReceived,
		"if sev == sevSequence && g.nakCrossesCopy(i, e) {",
		"if sev == sevSequence && g.nakCrossesCopy(i, e) && false {")),
	mutant.New("NAK after NAK meets the same copy", "R74", mutant.In((*group).nakCrossesCopy,
		`l.repeatedSinceNAK = false
	return true`,
		"return true")),
	mutant.New("a NAK meets what was never sent again", "R74", mutant.In((*group).nakCrossesCopy,
		"if !l.repeatedSinceNAK || e.Less(l.repeatFirst) || l.repeatLast.Less(e) || g.agg.acked.Less(e) {",
		"if !l.repeatedSinceNAK || g.agg.acked.Less(e) {")),
	mutant.New("a NAK for what the source is to repeat has met it", "R74", mutant.In((*group).nakCrossesCopy,
		"|| l.repeatLast.Less(e) || g.agg.acked.Less(e) {",
		"|| l.repeatLast.Less(e) {")),
	mutant.New("only the last packet that went again counts", "R74", mutant.In((*legActivity).noteRepeat,
		"if !l.repeatedSinceNAK || psn.Less(l.repeatFirst) {",
		"if l.repeatFirst = psn; l.repeatedSinceNAK {")),
	mutant.New("a source is told of a failure before it sends", "R75", mutant.In((*group).failBecauseOf,
		"if una.Less(g.fwd.nxt) || g.is(blocking) {",
		"{")),
	mutant.New("a message that waits hears nothing of a failure", "R75", mutant.In((*group).failBecauseOf,
		"if una.Less(g.fwd.nxt) || g.is(blocking) {",
		"if una.Less(g.fwd.nxt) {")),
	mutant.New("who is removed for what the last source left becomes the source", "R65", mutant.In((*group).requestOfNonSource,
		`if !m.live {
		return NotMember`,
		`if !m.live && false {
		return NotMember`)),
	mutant.New("a NAK that had met its copy strands when A passes it", "R74", mutant.In((*group).removeStranded,
		"if b.pending == sevSequence && g.nakCrossesCopy(i, b.acked.Next()) {",
		"if b.pending == sevSequence && false {")),
}
