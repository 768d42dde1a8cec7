// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Forwarded tells the switch that a fast path below it has copied the current source's
// packets up to hi-1 to every receiver, in order and beginning with GroupStatus.Nxt of the
// last Snapshot (R34). messages is the number of these packets that ended a message; open
// is true if hi-1 did not end one. The driver calls Forwarded before Input of a packet
// that arrived later: an acknowledgement of a PSN at or above nxt would be dropped. An
// error means that nothing has changed.
func (s *Switch) Forwarded(id GroupID, hi rocev2.PSN, messages uint32, open bool) error {
	g := s.group(id)
	switch {
	case g == nil:
		return fmt.Errorf("mcast: group %d: does not exist", id)
	case g.src.member == none || g.failed || g.resumes || g.refusal.syndrome != 0 || g.recv.joining != 0 || g.repair.numRecovering != 0 || g.numbering.blocked || g.numbering.holds || g.turn.endingSince != 0 || g.src.frozen || g.src.wanted || g.agg.unplaced:
		return fmt.Errorf("mcast: group %d: needs to see every packet now", id)
	case hi.Less(g.fwd.nxt):
		return fmt.Errorf("mcast: group %d: forwarded up to %06x already, not %06x", id, uint32(g.fwd.nxt), uint32(hi))
	case hi == g.fwd.nxt:
		return nil
	case g.stored && g.fwd.limit.Less(hi):
		return fmt.Errorf("mcast: group %d: %06x is beyond %06x, up to which positions are stored", id, uint32(hi), uint32(g.fwd.limit))
	case hi.Prev().Sub(g.agg.acked) > maxAhead:
		return fmt.Errorf("mcast: group %d: %06x is more than %d PSNs ahead of what is acknowledged, %06x", g.id, uint32(hi.Prev()), maxAhead, uint32(g.agg.acked))
	}
	n := uint64(uint32(hi-g.fwd.nxt) & rocev2.PSNMask)
	g.fwd.nxt, g.src.lastPSN, g.src.hasLastPSN, g.fwd.midMessage = hi, hi.Prev(), true, open
	g.fwd.writeMessage = writeMessage{}
	if g.repair.store != nil {
		g.repair.store.contiguousFrom = hi
	}
	g.agg.messages.addEnds(hi.Prev(), messages)
	g.counters.DataIn += n
	g.counters.Copies += n * uint64(g.recv.count)
	return nil
}
