// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Verification of a receiver's numbering (R52 to R55).
//
// A responder takes a PSN below the one that it expects for a duplicate: it
// acknowledges it, unread, with the last PSN that it has (C9-105). An ACK therefore
// proves nothing about a receiver that was registered with a PSN lower than the one
// that it expects. So before a new receiver gets data, a keepalive probe (RFC 9293
// 3.8.4: a segment from before the window) has it say which PSN it expects: a WRITE
// of no bytes with AckReq, and a PSN that is a duplicate to any receiver whose
// numbering is not more than probePSNOffset off. It has no effect.

const (
	// maxProbeBackoff times PSNProbe is the longest wait between two probes.
	maxProbeBackoff = 64
	// probePSNOffset is how far below the registered PSN a probe is: half of what a
	// responder takes for duplicates.
	probePSNOffset = 1 << 22
	// probeBurst is how many probes one call sends.
	probeBurst = 64
	// maxIdleRounds is how many rounds of probes there are while no data waits for an
	// answer.
	maxIdleRounds = 10
	// wrongAnswerProbes is after how many more probes an answer with a wrong PSN is
	// believed. A single one may be a late packet of the member's last queue pair.
	wrongAnswerProbes = 2
)

// Probe is a keepalive probe to build and send to the member behind a connected
// leg: a WRITE_ONLY of no bytes with AckReq.
type Probe struct {
	Group GroupID
	Leg   LegID
	PSN   rocev2.PSN // in the member's space
}

// verification is what a receiver has shown of its numbering.
type verification struct {
	answeredPSN       rocev2.PSN // the PSN that its last answer names, if wrong; in the member's space
	messagesBefore    rocev2.MSN // the source's messages before its first one, if fresh
	pending           bool       // it has not shown the registered PSN yet, and gets no data
	acceptedNothing   bool       // it had accepted nothing, and did not say what it expects: MSN has to prove it
	wrongAnswer       bool       // its last answer names another PSN
	probesSinceAnswer uint8      // sent since it first gave that answer
	isRXE             bool       // it is rdma_rxe, and says ffffff before it has accepted anything
	probesSent        uint8      // probes in all, at most 255
	emptyAnswers      uint8      // ... and answers to them of that kind that came after its first data, if rxe

	returning    bool // it was a member lately (R73): track.from says when it may be probed
	answeredOnce bool // it has given the right answer once ...
	probedAgain  bool // ... and was probed since
}

// numbering is a group's part of the verification.
type numbering struct {
	interval      time.Duration // first wait for an answer; 0: nothing is verified
	backoff       time.Duration // the present one between two rounds of probes
	numPending    int32         // legs that have not shown their numbering
	nextLeg       LegID         // to be probed next in this round
	rounds        uint8         // since the first, or since data began to wait
	armed         bool
	probeAt       time.Duration // of the next probes, if armed
	deferredUntil time.Duration // the first of those that could not be probed in this round yet may be then; 0: there is none
	blockedSince  time.Duration // when the message began to wait, if held
	blocked       bool          // a message waits for receivers to show their numbering
	askSource     bool          // it need not wait any more: the source is to be asked for it

	gap              bool       // some of these PSNs of the source may not have passed:
	gapFrom, gapNext rocev2.PSN // gapFrom to gapNext - 1
}

// noteGap keeps account of gaps in what has passed. hi is the PSN after the highest
// before psn.
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

// startVerification begins the verification of a leg that a new member is behind.
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

// unproven says whether leg i has not shown its numbering, and has to.
func (g *group) unproven(i int) bool { return g.checks != nil && g.checks[i].pending }

// endVerification ends the verification of leg i: it has shown its numbering, or is gone.
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

// sendKeepalives sends a round of probes, or the next part of one, and gives up receivers
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

// dismissUnverified reports whether unverified leg i was given up: a message waits for it,
// and it expects another PSN, or is silent while others are not.
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

// reportMisnumbered says that the member behind leg i expects another PSN, once.
func (g *group) reportMisnumbered(i int, expects rocev2.PSN, out *Output) {
	l := &g.legs[i]
	m := g.newMismatch(l.member, ReceivePSN)
	m.Observed, m.Registered, m.Count = expects, g.members[l.member].ePSN, m.Count+1
	g.reportMismatch(l.member, ReceivePSN, out)
}

// anyVerified says whether some receiver has shown its numbering: if none has, the
// fault is more likely on this side.
func (g *group) anyVerified() bool {
	for i := range g.legs {
		if l := &g.legs[i]; int32(i) != g.sourceLeg && l.members > 0 && !g.unproven(i) {
			return true
		}
	}
	return false
}

