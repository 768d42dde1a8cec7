// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The repair store: the frames that the core keeps stay where they were received,
// out of the pool, until it lets go of them. Copies are made of them as of a frame
// that has just come.

// maxResends bounds the copies of kept frames that one packet, or one deadline,
// brings about: what a receiver has lost must not keep the others waiting.
const maxResends = 64

// repairSpec is what cfg says of local repair, if all groups together may keep
// so many bytes.
func repairSpec(cfg *config.Config, total int) mcast.RepairSpec {
	return mcast.RepairSpec{
		Bytes:   int64(min(cfg.Repair.GroupBytes, total)),
		Timeout: cfg.Repair.Timeout, Tries: cfg.Repair.Tries,
	}
}

// handleOf names the frame at addr to the core.
func (w *worker) handleOf(addr uint64) mcast.Handle {
	return mcast.Handle(addr / uint64(w.umem.FrameSize()))
}

// retain takes note of a packet that the core keeps.
func (w *worker) retain(ds []xsk.Desc) {
	h := w.handleOf(ds[0].Addr)
	w.retained[h] = ds[0]
	if len(ds) == 1 {
		return
	}
	for _, d := range ds[1:] {
		next := w.handleOf(d.Addr)
		w.chains.nextBuffer[h], w.retained[next] = next, d
		h = next
	}
	w.chains.maxBuffers = max(w.chains.maxBuffers, len(ds))
}

// freeReleased gives back what the core has let go of.
func (w *worker) freeReleased() {
	for _, h := range w.out.Freed {
		d := w.retained[h]
		w.pool.GiveOne(d.Addr)
		for !isLast(d) {
			h = w.chains.nextBuffer[h]
			d = w.retained[h]
			w.pool.GiveOne(d.Addr)
		}
	}
}

// copyRetained stages a copy of a packet that was kept.
func (w *worker) copyRetained(c *mcast.Copy) {
	ds := w.retainedPacket(c.Frame)
	w.copy(c, &w.retainedFrame, ds, false)
}

// deferCopy has the core send c later, since the queue of p is full; if it cannot, the
// copy is lost for its leg. Nothing more of this turn goes to p: what follows must
// not overtake.
func (w *worker) deferCopy(p *port, c *mcast.Copy) {
	p.fullAt = w.coreCalls + 1
	if w.core.Requeue(c, p.halfEmptyAt(w.now)) {
		p.deferred++
		return
	}
	w.countRefused(p)
}

// sendApplied does what a change by the control plane has brought about.
func (w *worker) sendApplied() {
	w.sendFeedback(nil)
	w.freeReleased()
}

// fireDeadlines fires the core's deadlines.
func (w *worker) fireDeadlines() {
	at, ok := w.core.NextDeadline()
	if !ok || at > w.now {
		return
	}
	w.coreCalls++
	w.out.MaxResends = maxResendsOf(min(maxResends, w.reserveFrames(maxResends+maxFeedback, w.chains.maxBuffers)-maxFeedback))
	w.core.Advance(w.now, &w.out)
	w.sendFeedback(nil)
	w.isDecoded = false
	for i := range w.out.Copies {
		w.copyRetained(&w.out.Copies[i])
	}
	w.freeReleased()
}

// legResends is Output.Room: how many copies of kept packets the port of a leg takes, and
// when it may take more. What is for a port that is down, or for a member whose place
// is not known, is taken and counted as dropped.
func (w *worker) legResends(id mcast.GroupID, leg mcast.LegID) (copies int, until time.Duration) {
	g := &w.groups[id]
	pi := g.legs[leg].port
	if pi < 0 || w.ports[pi].down {
		return maxResends, 0
	}
	p := w.ports[pi]
	n := p.mtu + rocev2.EthernetLen + rocev2.VLANLen
	if g.maxFrameBytes > 0 {
		n = min(n, g.maxFrameBytes)
	}
	return p.room(n, w.chains.maxBuffers), p.halfEmptyAt(w.now)
}

// maxResendsOf makes of a number of copies what Output.MaxRepairs says for it.
func maxResendsOf(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}
