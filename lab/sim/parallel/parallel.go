// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package parallel runs the partitions of a simulation on as many goroutines.
package parallel

import (
	"sync"

	"github.com/gleam-rdma/gleam/lab/sim"
)

// few is the number of waiting events for which other goroutines are not worth waking.
const few = 256

// Run runs a simulation up to a time or to the last event. progress is called after each 65,536
// events or a little more, while no partition runs; it returns false to end the run.
func Run(s *sim.Simulation, until sim.Time, progress func() bool) {
	r := runner{s: s, until: until, lookahead: s.Lookahead()}
	for i, p := range s.Partitions() {
		if i > 0 {
			w := worker{p: p, run: make(chan sim.Time)}
			go w.serve(&r.busy)
			defer close(w.run)
			r.workers = append(r.workers, w)
		}
	}
	for r.window() {
		if n := r.served(); n >= r.reported+progressEvery {
			r.reported = n
			if !progress() {
				return
			}
		}
	}
}

// progressEvery is the number of events between two calls of progress.
const progressEvery = 1 << 16

type runner struct {
	s         *sim.Simulation
	until     sim.Time
	lookahead sim.Time
	workers   []worker
	busy      sync.WaitGroup
	reported  uint64 // events served at the last call of progress
}

// served returns the number of events that all partitions have served.
func (r *runner) served() (n uint64) {
	for _, p := range r.s.Partitions() {
		n += p.Served()
	}
	return n
}

// worker is a goroutine that serves a partition.
type worker struct {
	p   *sim.Partition
	run chan sim.Time // up to when; collect: to take over what others have sent
}

const collect = sim.Time(-1)

func (w *worker) serve(busy *sync.WaitGroup) {
	for until := range w.run {
		if until == collect {
			w.p.Collect()
		} else {
			w.p.Run(until)
		}
		busy.Done()
	}
}

// window runs all partitions up to the time until which none can get a packet of another one
// that it does not know. It returns false at the end.
func (r *runner) window() bool {
	first, ok := r.s.Next()
	if !ok || first >= r.until {
		return false
	}
	parts := r.s.Partitions()
	if len(parts) == 1 {
		parts[0].RunEvents(r.until, progressEvery)
		return true
	}
	end := min(r.until, first+r.lookahead)
	waiting := 0
	for _, p := range parts {
		waiting += p.Waiting()
	}
	if waiting < few {
		for _, p := range parts {
			p.Run(end)
		}
		for _, p := range parts {
			p.Collect()
		}
		return true
	}
	r.all(end)
	r.all(collect)
	return true
}

// all has all partitions run, or collect, at the same time.
func (r *runner) all(until sim.Time) {
	r.busy.Add(len(r.workers))
	for i := range r.workers {
		r.workers[i].run <- until
	}
	if p := r.s.Partitions()[0]; until == collect {
		p.Collect()
	} else {
		p.Run(until)
	}
	r.busy.Wait()
}
