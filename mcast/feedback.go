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
	raised := g.fwd.nxt.LessEq(ackedBy(kind, psn)) && g.mayRaise(i, ackedBy(kind, psn))
	if raised { // what comes next may not have been sent yet
		kind, psn = rocev2.KindACK, g.reach(ackedBy(kind, psn).Next()).Prev()
	}
	if acked := ackedBy(kind, psn); g.fwd.nxt.LessEq(acked) && kind != rocev2.KindFatal && p.Neighbor == 0 && g.isBeforeRestart(acked) {
		kind, psn = rocev2.KindACK, g.fwd.nxt.Prev() // what comes next is a repetition for the receiver
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

// Selective NAKs (R106). A switch that finds a gap in what comes from the switch above names
// the missing packets to it at once. Such a NAK acknowledges nothing, so it waits for no
// receiver, and each of several gaps has its own.
//
// It is an Acknowledge packet with a syndrome that IBTA reserves. Its PSN is that of the first
// missing packet, and the packet behind the last one has just come: links between switches
// keep the order, so a packet that the switch above has sent again after that one is still on
// its way. Nothing is stored of a selective NAK, and it is not repeated: if it is lost, or what
// it is for, the receivers' own NAKs bring the packets (R92).

const (
	selectiveNAK = rocev2.Syndrome(0x40) // | number of missing packets
	maxMissing   = 0x1F                  // missing packets that a selective NAK may name
)

// isSelectiveNAK reports whether p is a selective NAK of another switch.
func isSelectiveNAK(p *Packet) bool {
	return p.Neighbor != 0 && p.Syndrome&^maxMissing == selectiveNAK && p.Syndrome != selectiveNAK
}

// nakGap sends the switch above a selective NAK of the packets from nxt to psn-1. psn has come,
// and is retained. A longer gap is no loss on a link, and is requested as R92 says.
func (g *group) nakGap(psn rocev2.PSN, out *Output) {
	if n := psn.Sub(g.fwd.nxt); n <= maxMissing && g.src.neighbor != 0 {
		g.sendNAK(out, selectiveNAK|rocev2.Syndrome(n), g.fwd.nxt)
	}
}

// selectiveNAKReceived sends leg i, to another switch, the retained ones of the packets that its
// selective NAK names. What is not retained goes to it when it comes (R92).
func (g *group) selectiveNAKReceived(now time.Duration, i int, p *Packet, out *Output) Reason {
	psn := p.PSN & rocev2.PSNMask
	next := psn.Add(int32(p.Syndrome & maxMissing)) // the packet that had come
	if g.fwd.nxt.LessEq(next) {
		return FeedbackAhead
	}
	if next.Sub(g.agg.acked) < -maxBehind {
		return PSNOutOfRange
	}
	g.applyPauses(i)
	if g.live.deadAfter != 0 {
		g.activity[i].lastHeard = now
	}
	if p.BECN {
		g.noteBECN(now, i)
	}
	b, m := &g.acks[i], &g.activity[i].recovery
	if next.LessEq(b.acked) || g.repair.store == nil || m.escalated {
		return FeedbackStale
	}
	m.lossAt = now
	g.costNAK(i, sevSequence, psn)
	room, _ := g.roomFor(now, i, out)
	for q := rocev2.MaxPSN(psn, b.acked.Next()); q.Less(next) && room > 0 && !out.resendsExhausted(); q = q.Next() {
		e := g.repair.store.find(q)
		switch {
		case e == nil, next.Less(e.passedAt):
			continue // q is still to come, or has come after next
		case m.state != inSync && m.cursor.LessEq(q) && (m.inBurst(q) || m.firstUnsent.LessEq(q)):
			continue // the cursor comes to it
		}
		room--
		m.resentPSN = rocev2.MaxPSN(m.resentPSN, q)
		g.cost.legs[i].repaired++
		g.copyRetained(i, e, q, false, out)
	}
	return None
}

// The CNP filter passes the signals of the most congested leg, so that the source slows
// down for the bottleneck of the tree and not for the sum of all legs (RC.md §7). A
// signal is a CNP, or an ACK with BECN. Every leg has a weight, the number of its
// signals, halved every cnpHalfLife. The leg whose signals pass is cnpFilter.leg.
const (
	// cnpHalfLife is some RTTs of a data centre. After 8 half-lives without a signal
	// the weight of a leg is close to 0.
	cnpHalfLife = time.Millisecond
	// cnpGap is the least time between two CNPs to the source: the same that a
	// receiver's RNIC leaves between its own (DCQCN: 50 us).
	cnpGap = 50 * time.Microsecond
	// cnpSilence without a signal of that leg lets any leg's signal pass: a filter that
	// passes nothing while there is congestion would be worse than none.
	cnpSilence = 2 * cnpGap
	// cnpUnit is the weight of one signal. Weights saturate; at one signal per
	// cnpGap they converge near 29 signals.
	cnpUnit      = 256
	cnpMaxWeight = 1 << 24
	cnpMargin    = 10 // a new leg must weigh more than 1 + 1/cnpMargin times the old one
)

// cnpFilter is the filter's state. Two CNPs to the source are at least cnpGap apart.
type cnpFilter struct {
	leg      int32         `state:"encoded"`                           // the leg whose signals pass, or none
	passed   bool          `state:"encoded"`                           // passedAt is set
	legAt    time.Duration `state:"time if x.leg != none || x.passed"` // the last signal of leg
	passedAt time.Duration `state:"time if x.leg != none || x.passed"` // time of the last CNP that passed
}

// decayedWeight returns weight w after d: halved for every whole half-life, and linearly
// in between (at most 6 % more than the exponential).
func decayedWeight(w uint32, d time.Duration) uint32 {
	w >>= uint(d / cnpHalfLife) // 0 after 32 half-lives
	rest := uint64(d % cnpHalfLife)
	return w - uint32(uint64(w)*rest/uint64(2*cnpHalfLife))
}

// addSignal adds a signal of leg i and returns its weight.
func (g *group) addSignal(now time.Duration, i int) uint32 {
	l := &g.activity[i]
	l.cnpWeight = min(decayedWeight(l.cnpWeight, now-l.cnpWeightAt)+cnpUnit, cnpMaxWeight)
	l.cnpWeightAt = now
	return l.cnpWeight
}

// noteSignal records a signal of leg i, and reports whether the signal passes the filter.
func (g *group) noteSignal(now time.Duration, i int) bool {
	w := g.addSignal(now, i)
	if g.cnp.leg == int32(i) {
		g.cnp.legAt = now
		return true
	}
	if g.cnp.leg == none {
		g.cnp.leg, g.cnp.legAt = int32(i), now
		return true
	}
	b := &g.activity[g.cnp.leg]
	wb := decayedWeight(b.cnpWeight, now-b.cnpWeightAt)
	if uint64(w)*cnpMargin > uint64(wb)*(cnpMargin+1) {
		g.cnp.leg, g.cnp.legAt = int32(i), now
		return true
	}
	return w >= wb || now-g.cnp.legAt > cnpSilence
}

// noteBECN records a BECN that came with an ACK or NAK of leg i.
func (g *group) noteBECN(now time.Duration, i int) {
	if g.noteSignal(now, i) {
		g.src.becnDue = true
	}
}

// handleCNP serves a congestion notification packet. It has no PSN to check.
func (g *group) handleCNP(now time.Duration, p *Packet, out *Output) Reason {
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
	if !g.noteSignal(now, i) || g.cnp.passed && now-g.cnp.passedAt < cnpGap {
		return CNPFiltered
	}
	g.cnp.passedAt, g.cnp.passed = now, true
	g.counters.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{Group: g.id, To: MemberID(g.src.member), Op: rocev2.CNP, BECN: true})
	return None
}
