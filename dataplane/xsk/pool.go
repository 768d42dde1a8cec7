// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

// Pool is the list of frames that are in nobody's use. The frame given last is
// taken first, since its bytes are the likeliest to be in the cache. A Pool
// belongs to one worker.
type Pool struct {
	umem *Umem
	free []uint64
}

// NewPool returns a pool with every frame of u, which must be new.
func NewPool(u *Umem) *Pool {
	p := &Pool{umem: u, free: make([]uint64, 0, u.Frames())}
	for i := u.Frames() - 1; i >= 0; i-- {
		addr := uint64(i) << u.shift
		if u.owner[i] != ownedByPool {
			u.misowned(addr, ownedByPool, u.owner[i])
		}
		p.free = append(p.free, addr)
	}
	return p
}

// Len returns the number of free frames.
func (p *Pool) Len() int { return len(p.free) }

// TakeOne returns the address of a free frame; ok is false if there is none.
func (p *Pool) TakeOne() (addr uint64, ok bool) {
	n := len(p.free)
	if n == 0 {
		return 0, false
	}
	addr = p.free[n-1]
	p.free = p.free[:n-1]
	p.umem.move(addr, ownedByPool, ownedByWorker)
	return addr, true
}

// Take fills addrs with addresses of free frames as far as there are any, and
// returns how many it took.
func (p *Pool) Take(addrs []uint64) int {
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
}

// Give frees the frames of addrs.
func (p *Pool) Give(addrs []uint64) {
	for _, a := range addrs {
		p.GiveOne(a)
	}
}
