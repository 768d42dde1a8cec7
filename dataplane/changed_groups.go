// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"sync/atomic"

	"github.com/gleam-rdma/gleam/mcast"
)

// Changed groups: the workers tell the control loop which groups have new outcomes.
// Outcomes are state of the core (mcast.Outcomes), so a group is listed once however many
// it has, and none can be lost: the control loop reads the group's outcomes and applies
// those that are new to it.

// changedGroups is the list of one worker's groups whose outcomes have changed since the
// control loop read them. It belongs to the worker, except for any and bell.
type changedGroups struct {
	listed []bool          // true: the group is in the queue; by GroupID
	queue  []mcast.GroupID // a ring with room for every group: the listed ones, in order
	head   int
	count  int
	any    atomic.Bool   // count > 0
	bell   chan struct{} // the control loop's bell, shared by all workers; room for one
}

func newChangedGroups(groups int, bell chan struct{}) changedGroups {
	return changedGroups{listed: make([]bool, groups), queue: make([]mcast.GroupID, groups), bell: bell}
}

// add lists a group, unless it is listed.
func (n *changedGroups) add(id mcast.GroupID) {
	if n.listed[id] {
		return
	}
	n.listed[id] = true
	n.queue[(n.head+n.count)%len(n.queue)] = id
	if n.count++; n.count > 1 {
		return
	}
	n.any.Store(true) // before the bell: the control loop reads it then
	select {
	case n.bell <- struct{}{}:
	default: // it rings already
	}
}

// next removes and returns the group that has been listed for the longest time.
func (n *changedGroups) next() (id mcast.GroupID, ok bool) {
	if n.count == 0 {
		return 0, false
	}
	id = n.queue[n.head]
	n.head = (n.head + 1) % len(n.queue)
	if n.count--; n.count == 0 {
		n.any.Store(false)
	}
	n.listed[id] = false
	return id, true
}

// outcomes writes the outcomes of the groups listed first into to. It returns the number
// of these groups, and how many are still listed. It runs on the worker.
func (w *worker) outcomes(to []mcast.Outcomes) (n, left int) {
	for n < len(to) {
		id, ok := w.changed.next()
		if !ok {
			break
		}
		w.core.Group(id).Outcomes(&to[n])
		n++
	}
	return n, w.changed.count
}
