// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// load is how a worker spends its time, by the clock that it reads once for each batch.
type load struct {
	busy, asleep time.Duration
	batches      uint64 // batches that were busy
	packets      uint64

	from   time.Duration // the time when the present batch began
	served bool          // true: the batch has had packets or closures
	slept  time.Duration // the time when the sleep before the present batch began; 0: there was none
}

// begin begins a batch at time now, which ends the one before.
func (l *load) begin(now time.Duration) {
	switch {
	case l.slept != 0:
		if l.served {
			l.busy += l.slept - l.from
		}
		l.asleep += now - l.slept
		l.slept = 0
	case l.served:
		l.busy += now - l.from
	}
	l.from, l.served = now, false
}

// note records what the present batch has served.
func (l *load) note(packets int, closures bool) {
	if packets > 0 {
		l.batches++
		l.packets += uint64(packets)
	}
	l.served = packets > 0 || closures
}

// describe returns the API's view of w. It runs on the worker.
func (w *worker) describe() api.Worker {
	a := api.Worker{
		Worker: w.index, CPU: w.cpu, Seconds: w.elapsed().Seconds(),
		Busy: w.load.busy.Seconds(), Asleep: w.load.asleep.Seconds(), Paused: w.pauses.total.Seconds(),
		Batches: w.load.batches, Packets: w.load.packets,
	}
	for _, r := range w.handoff.in {
		a.Handoff.Used += r.Published()
		a.Handoff.Size += r.Size()
	}
	return a
}
