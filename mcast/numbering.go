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
	PSN   rocev2.PSN // PSN in the member's space
}

// numbering is the state of a group's verification.
type numbering struct {
	checks     []verification `state:"encoded"` // the legs' verifications, by LegID; nil if nothing is verified
	numPending int32          `state:"encoded"` // legs that are not verified yet
	gap        bool           `state:"encoded"` // some PSNs of the source may not have passed: gapFrom to gapNext - 1

	gapFrom, gapNext rocev2.PSN `state:"encoded if x.gap"`

	nextLeg       LegID         `state:"encoded"`  // the next leg to be probed in this round
	rounds        uint8         `state:"encoded"`  // rounds since the first one, or since data began to wait; at most maxIdleRounds
	interval      time.Duration `state:"constant"` // the first wait for an answer; 0: nothing is verified
	backoff       time.Duration `state:"duration"` // the present wait between two rounds of probes
	deferredUntil time.Duration `state:"time"`     // the earliest time at which a leg of this round may be probed, or has been silent for DeadAfter; 0: there is none
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

// closeGapBelow takes what is below una out of the gap: every receiver has it, and the source does not
// send it again (R109).
func (n *numbering) closeGapBelow(una rocev2.PSN) {
	if n.gapFrom.Less(una) {
		n.gapFrom = una
		n.gap = una.Less(n.gapNext)
	}
}

// restartKeepalives begins a new series of probes.
func (g *group) restartKeepalives(now time.Duration) {
	n := &g.numbering
	n.backoff, n.rounds, n.nextLeg, n.deferredUntil = n.interval, 0, 0, 0
	g.due.arm(probeRound, now)
}

// sendKeepalives sends a round of probes, or the next part of one, and removes receivers
// that a message waits for in vain.
func (g *group) sendKeepalives(now time.Duration, out *Output) {
	n := &g.numbering
	g.due.stop(probeRound)
	sent := 0
	for ; int(n.nextLeg) < len(g.legs) && n.numPending > 0 && !g.is(failed); n.nextLeg++ {
		v := &g.numbering.checks[n.nextLeg]
		if !v.pending {
			continue
		}
		if t := g.probeNotBefore(now, int(n.nextLeg)); t > 0 {
			n.deferUntil(t)
			continue
		}
		if g.judgeProbed(now, int(n.nextLeg), out) {
			continue
		}
		if sent == probeBurst {
			g.due.arm(probeRound, now)
			return
		}
		sent++
		if v.probesSent == 0 {
			if v.returning {
				n.backoff, n.rounds = n.interval, 0
			}
			g.noteProbedFrom(now, int(n.nextLeg))
		}
		if t := g.activityOf(int(n.nextLeg)).probedFrom + g.probePatience(int(n.nextLeg)); g.is(blocked) && now < t {
			n.deferUntil(t)
		}
		v.probedAgain = v.answeredOnce
		if v.wrongAnswer {
			v.probesSinceAnswer = min(v.probesSinceAnswer+1, wrongAnswerProbes)
		}
		g.sendKeepalive(n.nextLeg, out)
	}
	later := n.deferredUntil
	n.nextLeg, n.deferredUntil = 0, 0
	g.unblock(out)
	g.endProbes(now, out)
	if n.numPending == 0 || g.is(failed) || !g.is(blocked) && later == 0 && n.rounds >= maxIdleRounds {
		return
	}
	n.rounds = min(n.rounds+1, maxIdleRounds)
	next := now + n.backoff
	if later > 0 {
		next = min(next, later)
	}
	g.due.arm(probeRound, next)
	n.backoff = min(2*n.backoff, maxProbeBackoff*n.interval)
}

// sendKeepalive sends a probe to the member behind leg i, whose answers are counted.
func (g *group) sendKeepalive(i LegID, out *Output) {
	v := &g.numbering.checks[i]
	v.probesSent = min(v.probesSent, 254) + 1
	out.Probes = append(out.Probes, Probe{Group: g.id, Leg: i, PSN: g.members[g.legs[i].member].ePSN.Add(-probePSNOffset)})
}

// deferUntil has the next round at t, or earlier.
func (n *numbering) deferUntil(t time.Duration) {
	if n.deferredUntil == 0 || t < n.deferredUntil {
		n.deferredUntil = t
	}
}

// noteProbedFrom records that the silence of leg i to probes counts from now on.
func (g *group) noteProbedFrom(now time.Duration, i int) {
	if g.activity != nil {
		g.applyPauses(i)
		g.activity[i].probedFrom = now
	}
}

// silentToProbes returns for how long leg i, which was probed, has shown nothing while a
// message waits for it. The switch's own pauses do not count (R58).
func (g *group) silentToProbes(now time.Duration, i int) time.Duration {
	g.applyPauses(i)
	return now - g.activity[i].probedFrom
}

// judgeProbed judges leg i, which is not verified, if its answers show another PSN, or if it is silent
// while a message waits for it. Silence of all is the fault of none, unless it lasts. A wrong PSN is reported without such
// a message too.
func (g *group) judgeProbed(now time.Duration, i int, out *Output) bool {
	v, patience, cause := &g.numbering.checks[i], g.probePatience(i), Silent
	switch {
	case v.wrongAnswer && v.probesSinceAnswer >= wrongAnswerProbes:
		g.reportMisnumbered(i, v.answeredPSN, out)
		cause = Misnumbered
	case v.wrongAnswer || !g.is(blocked) || v.probesSent == 0 || patience == 0 || g.silentToProbes(now, i) < patience:
		return false
	case !g.anyVerified() && (v.positioned || !g.isAllDead(g.silentToProbes(now, i))):
		return false
	}
	return g.judge(i, cause, out)
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
		if l := &g.legs[i]; int32(i) != g.src.leg && l.members > 0 && !g.unproven(i) {
			return true
		}
	}
	return false
}

