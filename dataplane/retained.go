// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/trace"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Copies of retained packets (retention), which are made in the same way as those of a
// packet that has just come.

// maxResends bounds the copies of retained frames that one packet, or one deadline,
// causes: the recovery of one receiver must not delay the others.
const maxResends = 64

// repairSpec returns cfg's parameters of local repair; total is the number of bytes that
// all groups of a worker together may retain.
func repairSpec(cfg *config.Config, total int) mcast.RepairSpec {
	return mcast.RepairSpec{
		Bytes:   int64(min(cfg.Repair.GroupBytes, total)),
		Timeout: cfg.Repair.Timeout, Tries: cfg.Repair.Tries,
	}
}

// copyRetained stages a copy of a retained packet.
func (w *worker) copyRetained(c *mcast.Copy) {
	w.count.resent++
	if c.Frame&ringHandle != 0 {
		w.copyFromRing(c)
		return
	}
	ds := w.retained.get(c.Frame)
	if w.tracing != nil {
		w.copyTraced(trace.Resent, c, &w.retained.frame, ds, false)
		return
	}
	w.copy(c, &w.retained.frame, ds, false)
}

// deferCopy makes the core send c later, since the queue of p is full. If the core
// cannot, the copy is lost for its leg. No further copy of this core call goes to p,
// since it would overtake c.
func (w *worker) deferCopy(p *port, c *mcast.Copy) {
	p.fullAt = w.coreCalls + 1
	if w.fast.granted(c.Group) != nil {
		w.fast.refused = append(w.fast.refused, fastLeg{c.Group, c.Leg})
	}
	if w.core.Requeue(c, p.halfEmptyAt(w.now)) {
		p.deferred++
		return
	}
	w.countRefused(p)
}

// sendApplied sends the feedback and frees the frames that a change by the control plane
// has caused.
func (w *worker) sendApplied() {
	w.sendFeedback(nil)
	w.retained.release(w.out.Freed, w.pool)
	w.obeyOrders(false)
}

// fireDeadlines fires the core's deadlines.
func (w *worker) fireDeadlines() {
	at, ok := w.core.NextDeadline()
	if !ok || at > w.now {
		return
	}
	w.reportDue()
	w.coreCalls++
	w.out.MaxResends = maxResendsOf(min(maxResends, w.reserveFrames(maxResends+maxFeedback, w.retained.maxBuffers)-maxFeedback))
	w.core.Advance(w.now, &w.out)
	w.sendOwn()
}

// legResends is Output.PortRoom: it returns how many copies of retained packets the port
// of a leg admits, and when it may admit more. Copies for a port or neighbour that is
// down, or for a member without a location, are admitted and counted as dropped.
func (w *worker) legResends(id mcast.GroupID, leg mcast.LegID) (copies int, until time.Duration) {
	g := &w.groups[id]
	pi := g.legs[leg].port
	if pi < 0 || w.ports[pi].down || !g.legs[leg].isUp(w.ports[pi]) {
		return maxResends, 0
	}
	p := w.ports[pi]
	n := p.mtu + rocev2.EthernetLen + rocev2.VLANLen
	if g.maxFrameBytes > 0 {
		n = min(n, g.maxFrameBytes)
	}
	return p.room(n, w.retained.maxBuffers), p.halfEmptyAt(w.now)
}

// maxResendsOf converts a number of copies to Output.MaxResends, where -1 stands for
// none.
func maxResendsOf(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}
