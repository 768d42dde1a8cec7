// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
)

// evaluate is EVAL of RC.md §6.2: it raises acked and sends the source an ACK of it, then
// a NAK of the next PSN if one is due.
func (g *group) evaluate(out *Output) {
	for {
		for g.numAtAcked <= g.allowedBehind && g.raiseAcked(out) {
		}
		if g.quorum > 0 && g.numPending > 0 && g.removeStranded(out) {
			if g.failed {
				return
			}
			continue
		}
		if g.numPending == 0 && g.refusal.syndrome == 0 && !g.numbering.askSource && !g.turn.over {
			return
		}
		worst, who, code := g.worstPending()
		switch {
		case worst == sevNone:
			return
		case worst == sevFatal && who != none && g.canEvict(who):
			g.evict(who, code, out)
			continue
		}
		next := g.acked.Next()
		if g.nakSeverity != sevNone && g.nakPSN == next && !g.nakServed && worst <= g.nakSeverity {
			return // the source was sent this NAK, and has not sent its PSN since
		}
		g.nakPSN, g.nakSeverity, g.nakServed = next, worst, false
		g.sendNAK(out, code, next)
		if worst == sevFatal {
			g.fatalSent(who, code, out)
		}
		return
	}
}

// raiseAcked sets the group's acked to the lowest acked of the receiving legs; under
// Quorum, to the highest PSN that the quorum has. Without receivers it is all that was
// forwarded. If acked rises the source is sent an ACK, and raiseAcked returns true.
func (g *group) raiseAcked(out *Output) bool {
	var m rocev2.PSN
	if g.quorum > 0 {
		m = g.quorumAcked()
	} else {
		m = g.lowestAcked()
	}
	if m.LessEq(g.acked) {
		return false
	}
	g.ackedCount = addAckedCount(g.ackedCount, m.Sub(g.acked))
	g.acked = m
	if g.nakSeverity != sevNone && m.Sub(g.nakPSN) >= maxSourceFlight {
		g.nakSeverity, g.nakServed = sevNone, false // the source went on and did not send nakPSN again (R62)
	}
	g.messages.advance(m)
	if g.targets != nil {
		g.targets.fold(m)
	}
	if g.store != nil {
		g.freeUnneeded(out)
	} else if g.rttPSN.LessEq(m) {
		g.rttPending = false
	}
	g.sendACK(out)
	if g.numJoinedInFlight > 0 && g.inFlightUntil.LessEq(m) {
		g.promoteJoined()
	}
	return true
}

// lowestAcked returns the PSN up to which every receiver has all, and sets numAtAcked to
// the number of receivers that have no more.
func (g *group) lowestAcked() rocev2.PSN {
	m := g.nxt.Prev()
	first := true
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		switch {
		case first || b.acked.Less(m):
			m, g.numAtAcked, first = b.acked, 1, false
		case b.acked == m:
			g.numAtAcked++
		}
	}
	return m
}

// worstPending returns the highest severity that is pending at acked+1, the leg that it
// comes from (none: the switch itself) and the syndrome to send: of several RNR NAKs
// the one with the longest wait.
func (g *group) worstPending() (sev severity, from int, code rocev2.Syndrome) {
	from = none
	for i := range g.acks {
		b := &g.acks[i]
		if b.pending == sevNone || b.flags&isReceiver == 0 || b.acked != g.acked {
			continue
		}
		if b.pending > sev || b.pending == sevRNR && sev == sevRNR && b.pendingSyndrome.RNRCode().Duration() > code.RNRCode().Duration() {
			sev, from, code = b.pending, i, b.pendingSyndrome
		}
	}
	if g.refusal.syndrome != 0 && g.refusal.psn == g.acked.Next() && sev < sevFatal {
		return sevFatal, none, g.refusal.syndrome
	}
	if sev == sevNone && g.turn.over && g.nxt == g.acked.Next() {
		return sevRNR, none, turnSoon.RNR()
	}
	if sev == sevNone && g.numbering.askSource && g.nxt == g.acked.Next() {
		return sevSequence, none, rocev2.SyndromeNAKSequence // as a receiver that lacks the blocked message would
	}
	return sev, from, code
}

// fatalSent acts on a fatal NAK that was sent to the source. A receiver's NAK ends the
// group. The switch's own NAK ends the source's queue pair only: nothing reached a
// receiver, and another member may send.
func (g *group) fatalSent(from int, code rocev2.Syndrome, out *Output) {
	if from == none {
		if !g.refusalReported {
			g.refusalReported = true
			g.emitCause(out, SourceRefused, MemberID(g.source), g.nakPSN, code)
		}
		return
	}
	g.fail(g.legs[from].member, g.nakPSN, code, code, out)
}

// failBecauseOf fails the group because of member m: the source gets a fatal NAK of the
// first PSN that is not acknowledged, so what came before completes. The syndrome is why
// if that is the member's own fatal NAK, else remote operational error.
func (g *group) failBecauseOf(m MemberID, why rocev2.Syndrome, out *Output) {
	code := why
	if why.Kind() != rocev2.KindFatal {
		code = rocev2.SyndromeNAKOpErr
	}
	g.nakPSN, g.nakSeverity, g.nakServed = g.acked.Next(), sevFatal, false
	if g.nakPSN.Less(g.nxt) || g.numbering.isBlocking() {
		g.sendNAK(out, code, g.nakPSN)
	} // else the source has not sent nakPSN, and is answered when it does (R75)
	g.fail(m, g.nakPSN, code, why, out)
}

func (g *group) fail(m MemberID, psn rocev2.PSN, code, why rocev2.Syndrome, out *Output) {
	g.failed, g.failPSN, g.failSyndrome = true, psn, code
	g.livenessArmed = false
	g.clearStore(g.nxt, out)
	g.emitEvent(out, Event{Kind: GroupFailed, Group: g.id, Member: m, PSN: psn, Syndrome: code, Cause: why})
	if g.source != none { // a source that is registered with too high a PSN begins in the middle of a message
		g.reportMismatch(MemberID(g.source), SendPSN, out)
	}
}

// evict removes leg i, whose receiver cannot go on.
func (g *group) evict(i int, why rocev2.Syndrome, out *Output) {
	a := g.acks[i].acked
	if g.acks[i].flags&isReceiver == 0 {
		a = g.nxt.Prev() // nothing that was forwarded is for it
	}
	for m := range g.members {
		if g.members[m].leg == LegID(i) && g.members[m].live {
			g.members[m].live = false
			g.emitCause(out, MemberEvicted, MemberID(m), a, why)
		}
	}
	g.legs[i].members = 0
	g.removeLeg(i)
	g.freeAfterEviction(out)
}

// addAckedCount adds n PSNs to past, an ackedCount: how far back a duplicate may be.
func addAckedCount(past, n int32) int32 { return min(past+n, maxBehind) }