// canDismiss is spare for a leg that does not receive yet: as many others as the
// policy wants are live, receiving or not.
func (g *group) canDismiss(i int) bool {
	n := int32(0)
	for j := range g.legs {
		if j != i && int32(j) != g.sourceLeg && g.legs[j].members > 0 {
			n++
		}
	}
	return n >= g.minReceivers
}

// mayBeginMessage says whether the message at hi may begin: all receivers that wait for it have
// shown their numbering or, under Quorum, enough of all receivers have.
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

// isBlocking says whether data has waited for receivers, or does.
func (n *numbering) isBlocking() bool { return n.blocked || n.askSource }

// mustBlock says whether new data at psn has to wait for receivers to show their
// numbering. If not, and a message begins at psn, those that wait for one join.
//
// Nothing behind a gap is forwarded while some wait to join: the packet in which a
// message begins for them may be the missing one. The source is asked for it.
func (g *group) mustBlock(now time.Duration, psn rocev2.PSN, starts bool, out *Output) bool {
	n := &g.numbering
	switch {
	case psn != g.nxt && !n.blocked && g.numJoining > 0:
		g.noteMismatch(MemberID(g.source), SendPSN, psn, g.nxt, out)
		n.askSource = true
		g.evaluate(out)
		return true
	case psn != g.nxt:
		n.askSource = false // receivers ask for what is before
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

// blockMessage has the message at psn wait for receivers to show their numbering.
func (g *group) blockMessage(now time.Duration, psn rocev2.PSN) {
	g.counters.DataIn++
	if g.nakSeverity != sevNone && psn == g.nakPSN {
		g.nakServed = true
	}
	if n := &g.numbering; !n.blocked {
		n.blocked, n.askSource, n.blockedSince = true, false, now
		for i := range g.checks {
			g.checks[i].probesSinceAnswer = 0 // its queue pair may be another one by now
		}
		g.restartKeepalives(now)
	}
}

// unblock asks the source for the message that has waited, if it need not wait
// any more: the source would find out by its own timeout only.
func (g *group) unblock(out *Output) {
	if n := &g.numbering; n.blocked && !g.failed && g.mayBeginMessage() {
		n.blocked, n.askSource = false, g.source != none
		if n.askSource {
			g.evaluate(out)
		}
	}
}

// unverifiedLeg returns the leg of the member that p is from, if it has not shown its
// numbering yet.
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
// unverified: no data has gone to it, so it answers a probe, or is late.
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
		return FeedbackStale // to data of an earlier registration, of which more may be on the way
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

// endMisnumbered ends receiver i, whose acknowledgement p cannot be of what it was sent:
// it has another numbering (R54).
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

// isEmptyAnswer says whether p is how rdma_rxe acknowledges a duplicate before it has
// accepted anything: whatever it expects, with PSN ffffff, and with no message.
func isEmptyAnswer(p *Packet) bool { return p.PSN == rocev2.PSNMask && p.MSN == 0 }

// maxExtraAnswers is how many answers there may be to a probe beyond the one: networks
// duplicate.
const maxExtraAnswers = 4

// mustNotCount says whether acknowledgement p of receiver i must not count: it may be a late
// answer to a probe, or it covers a gap in what has passed. When there are more such
// answers than there were probes, some of them answer data, which the receiver has
// taken for duplicates.
func (g *group) mustNotCount(p *Packet, i int, acks rocev2.PSN) bool {
	if g.checks == nil {
		return false
	}
	v, n := &g.checks[i], &g.numbering
	if v.acceptedNothing && n.gap && n.gapFrom.LessEq(acks) && g.acks[i].acked.Less(acks) {
		return true // messages may have ended that were not counted
	}
	if !v.isRXE || p.Syndrome.Kind() != rocev2.KindACK || !isEmptyAnswer(p) {
		return false
	}
	v.emptyAnswers = min(v.emptyAnswers, 254) + 1
	return !v.acceptedNothing || int(v.emptyAnswers) <= int(v.probesSent)+maxExtraAnswers
}

// acksUnread says whether acknowledgement p of receiver i, which had accepted nothing when it
// answered the probe, is for messages that it did not execute: MSN counts those
// that it did.
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
		return true // it never had what is before
	case p.Syndrome.Kind() == rocev2.KindACK && isEmptyAnswer(p):
		if psn.Less(had) || g.nxt.LessEq(psn) {
			return true // of nothing that it was sent
		}
	case acks.LessEq(had):
		return false
	}
	due, exact := g.messages.completedBy(acks)
	if !exact || acks.Less(g.acked) { // behind a quorum, nobody knows how many messages these were
		return false
	}
	v.acceptedNothing = due == v.messagesBefore // the first message's end tells
	return p.MSN != (due-v.messagesBefore)&rocev2.PSNMask
}
