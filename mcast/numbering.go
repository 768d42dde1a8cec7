// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Verification of a receiver's numbering (R52 to R55).
//
// A responder takes a PSN below its ePSN for a duplicate, and acknowledges it unread,
// with the last PSN that it has accepted (C9-105). An ACK therefore proves nothing about
// a receiver that was registered with a PSN below its ePSN. So a new receiver is sent a
// keepalive probe (RFC 9293 3.8.4: a segment from before the window) before it gets
// data. The probe is a WRITE of no bytes with AckReq, and its PSN is a duplicate to any
// receiver whose numbering is not more than probePSNOffset off. It has no effect, and
// the ACK of it shows the receiver's ePSN.

const (
	// maxProbeBackoff times PSNProbe is the longest wait between two rounds of probes.
	maxProbeBackoff = 64
	// probePSNOffset is how far a probe's PSN lies below the registered one: half of the
	// range that a responder takes for duplicates.
	probePSNOffset = 1 << 22
	// probeBurst is the number of probes that one call sends at most.
	probeBurst = 64
	// maxIdleRounds is the number of rounds of probes while no data waits for an answer.
	maxIdleRounds = 10
	// wrongAnswerProbes is the number of further probes after which an answer with a wrong
	// PSN is believed. A single one may be a late packet of the member's last queue pair.
	wrongAnswerProbes = 2
)

// Probe is a keepalive probe to build and send to the member behind a connected
// leg: a WRITE_ONLY of no bytes with AckReq.
type Probe struct {
	Group GroupID
	Leg   LegID
	PSN   rocev2.PSN // in the member's space
}

// verification is the state of a receiver's verification.
type verification struct {
	answeredPSN       rocev2.PSN // the ePSN that its last answer shows, if wrongAnswer; in the member's space
	messagesBefore    rocev2.MSN // the source's messages before the receiver's first one, if acceptedNothing
	pending           bool       // the receiver has not shown the registered PSN yet, and gets no data
	acceptedNothing   bool       // it had accepted nothing, so that its answer did not show its ePSN: MSN has to prove it
	wrongAnswer       bool       // its last answer shows another PSN than the registered one
	probesSinceAnswer uint8      // probes sent since the first answer with answeredPSN, at most wrongAnswerProbes
	isRXE             bool       // it is rdma_rxe, which answers with PSN ffffff before it has accepted anything
	probesSent        uint8      // probes in all, at most 255
	emptyAnswers      uint8      // answers with PSN ffffff and MSN 0 that came after its first data, if isRXE; at most 255

	returning    bool // it was a member lately (R73): no probe before legActivity.probeNotBefore
	answeredOnce bool // it has given the right answer once
	probedAgain  bool // it was probed after that answer
}

// numbering is the state of a group's verification.
type numbering struct {
	interval      time.Duration // the first wait for an answer; 0: nothing is verified
	backoff       time.Duration // the present wait between two rounds of probes
	numPending    int32         // legs that are not verified yet
	nextLeg       LegID         // the next leg to be probed in this round
	rounds        uint8         // rounds since the first one, or since data began to wait; at most maxIdleRounds
	armed         bool
	probeAt       time.Duration // time of the next probes, if armed
	deferredUntil time.Duration // the earliest time at which a leg that this round had to pass over may be probed; 0: there is none
	blockedSince  time.Duration // when the message began to wait, if blocked
	blocked       bool          // a message waits for receivers to be verified
	askSource     bool          // the message waits no longer: the source is to be asked for it

	gap              bool       // some PSNs of the source may not have passed:
	gapFrom, gapNext rocev2.PSN // gapFrom to gapNext - 1
}

// noteGap keeps account of gaps in the source's packets that have passed. hi is the
// group's nxt before psn.
func (n *numbering) noteGap(psn, hi rocev2.PSN) {
	switch {
	case hi.Less(psn) && !n.gap:
		n.gap, n.gapFrom, n.gapNext = true, hi, psn
	case hi.Less(psn):
		n.gapNext = psn
	case n.gap && psn == n.gapFrom:
		n.gapFrom = psn.Next()
		n.gap = n.gapFrom != n.gapNext
	}
}

// startVerification begins the verification of leg i, which leads to a new member.
func (g *group) startVerification(now time.Duration, i LegID) {
	l := &g.legs[i]
	if g.numbering.interval == 0 || !l.connected() {
		return
	}
	v := &g.checks[i]
	if !v.pending {
		g.numbering.numPending++
	}
	*v = verification{pending: true}
	if t := g.sw.departures.recentUntil(now, &g.sw.ports, g.ip, g.members[l.member].ip); t > 0 {
		g.activate(now)
		v.returning = true
		g.activity[i].probeNotBefore, g.activity[i].pausesApplied = t, g.sw.ports.port(l.port).paused
	}
	g.restartKeepalives(now)
}

