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
	d := min(max(g.repair.timeout*time.Duration(1+g.levelsBehind(i)), m.rtt+4*m.rttVar), maxPTOFactor*g.repair.timeout)
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
	if g.live.deadAfter != 0 {
		d = min(d, g.livenessTimeout(i)/livenessProbes)
	}
	return d
}

// armRecovery has recoveryTimer called at t, or earlier.
func (g *group) armRecovery(t time.Duration) {
	if !g.due.armed(repairTimer) || t < g.due.at(repairTimer) {
		g.due.arm(repairTimer, t)
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
	if g.repair.ackReqPSN.Less(psn) {
		g.repair.ackReqPSN = psn
	}
	if !g.due.armed(repairTimer) {
		first := g.repair.timeout
		for i := range g.activity {
			g.applyPauses(i)
			g.activity[i].recovery.expectedACK, g.activity[i].recovery.expectedSince = psn, now
			first = g.withinDeadAfter(i, first)
		}
		g.armRecovery(now + first)
	}
}

// recoveryTimer does what is due for each leg, and arms the timer for what is not.
func (g *group) recoveryTimer(now time.Duration, out *Output) {
	g.due.stop(repairTimer)
	if g.is(failed) || g.nothingOwed() {
		return
	}
	for i := range g.acks {
		b, m := &g.acks[i], &g.activity[i].recovery
		if b.flags&isReceiver == 0 {
			continue
		}
		g.applyPauses(i)
		if b.pending == sevNone && m.state.holds() {
			if now < m.resumeAt {
				g.armRecovery(m.resumeAt)
				continue
			}
			g.deliver(i, resumed)
			if !m.owesACK(b) {
				m.expectedSince = now
			}
		}
		serves := m.storeServes(b) || !m.escalated && g.isNAKVain(b)
		if !serves && g.live.deadAfter == 0 {
			continue
		}
		if b.acked.Less(m.expectedACK) {
			if t := m.expectedSince + g.probeTimeout(i); now < t {
				g.armRecovery(t)
				continue
			}
			if !(serves && g.startProbe(i)) && !g.sendLivenessProbe(now, i, out) {
				g.armRecovery(now) // no more memory in this call
				continue
			}
		}
		// A new PTO begins, for the highest PSN that was sent with AckReq.
		m.expectedACK, m.expectedSince = g.repair.ackReqPSN, now
		if m.expectedACK.Less(m.ackReqPSN) {
			m.expectedACK = m.ackReqPSN
		}
		if b.acked.Less(m.expectedACK) {
			g.armRecovery(now + g.probeTimeout(i))
		}
	}
	g.resend(now, out)
}

// isNAKVain reports whether a leg waits for a source that will not serve its NAK: una is acknowledged to the
// source, by a quorum, and retained. The store alone can send it (R37).
func (g *group) isNAKVain(b *ackState) bool {
	return b.pending != sevNone && b.pending != sevFatal && b.acked.Less(g.agg.acked) && g.repair.store.find(b.acked.Next()) != nil
}

// owesACK reports whether the receiver behind a leg that gets frames from the store has to answer
// what has gone to its port, and it is known how long that takes, with the time in the port's
// queue. A leg that waits for its port again and again would be never probed else.
func (m *recovery) owesACK(b *ackState) bool {
	return m.rtt != 0 && b.acked.Less(m.ackReqPSN) && m.ackReqPSN.Less(m.cursor)
}

// nothingOwed reports whether every receiver has acknowledged everything, so that no leg
// waits for anything. It reads no leg's state: most timers pass long after the last ACK,
// when that state is in no cache.
func (g *group) nothingOwed() bool {
	return g.policy.quorum == 0 && g.agg.acked == g.fwd.nxt.Prev()
}

// sendLivenessProbe sends leg i, which the store does not repair now, a packet that it answers if it
// lives, if dead_after is set. The cursor stays (R57). It returns false if the caller has no
// memory for the copy.
func (g *group) sendLivenessProbe(now time.Duration, i int, out *Output) bool {
	if g.live.deadAfter == 0 {
		return true
	}
	psn := g.livenessProbe(i)
	if psn == g.acks[i].acked && g.hadNothing(i) {
		if len(out.Probes) >= probeBurst {
			return false
		}
		g.noteProbe(now, i, psn)
		g.costProbe(i)
		g.sendKeepalive(LegID(i), out)
		return true
	}
	e := g.repair.store.find(psn)
	if e == nil {
		return true
	}
	if out.resendsExhausted() {
		return false
	}
	g.noteProbe(now, i, psn)
	g.costProbe(i)
	g.cost.legs[i].repaired++
	g.copyRetained(i, e, psn, true, out)
	return true
}

// hadNothing reports whether the member behind leg i has acknowledged nothing of this turn: the packet
// before una never went to it, and where it has just joined, rdma_rxe answers a duplicate as if it were
// of another numbering (R52). A keepalive probe asks such a member, or, in a group without these, the
// newest packet.
func (g *group) hadNothing(i int) bool {
	b, l := &g.acks[i], &g.legs[i]
	return l.connected() && b.acked.Add(1+int32(b.delta)) == g.members[l.member].ePSN
}

// livenessProbe returns the PSN of the packet that asks leg i: una, or, if its frame is not retained or a
// NAK of the leg waits, which una would end (R08), the last one that a member has, which is retained
// while another leg lacks it, and the newest one of a switch, which takes packets in any order. A member
// that lacks what a quorum has is asked by the newest one too: its NAK shows that it is stranded (R37).
func (g *group) livenessProbe(i int) rocev2.PSN {
	b := &g.acks[i]
	switch {
	case b.pending == sevNone && g.repair.store.find(b.acked.Next()) != nil:
		return b.acked.Next()
	case b.flags&isConnected != 0 && g.agg.acked.LessEq(b.acked) && (g.numbering.checks != nil || !g.hadNothing(i)):
		return b.acked
	}
	return g.fwd.nxt.Prev()
}

// maxProbePackets is the most packets that go out for one probe.
const maxProbePackets = 16

// startProbe has the first packet that leg i may lack sent once more, with AckReq, and returns true, if it
// is retained: a NAK in vain is withdrawn. After RepairSpec.Tries without progress it escalates the leg instead.
func (g *group) startProbe(i int) bool {
	b, m := &g.acks[i], &g.activity[i].recovery
	una := b.acked.Next()
	switch {
	case g.repair.store.find(una) == nil:
		e := ptoUnaMissing
		if b.acked.Less(g.agg.acked) {
			e = ptoUnaBehind
		}
		if g.deliver(i, e) == resend {
			m.cursor = una // its frame was freed: requestFromSource sees to it
		}
		return false
	case m.tries >= g.repair.tries:
		g.deliver(i, triesExhausted)
		return false
	}
	m.tries++
	g.setPending(b, sevNone, 0)
	g.costProbe(i)
	if b.flags&isConnected == 0 {
		if m.unanswered {
			m.burstEnd = una // as many again, and more
		}
		g.deliver(i, ptoExpired)
		g.serveSwitch(i, una)
		m.unanswered = true
		g.counters.rare().Probes++
		return true
	}
	// A probe after an unanswered one has more packets: a path that loses several
	// packets in a row is passed sooner, and a packet that arrives behind a gap makes
	// the receiver answer at once.
	n := uint8(1)
	if m.unanswered {
		n = min(max(m.probeEvery, 1)*burstGrowth, maxProbePackets)
	}
	g.deliver(i, ptoExpired)
	m.cursor, m.unanswered, m.probeEvery, m.untilProbe = una, true, n, n
	g.counters.rare().Probes++
	return true
}

// Local repair of a leg to another switch (R92). That switch stores what arrives behind a
// gap, so it lacks the packet that its NAK names, and perhaps nothing else. The leg gets that
// packet alone and new data meanwhile, in any order. Such a leg is in InSync, Resending or
// Waiting, never in Probing or Settling.

// switchTakes is takesFromSource for a leg to another switch. fresh means that psn, if it is
// repeated, was not in the store before: it was lost on the way here, or did not fit.
func (g *group) switchTakes(now time.Duration, i int, psn rocev2.PSN, again, fresh bool) (take, ask bool) {
	b, m := &g.acks[i], &g.activity[i].recovery
	if !again || m.state != inSync && !psn.Less(m.firstUnsent) { // never sent to the leg, which is behind
		if psn != m.cursor || m.storeServes(b) && g.repair.store.find(psn) != nil {
			return false, false // the store sends it
		}
		g.deliver(i, sourceAtCursor)
		m.advanceCursor(psn)
		return true, false
	}
	una := b.acked.Next()
	switch {
	case psn == una && (!m.storeServes(b) || una == g.agg.acked.Next()):
		// It was requested, or the source's timeout has passed: this packet may be what is
		// missing.
		if m.state == inSync && m.storeServes(b) && m.tookBurst(una) && g.repair.store.find(una) != nil {
			g.deliver(i, ptoExpired)
			g.serveSwitch(i, una)
			return false, false // the store sends it, and what may be missing behind it
		}
		m.noteSentAgain(psn)
		g.noteProbe(now, i, psn)
		return true, true
	case fresh:
		m.noteSentAgain(psn)
		return true, false
	}
	return false, false
}

// noteSentAgain counts psn, which comes from the source again, as one of the packets that were
// sent again last. They are a burst if they follow each other, whoever sends them: a switch above
// finds out at the same time what is missing here.
func (m *recovery) noteSentAgain(psn rocev2.PSN) {
	switch {
	case m.inBurst(psn):
	case m.tookBurst(psn):
		m.burst, m.burstEnd = min(m.burst+1, maxBurst), psn.Next()
	default:
		m.burst, m.burstEnd = 1, psn.Next()
	}
}

// serveSwitch has the packet at e sent to leg i, whose switch lacks it. If the last packets
// that were sent again end there, everything else may be missing too: burstGrowth times as
// many follow.
func (g *group) serveSwitch(i int, e rocev2.PSN) {
	m := &g.activity[i].recovery
	n := 1
	if m.tookBurst(e) {
		n = min(int(m.burst)*burstGrowth, maxBurst)
	}
	m.cursor, m.burst, m.burstEnd = e, uint8(n), e.Add(int32(n))
	m.probeEvery, m.untilProbe = 0, uint8(n)
}

// endOfBurst reports whether the packet at the cursor of a leg to another switch is the last
// of those that are sent again.
func (g *group) endOfBurst(m *recovery) bool {
	next := m.cursor.Next()
	return m.untilProbe == 1 || next == m.firstUnsent || g.repair.store.find(next) == nil
}

// endBurst ends a burst behind psn, which is sent now. If the store does not have the next
// packet, the burst was that short.
func (g *group) endBurst(m *recovery, psn rocev2.PSN) {
	if d := m.burstEnd.Sub(psn.Next()); d > 0 && psn.Next() != m.firstUnsent {
		m.burst, m.burstEnd = m.burst-uint8(d), psn.Next()
	}
	m.skipTo(m.firstUnsent)
}

// skipTo moves the cursor to psn, or to the first PSN that was never sent to the leg.
func (m *recovery) skipTo(psn rocev2.PSN) {
	m.firstUnsent = rocev2.MaxPSN(m.firstUnsent, psn)
	m.cursor, m.untilProbe = m.firstUnsent, 0
}

// tookBurst reports whether a leg whose first missing packet is psn has all that was sent again
// last, and nothing behind it.
func (m *recovery) tookBurst(psn rocev2.PSN) bool { return m.burst != 0 && psn == m.burstEnd }

// inBurst reports whether psn is one of the packets that were sent again last.
func (m *recovery) inBurst(psn rocev2.PSN) bool {
	d := m.burstEnd.Sub(psn)
	return 0 < d && d <= int32(m.burst)
}

// skipRetained takes what is in the store, and has passed, out of the gap in the source's
// packets: a switch above sends the packets that are missing, and not those between.
func (g *group) skipRetained() {
	for n := &g.numbering; n.gap && g.repair.store != nil && g.repair.store.find(n.gapFrom) != nil; {
		n.noteGap(n.gapFrom, g.fwd.nxt)
	}
}
