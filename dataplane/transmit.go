// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// The way out of a worker. A port may stop transmitting although its carrier is up: its
// peer pauses it (PFC) for good, or a queue of its NIC hangs. Such a port fills its
// share of the frames and then takes nothing; what was for it waits in the repair
// stores or is lost for the members behind it, whom dead_after removes. Everybody else
// must not notice: nobody waits for that port's room, and the kernel is asked less and
// less often whether it goes on.

// Times after which a port that takes nothing is looked at again: a completion wakes
// nobody. They grow with the time for which nothing has moved.
const (
	minTXRetry   = 100 * time.Microsecond // at first
	maxTXRetry   = 20 * time.Millisecond
	retryDivisor = 8 // of the time for which nothing has moved
)

// retryAt returns when a port that takes nothing at time now is to be looked at again.
func (p *port) retryAt(now time.Duration) time.Duration {
	return now + min(max(minTXRetry, (now-p.lastProgress)/retryDivisor), maxTXRetry)
}

// flush hands every port its staged frames and those that its queue releases,
// and takes back the frames whose transmission has completed.
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

// kickTX makes the kernel send what is in p's TX ring. Where it has taken nothing since
// the last time, it is not asked again before kickAt.
func (w *worker) kickTX(p *port) {
	if p.down { // what is in the ring goes when it is up
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
	if err := s.Kick(); err == xsk.ErrDown || err == xsk.ErrGone { // control says so when netlink does
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

// nextKick returns when the kernel is to be asked again to send what it has not taken;
// ok is false if there is no such thing.
func (p *port) nextKick() (at time.Duration, ok bool) {
	return p.kickAt, p.kickAt > 0 && !p.down
}

// complete takes back the frames that have left by p.
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

// admitsAfterFlush reports whether p takes a data packet of n bytes in so many buffers, if need
// be after what is staged for it has been sent. A port that does not transmit has
// nothing staged, so it costs no system call.
func (w *worker) admitsAfterFlush(p *port, n, buffers int) bool {
	if p.admits(n, buffers) {
		return true
	}
	if len(p.tx) == 0 {
		return false
	}
	w.batchNumber++ // the places of what is staged are no longer theirs
	w.flushPort(p)
	return p.admits(n, buffers)
}

// anyStaged reports whether a frame waits for the end of the batch at any port.
func (w *worker) anyStaged() bool {
	for _, p := range w.ports {
		if p.staged() {
			return true
		}
	}
	return false
}