// unproven reports whether leg i has to be verified, and is not yet.
func (g *group) unproven(i int) bool { return g.checks != nil && g.checks[i].pending }

// endVerification ends the verification of leg i, which is verified or removed.
func (g *group) endVerification(i LegID) {
	if g.unproven(int(i)) {
		v := &g.checks[i]
		v.pending = false
		g.numbering.numPending--
	}
}

// restartKeepalives begins a new series of probes.
func (g *group) restartKeepalives(now time.Duration) {
	n := &g.numbering
	n.backoff, n.rounds, n.nextLeg, n.deferredUntil = n.interval, 0, 0, 0
	n.armed, n.probeAt = true, now
}

// sendKeepalives sends a round of probes, or the next part of one, and removes receivers
// that a message waits for in vain.
func (g *group) sendKeepalives(now time.Duration, out *Output) {
	n := &g.numbering
	n.armed = false
	sent := 0
	for ; int(n.nextLeg) < len(g.legs) && n.numPending > 0 && !g.failed; n.nextLeg++ {
		v := &g.checks[n.nextLeg]
		if !v.pending {
			continue
		}
		if t := g.probeNotBefore(now, int(n.nextLeg)); t > 0 {
			if n.deferredUntil == 0 || t < n.deferredUntil {
				n.deferredUntil = t
			}
			continue
		}
		if g.dismissUnverified(now, int(n.nextLeg), out) {
			continue
		}
		if sent == probeBurst {
			n.armed, n.probeAt = true, now
			return
		}
		sent++
		if v.probesSent == 0 && v.returning {
			n.backoff, n.rounds, g.activity[n.nextLeg].probeNotBefore = n.interval, 0, now
		}
		v.probedAgain = v.answeredOnce
		v.probesSent = min(v.probesSent, 254) + 1
		if v.wrongAnswer {
			v.probesSinceAnswer = min(v.probesSinceAnswer+1, wrongAnswerProbes)
		}
		out.Probes = append(out.Probes, Probe{Group: g.id, Leg: n.nextLeg, PSN: g.members[g.legs[n.nextLeg].member].ePSN.Add(-probePSNOffset)})
	}
	later := n.deferredUntil
	n.nextLeg, n.deferredUntil = 0, 0
	g.unblock(out)
	if n.numPending == 0 || g.failed || !n.blocked && later == 0 && n.rounds >= maxIdleRounds {
		return
	}
	n.rounds = min(n.rounds+1, maxIdleRounds)
	n.armed, n.probeAt = true, now+n.backoff
	if later > 0 {
		n.probeAt = min(n.probeAt, later)
	}
	if end := n.blockedSince + g.deadAfter; n.blocked && g.deadAfter > 0 && now < end {
		n.probeAt = min(n.probeAt, end)
	}
	n.backoff = min(2*n.backoff, maxProbeBackoff*n.interval)
}

// dismissUnverified evicts unverified leg i, or fails the group because of it, if a
// message waits for it, and it expects another PSN, or is silent while others are not. It
// reports whether it has done so. A wrong PSN is reported without such a message too.
func (g *group) dismissUnverified(now time.Duration, i int, out *Output) bool {
	n, l := &g.numbering, &g.legs[i]
	v := &g.checks[i]
	why := Silent
	switch {
	case v.wrongAnswer && v.probesSinceAnswer >= wrongAnswerProbes:
		g.reportMisnumbered(i, v.answeredPSN, out)
		why = Misnumbered
	case v.wrongAnswer || v.returning && v.probesSent == 0 || g.deadAfter == 0 || !n.blocked || now-max(n.blockedSince, g.probedFrom(i)) < g.deadAfter || !g.anyVerified():
		return false
	}
	switch {
	case !n.blocked || !l.joining:
		return false
	case g.canDismiss(i):
		g.evict(i, why, out)
		return true
	case g.source != none && g.acked == g.nxt.Prev(): // all before the message that waits is complete
		g.failBecauseOf(l.member, why, out)
		return true
	}
	return false
}

