// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// Transmission. A port may stop transmitting although its carrier is up: its peer pauses
// it (PFC) for good, or a queue of its NIC hangs. Such a port fills its share of the
// frames and then admits nothing; its frames wait in the repair stores, or are lost for
// the members behind it, which dead_after removes. Other ports must not be affected:
// nothing waits for the room of that port, and the kernel is asked less and less often to
// send for it.

// flush moves the staged frames of every port, and those that its queue releases, to its
// TX ring, and takes back the frames whose transmission has completed.
func (w *worker) flush() {
	w.batchNumber++
	for _, p := range w.ports {
		if !p.vanished {
			w.flushPort(p)
		}
	}
	w.remote.noteSent()
}

func (w *worker) flushPort(p *port) {
	if p.remoteTX != nil {
		w.publishRemote(p)
		return
	}
	if p.down && p.queue.len() > 0 {
		w.drainQueue(p)
	}
	if p.ring.frames() == 0 {
		p.progress.last = w.now // there was nothing to send
	}
	if left := p.ring.put(p.release(w.now, p.stageLimit)); len(left) > 0 {
		panic("dataplane: more staged than the TX ring has room for")
	}
	w.kickTX(p)
	w.complete(p)
	p.publishStatus()
}

// kickTX makes the kernel send the frames in p's TX ring.
func (w *worker) kickTX(p *port) {
	if p.down { // the frames in the ring go out when the port is up again
		p.progress.last, p.ring.kickAt = w.now, 0
		return
	}
	if err := p.ring.kick(w.now, &p.progress); err == xsk.ErrDown || err == xsk.ErrGone { // the control plane reports it when netlink does
		p.down = true
	}
}

// complete takes back the frames that p has transmitted, and computes how many may be
// staged next.
func (w *worker) complete(p *port) {
	if p.ring.complete(w.pool, w.addrs) {
		p.progress.last = w.now
	}
	p.queue.inTXRing = p.ring.frames()
	p.stageLimit = max(0, min(p.ring.socket.TxRoom(), max(p.queue.maxFrames, p.maxPacketFrames)-p.queue.inTXRing-p.queue.len()))
	p.maxDepth = max(p.maxDepth, p.depth())
}

// admitsAfterFlush reports whether p admits a data packet of n bytes in the given number
// of buffers, if necessary after a flush of what is staged for p. A port that does not
// transmit has nothing staged, so for it the flush costs no system call.
func (w *worker) admitsAfterFlush(p *port, n, buffers int) bool {
	if p.admits(n, buffers) {
		return true
	}
	if len(p.staged) == 0 {
		return false
	}
	w.batchNumber++ // the staged frames have left the queue's slots
	w.flushPort(p)
	return p.admits(n, buffers)
}

// anyStaged reports whether a port has a frame that waits for the end of the batch.
func (w *worker) anyStaged() bool {
	for _, p := range w.ports {
		if p.hasStaged() {
			return true
		}
	}
	return false
}

// countRefused counts a frame that p's queue did not admit.
func (w *worker) countRefused(p *port) {
	p.refusedFrames++
	w.count.drop[dropQueueFull]++
}
