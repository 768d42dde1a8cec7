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
	mutant.New("who was evicted for a NAK is forgotten", "R73", mutant.In((*Switch).InputGroup,
		`if len(out.Events) != 0 {
		g.noteEvictions`,
		`if len(out.Events) > 9 {
		g.noteEvictions`)),
	mutant.New("who was evicted by the clock is forgotten", "R73", mutant.In((*Switch).Advance,
		"g.noteEvictions(now, out.Events[events:], out)",
		"g.noteEvictions(now, out.Events[len(out.Events):][:min(events, 0)], out)")),
	mutant.New("who comes back is probed at once", "R73", mutant.In((*departures).add,
		"now + quarantine + p.txDelay,",
		"now + p.txDelay,")),
	mutant.New("what waits in a port's queue is not waited for", "R73", mutant.In((*departures).add,
		"now + quarantine + p.txDelay,",
		"now + quarantine,")),
	mutant.New("pauses count before one who has left comes back", "R73", mutant.In((*departure).endsAt,
		"return e.until + h.port(e.port).paused - e.pausesApplied }",
		"return e.until + h.port(e.port).$1*0 }", portTime{}.txDelay)),
	mutant.New("one answer is enough of one who is back", "R73", mutant.In((*group).keepaliveAnswer,
		"if v.returning && !v.probedAgain {",
		"if v.returning && !v.probedAgain && false {")),
	mutant.New("two answers to one probe are enough", "R73", mutant.In((*group).keepaliveAnswer,
		"if v.returning && !v.probedAgain {",
		"if v.returning && !v.$1 {", verification{}.answeredOnce)),
	mutant.New("silence to probes ends with a round of probes", "R55", mutant.In((*group).sendKeepalives,
		"g.is(blocked) && now < t {",
		"g.is(blocked) && now > t {")),
	mutant.New("a NAK that meets what it asks for strands its receiver", "R74", mutant.In((*group).nakReceived,
		"if sev == sevSequence && g.nakCrossesCopy(i, e) {",
		"if sev == sevSequence && g.nakCrossesCopy(i, e) && false {")),
	mutant.New("a NAK meets what was never sent again", "R74", mutant.In((*group).nakCrossesCopy,
		"if !l.repeatedSinceNAK || e.Less(l.repeatFirst) || l.repeatLast.Less(e) || g.agg.acked.Less(e) {",
		"if !l.repeatedSinceNAK || g.agg.acked.Less(e) {")),
	mutant.New("only the last packet that went again counts", "R74", mutant.In((*legActivity).noteRepeat,
		"if !l.repeatedSinceNAK || psn.Less(l.repeatFirst) {",
		"if l.repeatFirst = psn; l.repeatedSinceNAK {")),
	mutant.New("a source is told of a failure before it sends", "R75", mutant.In((*group).failBecauseOf,
		"if una.Less(g.fwd.nxt) || g.is(blocking) {",
		"{")),
	mutant.New("who is removed for what the last source left becomes the source", "R65", mutant.In((*group).requestOfNonSource,
		`if !m.live {
		return NotMember`,
		`if !m.live && false {
		return NotMember`)),
	mutant.New("a NAK that had met its copy strands when A passes it", "R74", mutant.In((*group).removeStranded,
		"if b.pending == sevSequence && g.nakCrossesCopy(i, b.acked.Next()) {",
		"if b.pending == sevSequence && false {")),
}
