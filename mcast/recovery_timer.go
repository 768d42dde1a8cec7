// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// What local repair does by the clock: it lets those that were not ready have
// another try, goes on where a driver had no room, and asks those that owe an
// acknowledgement and say nothing, because the last thing they were sent, or what
// was sent to them again, may have been lost (R45).

// maxPTOFactor times RepairSpec.Timeout is the longest time after which a silent
// receiver is asked.
const maxPTOFactor = 64

// probeTimeout is how long a branch may say nothing that owes an acknowledgement:
// longer after a question that it has not answered, as who pauses for long should
// not find many of them.
func (g *group) probeTimeout(i int) time.Duration {
	m := &g.activity[i].recovery
	d := min(max(g.repairTimeout, m.rtt+4*m.rttVar), maxPTOFactor*g.repairTimeout)
	if m.unanswered {
		d *= 4
	}
	return g.withinDeadAfter(i, d)
}

// livenessProbes is how many probes at least fit into dead_after: a receiver that
// is given up for silence has not answered any of them (R57).
const livenessProbes = 8

// withinDeadAfter is d, or less where dead_after leaves no room for it.
func (g *group) withinDeadAfter(i int, d time.Duration) time.Duration {
	if g.deadAfter > 0 {
		d = min(d, g.livenessTimeout(i)/livenessProbes)
	}
	return d
}

// armRecovery sees to it that tend is called at t, or earlier.
func (g *group) armRecovery(t time.Duration) {
	if !g.recoveryArmed || t < g.recoveryAt {
		g.recoveryArmed, g.recoveryAt = true, t
	}
}

// armProbe gives branch i its time, from now, for what it is being sent.
func (g *group) armProbe(now time.Duration, i int) {
	g.applyPauses(i)
	g.activity[i].recovery.expectedSince = now
	g.armRecovery(now + g.probeTimeout(i))
}

// noteAckReq notes that psn was sent to the receivers with a request for an ACK.
func (g *group) noteAckReq(now time.Duration, psn rocev2.PSN) {
	if g.ackReqPSN.Less(psn) {
		g.ackReqPSN = psn
	}
	g.startRTT(now, psn)
	if !g.recoveryArmed {
		first := g.repairTimeout
		for i := range g.activity {
			g.applyPauses(i)
			g.activity[i].recovery.expectedACK, g.activity[i].recovery.expectedSince = psn, now
			first = g.withinDeadAfter(i, first)
		}
		g.armRecovery(now + first)
	}
}

// startRTT measures the round trip of psn, which goes out with a request for an ACK,
// unless there is one under way; one over a pause of the switch says nothing.
func (g *group) startRTT(now time.Duration, psn rocev2.PSN) {
	if !g.rttPending || g.rttPauses != g.sw.ports.pauses {
		g.rttPending, g.rttPSN, g.rttSentAt, g.rttPauses = true, psn, now, g.sw.ports.pauses
	}
}

// updateRTT takes the round trip of the packet that is being timed, which branch i
// acknowledges now: it has gone from had to b.a.
func (g *group) updateRTT(now time.Duration, i int, before rocev2.PSN) {
	b, m := &g.acks[i], &g.activity[i].recovery
	if !g.rttPending || g.rttPauses != g.sw.ports.pauses || !before.Less(g.rttPSN) || b.acked.Less(g.rttPSN) || g.rttPSN.LessEq(m.resentPSN) {
		return // not that packet, or it was sent again to this branch, or the switch has paused
	}
	switch d := now - g.rttSentAt; {
	case m.rtt == 0:
		m.rtt, m.rttVar = d, d/2
	case d > m.rtt:
		m.rttVar += (d - m.rtt - m.rttVar) / 4
		m.rtt += (d - m.rtt) / 8
	default:
		m.rttVar += (m.rtt - d - m.rttVar) / 4
		m.rtt -= (m.rtt - d) / 8
	}
}

// recoveryTimer does what is due.
func (g *group) recoveryTimer(now time.Duration, out *Output) {
	g.recoveryArmed = false
	if g.failed {
		return
	}
	for i := range g.acks {
		b, m := &g.acks[i], &g.activity[i].recovery
		if b.flags&isReceiver == 0 || b.pending != sevNone {
			continue
		}
		g.applyPauses(i)
		if m.resumeAt > 0 {
			if now < m.resumeAt {
				g.armRecovery(m.resumeAt)
				continue
			}
			m.resumeAt, m.expectedSince, m.probeOutstanding = 0, now, false
		}
		if m.escalated && g.deadAfter == 0 {
			continue
		}
		if b.acked.Less(m.expectedACK) {
			if t := m.expectedSince + g.probeTimeout(i); now < t {
				g.armRecovery(t)
				continue
			}
			if !m.escalated {
				g.startProbe(i)
			}
			if m.escalated && !g.sendLivenessProbe(now, i, out) {
				g.armRecovery(now) // no more room in this call
				continue
			}
		}
		// From here on it has so long for what it has been asked by now.
		m.expectedACK, m.expectedSince = g.ackReqPSN, now
		if m.expectedACK.Less(m.ackReqPSN) {
			m.expectedACK = m.ackReqPSN
		}
		if b.acked.Less(m.expectedACK) {
			g.armRecovery(now + g.probeTimeout(i))
		}
	}
	g.resend(now, out)
}

// sendLivenessProbe sends branch i, which is left to the source, what it lacks first,
// if its silence counts: the cursor stays where it is (R57). It returns false if
// there is no room.
func (g *group) sendLivenessProbe(now time.Duration, i int, out *Output) bool {
	b := &g.acks[i]
	e := g.store.find(b.acked.Next())
	if e == nil || g.deadAfter == 0 {
		return true
	}
	if out.resendsExhausted() {
		return false
	}
	g.noteProbe(now, i, b.acked.Next())
	g.copyRetained(i, e, b.acked.Next(), true, out)
	return true
}

// maxProbePackets is the most packets that a question has.
const maxProbePackets = 16

// startProbe has the first packet that branch i may lack sent once more, with a
// request for an ACK; if the store has it, and not for ever.
func (g *group) startProbe(i int) {
	b, m := &g.acks[i], &g.activity[i].recovery
	if g.store.find(b.acked.Next()) == nil {
		if m.probeOutstanding || b.flags&recovering != 0 && b.acked.Less(g.acked) {
			// What it was asked with is gone, or was given up behind a quorum where its
			// cursor was still to come: for want to ask for.
			m.cursor, m.probeOutstanding = b.acked.Next(), false
		}
		return
	}
	if m.tries >= g.tries {
		m.escalated = true
		return
	}
	m.tries++
	// Another one, because there was no answer, is longer: what makes a path lose
	// several packets in a row is then over sooner, and what arrives of it behind a
	// gap has the receiver answer at once.
	n := uint8(1)
	if m.unanswered {
		n = min(max(m.probeEvery, 1)*burstGrowth, maxProbePackets)
	}
	g.startRecovery(i, b.acked.Next())
	m.probeOutstanding, m.unanswered, m.probeEvery, m.untilProbe = false, true, n, n
	g.counters.rare().Probes++
}
