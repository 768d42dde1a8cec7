// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// News tells the control loop which groups have decided something by themselves.
// The core keeps what they decided (mcast.Outcomes), so a group is listed once
// however much it decides, and no decision can be lost: the control loop asks for
// the group's outcomes and applies what it does not know yet.

// changedGroups is the list of one worker's groups whose outcomes the control loop has not
// asked for since they changed. It belongs to the worker, except for some and bell.
type changedGroups struct {
	listed []bool          // by GroupID
	queue  []mcast.GroupID // a ring with room for every group: those listed, in order
	head   int
	count  int
	any    atomic.Bool   // n > 0
	bell   chan struct{} // to the control loop, of all workers; room for one
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
	n.any.Store(true) // before the bell, whose hearer looks for it
	select {
	case n.bell <- struct{}{}:
	default: // it rings already
	}
}

// next takes the group off the list that has been on it for the longest time.
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

// outcomeBatch is how many groups a worker reports on between two batches of packets.
const outcomeBatch = 16

// maxOutcomeGroups is how many the control loop asks a worker about in one turn.
const maxOutcomeGroups = 64

// outcomeInterval is the least time between two rounds of questions to the workers: groups
// whose members take turns have news with every turn.
const outcomeInterval = 10 * time.Millisecond

// outcomes writes the outcomes of the groups listed first into to. It returns how
// many groups those were, and how many are still listed. It runs on the worker.
func (w *worker) outcomes(to []mcast.Outcomes) (n, left int) {
	for n < len(to) {
		id, ok := w.changed.next()
		if !ok {
			break
		}
		w.core.Outcomes(id, &to[n])
		n++
	}
	return n, w.changed.count
}
