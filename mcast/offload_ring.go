// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The driver shares the memory of its fast path among the groups that need it: a group's ring may be another
// one with each grant. In one grant it is the same, so no order of events is new.

// SetOffloadSlots sets FastPathSpec.Slots of a group from its next grant on, while the group is not on the fast
// path. The driver calls it before Offload; before that the number is what it could give, for AskOffload.
func (s *Switch) SetOffloadSlots(id GroupID, slots int) {
	if g := s.group(id); g != nil && g.repair.path != notOffered && g.repair.path != fastPath {
		g.extra.offload.spec.Slots = slots
	}
}

// HasOffloadRoom reports whether the next packet of a group has a slot.
func (v Group) HasOffloadRoom() bool {
	return v.g != nil && v.g.repair.path != notOffered && v.g.fwd.nxt.Less(v.g.offloadLimit())
}

// RetainsBefore reports whether a packet before psn may be retained. If not, no copy of one is made any more.
func (v Group) RetainsBefore(psn rocev2.PSN) bool {
	g := v.g
	return g != nil && g.repair.store != nil && g.repair.store.bytes != 0 && g.repair.store.first.Less(psn)
}

// Due appends the groups to ids that the next Advance serves at a time, and others that wait for nothing any
// more. It costs as much as there are.
func (s *Switch) Due(now time.Duration, ids []GroupID) []GroupID {
	return s.timers.appendDue(0, now, ids)
}

// appendDue appends those of heap[i] and below it whose time is not after now.
func (t *timers) appendDue(i int, now time.Duration, ids []GroupID) []GroupID {
	if i >= len(t.heap) || t.heap[i].at > now {
		return ids
	}
	ids = append(ids, t.heap[i].id)
	for c := 4*i + 1; c <= 4*i+4; c++ {
		ids = t.appendDue(c, now, ids)
	}
	return ids
}
