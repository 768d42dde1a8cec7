// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/dataplane/xsk"

// Received packets on their way to the worker that their group belongs to: one
// ring for each pair of workers and direction. An entry is the packet's
// descriptor, with the port that it came in by among the options, which the
// kernel leaves unused. The frame belongs to whoever has the entry.
//
// A ring is shared by all ports that the worker receives from, as the worker that
// opens it is by all groups: what one host sends must not take the others' places.
// So its limits are asked before its packets go into a ring, and a port that brings
// more than the worker takes at a time gets half of the ring's places.

const (
	portShift = 8 // of the port in Desc.Options
	portBits  = 0xFFFF << portShift
)

// dispatch serves the packets of one batch from port pi that are this worker's, and
// those that are no group's, and posts the others to their owners. It returns how
// many packets there were.
func (w *worker) dispatch(pi int, batch []xsk.Desc) (packets int) {
	backlog := len(batch) == len(w.rx)
	for ; len(batch) > 0; packets++ {
		k := xsk.ChainLen(batch)
		ds := batch[:k]
		batch = batch[k:]
		switch to, negative := w.ownerOf(&ds[0]); {
		case to < 0 || to == w.index:
			w.servePacket(pi, ds...)
		case negative && !w.ports[pi].nakPolicer.allow(w.now):
			w.count.drop[dropRateLimit]++
			w.freeFrames(ds)
		default:
			w.enqueueHandoff(to, pi, ds, backlog)
		}
	}
	for to, r := range w.handoffOut {
		if r != nil && r.Publish() {
			w.workers.all[to].wakeIfAsleep()
		}
	}
	return packets
}

// ownerOf returns the worker that a received packet, whose first buffer is d,
// belongs to, -1 if that is none, and whether it is a negative one.
func (w *worker) ownerOf(d *xsk.Desc) (to int, negative bool) {
	if d.Options&xsk.Torn == 0 && int(d.Len) <= w.umem.Room(d.Addr) {
		if k, l4, ok := peekIP(w.umem.Data(d.Addr, d.Len)); ok {
			if to, ok := w.workers.owners.of(k); ok {
				return to, peekNegative(l4)
			}
		}
	}
	return -1, false
}

// enqueueHandoff puts a packet into the ring to another worker, whole or not at all.
// backlog says that more packets wait at its port.
func (w *worker) enqueueHandoff(to, pi int, ds []xsk.Desc, backlog bool) {
	r := w.handoffOut[to]
	need := len(ds)
	if backlog {
		need += r.Size() / 2
	}
	if r.Room(need) < need {
		w.count.drop[dropHandoffFull]++
		w.freeFrames(ds)
		return
	}
	for _, d := range ds {
		d.Options |= uint32(pi) << portShift
		r.Put(d)
	}
}

// drainHandoff serves what others have received for this worker's groups, up to a batch
// from each, and returns how many packets that were.
func (w *worker) drainHandoff() (total int) {
	for _, r := range w.handoffIn {
		n := min(r.Len(r.Size()), len(w.rx))
		for i := range n {
			w.rx[i] = r.At(i)
		}
		for n > 0 && !isLast(w.rx[n-1]) {
			n-- // the batch ends in the middle of a packet
		}
		r.Release(n)
		for ds := w.rx[:n]; len(ds) > 0; total++ {
			k := xsk.ChainLen(ds)
			pi := int(ds[0].Options & portBits >> portShift)
			for i := range k {
				ds[i].Options &^= portBits
			}
			w.servePacket(pi, ds[:k]...)
			ds = ds[k:]
		}
	}
	return total
}

// wakeIfAsleep ends w's sleep, if it sleeps. It is for the other workers, after they have
// published something for w.
func (w *worker) wakeIfAsleep() {
	if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
		w.wake()
	}
}

// prepareSleep says that w is about to sleep: from now on others rouse it. It returns
// false if something for it was published before, so that it must not.
func (w *worker) prepareSleep() bool {
	w.asleep.Store(true) // first: whoever publishes after we have looked sees it
	for _, r := range w.handoffIn {
		if r.Published() > 0 {
			return false
		}
	}
	for i := range w.remoteIn {
		if e := &w.remoteIn[i]; e.ring.ring.Published() > e.blocked {
			return false
		}
	}
	return true
}
