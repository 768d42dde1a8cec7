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
	txRetry   = 100 * time.Microsecond // at first
	maxRetry  = 20 * time.Millisecond
	retryPart = 8 // of the time for which nothing has moved
)

// retry returns when a port that takes nothing at time now is to be looked at again.
func (p *port) retry(now time.Duration) time.Duration {
	return now + min(max(txRetry, (now-p.moved)/retryPart), maxRetry)
}

// flush hands every port its staged frames and those that its queue releases,
// and takes back the frames whose transmission has completed.
func (w *worker) flush() {
	w.batch++
	for _, p := range w.ports {
		if !p.gone {
			w.flushPort(p)
		}
	}
}

func (w *worker) flushPort(p *port) {
	if p.exit != nil {
		w.handOver(p)
		return
	}
	if p.down && p.queue.len() > 0 {
		w.drain(p)
	}
	if p.sentHead == p.sentTail {
		p.moved = w.now // there was nothing to send
	}
	if left := p.send(w.now); len(left) > 0 {
		panic("dataplane: more staged than the TX ring has room for")
	}
	w.kick(p)
	w.complete(p)
	p.tell()
}

// kick makes the kernel send what is in p's TX ring. Where it has taken nothing since
// the last time, it is not asked again before kickAt.
func (w *worker) kick(p *port) {
	if p.down { // what is in the ring goes when it is up
		p.moved, p.kickAt = w.now, 0
		return
	}
	s := p.socks[0]
	before, pending := s.Taken()
	if pending == 0 {
		p.kickAt = 0
		return
	}
	if w.now < p.kickAt && before == p.kicked {
		return
	}
	if err := s.Kick(); err == xsk.ErrDown || err == xsk.ErrGone { // control says so when netlink does
		p.down = true
	}
	p.kicked, pending = s.Taken()
	if p.kicked != before {
		p.moved = w.now
	}
	p.kickAt = 0
	if pending > 0 {
		p.kickAt = p.retry(w.now)
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
		n := p.socks[0].Complete(w.addrs)
		w.pool.Give(w.addrs[:n])
		p.completed(n)
		if n > 0 {
			p.moved = w.now
		}
		if n < len(w.addrs) {
			break
		}
	}
	p.queue.ahead = p.inRing()
	p.txLimit = max(0, min(p.socks[0].TxRoom(), max(p.queue.maxFrames, p.widest)-p.queue.ahead-p.queue.len()))
	p.high = max(p.high, p.depth())
}

// admits reports whether p takes a data packet of n bytes in so many buffers, if need
// be after what is staged for it has been sent. A port that does not transmit has
// nothing staged, so it costs no system call.
func (w *worker) admits(p *port, n, buffers int) bool {
	if p.admits(n, buffers) {
		return true
	}
	if len(p.tx) == 0 {
		return false
	}
	w.batch++ // the places of what is staged are no longer theirs
	w.flushPort(p)
	return p.admits(n, buffers)
}

// staged reports whether a frame waits for the end of the batch at any port.
func (w *worker) staged() bool {
	for _, p := range w.ports {
		if p.staged() {
			return true
		}
	}
	return false
}
