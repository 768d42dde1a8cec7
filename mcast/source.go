// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// source is the group's current source. acked - ackedCount < psn <= acked + maxAhead holds
// for every packet that is served.
type source struct {
	addr             rocev2.AddrKey // its address
	neighbor         Neighbor       // the switch that it is behind; 0: none
	member           int32          // its MemberID, or none
	leg              int32          // its LegID, or none
	ackedCount       int32          // PSNs up to acked that were acknowledged to it since its registration; maxBehind: that many or more
	lastPSN          rocev2.PSN     // PSN of its last packet, if hasLastPSN
	hasLastPSN       bool
	becnDue          bool          // BECN is to be set in the next ACK to it
	lastPSNAt        time.Duration // when its last packet came
	quarantinedUntil time.Duration // if quarantined
}

// quarantine is how long no packet of a member is served, and nothing is acknowledged to
// it, after a packet with a PSN below all that its registration has seen (R68). A
// requester that goes back begins with its lowest PSN that is not acknowledged, so a
// queue pair with lower PSNs shows one of them each time.
const quarantine = 20 * time.Millisecond

// noteReceived counts psn, which the source has sent.
func (g *group) noteReceived(now time.Duration, psn rocev2.PSN) {
	g.counters.DataIn++
	g.src.lastPSN, g.src.lastPSNAt, g.src.hasLastPSN, g.turn.silentSince = psn, now, true, 0
	g.agg.request.serve(psn)
}

// noteServed is noteReceived for a packet that is forwarded.
func (g *group) noteServed(now time.Duration, psn rocev2.PSN) {
	if g.live.deadAfter != 0 && g.agg.request.awaits(psn) {
		g.restartLiveness(now)
	}
	g.noteReceived(now, psn)
}

// MaxInOrderGap is how long after the packet before it a packet in order is forwarded
// unverified. A source that goes back without a NAK has been silent for its timeout, and
// no requester sets one so short.
const MaxInOrderGap = 100 * time.Microsecond

// mayBeDamaged reports whether a packet with PSN nxt may be an earlier packet with a
// damaged PSN: the source goes back, or may be about to (R64).
func (g *group) mayBeDamaged(now time.Duration, psn rocev2.PSN) bool {
	return !g.src.hasLastPSN || g.src.lastPSN != psn.Prev() || now-g.src.lastPSNAt > MaxInOrderGap || g.agg.request.isOpen()
}
