// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import "math"

// Pool is a list of free frames. The frame freed last is taken first, since its bytes are
// the likeliest to be in the cache. A Pool belongs to one worker. It has all frames of
// its Umem, or is one of several that share a Depot.
type Pool struct {
	umem  *Umem
	free  []uint64
	depot *Depot // nil: this is the only pool
	max   int    // free frames above this go to the depot
	batch int    // number of frames that go at a time
}

// NewPool returns a pool with every frame of u, which must be new.
func NewPool(u *Umem) *Pool { return &Pool{umem: u, free: allFrames(u), max: math.MaxInt} }

// allFrames lists the frames of u, all of which must belong to the pool.
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

// Len returns the number of free frames that this pool has without those of its depot.
func (p *Pool) Len() int { return len(p.free) }

// Reserve fetches frames so that the next n can be taken, as far as the depot has that
// many, and returns Len. Frames that are freed later do not push reserved ones back to
// the depot.
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
	p.umem.Move(addr, ownedByPool, OwnedByWorker)
	return addr, true
}

// Take fills addrs with addresses of free frames as far as there are any, and returns the
// number taken.
func (p *Pool) Take(addrs []uint64) int {
	if len(p.free) < len(addrs) {
		p.fetch(len(addrs) - len(p.free))
	}
	n := min(len(addrs), len(p.free))
	rest := len(p.free) - n
	copy(addrs, p.free[rest:])
	p.free = p.free[:rest]
	for _, a := range addrs[:n] {
		p.umem.Move(a, ownedByPool, OwnedByWorker)
	}
	return n
}

// GiveOne frees the frame at addr.
func (p *Pool) GiveOne(addr uint64) {
	p.umem.Move(addr, OwnedByWorker, ownedByPool)
	p.free = append(p.free, p.umem.Base(addr))
	if len(p.free) > p.max {
		p.putBack()
	}
}

// Give frees the frames at addrs.
func (p *Pool) Give(addrs []uint64) {
	for _, a := range addrs {
		p.GiveOne(a)
	}
}