// reportMisnumbered reports once that the member behind leg i expects another PSN.
func (g *group) reportMisnumbered(i int, expects rocev2.PSN, out *Output) {
	l := &g.legs[i]
	m := g.newMismatch(l.member, ReceivePSN)
	m.Observed, m.Registered, m.Count = expects, g.members[l.member].ePSN, m.Count+1
	g.reportMismatch(l.member, ReceivePSN, out)
}

// anyVerified reports whether some receiver is verified. If none is, the fault is more
// likely on this side.
func (g *group) anyVerified() bool {
	for i := range g.legs {
		if l := &g.legs[i]; int32(i) != g.sourceLeg && l.members > 0 && !g.unproven(i) {
			return true
		}
	}
	return false
}

// canDismiss is canEvict for a leg that does not receive yet: the other live legs,
// receiving or not, are at least as many as the policy requires.
func (g *group) canDismiss(i int) bool {
	n := int32(0)
	for j := range g.legs {
		if j != i && int32(j) != g.sourceLeg && g.legs[j].members > 0 {
			n++
		}
	}
	return n >= g.minReceivers
}

// mayBeginMessage reports whether the message at nxt may begin: all receivers that wait
// for it are verified or, under Quorum, enough of all receivers are.
func (g *group) mayBeginMessage() bool {
	if g.numbering.numPending == 0 {
		return true
	}
	n := int32(0)
	for i := range g.legs {
		l := &g.legs[i]
		if int32(i) == g.sourceLeg || l.members == 0 {
			continue
		}
		switch {
		case !g.unproven(i):
			n++
		case g.quorum == 0 && l.joining:
			return false
		}
	}
	return n >= g.quorum
}

// isBlocking reports whether data waits for receivers, or is to be asked for.
func (n *numbering) isBlocking() bool { return n.blocked || n.askSource }

// mustBlock reports whether new data at psn has to wait for receivers to be verified. If
// not, and a message begins at psn, the joining receivers join.
//
// Nothing behind a gap is forwarded while receivers wait to join: the missing packet may
// be the one in which their first message begins. The source is asked for it.
func (g *group) mustBlock(now time.Duration, psn rocev2.PSN, starts bool, out *Output) bool {
	n := &g.numbering
	switch {
	case psn != g.nxt && !n.blocked && g.numJoining > 0:
		g.noteMismatch(MemberID(g.source), SendPSN, psn, g.nxt, out)
		n.askSource = true
		g.evaluate(out)
		return true
	case psn != g.nxt:
		n.askSource = false // receivers ask for the missing packets
		return n.blocked
	case n.blocked && g.mayBeginMessage():
		n.blocked = false
	case n.blocked, starts && g.numJoining > 0 && !g.mayBeginMessage():
		g.blockMessage(now, psn)
		return true
	}
	n.askSource = false
	if starts && g.numJoining > 0 {
		g.admitJoining(psn)
	}
	return false
}

// blockMessage makes the message at psn wait for receivers to be verified.
func (g *group) blockMessage(now time.Duration, psn rocev2.PSN) {
	g.counters.DataIn++
	if g.nakSeverity != sevNone && psn == g.nakPSN {
		g.nakServed = true
	}
	if n := &g.numbering; !n.blocked {
		n.blocked, n.askSource, n.blockedSince = true, false, now
		for i := range g.checks {
			g.checks[i].probesSinceAnswer = 0 // the member's queue pair may be another one by now
		}
		g.restartKeepalives(now)
	}
}

// unblock asks the source for the blocked message, if that may begin now: otherwise only
// the source's own timeout would bring it back.
func (g *group) unblock(out *Output) {
	if n := &g.numbering; n.blocked && !g.failed && g.mayBeginMessage() {
		n.blocked, n.askSource = false, g.source != none
		if n.askSource {
			g.evaluate(out)
		}
	}
}

// unverifiedLeg returns the leg of the member that p is from, and whether that leg is
// unverified.
func (g *group) unverifiedLeg(p *Packet) (leg int, ok bool) {
	if g.numbering.numPending == 0 || p.Neighbor != 0 {
		return 0, false
	}
	m, ok := g.memberAt(p.Src)
	if !ok || !g.members[m].live {
		return 0, false
	}
	i := int(g.members[m].leg)
	return i, g.unproven(i)
}

