// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import "math"

// Pool is the list of frames that are in nobody's use. The frame given last is
// taken first, since its bytes are the likeliest to be in the cache. A Pool
// belongs to one worker. It has all frames of its Umem to itself, or is one of
// those that share a Depot.
type Pool struct {
	umem  *Umem
	free  []uint64
	depot *Depot // nil: there is only this pool
	max   int    // free frames above this go to the depot
	batch int    // so many at a time
}

// NewPool returns a pool with every frame of u, which must be new.
func NewPool(u *Umem) *Pool { return &Pool{umem: u, free: allFrames(u), max: math.MaxInt} }

// allFrames lists the frames of u, which must be the pool's.
func allFrames(u *Umem) []uint64 {
	free := make([]uint64, 0, u.Frames())
	for i := u.Frames() - 1; i >= 0; i-- {
		addr := uint64(i) << u.shift
		if u.owner[i] != ownedByPool {
			u.checkOwner(addr, ownedByPool, u.owner[i])
		}
		free = append(free, addr)
	}
	return free
}

// Len returns the number of free frames that this pool can give without asking
// its depot.
func (p *Pool) Len() int { return len(p.free) }

// Reserve sees to it that the next n frames can be taken, as far as the depot has
// that many, and returns Len. Until they are taken nothing that is given is
// moved to the depot at their expense.
func (p *Pool) Reserve(n int) int {
	if p.depot == nil {
		return len(p.free)
	}
	p.max = max(p.max, n+p.batch)
	if len(p.free) < n {
		p.fetch(n - len(p.free))
	}
	return len(p.free)
}

// TakeOne returns the address of a free frame; ok is false if there is none.
func (p *Pool) TakeOne() (addr uint64, ok bool) {
	n := len(p.free)
	if n == 0 {
		if n = p.fetch(1); n == 0 {
			return 0, false
		}
	}
	addr = p.free[n-1]
	p.free = p.free[:n-1]
	p.umem.move(addr, ownedByPool, ownedByWorker)
	return addr, true
}

// Take fills addrs with addresses of free frames as far as there are any, and
// returns how many it took.
func (p *Pool) Take(addrs []uint64) int {
	if len(p.free) < len(addrs) {
		p.fetch(len(addrs) - len(p.free))
	}
	n := min(len(addrs), len(p.free))
	rest := len(p.free) - n
	copy(addrs, p.free[rest:])
	p.free = p.free[:rest]
	for _, a := range addrs[:n] {
		p.umem.move(a, ownedByPool, ownedByWorker)
	}
	return n
}

// GiveOne frees addr's frame.
func (p *Pool) GiveOne(addr uint64) {
	p.umem.move(addr, ownedByWorker, ownedByPool)
	p.free = append(p.free, p.umem.Base(addr))
	if len(p.free) > p.max {
		p.putBack()
	}
}

// Give frees the frames of addrs.
func (p *Pool) Give(addrs []uint64) {
	for _, a := range addrs {
		p.GiveOne(a)
	}
}
