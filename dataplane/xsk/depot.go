// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import "sync"

// Depot holds free frames for the pools of several workers. Frames move between workers:
// one receives a frame, another sends it. Each pool is a cache that exchanges frames with
// the depot in batches, so that the lock is taken once for many frames. All pools may use
// the depot concurrently.
type Depot struct {
	umem  *Umem
	pools int // number of pools that share it
	mu    sync.Mutex
	free  []uint64
}

// The number of frames that a cache exchanges at a time, and the number that it holds
// before it returns some, where the Umem is large enough.
const (
	cacheBatch = 64
	cacheMax   = 512
)

// NewDepot returns a depot with every frame of u, which must be new, for the given number
// of pools.
func NewDepot(u *Umem, pools int) *Depot {
	return &Depot{umem: u, pools: max(1, pools), free: allFrames(u)}
}

// Pool returns an empty pool that takes its frames from d. All pools together hold at
// most an eighth of all frames, unless more are reserved.
func (d *Depot) Pool() *Pool {
	most := max(2, min(cacheMax, len(d.umem.owner)/(8*d.pools)))
	return &Pool{
		umem: d.umem, depot: d, max: most, batch: min(cacheBatch, most/2),
		free: make([]uint64, 0, d.umem.Frames()+1),
	}
}

// Len returns the number of frames in the depot itself.
func (d *Depot) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.free)
}

// fetch takes n frames from the depot, or a batch if that is more, as far as the depot
// has them. It returns Len.
func (p *Pool) fetch(n int) int {
	d := p.depot
	if d == nil {
		return len(p.free)
	}
	d.mu.Lock()
	rest := len(d.free) - min(len(d.free), max(n, p.batch))
	p.free = append(p.free, d.free[rest:]...)
	d.free = d.free[:rest]
	d.mu.Unlock()
	return len(p.free)
}

// putBack returns a batch of frames to the depot: those that were freed least recently.
func (p *Pool) putBack() {
	d := p.depot
	d.mu.Lock()
	d.free = append(d.free, p.free[:p.batch]...)
	d.mu.Unlock()
	p.free = p.free[:copy(p.free, p.free[p.batch:])]
}
