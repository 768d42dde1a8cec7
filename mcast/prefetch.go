// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

// Prefetch reads what a packet of a group touches first, for drivers that know the groups of the next
// packets: reads for several packets overlap, while those of Input wait for each other. feedback is
// of packets that have one leg to find, by address. The sum has no meaning; it keeps the reads.
func (s *Switch) Prefetch(id GroupID, feedback bool) (sum uint64) {
	g := s.group(id)
	if g == nil {
		return 0
	}
	// A field in each line of the group that a packet reads.
	sum = uint64(g.src.member) + uint64(g.agg.acked) + uint64(g.fwd.nxt) + uint64(g.recv.count) + uint64(len(g.acks)) + g.counters.DataIn +
		uint64(g.rtt.psn) + uint64(len(g.activity)) + uint64(len(g.byIP.slots)) + uint64(g.turn.silentSince) + uint64(g.due[probeRound])
	if len(g.acks) > 0 {
		sum += uint64(g.acks[0].acked)
	}
	if feedback {
		if len(g.activity) > 0 {
			sum += uint64(g.activity[0].recovery.expectedSince)
		}
		if len(g.byIP.slots) > 0 {
			sum += uint64(g.byIP.slots[0]) + uint64(g.members[0].leg)
		}
	}
	if t := g.repair.store; t != nil {
		sum += uint64(t.bytes) + uint64(t.held.bytes)
		if len(t.ring) > 0 {
			sum += uint64(t.at(g.fwd.nxt).bytes)
		}
	}
	return sum
}
