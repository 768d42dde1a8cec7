// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

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
