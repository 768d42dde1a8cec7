// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"runtime"
	"sync"
)

// Loading an instance of the program is work of the kernel's verifier, 12 ms of a CPU.
// A switch that starts again serves nothing meanwhile, so the instances are loaded ahead, on
// all CPUs.

// preloads are instances that were loaded ahead.
type preloads struct {
	mu      sync.Mutex
	pending [2]int // instances that nobody has taken, loaded or not; by kind
	loaded  [2]chan preloaded
	loaders sync.WaitGroup
}

type preloaded struct {
	program *PortProgram
	err     error
}

// kind is the index of a program in preloads.
func kind(frags bool) int {
	if frags {
		return 1
	}
	return 0
}

// Preload begins to load one instance of the program for each element of frags, for frames
// in several buffers where that is true, in this order. Attach and Spare take them instead
// of loading their own. It is called once, before these.
func (s *Steering) Preload(frags []bool) {
	x := &s.preloads
	work := make(chan bool, len(frags))
	for _, f := range frags {
		work <- f
		x.pending[kind(f)]++
	}
	close(work)
	for i, n := range x.pending {
		x.loaded[i] = make(chan preloaded, n)
	}
	for range min(runtime.NumCPU(), len(frags)) {
		x.loaders.Go(func() {
			for f := range work {
				p := &PortProgram{}
				err := s.loadNow(p, f)
				x.loaded[kind(f)] <- preloaded{p, err}
			}
		})
	}
}

// load gives p an instance of the program that shares the prefix maps of s.
func (s *Steering) load(p *PortProgram, frags bool) error {
	x, k := &s.preloads, kind(frags)
	x.mu.Lock()
	ahead := x.pending[k] > 0
	if ahead {
		x.pending[k]--
	}
	x.mu.Unlock()
	if !ahead {
		return s.loadNow(p, frags)
	}
	l := <-x.loaded[k]
	if l.err != nil {
		return l.err
	}
	p.program, p.maps, p.frags = l.program.program, l.program.maps, frags
	return nil
}

// close waits for the loaders, and unloads what nobody has taken.
func (x *preloads) close() (err error) {
	x.loaders.Wait()
	for _, c := range x.loaded {
		for len(c) > 0 {
			if l := <-c; l.err == nil {
				err = errors.Join(err, l.program.unload())
			}
		}
	}
	return err
}
