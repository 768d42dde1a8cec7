// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Forwarded tells the switch that somebody else, a fast path below it, has
// copied the current source's packets up to hi-1 to every receiver, in order
// and beginning with the Next of the last Snapshot (R34). messages is how many
// of them ended a message, open whether hi-1 did not. The driver calls it
// before Input of a packet that arrived later: an acknowledgement of a PSN
// that the switch has not heard of would be dropped.
func (s *Switch) Forwarded(id GroupID, hi rocev2.PSN, messages uint32, open bool) error {
	g := s.group(id)
	switch {
	case g == nil:
		return fmt.Errorf("mcast: group %d: does not exist", id)
	case g.src == nobody || g.dead || g.refused.code != 0 || g.njoin > 0 || g.nlate > 0 || g.numbers.held || g.turn.ends != 0:
		return fmt.Errorf("mcast: group %d: needs to see every packet now", id)
	case hi.Less(g.hi):
		return fmt.Errorf("mcast: group %d: forwarded up to %06x already, not %06x", id, uint32(g.hi), uint32(hi))
	case hi == g.hi:
		return nil
	case hi.Prev().Sub(g.a) > aheadWindow:
		return fmt.Errorf("mcast: group %d: %06x is more than %d PSNs ahead of what is acknowledged, %06x", g.id, uint32(hi.Prev()), aheadWindow, uint32(g.a))
	}
	n := uint64(uint32(hi-g.hi) & rocev2.PSNMask)
	g.hi, g.prev, g.hasPrev, g.open = hi, hi.Prev(), true, open
	g.write = writing{}
	if g.store != nil {
		g.store.whole = hi
	}
	g.msgs.extendMany(hi.Prev(), messages)
	g.count.DataIn += n
	g.count.Copies += n * uint64(g.nrecv)
	return nil
}