// mayBeginMessage reports whether the message at nxt may begin: all receivers that wait
// for it are verified or, under Quorum, enough of all receivers are.
func (g *group) mayBeginMessage() bool {
	if g.awaitsJoining() {
		return false
	}
	if g.numbering.numPending == 0 {
		return true
	}
	n := int32(0)
	for i := range g.legs {
		l := &g.legs[i]
		if int32(i) == g.src.leg || l.members == 0 {
			continue
		}
		switch {
		case !g.unproven(i):
			n++
		case g.policy.quorum == 0 && l.joining:
			return false
		}
	}
	return n >= g.policy.quorum
}

// mustBlock reports whether new data at psn has to wait for receivers to be verified. If
// not, and a message begins at psn, the joining receivers join.
//
// Nothing behind a gap is forwarded while receivers wait to join: the missing packet may
// be the one in which their first message begins. The source is asked for it.
func (g *group) mustBlock(now time.Duration, psn rocev2.PSN, starts bool, out *Output) bool {
	switch joins := starts && g.is(joiners); {
	case psn != g.fwd.nxt && !g.is(blocked) && g.is(joiners):
		g.noteMismatch(MemberID(g.src.member), SendPSN, psn, g.fwd.nxt, out)
		g.set(asking, true)
		g.evaluate(out)
		return true
	case psn != g.fwd.nxt:
		g.set(asking, false) // receivers ask for the missing packets
		return g.is(blocked)
	case (g.is(blocked) || joins) && !g.mayBeginMessage():
		g.blockMessage(now, psn)
		return true
	case joins:
		g.admitJoining(psn)
		g.storeBeforeData(out)
	}
	g.set(blocked|asking, false)
	return false
}

// blockMessage makes the message at psn wait for receivers to be verified.
func (g *group) blockMessage(now time.Duration, psn rocev2.PSN) {
	g.counters.DataIn++
	g.agg.request.serve(psn)
	if g.is(blocked) {
		return
	}
	g.set(blocked, true)
	g.set(asking, false)
	for i := range g.numbering.checks {
		v := &g.numbering.checks[i]
		v.probesSinceAnswer = 0 // the member's queue pair may be another one by now
		if v.pending && v.probesSent > 0 {
			g.noteProbedFrom(now, i)
		}
	}
	g.restartKeepalives(now)
}

// unblock asks the source for the blocked message, if that may begin now: otherwise only
// the source's own timeout would bring it back.
func (g *group) unblock(out *Output) {
	if g.is(blocked) && !g.is(failed|learning) && g.mayBeginMessage() {
		if g.release(blocked); g.is(asking) {
			g.evaluate(out)
		}
	}
}
