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
//
// The total of a port grows more slowly than time as long as all of these workers run
// now and then, whatever part of the time each of them is late. Otherwise no time that is
// waited for would come on a switch that is always late: a dead member would stay, and a
// member that comes back would never be probed (R73).

// pauseThreshold is the part of a worker's delay that is not a pause: timers and batches
// take as long.
const pauseThreshold = 2 * time.Millisecond

// pauseStatus is what a worker publishes of its pauses to the others.
type pauseStatus struct {
	due    atomic.Int64 // the latest time at which the worker runs again, as worker.now
	paused atomic.Int64 // total of its pauses
	_      [112]byte    // keeps other fields off the cache line
}

// pauseAt returns how long a worker has paused at now, if it was due at due.
func pauseAt(due, now time.Duration) time.Duration {
	return max(now-due-pauseThreshold, 0)
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
// other workers.
type pauses struct {
	status pauseStatus
	runBy  time.Duration   // the time as in status.due
	total  time.Duration   // the time as in status.paused
	seen   []time.Duration // total pauses of the other workers before this batch, by index
	grown  []time.Duration // what has been added to them since the batch before
	ports  []time.Duration // total pauses of each port, as reported to the core
}

// note begins a batch at time now, and returns the pause that has just ended, or 0.
func (p *pauses) note(now time.Duration) time.Duration {
	d := pauseAt(p.runBy, now)
	if d > 0 {
		p.total += d
		p.status.paused.Store(int64(p.total))
	}
	p.setRunBy(now)
	return d
}

// setRunBy records that the worker runs again by due.
func (p *pauses) setRunBy(due time.Duration) {
	p.runBy = due
	p.status.due.Store(int64(due))
}

// notePauses begins a batch of w. It reports a pause of w that has just ended, and those
// of other workers, to the core.
func (w *worker) notePauses() {
	own := w.pauses.note(w.now)
	if w.readOthersPauses(w.now) || own > 0 {
		w.reportPauses(own)
	}
}

// readOthersPauses updates seen and grown of w.pauses, and reports whether another worker
// has paused since the batch before.
func (w *worker) readOthersPauses(now time.Duration) (more bool) {
	if w.workers == nil {
		return false
	}
	for i, o := range w.workers.all {
		if o == w {
			continue
		}
		d := max(o.pauses.status.total(now)-w.pauses.seen[i], 0)
		w.pauses.seen[i], w.pauses.grown[i], more = w.pauses.seen[i]+d, d, more || d > 0
	}
	return more
}

// reportPauses tells the core for how long the packets of each port were not read since
// the batch before. Pauses of several workers are at the same time, or else w has run in
// between: the longest of them counts.
func (w *worker) reportPauses(own time.Duration) {
	for len(w.pauses.ports) < len(w.ports) {
		w.pauses.ports = append(w.pauses.ports, 0)
	}
	for pi := range w.ports {
		d := own
		if w.workers != nil {
			for i := range w.workers.all {
				if i != w.index && w.workers.receivesFrom(i, pi) {
					d = max(d, w.pauses.grown[i])
				}
			}
		}
		if d > 0 {
			w.pauses.ports[pi] += d
			w.core.SetPortPaused(mcast.Port(pi), w.pauses.ports[pi])
		}
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
