// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Pauses of the switch itself. A worker that is not scheduled reads no packets, so
// receivers must not count as silent for that time: the core is told of it
// (mcast.Switch.SetPortPaused), including the pauses of other workers that receive from a
// group's ports.

// pauseThreshold is the delay of a worker that does not count as a pause: timers and
// batches take as long.
const pauseThreshold = 2 * time.Millisecond

// pauseStatus is what a worker publishes of its pauses to the others.
type pauseStatus struct {
	due    atomic.Int64 // the latest time at which the worker runs again, as worker.now
	paused atomic.Int64 // total time by which it was late
	_      [112]byte    // keeps other fields off the cache line
}

// pauseAt returns how late a worker is at now, if it was due at due; 0 below
// pauseThreshold.
func pauseAt(due, now time.Duration) time.Duration {
	if late := now - due; late > pauseThreshold {
		return late
	}
	return 0
}

// total returns how long the worker has paused by now, including a pause that has not
// ended.
func (p *pauseStatus) total(now time.Duration) time.Duration {
	// paused is stored before due: in between, a pause counts twice for a moment, but
	// never not at all.
	due := time.Duration(p.due.Load())
	return time.Duration(p.paused.Load()) + pauseAt(due, now)
}

// pauses is what a worker knows of pauses: its own, which it publishes, and those of the
// other workers, as last reported to the core.
type pauses struct {
	status pauseStatus
	runBy  time.Duration   // as status.due
	total  time.Duration   // as status.paused
	others []time.Duration // total pauses of the other workers, by index
}

// note begins a batch at time now, and reports whether a pause has just ended.
func (p *pauses) note(now time.Duration) (ended bool) {
	late := pauseAt(p.runBy, now)
	if late > 0 {
		p.total += late
		p.status.paused.Store(int64(p.total))
	}
	p.setRunBy(now)
	return late > 0
}

// setRunBy records that the worker runs again by due.
func (p *pauses) setRunBy(due time.Duration) {
	p.runBy = due
	p.status.due.Store(int64(due))
}

// notePauses begins a batch of w. It reports pauses of w that have just ended, and those
// of other workers, to the core.
func (w *worker) notePauses() {
	ended := w.pauses.note(w.now)
	if w.readOthersPauses(w.now) || ended {
		w.reportPauses()
	}
}

// readOthersPauses updates w.pauses.others, and reports whether another worker has paused
// for longer than recorded there.
func (w *worker) readOthersPauses(now time.Duration) (more bool) {
	if w.workers == nil {
		return false
	}
	for i, o := range w.workers.all {
		if o == w {
			continue
		}
		if t := o.pauses.status.total(now); t > w.pauses.others[i] {
			w.pauses.others[i], more = t, true
		}
	}
	return more
}

// reportPauses tells the core for how long the packets of each port were not read.
func (w *worker) reportPauses() {
	for pi := range w.ports {
		t := w.pauses.total
		if w.workers != nil {
			for i := range w.workers.all {
				if i != w.index && w.workers.receivesFrom(i, pi) {
					t += w.pauses.others[i]
				}
			}
		}
		w.core.SetPortPaused(mcast.Port(pi), t)
	}
}

// receivesFrom reports whether worker i receives from a socket of port pi (see
// portViews).
func (c *workers) receivesFrom(i, pi int) bool {
	n := len(c.all)
	return (i-pi%n+n)%n < len(c.ports[pi].sockets)
}

// setPortDelay tells the core of w how long a copy may wait in the queue of port pi,
// which sends at rate bit/s (0: no limit).
func (w *worker) setPortDelay(pi int, rate int64) {
	d := time.Duration(0)
	if rate > 0 {
		d = time.Duration(int64(w.ports[pi].queue.maxBytes) * 8 * int64(time.Second) / rate)
	}
	w.core.SetPortDelay(mcast.Port(pi), d)
}
