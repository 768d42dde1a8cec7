// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The timer of local repair (R45). It resends to receivers that were not ready, goes on
// where the caller had no memory, and probes receivers that owe an acknowledgement and
// are silent: the last packet that they were sent, or one sent again, may have been lost.

// maxPTOFactor times RepairSpec.Timeout is the longest probe timeout, if no probe is
// unanswered.
const maxPTOFactor = 64

// probeTimeout returns the PTO of leg i: how long a receiver that owes an acknowledgement
// may be silent before it is probed. It is longer after an unanswered probe: a receiver
// that pauses for long shall not find many probes.
func (g *group) probeTimeout(i int) time.Duration {
	m := &g.activity[i].recovery
	d := min(max(g.repairTimeout, m.rtt+4*m.rttVar), maxPTOFactor*g.repairTimeout)
	if m.unanswered {
		d *= 4
	}
	return g.withinDeadAfter(i, d)
}

// livenessProbes is the least number of probes that fit into dead_after: a receiver that
// is given up as silent has answered none of them (R57).
const livenessProbes = 8

// withinDeadAfter returns d, but with dead_after at most 1/livenessProbes of the liveness
// timeout of leg i.
func (g *group) withinDeadAfter(i int, d time.Duration) time.Duration {
	if g.deadAfter > 0 {
		d = min(d, g.livenessTimeout(i)/livenessProbes)
	}
	return d
}

// armRecovery has recoveryTimer called at t, or earlier.
func (g *group) armRecovery(t time.Duration) {
	if !g.recoveryArmed || t < g.recoveryAt {
		g.recoveryArmed, g.recoveryAt = true, t
	}
}

// armProbe starts the PTO of leg i now, for what it is being sent.
func (g *group) armProbe(now time.Duration, i int) {
	g.applyPauses(i)
	g.activity[i].recovery.expectedSince = now
	g.armRecovery(now + g.probeTimeout(i))
}

// noteAckReq records that psn was sent to the receivers with AckReq.
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

// startRTT begins to measure the round trip of psn, which goes out with AckReq, unless a
// measurement is under way. A measurement over a pause of the switch is void.
func (g *group) startRTT(now time.Duration, psn rocev2.PSN) {
	if !g.rttPending || g.rttPauses != g.sw.ports.pauses {
		g.rttPending, g.rttPSN, g.rttSentAt, g.rttPauses = true, psn, now, g.sw.ports.pauses
	}
}

// updateRTT updates the smoothed round trip of leg i, whose acked was before, if the
// leg acknowledges rttPSN now.
func (g *group) updateRTT(now time.Duration, i int, before rocev2.PSN) {
	b, m := &g.acks[i], &g.activity[i].recovery
	if !g.rttPending || g.rttPauses != g.sw.ports.pauses || !before.Less(g.rttPSN) || b.acked.Less(g.rttPSN) || g.rttPSN.LessEq(m.resentPSN) {
		return // not that packet, or it was sent to this leg again, or the switch has paused
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

// recoveryTimer does what is due for each leg, and arms the timer for what is not.
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
				g.armRecovery(now) // no more memory in this call
				continue
			}
		}
		// A new PTO begins, for the highest PSN that was sent with AckReq.
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

// sendLivenessProbe sends leg i, which is escalated, the first packet that it lacks as a
// probe, if dead_after is set. The cursor stays (R57). It returns false if the caller
// has no memory for the copy.
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

// maxProbePackets is the most packets that go out for one probe.
const maxProbePackets = 16

// startProbe has the first packet that leg i may lack sent once more, with AckReq, if it
// is retained. After RepairSpec.Tries without progress it escalates the leg instead.
func (g *group) startProbe(i int) {
	b, m := &g.acks[i], &g.activity[i].recovery
	if g.store.find(b.acked.Next()) == nil {
		if m.probeOutstanding || b.flags&recovering != 0 && b.acked.Less(g.acked) {
			// The frame of the probe was freed, or behind a quorum one that the cursor
			// had not reached: requestFromSource sees to it.
			m.cursor, m.probeOutstanding = b.acked.Next(), false
		}
		return
	}
	if m.tries >= g.tries {
		m.escalated = true
		return
	}
	m.tries++
	// A probe after an unanswered one has more packets: a path that loses several
	// packets in a row is passed sooner, and a packet that arrives behind a gap makes
	// the receiver answer at once.
	n := uint8(1)
	if m.unanswered {
		n = min(max(m.probeEvery, 1)*burstGrowth, maxProbePackets)
	}
	g.startRecovery(i, b.acked.Next())
	m.probeOutstanding, m.unanswered, m.probeEvery, m.untilProbe = false, true, n, n
	g.counters.rare().Probes++
}
