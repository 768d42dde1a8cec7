// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// legOf returns the leg that feedback p comes from: the forwarded leg to p's neighbour,
// or the connected leg of the member with p's source address. The port does not count:
// several members may be behind one (R21). A neighbour's feedback is in the PSNs of the
// source that it is for, so it has to be for the current source: a delayed ACK of the
// last turn would acknowledge data that nobody has. (A member's feedback is in its own
// PSNs, which no two turns share.)
func (g *group) legOf(p *Packet) (int, Reason) {
	i := none
	if p.Neighbor != 0 {
		for _, l := range g.forwardedLegs() {
			if g.legs[l].neighbor == p.Neighbor {
				i = int(l)
			}
		}
	} else if m, ok := g.memberAt(p.Src); ok {
		l := g.members[m].leg
		if g.members[m].live && g.legs[l].connected() {
			i = int(l)
		}
	}
	switch {
	case i == none:
		return 0, NotMember
	case int32(i) == g.src.leg:
		return 0, FromSource
	case g.src.member == none:
		return 0, NoSource
	case p.Neighbor != 0 && rocev2.KeyOf(p.Src) != g.src.addr:
		return 0, FeedbackStale // in the PSNs of an earlier source, which may equal those of this one (R18)
	case p.Neighbor != 0 && p.Op == rocev2.Acknowledge && p.MSN != g.tagOf(MemberID(g.src.member)):
		return 0, OtherRegistration
	case g.acks[i].flags&isReceiver != 0:
		return i, None
	case g.legs[i].joining:
		return 0, FeedbackAhead
	}
	return 0, NotMember
}

// handleFeedback serves an ACK or a NAK: FEEDBACK of RC.md §6.2.
func (g *group) handleFeedback(now time.Duration, p *Packet, out *Output) Reason {
	kind := p.Syndrome.Kind()
	selective := isSelectiveNAK(p)
	if kind == rocev2.KindReserved && !selective {
		return ReservedSyndrome
	}
	if i, ok := g.unverifiedLeg(p); ok {
		return g.keepaliveAnswer(now, p, i, kind, out)
	}
	i, r := g.legOf(p)
	if r != None {
		return r
	}
	if g.is(failed) {
		return FailedGroup
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.counters.FeedbackIn++
	if selective {
		return g.selectiveNAKReceived(now, i, p, out)
	}
	b := &g.acks[i]
	psn := (p.PSN - rocev2.PSN(b.delta)) & rocev2.PSNMask
	if g.mustNotCount(p, i, ackedBy(kind, psn)) {
		if g.live.deadAfter != 0 {
			g.activity[i].lastHeard = now // the receiver is alive
		}
		return FeedbackStale
	}
	raised := g.fwd.nxt.LessEq(ackedBy(kind, psn)) && g.raisedBy(i, ackedBy(kind, psn))
	if raised && kind != rocev2.KindACK {
		kind, psn = rocev2.KindACK, psn.Prev() // what comes next may not have been sent yet
	}
	if g.fwd.nxt.LessEq(ackedBy(kind, psn)) || g.acksUnread(p, i, psn) {
		if p.Neighbor == 0 {
			g.reportMisnumbered(i, p.PSN.Next()&rocev2.PSNMask, out) // its numbering is another one (R54)
			if g.judge(i, Misnumbered, out) && !g.is(failed) {
				g.evaluate(out)
			}
		}
		return FeedbackAhead
	}
	if g.fwd.nxt == psn {
		return FeedbackAhead // a NAK of a PSN that was never sent
	}
	if psn.Sub(g.agg.acked) < -maxBehind {
		return PSNOutOfRange
	}
	g.applyPauses(i)
	if g.live.deadAfter != 0 {
		g.activity[i].lastHeard = now
	}
	if p.BECN {
		g.noteBECN(now, i)
	}
	if kind == rocev2.KindACK {
		if !g.ackReceived(now, i, psn, out) {
			return FeedbackStale
		}
	} else if !g.nakReceived(now, i, kind, p.Syndrome, psn, out) {
		return FeedbackStale
	}
	if m := &g.activity[i].recovery; g.repair.store != nil {
		m.expectedSince = max(m.expectedSince, now) // stale feedback does not come here: it may be all that gets through
	}
	if g.lag.psns != 0 && b.acked.Sub(g.lag.floor) > g.lag.psns {
		g.evictLaggards(b.acked, out)
	}
	// The group's acked can move only when the last of the lowest legs has moved. A
	// NAK can be due only at acked+1, or under Quorum below: then its leg is stranded.
	if g.agg.numAtAcked <= g.agg.allowedBehind || raised || b.pending != sevNone && b.acked.LessEq(g.agg.acked) {
		g.evaluate(out)
		g.costLast(now)
	}
	g.resend(now, out)
	return None
}

// ackReceived records that leg i has everything up to psn. It reports whether that is
// news.
func (g *group) ackReceived(now time.Duration, i int, psn rocev2.PSN, out *Output) bool {
	b := &g.acks[i]
	before, at := b.acked, g.agg.numAtAcked
	if !g.noteAcked(b, psn) {
		g.costDuplicate(i)
		return false
	}
	g.costACK(now, i, at)
	if at == 2 {
		g.costLast(now)
	}
	if g.repair.store != nil || g.live.deadAfterMax != 0 {
		g.updateRTT(now, i, before)
	}
	if g.repair.store != nil {
		g.onProgress(now, i)
		if g.policy.quorum != 0 && b.acked == g.fwd.nxt.Prev() {
			g.freeUnneeded(out)
		}
	}
	return true
}

// nakReceived records NAK(e) of leg i. It reports whether that is news.
func (g *group) nakReceived(now time.Duration, i int, kind rocev2.AckKind, syn rocev2.Syndrome, e rocev2.PSN, out *Output) bool {
	b := &g.acks[i]
	if e.LessEq(b.acked) {
		return false // below what the leg has acknowledged (R06)
	}
	moved := g.ackReceived(now, i, e.Prev(), out)
	g.activity[i].recovery.lossAt = now
	sev := severityOf(kind)
	g.costNAK(i, sev, e)
	if g.serveNAK(now, i, sev, syn, e) {
		return true
	}
	if sev == sevSequence && g.nakCrossesCopy(i, e) {
		return moved
	}
	if sev <= b.pending {
		// The pending NAK is as severe. rdma_rxe follows an RNR NAK with a sequence
		// NAK of the same PSN: the RNR NAK names the fault (RC.md §3.5).
		return moved
	}
	g.setPending(b, sev, syn)
	return true
}

func severityOf(k rocev2.AckKind) severity {
	switch k {
	case rocev2.KindSequence:
		return sevSequence
	case rocev2.KindRNR:
		return sevRNR
	}
	return sevFatal
}

// ackedBy returns the last PSN that an ACK or NAK of psn acknowledges: a NAK
// acknowledges what is before its PSN.
func ackedBy(kind rocev2.AckKind, psn rocev2.PSN) rocev2.PSN {
	if kind == rocev2.KindACK {
		return psn
	}
	return psn.Prev()
}