// keepaliveAnswer serves an acknowledgement of the member behind leg i, which is
// unverified. No data has gone to it, so the acknowledgement answers a probe, or is late.
func (g *group) keepaliveAnswer(now time.Duration, p *Packet, i int, kind rocev2.AckKind, out *Output) Reason {
	if g.failed {
		return FailedGroup
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.counters.FeedbackIn++
	l := &g.legs[i]
	v, r := &g.checks[i], g.members[l.member].ePSN
	if v.probesSent == 0 {
		return FeedbackStale // an ACK of data of an earlier registration; more of them may be on the way
	}
	expects := p.PSN & rocev2.PSNMask
	if kind == rocev2.KindACK {
		expects = expects.Next()
	}
	fresh := kind == rocev2.KindACK && isEmptyAnswer(p) && r != 0
	if expects == r && kind == rocev2.KindACK || fresh { // a probe is a duplicate to a receiver that expects r: no NAK answers it
		if v.returning && !v.probedAgain {
			if !v.answeredOnce {
				v.answeredOnce = true
				g.restartKeepalives(now)
			}
			return None
		}
		v.isRXE, v.acceptedNothing, v.wrongAnswer = fresh, fresh, false
		if m := g.mismatch(l.member, ReceivePSN); m != nil {
			m.Count = 0
		}
		g.endVerification(LegID(i))
		g.unblock(out)
		return None
	}
	v.answeredOnce, v.probedAgain = false, false
	if !v.wrongAnswer || v.answeredPSN != expects {
		v.wrongAnswer, v.answeredPSN, v.probesSinceAnswer = true, expects, 0
	}
	return None
}

// endMisnumbered evicts receiver i, or fails the group: its acknowledgement p covers PSNs
// that were never sent to it, so its numbering is another one (R54).
func (g *group) endMisnumbered(p *Packet, i int, out *Output) {
	l := &g.legs[i]
	g.reportMisnumbered(i, p.PSN.Next()&rocev2.PSNMask, out)
	if g.canEvict(i) {
		g.evict(i, Misnumbered, out)
		g.evaluate(out)
		return
	}
	g.failBecauseOf(l.member, Misnumbered, out)
}

// isEmptyAnswer reports whether p is an ACK with PSN ffffff and MSN 0. By it rdma_rxe
// acknowledges a duplicate before it has accepted anything, whatever its ePSN is.
func isEmptyAnswer(p *Packet) bool { return p.PSN == rocev2.PSNMask && p.MSN == 0 }

// maxExtraAnswers is how many answers may exceed the number of probes: networks duplicate
// packets.
const maxExtraAnswers = 4

// mustNotCount reports whether acknowledgement p of receiver i must not count: it may be a
// late answer to a probe, or it covers a gap in the packets that have passed. When there
// are more such answers than probes, some of them answer data, which the receiver has
// taken for duplicates.
func (g *group) mustNotCount(p *Packet, i int, acks rocev2.PSN) bool {
	if g.checks == nil {
		return false
	}
	v, n := &g.checks[i], &g.numbering
	if v.acceptedNothing && n.gap && n.gapFrom.LessEq(acks) && g.acks[i].acked.Less(acks) {
		return true // messages that the switch has not counted may have ended in the gap
	}
	if !v.isRXE || p.Syndrome.Kind() != rocev2.KindACK || !isEmptyAnswer(p) {
		return false
	}
	v.emptyAnswers = min(v.emptyAnswers, 254) + 1
	return !v.acceptedNothing || int(v.emptyAnswers) <= int(v.probesSent)+maxExtraAnswers
}

// acksUnread reports whether acknowledgement p of receiver i, which had accepted nothing
// when it answered the probe, covers messages that it did not execute: MSN counts the
// messages that it did execute.
func (g *group) acksUnread(p *Packet, i int, psn rocev2.PSN) bool {
	if g.checks == nil {
		return false
	}
	v := &g.checks[i]
	had := g.acks[i].acked
	acks := ackedBy(p.Syndrome.Kind(), psn)
	switch {
	case !v.acceptedNothing:
		return false
	case p.Syndrome.Kind() == rocev2.KindSequence && (p.PSN & rocev2.PSNMask).Less(g.members[g.legs[i].member].ePSN):
		return true // the receiver never had the PSNs before it
	case p.Syndrome.Kind() == rocev2.KindACK && isEmptyAnswer(p):
		if psn.Less(had) || g.nxt.LessEq(psn) {
			return true // an ACK of nothing that was sent to the receiver
		}
	case acks.LessEq(had):
		return false
	}
	due, exact := g.messages.completedBy(acks)
	if !exact || acks.Less(g.acked) { // behind a quorum the number of these messages is not known
		return false
	}
	v.acceptedNothing = due == v.messagesBefore // the end of the first message decides
	return p.MSN != (due-v.messagesBefore)&rocev2.PSNMask
}
