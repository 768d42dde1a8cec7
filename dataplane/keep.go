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

// maxRepairs bounds the copies of kept frames that one packet, or one deadline,
// brings about: what a receiver has lost must not keep the others waiting.
const maxRepairs = 64

// repairSpec is what cfg says of local repair, if all groups together may keep
// so many bytes.
func repairSpec(cfg *config.Config, total int) mcast.RepairSpec {
	return mcast.RepairSpec{
		Bytes:   int64(min(cfg.Repair.PerGroup, total)),
		Timeout: cfg.Repair.Timeout, Tries: cfg.Repair.Tries,
	}
}

// handleOf names the frame at addr to the core.
func (w *worker) handleOf(addr uint64) mcast.Handle {
	return mcast.Handle(addr / uint64(w.umem.FrameSize()))
}

// keep takes note of a packet that the core keeps.
func (w *worker) keep(ds []xsk.Desc) {
	h := w.handleOf(ds[0].Addr)
	w.kept[h] = ds[0]
	if len(ds) == 1 {
		return
	}
	for _, d := range ds[1:] {
		next := w.handleOf(d.Addr)
		w.chains.next[h], w.kept[next] = next, d
		h = next
	}
	w.chains.longest = max(w.chains.longest, len(ds))
}

// release gives back what the core has let go of.
func (w *worker) release() {
	for _, h := range w.out.Release {
		d := w.kept[h]
		w.pool.GiveOne(d.Addr)
		for !ends(d) {
			h = w.chains.next[h]
			d = w.kept[h]
			w.pool.GiveOne(d.Addr)
		}
	}
}

// copyKept stages a copy of a packet that was kept.
func (w *worker) copyKept(c *mcast.Copy) {
	ds := w.keptPacket(c.Frame)
	w.copy(c, &w.again, ds, false)
}

// putOff has the core send c later, since the queue of p is full; if it cannot, the
// copy is lost for its leg. Nothing more of this turn goes to p: what follows must
// not overtake.
func (w *worker) putOff(p *port, c *mcast.Copy) {
	p.full = w.turn + 1
	if w.sw.Unsent(c, p.halfEmpty(w.now)) {
		p.putOff++
		return
	}
	w.refuse(p)
}

// applied does what a change by the control plane has brought about.
func (w *worker) applied() {
	w.emit(nil)
	w.release()
}

// advance fires the core's deadlines.
func (w *worker) advance() {
	at, ok := w.sw.NextDeadline()
	if !ok || at > w.now {
		return
	}
	w.turn++
	w.out.MaxRepairs = orNone(min(maxRepairs, w.frames(maxRepairs+spareFeedback, w.chains.longest)-spareFeedback))
	w.sw.Advance(w.now, &w.out)
	w.emit(nil)
	w.isDecoded = false
	for i := range w.out.Copies {
		w.copyKept(&w.out.Copies[i])
	}
	w.release()
}

// legRoom is Output.Room: how many copies of kept packets the port of a leg takes, and
// when it may take more. What is for a port that is down, or for a member whose place
// is not known, is taken and counted as dropped.
func (w *worker) legRoom(id mcast.GroupID, leg mcast.LegID) (copies int, until time.Duration) {
	g := &w.groups[id]
	pi := g.legs[leg].port
	if pi < 0 || w.ports[pi].down {
		return maxRepairs, 0
	}
	p := w.ports[pi]
	n := p.mtu + rocev2.EthernetLen + rocev2.VLANLen
	if g.longest > 0 {
		n = min(n, g.longest)
	}
	return p.room(n, w.chains.longest), p.halfEmpty(w.now)
}

// orNone makes of a number of copies what Output.MaxRepairs says for it.
func orNone(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}
