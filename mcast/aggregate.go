// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
)

// evaluate is EVAL of RC.md §6.2: it raises acked and sends the source an ACK of it, then
// a NAK of the next PSN if one is due.
func (g *group) evaluate(out *Output) {
	if g.is(unplaced) {
		return // nothing of the source is known to be had by all
	}
	for {
		for g.agg.numAtAcked <= g.agg.allowedBehind && g.raiseAcked(out) {
		}
		if g.policy.quorum != 0 && g.agg.numPending != 0 && g.removeStranded(out) {
			if g.is(failed) {
				return
			}
			continue
		}
		if g.agg.numPending == 0 && !g.is(requests) {
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
		next := g.agg.acked.Next()
		if r := &g.agg.request; r.awaits(next) && worst <= r.severity {
			return // the source was sent this NAK, and has not sent its PSN since
		}
		g.agg.request = request{psn: next, severity: worst}
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
	if g.policy.quorum != 0 {
		m = g.quorumAcked()
	} else {
		m = g.lowestAcked()
	}
	if m.LessEq(g.agg.acked) {
		return false
	}
	g.src.ackedCount = addAckedCount(g.src.ackedCount, m.Sub(g.agg.acked))
	g.agg.acked, g.cost.aloneSince = m, 0
	if g.numbering.gap {
		g.numbering.closeGapBelow(g.lowestReceived().Next())
	}
	if g.policy.stored && m.Next().Sub(g.storage.reported) >= storeEvery {
		g.reportPositions(out)
	}
	if r := &g.agg.request; r.severity != sevNone && m.Sub(r.psn) >= maxSourceFlight {
		*r = request{} // the source went on and did not send that packet again (R62)
	}
	g.agg.messages.advance(m)
	if g.fwd.targets != nil {
		g.fwd.targets.fold(m)
	}
	if g.repair.store != nil {
		g.freeUnneeded(out)
	} else if g.rtt.psn.LessEq(m) {
		g.rtt.pending = false
	}
	g.sendACK(out)
	if g.recv.joinedInFlight != 0 && g.recv.inFlightUntil.LessEq(m) {
		g.promoteJoined()
	}
	return true
}

// lowestAcked returns the PSN up to which every receiver has all, and sets numAtAcked to
// the number of receivers that have no more.
func (g *group) lowestAcked() rocev2.PSN {
	m, n := g.fwd.nxt.Prev(), int32(0)
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		switch {
		case b.acked.Less(m):
			m, n = b.acked, 1
		case b.acked == m:
			n++
		}
	}
	g.agg.numAtAcked = n
	return m
}

// worstPending returns the highest severity that is pending at acked+1, the leg that it
// comes from (none: the switch itself) and the syndrome to send: of several RNR NAKs
// the one with the longest wait.
func (g *group) worstPending() (sev severity, from int, code rocev2.Syndrome) {
	for i := range g.acks {
		b := &g.acks[i]
		if b.pending == sevNone || b.acked != g.agg.acked {
			continue
		}
		if b.pending > sev || b.pending == sevRNR && sev == sevRNR && b.pendingSyndrome.RNRCode().Duration() > code.RNRCode().Duration() {
			sev, from, code = b.pending, i, b.pendingSyndrome
		}
	}
	una := g.agg.acked.Next()
	switch complete := g.fwd.nxt == una; { // all that was forwarded is acknowledged
	case g.is(refused) && g.refusal.psn == una && sev < sevFatal:
		return sevFatal, none, g.refusal.syndrome
	case g.is(messageRefused) && complete && (!g.is(frozen) || una.LessEq(g.src.lastPSN)):
		return sevRNR, none, turnSoon.RNR() // a frozen source (R86) may have nothing more to send, if una has not come
	case g.is(messageRefused) && !complete && g.is(frozen) && sev < sevRNR:
		return sevRNR, none, turnSoon.RNR()
	case g.is(asking|lostNxt) && complete: // the message at nxt waits no longer (R53, R83), or nxt was lost before the switch (R103)
		return sevSequence, none, rocev2.SyndromeNAKSequence
	}
	return sev, from, code
}

// addAckedCount adds n PSNs to past, an ackedCount: how far back a duplicate may be.
func addAckedCount(past, n int32) int32 { return min(past+n, maxBehind) }

// aggregation is what the group acknowledges to the source. acked never falls within a
// turn; it is the lowest acked of the receivers or, under Quorum, the highest PSN that the
// quorum has.
type aggregation struct {
	acked         rocev2.PSN // all up to here is acknowledged, by every receiver or the quorum
	numAtAcked    int32      // receivers that are not above acked; more than allowedBehind while acked cannot move
	allowedBehind int32      // receivers that acked does not wait for: 0, except under Quorum
	numPending    int32      // legs with a pending NAK
	request       request    // what the source was asked for
	messages      messages   // the MSN of the group's ACK
}

// setPending replaces the pending NAK of b.
func (g *group) setPending(b *ackState, sev severity, info rocev2.Syndrome) {
	if b.pending != sevNone {
		g.agg.numPending--
	}
	if sev != sevNone {
		g.agg.numPending++
	}
	b.pending, b.pendingSyndrome = sev, info
}

// noteAcked records that b acknowledged everything up to psn. It reports whether that
// is news.
func (g *group) noteAcked(b *ackState, psn rocev2.PSN) bool {
	if psn.LessEq(b.acked) {
		return false
	}
	if b.acked.LessEq(g.agg.acked) && g.agg.acked.Less(psn) && (b.flags&joinedInFlight == 0 || g.policy.quorum == 0) {
		g.agg.numAtAcked--
	}
	b.acked = psn
	g.setPending(b, sevNone, 0)
	return true
}

// sendACK sends the source an ACK of acked. The syndrome is always 0x1F: the credits of
// several receivers cannot be merged safely (R20).
func (g *group) sendACK(out *Output) {
	g.sendFeedback(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.agg.acked)
	g.src.becnDue = false
}

func (g *group) sendNAK(out *Output, code rocev2.Syndrome, psn rocev2.PSN) {
	g.sendFeedback(out, rocev2.Acknowledge, code, psn)
	g.src.becnDue = false
}

func (g *group) sendFeedback(out *Output, op rocev2.Opcode, syn rocev2.Syndrome, psn rocev2.PSN) {
	if g.is(quarantined|unplaced) && op == rocev2.Acknowledge {
		return
	}
	g.counters.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{
		Group: g.id, To: MemberID(g.src.member), Op: op, BECN: g.src.becnDue,
		PSN: psn, Syndrome: syn, MSN: g.msnTo(MemberID(g.src.member), g.agg.messages.completed),
	})
}
