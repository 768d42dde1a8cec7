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

// lateness is what a worker may be late by without it being a pause: timers and
// batches take as long.
const lateness = 2 * time.Millisecond

// pulse is what a worker lets the others know of its pauses.
type pulse struct {
	due  atomic.Int64 // when it is to run again at the latest, as worker.now
	lost atomic.Int64 // how much later it came, in all
	_    [112]byte    // others' cache lines
}

// pause returns how much later than due a worker is at now.
func pause(due, now time.Duration) time.Duration {
	if late := now - due; late > lateness {
		return late
	}
	return 0
}

// total is how long the worker has paused by now; also if it still does.
func (p *pulse) total(now time.Duration) time.Duration {
	// What is lost is stored before due: in between a pause counts twice for a
	// moment, and never not at all.
	due := time.Duration(p.due.Load())
	return time.Duration(p.lost.Load()) + pause(due, now)
}

// beat begins a turn of w. It tells the core of the pauses that came to an end with
// it, or that another worker makes.
func (w *worker) beat() {
	late := pause(w.due, w.now)
	if late > 0 {
		w.lost += late
		w.pulse.lost.Store(int64(w.lost))
	}
	w.expect(w.now)
	if w.others(w.now) || late > 0 {
		w.unheard()
	}
}

// expect notes that w is to run again by due.
func (w *worker) expect(due time.Duration) {
	w.due = due
	w.pulse.due.Store(int64(due))
}

// others brings w.pauses up to date, and reports whether another worker has paused
// for longer than that says.
func (w *worker) others(now time.Duration) (more bool) {
	if w.crew == nil {
		return false
	}
	for i, o := range w.crew.workers {
		if o == w {
			continue
		}
		if t := o.pulse.total(now); t > w.pauses[i] {
			w.pauses[i], more = t, true
		}
	}
	return more
}

// unheard tells the core for how long nothing that came in by each port was looked at.
func (w *worker) unheard() {
	for pi := range w.ports {
		t := w.lost
		if w.crew != nil {
			for i := range w.crew.workers {
				if i != w.index && w.crew.receives(i, pi) {
					t += w.pauses[i]
				}
			}
		}
		w.sw.Unheard(mcast.Port(pi), t)
	}
}

// receives says whether worker i receives from a socket of port pi (see divide).
func (c *crew) receives(i, pi int) bool {
	n := len(c.workers)
	return (i-pi%n+n)%n < len(c.ports[pi].all)
}

// sayDelay tells the core of w how long a copy may wait in the queue of port pi, which
// sends at a rate of so many bit/s (0: as fast as it can).
func (w *worker) sayDelay(pi int, rate int64) {
	d := time.Duration(0)
	if rate > 0 {
		d = time.Duration(int64(w.ports[pi].queue.maxBytes) * 8 * int64(time.Second) / rate)
	}
	w.sw.Delay(mcast.Port(pi), d)
}
