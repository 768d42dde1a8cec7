// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

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

	returning    bool // it was a member lately (R73): no probe before legActivity.probedFrom
	answeredOnce bool // it has given the right answer once
	probedAgain  bool // it was probed after that answer
	restored     bool // it was a member before the switch restarted, and its number is that of the file (R83)
	positioned   bool // it had data of the turn that goes on, so that the answer shows how much (R83)
}

// startVerification begins the verification of leg i, which leads to a new member.
func (g *group) startVerification(now time.Duration, i LegID) {
	l := &g.legs[i]
	if g.numbering.interval == 0 || !l.connected() || g.isRepliedTo(int(i)) {
		return
	}
	v := &g.numbering.checks[i]
	if !v.pending {
		g.numbering.numPending++
	}
	*v = verification{pending: true}
	if t := g.sw.departures.recentUntil(now, &g.sw.ports, g.ip, g.members[l.member].ip); t > 0 {
		g.activate(now)
		v.returning = true
		g.activity[i].probedFrom, g.activity[i].pausesApplied = t, g.sw.ports.port(l.port).paused
	}
	g.restartKeepalives(now)
}

// unproven reports whether leg i has to be verified, and is not yet.
func (g *group) unproven(i int) bool {
	return g.numbering.checks != nil && g.numbering.checks[i].pending
}

// endVerification ends the verification of leg i, which is verified or removed.
func (g *group) endVerification(i LegID) {
	if g.unproven(int(i)) {
		v := &g.numbering.checks[i]
		v.pending = false
		g.numbering.numPending--
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
	if g.is(failed) {
		return FailedGroup
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.counters.FeedbackIn++
	l := &g.legs[i]
	v, r := &g.numbering.checks[i], g.members[l.member].ePSN
	if v.probesSent == 0 {
		return FeedbackStale // an ACK of data of an earlier registration; more of them may be on the way
	}
	if v.positioned {
		g.positionAnswer(now, p, i, kind, out)
		return None
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
		g.endProbes(now, out)
		return None
	}
	v.answeredOnce, v.probedAgain = false, false
	if !v.wrongAnswer || v.answeredPSN != expects {
		v.wrongAnswer, v.answeredPSN, v.probesSinceAnswer = true, expects, 0
	}
	return None
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
	if g.numbering.checks == nil {
		return false
	}
	v, n := &g.numbering.checks[i], &g.numbering
	if had := g.acks[i].acked; v.acceptedNothing && n.gap && n.gapFrom.LessEq(acks) && had.Less(acks) && had.Next().Less(n.gapNext) {
		return true // messages that the switch has not counted may have ended in the gap
	}
	if !v.isRXE || p.Syndrome.Kind() != rocev2.KindACK || !isEmptyAnswer(p) {
		return false
	}
	v.emptyAnswers = min(v.emptyAnswers, 254) + 1
	return !v.acceptedNothing || int(v.emptyAnswers) <= int(v.probesSent)+maxExtraAnswers
}

// correctMessagesBefore corrects messagesBefore of the receivers that have joined behind psn, which the
// source has sent again: more messages end there than were counted when they joined (R109).
func (g *group) correctMessagesBefore(psn rocev2.PSN, more int32) {
	if more == 0 {
		return
	}
	for i := range g.numbering.checks {
		v, b := &g.numbering.checks[i], &g.acks[i]
		if v.acceptedNothing && b.flags&isReceiver != 0 && psn.LessEq(b.acked) {
			v.messagesBefore = v.messagesBefore.Add(more)
		}
	}
}

// acksUnread reports whether acknowledgement p of receiver i, which had accepted nothing
// when it answered the probe, covers messages that it did not execute: MSN counts the
// messages that it did execute.
func (g *group) acksUnread(p *Packet, i int, psn rocev2.PSN) bool {
	if g.numbering.checks == nil {
		return false
	}
	v := &g.numbering.checks[i]
	had := g.acks[i].acked
	acks := ackedBy(p.Syndrome.Kind(), psn)
	switch {
	case !v.acceptedNothing:
		return false
	case p.Syndrome.Kind() == rocev2.KindSequence && (p.PSN & rocev2.PSNMask).Less(g.members[g.legs[i].member].ePSN):
		return true // the receiver never had the PSNs before it
	case p.Syndrome.Kind() == rocev2.KindACK && isEmptyAnswer(p):
		if psn.Less(had) || g.fwd.nxt.LessEq(psn) {
			return true // an ACK of nothing that was sent to the receiver
		}
	case acks.LessEq(had):
		return false
	}
	due, exact := g.agg.messages.completedBy(acks)
	if !exact || acks.Less(g.agg.acked) { // behind a quorum the number of these messages is not known
		return false
	}
	v.acceptedNothing = due == v.messagesBefore // the end of the first message decides
	return p.MSN != (due-v.messagesBefore)&rocev2.PSNMask
}
