// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// Transmission. A port may stop transmitting although its carrier is up: its peer pauses
// it (PFC) for good, or a queue of its NIC hangs. Such a port fills its share of the
// frames and then admits nothing; its frames wait in the repair stores, or are lost for
// the members behind it, which dead_after removes. Other ports must not be affected:
// nothing waits for the room of that port, and the kernel is asked less and less often to
// send for it.

// Intervals at which a port that makes no progress is retried, since a completion wakes
// no worker. They grow with the time since the last progress.
const (
	minTXRetry   = 100 * time.Microsecond // the first
	maxTXRetry   = 20 * time.Millisecond
	retryDivisor = 8 // interval = time since the last progress / retryDivisor
)

// retryAt returns when a port that makes no progress at time now is to be retried.
func (p *port) retryAt(now time.Duration) time.Duration {
	return now + min(max(minTXRetry, (now-p.lastProgress)/retryDivisor), maxTXRetry)
}

// flush moves the staged frames of every port, and those that its queue releases, to its
// TX ring, and takes back the frames whose transmission has completed.
func (w *worker) flush() {
	w.batchNumber++
	for _, p := range w.ports {
		if !p.vanished {
			w.flushPort(p)
		}
	}
}

func (w *worker) flushPort(p *port) {
	if p.remoteTX != nil {
		w.publishRemote(p)
		return
	}
	if p.down && p.queue.len() > 0 {
		w.drainQueue(p)
	}
	if p.sentHead == p.sentTail {
		p.lastProgress = w.now // there was nothing to send
	}
	if left := p.send(w.now); len(left) > 0 {
		panic("dataplane: more staged than the TX ring has room for")
	}
	w.kickTX(p)
	w.complete(p)
	p.publishStatus()
}

// kickTX makes the kernel send the frames in p's TX ring. If the kernel has taken none
// since the last kick, it is not kicked again before kickAt.
func (w *worker) kickTX(p *port) {
	if p.down { // the frames in the ring go out when the port is up again
		p.lastProgress, p.kickAt = w.now, 0
		return
	}
	s := p.rxSockets[0]
	before, pending := s.Consumed()
	if pending == 0 {
		p.kickAt = 0
		return
	}
	if w.now < p.kickAt && before == p.takenAtKick {
		return
	}
	if err := s.Kick(); err == xsk.ErrDown || err == xsk.ErrGone { // the control loop reports it when netlink does
		p.down = true
	}
	p.takenAtKick, pending = s.Consumed()
	if p.takenAtKick != before {
		p.lastProgress = w.now
	}
	p.kickAt = 0
	if pending > 0 {
		p.kickAt = p.retryAt(w.now)
	}
}

// nextKick returns when the kernel is to be kicked again for frames that it has not
// taken; ok is false if there are none.
func (p *port) nextKick() (at time.Duration, ok bool) {
	return p.kickAt, p.kickAt > 0 && !p.down
}

// complete takes back the frames that p has transmitted.
func (w *worker) complete(p *port) {
	for {
		n := p.rxSockets[0].Complete(w.addrs)
		w.pool.Give(w.addrs[:n])
		p.completed(n)
		if n > 0 {
			p.lastProgress = w.now
		}
		if n < len(w.addrs) {
			break
		}
	}
	p.queue.inTXRing = p.txRingFrames()
	p.txLimit = max(0, min(p.rxSockets[0].TxRoom(), max(p.queue.maxFrames, p.maxPacketFrames)-p.queue.inTXRing-p.queue.len()))
	p.maxDepth = max(p.maxDepth, p.depth())
}

// admitsAfterFlush reports whether p admits a data packet of n bytes in the given number
// of buffers, if necessary after a flush of what is staged for p. A port that does not
// transmit has nothing staged, so for it the flush costs no system call.
func (w *worker) admitsAfterFlush(p *port, n, buffers int) bool {
	if p.admits(n, buffers) {
		return true
	}
	if len(p.tx) == 0 {
		return false
	}
	w.batchNumber++ // the staged frames have left the queue's slots
	w.flushPort(p)
	return p.admits(n, buffers)
}

// anyStaged reports whether a port has a frame that waits for the end of the batch.
func (w *worker) anyStaged() bool {
	for _, p := range w.ports {
		if p.staged() {
			return true
		}
	}
	return false
}
