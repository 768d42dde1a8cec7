// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// port is one port of the switch as one worker has it: the worker that transmits for the
// port has the port itself, the others have remote views (remoteView). What the control
// plane changes, it changes in closures of the workers.
type port struct {
	portIdentity
	attachment
	linkState
	ingress
	egress
	status   *portStatus  // nil if there is one worker
	remoteTX *remoteTX    // the ring to the worker that transmits for this port; nil: the worker of this view does
	policers portPolicers // last: it is large, and most packets need none of it
}

// portIdentity is what is known of a port's interface since it was opened.
type portIdentity struct {
	name        string
	ifindex     int
	driver      string
	mac         rocev2.MAC
	vlan        uint16 // VID of group frames sent here; 0 untagged
	maxMTU      int    // the largest MTU that the buffers allow; 0: no limit
	multiBuffer bool   // packets may be in several buffers
	native      bool   // the XDP program runs in the driver
	frags       bool   // true: the program takes frames in several buffers
	clones      bool   // copies of frames from here are clones (bpf/fast_clone.h)
	noClones    error  // why they are not; nil: frames are in one buffer
	ownECN      bool   // true: it marks by other thresholds than those that follow from its queue
	bridge      int    // ifindex of the bridge that the interface was a port of when it was opened; 0: none
}

// linkState is the state of a port's interface.
type linkState struct {
	mtu       int  // the MTU; see Plane.SetMTU
	down      bool // no carrier, disabled, or gone
	vanished  bool // the interface has vanished, and the sockets are closed
	isolated  bool // an isolated port of its bridge: nothing goes from it to another isolated one
	neighbour neighbour
}

// ingress is what a worker receives of a port.
type ingress struct {
	rxSockets []xsk.BoundQueue // each socket of the port is one worker's to receive from
	rxFrames  uint64
	rxBytes   uint64
}

// prepare makes what a worker needs of p beside the sockets, which are open if p has any.
func (p *port) prepare(c *config.Port, cfg *config.Config) {
	p.policers = newPortPolicers(&cfg.Limits)
	p.rxSockets = p.sockets
	var tx xsk.Queue
	if len(p.sockets) > 0 {
		tx = p.sockets[0]
	}
	p.egress = newEgress(c, cfg, tx, uint64(p.ifindex))
}

// closePort takes port pi from the workers, since its interface has vanished or it is
// removed, and returns to the pool the frames that were queued. All workers stand still. The
// caller closes what it returns, and then calls reclaim.
func (c *workers) closePort(pi int) (was attachment) {
	w := c.all[c.txWorker(pi)]
	for _, o := range c.all {
		o.disturbFast()
		p := o.ports[pi]
		p.vanished, p.down, p.rxSockets = true, true, nil
		o.unstage(p) // a closure that ran just before may have staged frames
		o.drainQueue(p)
		if p.remoteTX != nil {
			w.freeRemote(p.remoteTX)
		}
	}
	p := c.ports[pi]
	p.ring.forget()
	p.queue.inTXRing = 0
	was, p.attachment = p.attachment, attachment{}
	c.shareSockets()
	for _, w := range c.all {
		w.batchNumber++
	}
	return was
}

// drainQueue returns the frames of p's queue to the pool, since p is down.
func (w *worker) drainQueue(p *port) {
	for p.queue.len() > 0 {
		d := p.queue.pop()
		w.pool.GiveOne(d.Addr)
		if isLast(d) {
			w.count.drop[dropPortDown]++
		}
	}
	p.queue.idle = true
}

// unstage returns the frames that are staged for p, which has vanished, to the pool.
func (w *worker) unstage(p *port) {
	for _, d := range p.staged {
		w.pool.GiveOne(d.Addr)
		if isLast(d) {
			w.count.drop[dropPortDown]++
		}
	}
	p.staged = p.staged[:0]
}

// hasStaged reports whether a frame waits for the end of the batch.
func (p *port) hasStaged() bool {
	return !p.vanished && (len(p.staged) > 0 || p.remoteTX != nil && p.remoteTX.ring.Unpublished() > 0)
}

// halfEmptyAt returns when p's queue, which is full, will have sent half of what it may
// hold; without a rate, when to try again.
func (p *port) halfEmptyAt(now time.Duration) time.Duration {
	q, rate, from := &p.queue, p.queue.rate, max(now, p.queue.linkFreeAt)
	if p.remoteTX != nil {
		rate, from = p.remoteTX.rate, now
	}
	at := p.progress.retryAt(now)
	if rate == 0 {
		return at
	}
	more := max(0, q.bytes+q.remoteBytes-q.maxBytes/2)
	return max(at, from+time.Duration(int64(more)*8*int64(time.Second)/rate))
}

// nextEvent returns when a frame of p may be released, or the kernel is to be kicked
// again; ok is false if nothing is due before something else happens.
func (p *port) nextEvent(now time.Duration) (at time.Duration, ok bool) {
	if p.vanished {
		return 0, false
	}
	at, ok = p.nextRelease(now)
	if p.ring.kickAt > 0 && !p.down && (!ok || p.ring.kickAt < at) {
		return p.ring.kickAt, true
	}
	return at, ok
}
