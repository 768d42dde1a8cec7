// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/dataplane/spsc"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Handoff: a received packet is passed to the worker that owns its group, by one ring for
// each ordered pair of workers. An entry is a descriptor of the packet, with the index of
// the receiving port in the bits of Options that the kernel leaves unused. The frame
// belongs to the worker that holds the entry.
//
// A ring is shared by all ports that the sending worker receives from and by all groups
// of the owner, so one host's packets must not take the entries of others. Therefore the
// policer of negative acknowledgements is applied before a packet enters a ring, and a
// port with a backlog (more packets than the worker takes at a time) gets half of the
// entries.

// handoffRings are a worker's ends of these rings.
type handoffRings struct {
	out []*spsc.Ring[xsk.Desc] // packets received for other workers' groups, by worker; nil for this one
	in  []*spsc.Ring[xsk.Desc] // packets that other workers received for this worker's groups
}

const (
	portShift = 8 // the place of the port's index in Desc.Options
	portBits  = 0xFFFF << portShift
)

// dispatch serves the packets of one batch from port pi whose group this worker owns, and
// those that belong to no group; it passes the others to their owners. It returns the
// number of packets.
func (w *worker) dispatch(pi int, batch []xsk.Desc) (packets int) {
	backlog := len(batch) == len(w.rx)
	for ; len(batch) > 0; packets++ {
		k := xsk.ChainLen(batch)
		ds := batch[:k]
		batch = batch[k:]
		switch to, negative := w.ownerOf(pi, &ds[0]); {
		case to < 0 || to == w.index:
			w.servePacket(pi, ds...)
		case negative && !w.ports[pi].policers.naks.Allow(w.now):
			w.count.drop[dropRateLimit]++
			w.traceRefused(pi, ds, dropRateLimit)
			w.freeFrames(ds)
		default:
			w.enqueueHandoff(to, pi, ds, backlog)
		}
	}
	for to, r := range w.handoff.out {
		if r != nil && r.Publish() {
			w.workers.all[to].wakeIfAsleep()
		}
	}
	return packets
}

// ownerOf returns the worker that owns the group of a packet received by port pi, whose
// first buffer is d, or -1 if there is none. negative says whether the packet is a host's
// negative acknowledgement (peekNegative).
func (w *worker) ownerOf(pi int, d *xsk.Desc) (to int, negative bool) {
	if d.Options&xsk.Torn == 0 && int(d.Len) <= w.umem.Room(d.Addr) {
		b := w.umem.Data(d.Addr, d.Len)
		if k, l4, ok := peekIP(b); ok {
			if to, ok := w.workers.owners.of(w.aliases.peek(k, l4)); ok {
				return to, peekNegative(l4) && w.ports[pi].neighbour.from(rocev2.Ethernet(b[:rocev2.EthernetLen]).Src()) == 0
			}
		}
	}
	return -1, false
}

// enqueueHandoff puts all buffers of a packet into the ring to worker to, or drops the
// packet. backlog says that more packets wait at its port.
func (w *worker) enqueueHandoff(to, pi int, ds []xsk.Desc, backlog bool) {
	r := w.handoff.out[to]
	need := len(ds)
	if backlog {
		need += r.Size() / 2
	}
	if r.Room(need) < need {
		w.traceRefused(pi, ds, dropHandoffFull)
		w.count.drop[dropHandoffFull]++
		w.freeFrames(ds)
		return
	}
	for _, d := range ds {
		d.Options |= uint32(pi) << portShift
		r.Put(d)
	}
}

// drainHandoff serves the packets that others have received for this worker's groups, up
// to a batch from each ring, and returns how many there were.
func (w *worker) drainHandoff() (total int) {
	for _, r := range w.handoff.in {
		n := min(r.Len(r.Size()), len(w.rx))
		for i := range n {
			w.rx[i] = r.At(i)
		}
		for n > 0 && !isLast(w.rx[n-1]) {
			n-- // the batch ends within a packet
		}
		r.Release(n)
		w.fast.taken++
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

// prepareSleep marks w as asleep: from now on other workers wake it. It returns false if
// entries for w were published before; w must then not sleep.
func (w *worker) prepareSleep() bool {
	w.asleep.Store(true) // first: a worker that publishes after the checks below sees it
	for _, r := range w.handoff.in {
		if r.Published() > 0 {
			return false
		}
	}
	return !w.remote.hasNew()
}
