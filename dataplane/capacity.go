// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"

	"github.com/gleam-rdma/gleam/mcast"
)

// The needs of a group at its worker: frames for the copies of one packet, and entries in
// the ports' rings. Members that have gone need nothing.

// isActive reports whether copies are made for l.
func (l *leg) isActive() bool { return l.live > 0 && l.port >= 0 }

// countCopies sets maxCopies, the number of copies that one packet can have.
func (t *groupTable) countCopies() {
	t.maxCopies = 0
	for i := range t.legs {
		if t.legs[i].isActive() {
			t.maxCopies++
		}
	}
}

// markGone records that member id has left or was evicted. A leg to a switch goes with
// the last member behind it.
func (t *groupTable) markGone(id mcast.MemberID) {
	m := t.member(id)
	if m.gone {
		return
	}
	if t.members != nil {
		t.members[id].gone = true
	}
	l := &t.legs[m.leg]
	if l.live--; l.live == 0 && l.port >= 0 {
		t.maxCopies--
	}
}

// portNeeds returns the number of copies of one packet that go to each port, at most.
func (t *groupTable) portNeeds(ports int) []int {
	copies := make([]int, ports)
	for i := range t.legs {
		if l := &t.legs[i]; l.isActive() {
			copies[l.port]++
		}
	}
	return copies
}

// setTable sets a group's tables and raises maxPacketFrames of its ports, so that the TX
// ring, or the remote TX ring, takes the copies of one packet even if they are more than
// the port's share.
func (w *worker) setTable(id mcast.GroupID, t groupTable) {
	w.disturbFastGroup(id)
	t.noteIsolation(w.ports)
	w.groups[id] = t
	for pi, n := range t.portNeeds(len(w.ports)) {
		if n == 0 {
			continue
		}
		p := w.ports[pi]
		p.maxPacketFrames = max(p.maxPacketFrames, (n+maxFeedback)*max(1, t.maxBuffers))
		p.maxPacketCopies = max(p.maxPacketCopies, n*max(1, t.maxBuffers))
	}
}

// CapacityError says that there is too little packet memory for a group.
type CapacityError struct{ Copies, Limit int }

func (e *CapacityError) Error() string {
	return fmt.Sprintf("its packets have to go to %d receivers at once, and there is packet memory for %d: raise umem.frames", e.Copies, e.Limit)
}

// checkCapacity returns a CapacityError if a packet of t could never have all its copies, wherever its members are.
func (w *worker) checkCapacity(t *groupTable) error {
	copies := 0
	for i := range t.legs {
		if t.legs[i].live > 0 {
			copies++
		}
	}
	if limit := w.capacity(t.portNeeds(len(w.ports)), t.maxBuffers); copies > limit {
		return &CapacityError{copies, limit}
	}
	return nil
}

// capacity returns how many members a group may have, given the copies that go to each port
// (need) and the buffers of a packet. With more members there could never be frames
// for all copies of one packet, and the group would starve. Half of the frames may be in
// the fill rings. Where a port's TX ring is the limit, it bounds the members behind that
// port.
func (w *worker) capacity(need []int, buffers int) int {
	frames := w.umem.Frames() / 2
	if w.workers != nil {
		frames -= w.umem.Frames() / 8 // in the pools of other workers
	}
	limit := wholePackets(frames, buffers) - maxFeedback
	for pi, n := range need {
		if n == 0 {
			continue
		}
		if ring := wholePackets(cap(w.ports[pi].staged), buffers) - maxFeedback; n > ring {
			limit = min(limit, ring)
		}
	}
	return limit
}

// noteIsolation sets acrossIsolated if t has members behind several isolated ports. It
// runs on the worker.
func (t *groupTable) noteIsolation(ports []*port) {
	first := -1
	t.acrossIsolated = false
	for i := range t.legs {
		switch l := &t.legs[i]; {
		case !l.isActive() || !ports[l.port].isolated || l.port == first:
		case first < 0:
			first = l.port
		default:
			t.acrossIsolated = true
		}
	}
}
