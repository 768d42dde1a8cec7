// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Options configure a search.
type Options struct {
	Workers   int // goroutines; default 2
	MaxStates int // stop after this number of states; 0: no limit
	// WrapPSNs, if not nil, replaces every switch by a Device.
	WrapPSNs func(*mcast.Switch, mcast.GroupSpec) Device
	// EndToEnd checks nothing within the switches, only the hosts: the bytes, the
	// completions, and that transfers end.
	EndToEnd bool
}

// Result is the outcome of a search.
type Result struct {
	States      int // different states
	Transitions int
	Depth       int // steps to the farthest state
	Complete    bool
	// Finished counts the states in which all is done; FairRuns those from which both
	// fair runs were followed to their end.
	Finished, FairRuns int
	Bytes              int // bytes of stored states, the peak
	Elapsed            time.Duration
	Violation          *Violation
}

// maxDepth is more steps than any scenario has.
const maxDepth = 10_000

// blockSize is the capacity of a block.
const blockSize = 1 << 18

// block is a list of encoded states, each preceded by its length in two bytes.
type block []byte

type search struct {
	cfg  *Config
	opt  Options
	seed maphash.Seed
	seen *visited
	root []byte // the first state

	mu       sync.Mutex
	todo     []block // blocks of this depth
	next     []block // blocks of the following one
	nextSize int
	res      Result
	bad      *finding // the violation found at this depth
}

// finding is a violation: the path to a state, and the step from there.
type finding struct {
	from uint64
	step []action // one, or none if the state itself is wrong
	v    *Violation
}

// Search tries every possible step in cfg. An error means that the scenario cannot be set
// up.
func Search(cfg *Config, opt Options) (Result, error) {
	if opt.Workers <= 0 {
		opt.Workers = 2
	}
	begun := time.Now()
	s := &search{cfg: cfg, opt: opt, seed: maphash.MakeSeed(), seen: newVisited()}
	workers := make([]*worker, opt.Workers)
	for i := range workers {
		w, err := NewWorld(cfg, opt.WrapPSNs)
		if err != nil {
			return Result{}, err
		}
		w.endToEnd = opt.EndToEnd
		workers[i] = &worker{s: s, w: w}
	}
	s.root = workers[0].w.encode(nil)
	s.seen.add(s.hash(s.root), 0, 0, 0)
	s.todo = []block{append(block{byte(len(s.root)), byte(len(s.root) >> 8)}, s.root...)}
	s.run(workers)
	s.res.States = s.seen.len()
	if s.res.Violation == nil && !cfg.EndlessRetries {
		s.checkFairRuns(workers[0].w)
	}
	s.res.Elapsed = time.Since(begun)
	return s.res, nil
}

func (s *search) hash(b []byte) uint64 {
	h := maphash.Bytes(s.seed, b)
	if h == 0 { // 0 marks a free slot
		h = 1
	}
	return h
}

// run searches depth by depth.
func (s *search) run(workers []*worker) {
	for len(s.todo) > 0 {
		var wg sync.WaitGroup
		for _, w := range workers {
			wg.Go(w.run)
		}
		wg.Wait()
		if s.bad != nil {
			s.res.Violation = s.trace(workers[0].w, append(s.seen.path(s.bad.from), s.bad.step...))
			s.res.Violation.What, s.res.Violation.Switch = s.bad.v.What, s.bad.v.Switch
			return
		}
		if s.next == nil {
			s.res.Complete = true
			return
		}
		s.todo, s.next, s.nextSize = s.next, nil, 0
		s.res.Depth++
		s.res.States = s.seen.len()
		if s.res.Depth > maxDepth {
			s.res.Violation = s.trace(workers[0].w, nil)
			s.res.Violation.What = "UNBOUNDED: there are always new states; something in them grows that influences nothing"
			return
		}
		if s.opt.MaxStates > 0 && s.res.States >= s.opt.MaxStates {
			return
		}
	}
}

// take gives a worker a block of this depth.
func (s *search) take() (block, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.todo)
	if n == 0 || s.bad != nil {
		return nil, false
	}
	b := s.todo[n-1]
	s.todo[n-1] = nil
	s.todo = s.todo[:n-1]
	return b, true
}

// put takes a worker's block of new states.
func (s *search) put(b block) {
	s.mu.Lock()
	s.next = append(s.next, b)
	s.nextSize += len(b)
	s.res.Bytes = max(s.res.Bytes, s.nextSize)
	s.mu.Unlock()
}

// worker expands states.
type worker struct {
	s    *search
	w    *World
	out  block
	acts []action
	enc  []byte
}

func (k *worker) run() {
	transitions, finished := 0, 0
	for {
		b, ok := k.s.take()
		if !ok {
			break
		}
		for len(b) > 0 {
			n := int(b[0]) | int(b[1])<<8
			t, done := k.expand(b[2 : 2+n])
			transitions += t
			finished += done
			b = b[2+n:]
		}
	}
	if len(k.out) > 0 {
		k.s.put(k.out)
		k.out = nil
	}
	k.s.mu.Lock()
	k.s.res.Transitions += transitions
	k.s.res.Finished += finished
	k.s.mu.Unlock()
}

// expand takes every step from one state.
func (k *worker) expand(state []byte) (transitions, finished int) {
	w, from := k.w, k.s.hash(state)
	w.decode(state)
	k.acts = w.actions(k.acts[:0])
	var fair [schedules]action
	var next [schedules]uint64
	for i := range fair {
		var ok bool
		if fair[i], ok = w.fair(i); !ok || w.finished() {
			next[i] = from
		}
	}
	if w.finished() {
		finished = 1
	} else if next[0] == from {
		w.fault(-1, "DEADLOCK: nothing can happen any more, and the transfer is not complete")
		k.report(from)
		return 0, 0
	}
	for n, a := range k.acts {
		if n > 0 {
			w.decode(state)
		}
		w.do(a)
		if w.wrong != nil {
			k.report(from, a)
			continue
		}
		k.enc = w.encode(k.enc[:0])
		h := k.s.hash(k.enc)
		for i := range fair {
			if next[i] != from && fair[i] == a {
				if next[i] = h; h == from && !k.s.cfg.EndlessRetries {
					w.fault(-1, "LIVELOCK: nothing changes, and the transfer is not complete")
					k.report(from, a)
				}
			}
		}
		if k.s.seen.add(h, from, a, k.s.res.Depth+1) {
			k.store()
		}
	}
	k.s.seen.setNext(from, next)
	return len(k.acts), finished
}

func (k *worker) store() {
	if len(k.out)+len(k.enc)+2 > blockSize {
		k.s.put(k.out)
		k.out = nil
	}
	if k.out == nil {
		k.out = make(block, 0, blockSize)
	}
	k.out = append(k.out, byte(len(k.enc)), byte(len(k.enc)>>8))
	k.out = append(k.out, k.enc...)
}

// report records one of the violations of this depth.
func (k *worker) report(from uint64, step ...action) {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	if k.s.bad == nil {
		k.s.bad = &finding{from, step, k.w.wrong}
	}
}
