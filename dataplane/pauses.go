// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// The switch's own pauses. A worker that is not scheduled looks at nothing that
// comes in, so nobody is silent meanwhile: the core is told (mcast.Switch.Unheard),
// also of the pauses of other workers that receive from a group's ports.

// pauseThreshold is what a worker may be late by without it being a pause: timers and
// batches take as long.
const pauseThreshold = 2 * time.Millisecond

// pauseStatus is what a worker lets the others know of its pauses.
type pauseStatus struct {
	due    atomic.Int64 // when it is to run again at the latest, as worker.now
	paused atomic.Int64 // how much later it came, in all
	_      [112]byte    // others' cache lines
}

// pauseAt returns how much later than due a worker is at now.
func pauseAt(due, now time.Duration) time.Duration {
	if late := now - due; late > pauseThreshold {
		return late
	}
	return 0
}

// total is how long the worker has paused by now; also if it still does.
func (p *pauseStatus) total(now time.Duration) time.Duration {
	// What is lost is stored before due: in between a pause counts twice for a
	// moment, and never not at all.
	due := time.Duration(p.due.Load())
	return time.Duration(p.paused.Load()) + pauseAt(due, now)
}

// notePauses begins a turn of w. It tells the core of the pauses that came to an end with
// it, or that another worker makes.
func (w *worker) notePauses() {
	late := pauseAt(w.runBy, w.now)
	if late > 0 {
		w.pausedTotal += late
		w.pauseStatus.paused.Store(int64(w.pausedTotal))
	}
	w.setRunBy(w.now)
	if w.readOthersPauses(w.now) || late > 0 {
		w.reportPauses()
	}
}

// setRunBy notes that w is to run again by due.
func (w *worker) setRunBy(due time.Duration) {
	w.runBy = due
	w.pauseStatus.due.Store(int64(due))
}

// readOthersPauses brings w.pauses up to date, and reports whether another worker has paused
// for longer than that says.
func (w *worker) readOthersPauses(now time.Duration) (more bool) {
	if w.workers == nil {
		return false
	}
	for i, o := range w.workers.all {
		if o == w {
			continue
		}
		if t := o.pauseStatus.total(now); t > w.othersPaused[i] {
			w.othersPaused[i], more = t, true
		}
	}
	return more
}

// reportPauses tells the core for how long nothing that came in by each port was looked at.
func (w *worker) reportPauses() {
	for pi := range w.ports {
		t := w.pausedTotal
		if w.workers != nil {
			for i := range w.workers.all {
				if i != w.index && w.workers.receivesFrom(i, pi) {
					t += w.othersPaused[i]
				}
			}
		}
		w.core.SetPortPaused(mcast.Port(pi), t)
	}
}

// receivesFrom says whether worker i receives from a socket of port pi (see divide).
func (c *workers) receivesFrom(i, pi int) bool {
	n := len(c.all)
	return (i-pi%n+n)%n < len(c.ports[pi].sockets)
}

// setPortDelay tells the core of w how long a copy may wait in the queue of port pi, which
// sends at a rate of so many bit/s (0: as fast as it can).
func (w *worker) setPortDelay(pi int, rate int64) {
	d := time.Duration(0)
	if rate > 0 {
		d = time.Duration(int64(w.ports[pi].queue.maxBytes) * 8 * int64(time.Second) / rate)
	}
	w.core.SetPortDelay(mcast.Port(pi), d)
}
