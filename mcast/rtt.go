// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// rttMeasurement is the packet whose round trip is being measured. At most one is, and it
// was sent once (Karn's rule, RFC 6298 §3).
type rttMeasurement struct {
	pending bool
	alone   bool // nothing was outstanding when psn was sent
	kept    bool // the round trips are kept in the costs
	psn     rocev2.PSN
	sentAt  time.Duration // when psn was sent
	pauses  uint64        // the switch's count of pauses at that time
}

// startRTT begins to measure the round trip of psn, which goes out for the first time and
// with AckReq, unless a measurement is under way. A measurement over a pause of the switch is void.
func (g *group) startRTT(now time.Duration, psn rocev2.PSN) {
	if !g.isTiming() {
		g.rtt.alone, g.rtt.kept = psn == g.agg.acked.Next(), g.cost.keepsRoundTrip(now)
		g.rtt.pending, g.rtt.psn, g.rtt.sentAt, g.rtt.pauses = true, psn, now, g.sw.ports.pauses
	}
}

// isTiming reports whether a round trip is being measured.
func (g *group) isTiming() bool { return g.rtt.pending && g.rtt.pauses == g.sw.ports.pauses }

// rttStart returns when the packet whose round trip is measured was sent to leg i: later than to
// others, if it has waited for the leg in the store (R45).
func (g *group) rttStart(i int) time.Duration {
	return max(g.rtt.sentAt, g.activityOf(i).recovery.rttFrom)
}

// rttVoid reports whether the measurement under way is void for leg i: the leg has lacked an
// earlier packet since, and could not acknowledge this one.
func (g *group) rttVoid(i int) bool {
	return g.isTiming() && g.rttStart(i) < g.activityOf(i).recovery.lossAt
}

// updateRTT updates the smoothed round trip of leg i, whose acked was before, if the
// leg acknowledges rttPSN now.
func (g *group) updateRTT(now time.Duration, i int, before rocev2.PSN) {
	b, m := &g.acks[i], &g.activity[i].recovery
	if !g.isTiming() || !before.Less(g.rtt.psn) || b.acked.Less(g.rtt.psn) || g.rtt.psn.LessEq(m.resentPSN) || g.rttVoid(i) {
		return // not that packet, or it was sent to this leg again, or it has waited for another one, or the switch has paused
	}
	d := now - g.rttStart(i)
	if g.rtt.kept {
		g.cost.legs[i].addRoundTrip(d, g.rtt.alone)
	}
	if m.rtt == 0 {
		m.rtt, m.rttVar = d, d/2
		return
	}
	off := d - m.rtt
	m.rttVar += (max(off, -off) - m.rttVar) / 4
	m.rtt += off / 8
}
