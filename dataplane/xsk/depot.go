// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import "sync"

// Depot holds free frames for the pools of several workers, among which frames
// wander: received by one worker, sent by another. Each pool is a cache that
// exchanges frames with the depot in batches, so that the lock is taken once for
// many frames. The depot may be used by all of them at once.
type Depot struct {
	umem  *Umem
	pools int // that share it
	mu    sync.Mutex
	free  []uint64
}

// How many frames a cache exchanges at a time, and holds before it gives some
// back, where the Umem is large enough.
const (
	cacheBatch = 64
	cacheMax   = 512
)

// NewDepot returns a depot with every frame of u, which must be new, for so many
// pools.
func NewDepot(u *Umem, pools int) *Depot {
	return &Depot{umem: u, pools: max(1, pools), free: allFrames(u)}
}

// Pool returns an empty pool that has its frames from d. Together the pools hold
// back no more than an eighth of all frames, unless more are reserved.
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

// fetch gets n frames from the depot, or a batch if that is more, as far as there
// are any. It returns Len.
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

// putBack gives the depot the batch of frames that have lain here longest.
func (p *Pool) putBack() {
	d := p.depot
	d.mu.Lock()
	d.free = append(d.free, p.free[:p.batch]...)
	d.mu.Unlock()
	p.free = p.free[:copy(p.free, p.free[p.batch:])]
}
