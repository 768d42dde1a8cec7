// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to repair losses: -run 'R4[2-9]|R5[01]'.
var _ = []mutant.Mutant{
	mutant.New("frames are kept for ever", "R42", mutant.In((*group).raiseAcked,
		`if g.repair.store != nil {
		g.freeUnneeded(out)`,
		`if g.repair.store != nil && false {
		g.freeUnneeded(out)`)),
	mutant.New("the frame that A waits for is released", "R42", mutant.In((*group).freeUnneeded,
		"g.repair.store.freeBelow(m.Next(), out)",
		"g.repair.store.freeBelow(m.Next().Next(), out)")),
	mutant.New("the last frame that everybody has is not released", "R42", mutant.In((*group).freeUnneeded,
		"g.repair.store.freeBelow(m.Next(), out)",
		"g.repair.store.freeBelow(m, out)")),
	mutant.New("frames of an old source are kept for the next one", "R42", mutant.In((*group).endTurn,
		`g.clearStore(g.fwd.nxt, out)
	g.src.member, g.src.leg = none, none`,
		"g.src.member, g.src.leg = none, none"), mutant.In((*group).startTurn,
		`g.lag.floor = g.agg.acked
	g.clearStore(g.fwd.nxt, out)`,
		"g.lag.floor = g.agg.acked")),
	mutant.New("what was kept is not replaced, and never released", "R42", mutant.In((*store).retain,
		`s.evictSlot(old, out)
		}
		for`,
		`s.$1 -= int64(old.$1)
			s.$2.$3.$4 -= int64(old.$1)
			*old = $5{}
		}
		for`, retained{}.bytes, store{}.sw, Switch{}.repair, budget{}.used, retained{})),
	mutant.New("the source alone asks", "R112", mutant.In(ackMask,
		"if every == 0 {",
		"if true {")),
	mutant.New("a packet from the store does not ask", "R112", mutant.In((*group).copyRetained,
		"b.flags&isConnected != 0 && g.repair.asks(psn)",
		"false")),
	mutant.New("AckReq is set twice", "R112", mutant.In((*group).forward,
		"if ask && !p.AckReq {",
		"if ask {")),
	mutant.New("no answer is expected where the switch asks", "R112", mutant.In((*group).handleData,
		"if p.AckReq || g.repair.asks(psn) {",
		"if p.AckReq {")),
	mutant.New("a NAK waits in vain for the source", "R37", mutant.In((*group).recoveryTimer,
		"!m.escalated && g.isNAKVain(b)",
		"false")),
	mutant.New("a NAK in vain is not withdrawn", "R37", mutant.In((*group).startProbe,
		"g.setPending(b, sevNone, 0)\n",
		"")),
	mutant.New("what is kept is acknowledged", "R43", mutant.In((*group).handleData,
		`g.noteForwarded(psn, f)
	if p.AckReq || g.repair.asks(psn) {`,
		`g.noteForwarded(psn, f)
	if $arg4.$1 && p.AckReq {
		for i := range g.$2 {
			if g.$2[i].$3&$4 != 0 {
				g.$5($arg1, i, psn, $arg4)
			}
		}
		g.$6($arg4)
	}
	if p.AckReq {`, Output{}.Retained, group{}.acks, ackState{}.flags, isReceiver, (*group).ackReceived, (*group).evaluate)),
	mutant.New("what was lost before the switch is no hole", "R43", mutant.In((*store).retain,
		`case hi.Less(psn):
		s.contiguousFrom = psn`,
		"")),
	mutant.New("a hole is never closed", "R43", mutant.In((*store).retain,
		"if ok && psn.Next() == s.contiguousFrom {",
		"if ok && psn == s.contiguousFrom {")),
	mutant.New("a newer frame that does not fit leaves no hole", "R43", mutant.In((*store).retain,
		"} else if !ok && s.contiguousFrom.LessEq(psn) {",
		"} else if !ok && s.contiguousFrom == psn.$1() {", rocev2.PSN.Next)),
	mutant.New("an escalated leg stays so", "R43", mutant.In((*group).onProgress,
		"m.tries, m.rnrWaited, m.escalated, m.unanswered = 0, 0, false, false",
		"m.tries, m.rnrWaited, m.unanswered = 0, 0, false")),
	mutant.New("tries count over a leg's whole life", "R43", mutant.In((*group).onProgress,
		"m.tries, m.rnrWaited, m.escalated, m.unanswered = 0, 0, false, false",
		"m.rnrWaited, m.escalated, m.unanswered = 0, false, false")),
	mutant.New("a repaired NAK acknowledges nothing", "R43", mutant.In((*group).nakReceived,
		`moved := g.ackReceived(now, i, e.Prev(), out)
	g.activity[i].recovery.lossAt = now
	sev := severityOf(kind)
	g.costNAK(i, sev, e)
	if g.serveNAK(now, i, sev, syn, e) {`,
		`sev := severityOf(kind)
	if g.serveNAK(now, i, sev, syn, e) {
		return true
	}
	moved := g.ackReceived(now, i, e.Prev(), out)
	if false {`)),
	mutant.New("a second NAK does not put the cursor back", "R44", mutant.In((*group).serveNAK,
		`m.cursor = e
	m.unanswered, m.probeEvery`,
		`m.cursor = $1(m.cursor, e)
	m.unanswered, m.probeEvery`, rocev2.MaxPSN)),
	mutant.New("a recovering leg is in sync too early", "R44", mutant.In((*group).resendToLeg,
		`if out.resendsExhausted() {
			return false
		}
		if room < 0`,
		`if out.resendsExhausted() {
			$recv.$1($arg2, $2)
			return true
		}
		if room < 0`, (*group).deliver, cursorAtNxt)),
	mutant.New("more is repaired than there is room for", "R44", mutant.In((*Output).resendsExhausted,
		"return o.MaxResends != 0 && o.resends >= o.MaxResends",
		"return o.MaxResends < 0")),
	mutant.New("a hole is skipped when repairing", "R44", mutant.In((*group).resendToLeg,
		`		e := g.repair.store.find(m.cursor)
		if e == nil {
			return true
		}
		if out.resendsExhausted()`,
		`		e := g.repair.store.find(m.cursor)
		if e == nil {
			m.$1(m.cursor)
			continue
		}
		if out.resendsExhausted()`, (*recovery).advanceCursor)),
	mutant.New("repairs have the source's numbers", "R44", mutant.In((*group).copyRetained,
		"Frame: e.frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}",
		"Frame: e.frame, PSN: psn}")),
	mutant.New("repairs have numbers of 25 bits", "R44", mutant.In((*group).copyRetained,
		"Frame: e.frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}",
		"Frame: e.frame, PSN: psn + rocev2.PSN(b.delta)}")),
	mutant.New("repaired WRITEs keep the source's address", "R44", mutant.In((*group).copyRetained,
		"if b.flags&isConnected != 0 && !g.rewriteCopy(&c, e.rewrite, e.va, psn) {",
		"if b.flags&isConnected != 0 && e.rewrite != $1 && !g.rewriteCopy(&c, e.rewrite, e.va, psn) {", rewriteByWindow)),
	mutant.New("probes ask for no ACK", "R45", mutant.In((*group).copyRetained,
		"g.repair.asks(psn)) && !e.ackReq {",
		"g.repair.asks(psn)) && e.ackReq {")),
	mutant.New("the end of a repair may be lost unnoticed", "R45", mutant.In((*group).resendToLeg,
		"== await || m.cursor.Next() == g.fwd.nxt || g.repair.store.find(m.cursor.Next()) == nil",
		"== await")),
	mutant.New("a silent leg is probed for ever", "R45", mutant.In((*group).startProbe,
		`case m.tries >= g.repair.tries:
		g.deliver(i, triesExhausted)
		return false
	}`,
		"}")),
	mutant.New("all that a silent leg may lack is sent again at once", "R45", mutant.In((*group).startProbe,
		"m.cursor, m.unanswered, m.probeEvery, m.untilProbe = una, true, n, n",
		"m.cursor, m.unanswered, m.probeEvery, m.untilProbe = una, true, n*0, n*0")),
	mutant.New("no leg is probed", "R45", mutant.In((*group).handleData,
		`if g.repair.store != nil {
			g.noteAckReq(now, psn)
		}`,
		"")),
	mutant.New("a cursor among frames that were given up stays there", "R49", mutant.In((*group).startProbe,
		`if b.acked.Less(g.agg.acked) {
			e = ptoUnaBehind
		}`,
		"")),
	mutant.New("a leg that owes no ACK is probed", "R45", mutant.In((*group).recoveryTimer,
		`if b.acked.Less(m.expectedACK) {
			if t`,
		`if b.acked.Less($recv.$3.$1.$2()) {
			if t`, forwarding{}.nxt, rocev2.PSN.Prev, group{}.fwd)),
	mutant.New("a leg that answers is probed as if it were silent", "R45", mutant.In((*group).handleFeedback,
		"m.expectedSince = max(m.expectedSince, now)",
		"m.expectedSince = min(m.expectedSince, now)")),
	mutant.New("who repeats what is old need not answer", "R45", mutant.In((*group).handleFeedback,
		`if !g.ackReceived(now, i, psn, out) {
			return`,
		`if !g.ackReceived(now, i, psn, out) {
			g.$1[i].$2.$3 = max(g.$1[i].$2.$3, now)
			return`, group{}.activity, legActivity{}.recovery, recovery{}.expectedSince), mutant.In((*group).handleFeedback,
		"} else if !g.nakReceived(now, i, kind, p.Syndrome, psn, out) {",
		`} else if !g.nakReceived(now, i, kind, p.Syndrome, psn, out) {
		g.$1[i].$2.$3 = max(g.$1[i].$2.$3, now)`, group{}.activity, legActivity{}.recovery, recovery{}.expectedSince)),
	mutant.New("an answer to a probe acknowledges all", "R45", mutant.In((*group).ackEvent,
		`case una.Less(cursor):
		return ackBelowCursor
	case una != cursor:`,
		`case una.Less(cursor):
		return ackBelowCursor
	case !una.Less(cursor):`)),
	mutant.New("each probe is one packet", "R45", mutant.In((*group).startProbe,
		"n = min(max(m.probeEvery, 1)*burstGrowth, maxProbePackets)",
		"n = min(m.probeEvery, 1)")),
	mutant.New("probes grow without a bound", "R45", mutant.In((*group).startProbe,
		"n = min(max(m.probeEvery, 1)*burstGrowth, maxProbePackets)",
		"n = max(m.probeEvery, 1) * burstGrowth")),
	mutant.New("the first probe is a long one", "R45", mutant.In((*group).startProbe,
		`if m.unanswered {
		n = min(`,
		`if !m.$1 {
		n = min(`, recovery{}.escalated)),
	mutant.New("a leg that had more than the probe gets it all again", "R45", mutant.In((*group).onProgress,
		"m.resendFrom(rocev2.MaxPSN(b.acked.Next(), m.firstUnsent))",
		"m.resendFrom($1(b.acked.Next(), m.firstUnsent))", rocev2.MinPSN)),
	mutant.New("what was sent is forgotten", "R45", mutant.In((*group).deliver,
		`b.flags |= recovering
		g.repair.numRecovering++
		m.firstUnsent = g.fwd.nxt`,
		`b.flags |= recovering
		g.repair.numRecovering++
		m.firstUnsent = b.$1.$2()`, ackState{}.acked, rocev2.PSN.Next)),
	mutant.New("bursts do not grow", "R45", mutant.In((*recovery).growBurst,
		"if m.probeEvery *= burstGrowth; m.probeEvery > maxBurst {",
		"if m.probeEvery > maxBurst {")),
	mutant.New("RNR is not waited for", "R46", mutant.In((*group).nakEvent,
		`case sev == sevRNR:
		return rnrServed
	}`,
		"}")),
	mutant.New("each wait is counted by itself", "R46", mutant.In((*group).serveNAK,
		"m.rnrWaited += wait",
		"m.rnrWaited = 0")),
	mutant.New("the sequence NAK after an RNR NAK ends the wait", "R46", mutant.In((*group).nakEvent,
		"m.state == waiting && e == m.cursor:",
		"m.state == waiting && e == m.cursor && m.$1:", recovery{}.escalated)),
	mutant.New("who was not ready never becomes so", "R46", mutant.In((*group).recoveryTimer,
		"if now < m.resumeAt {",
		"if now < m.resumeAt || m.$1 > 0 {", recovery{}.rnrWaited)),
	mutant.New("the source is asked for retained packets", "R47", mutant.In((*group).requestFromSource,
		"g.repair.store.find(m.cursor) != nil || g.expectedFromSource(m.cursor) {",
		"g.expectedFromSource(m.cursor) {"), mutant.In((*group).resendToLeg,
		`if out.resendsExhausted() {
			return false
		}
		if room < 0`,
		`if out.resendsExhausted() {
			return true
		}
		if room < 0`)),
	mutant.New("no NAK asks for the packets that a recovering leg lacks", "R47", mutant.In((*group).requestFromSource,
		`g.setPending(b, sevSequence, rocev2.SyndromeNAKSequence)
	return true`,
		"return false")),
	mutant.New("the source's retransmission goes to recovering legs out of turn", "R48", mutant.In((*group).takesFromSource,
		"!first, m.state != inSync && !first && psn != m.cursor:",
		"!first:"), mutant.In((*group).takesFromSource,
		`case retained:
		return false, false`,
		`case retained && !retained:
		return false, false`)),
	mutant.New("who is behind a quorum waits for what is gone", "R48", mutant.In((*group).takesFromSource,
		"first = true",
		"first = false")),
	mutant.New("what a quorum has is not kept for the others", "R49", mutant.In((*group).freeUnneeded,
		`if g.policy.quorum != 0 {
		for i := range g.acks {`,
		`if g.policy.quorum > 1000 {
		for i := range g.acks {`)),
	mutant.New("frames at or below A stay when room is short", "R49", mutant.In((*store).retain,
		"!s.hasRoom(p.RetainBytes) && s.first.LessEq(reclaimable) {",
		"!s.hasRoom(p.RetainBytes) && s.first.$1(s.first) {", rocev2.PSN.Less)),
	mutant.New("a copy that was not sent is not sent later", "R51", mutant.In((*Switch).Requeue,
		"if m.state == inSync || psn.Less(m.cursor) {",
		"if m.state == inSync && psn.Less(m.cursor) {")),
	mutant.New("a full queue is not waited for", "R51", mutant.In((*Switch).Requeue,
		"g.resumeAfter(m, until)",
		"g.resumeAfter(m, 0)")),
	mutant.New("what a full queue did not take counts as sent", "R51", mutant.In((*Switch).Requeue,
		`case psn.Less(m.firstUnsent):
		m.firstUnsent = psn`,
		"")),
	mutant.New("the probe timeout has no bound", "R45", mutant.In((*group).probeTimeout,
		"d := min(max(g.repair.timeout*time.Duration(1+g.levelsBehind(i)), m.rtt+4*m.rttVar), maxPTOFactor*g.repair.timeout)",
		"d := max(g.repair.timeout*time.Duration(1+g.levelsBehind(i)), m.rtt+4*m.rttVar)")),
	mutant.New("what the source repeats is withheld while there is a probe", "R56", mutant.In((*group).takesFromSource,
		"(m.state == inSync || psn.Less(m.cursor)):",
		"(m.state == inSync || psn.Less(m.cursor) && m.$1):", recovery{}.escalated)),
	mutant.New("what the source repeats goes to those that are not ready", "R56", mutant.In(recoveryTable,
		`[numRecoveryEvents][numRecoveryStates]transition{
	unaRetained: {{probing, probe}, {resending, nothing}, {probing, probeAgain}, {settling, probeAgain}, {waiting, nothing}},`,
		`[numRecoveryEvents][numRecoveryStates]transition{
	unaRetained: {{probing, probe}, {resending, nothing}, {probing, probeAgain}, {settling, probeAgain}, {waiting, probeAgain}},`)),
	mutant.New("what is being sent again comes from the source as well", "R56", mutant.In(recoveryTable,
		`[numRecoveryEvents][numRecoveryStates]transition{
	unaRetained: {{probing, probe}, {resending, nothing}, {probing, probeAgain}, {settling, probeAgain}, {waiting, nothing}},`,
		`[numRecoveryEvents][numRecoveryStates]transition{
	unaRetained: {{probing, probe}, {resending, probeAgain}, {probing, probeAgain}, {settling, probeAgain}, {waiting, nothing}},`)),
	mutant.New("dead_after bounds no wait", "R57", mutant.In((*group).withinDeadAfter,
		"d = min(d, g.livenessTimeout(i)/livenessProbes)",
		"d = min(d, g.livenessTimeout(i)*livenessProbes)")),
	mutant.New("dead_after does not bound the first wait", "R57", mutant.In((*group).noteAckReq,
		"g.armRecovery(now + first)",
		"g.armRecovery(now + g.$2.$1)", localRepair{}.timeout, group{}.repair)),
	mutant.New("a leg whose silence does not count is probed for ever", "R57", mutant.In((*group).sendLivenessProbe,
		`if g.live.deadAfter == 0 {
		return true`,
		`if g.live.deadAfter < 0 {
		return true`), mutant.In((*group).recoveryTimer,
		`if !serves && g.live.deadAfter == 0 {
			continue`,
		`if !serves && g.live.deadAfter < 0 {
			continue`)),
	mutant.New("a probe of liveness overruns the room", "R57", mutant.In((*group).sendLivenessProbe,
		`if out.resendsExhausted() {
		return false
	}
	g.noteProbe(`,
		"g.noteProbe(")),
	mutant.New("the switch's pauses are a receiver's silence", "R58", mutant.In((*group).applyPauses,
		`	l.pausesApplied += d
	l.livenessSince += d
	l.lastHeard += d
	l.lagSince += d`,
		`	l.pausesApplied += d
	
	l.lagSince += d`)),
	mutant.New("a pause is one of all ports", "R58", mutant.In((*group).newPauses,
		"return g.sw.ports.port(g.legs[i].port).paused - g.activity[i].pausesApplied",
		"return g.sw.ports.port(0).paused - g.activity[i].pausesApplied")),
	mutant.New("a round trip of a repeated packet is measured", "R59", mutant.In((*group).handleData,
		"if !again && (g.repair.store != nil ||",
		"if (again || !again) && (g.repair.store != nil ||")),
	mutant.New("the silence of a leg does not double with its levels", "R23_Levels", mutant.In((*group).deadAfterOf,
		"<< g.levelsBehind(i)",
		"<< min(g.levelsBehind(i), 0)")),
	mutant.New("what waits in a queue is not answered", "R59", mutant.In((*group).livenessTimeout,
		"return d + delay",
		"return d")),
}
