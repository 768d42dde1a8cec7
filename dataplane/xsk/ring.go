// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import "sync/atomic"

// ring is the user side of one of the kernel's four rings: a power of two of entries
// between two free-running indices, one written by each side. The kernel loads the other
// side's index with acquire and stores its own with release (include/net/xsk_queue.h);
// sync/atomic gives both.
//
// prod and cons are private copies of the indices. The shared ones, which the kernel
// writes on another CPU, are read only when by the copies too few entries are left, and
// written once a batch. The copy of the index that this side writes is always exact; the
// other copy can only lag behind, which is the safe direction.
type ring[T uint64 | Desc] struct {
	producer *uint32 // shared
	consumer *uint32 // shared
	flags    *uint32 // shared, written by the kernel
	entries  []T     // shared
	mask     uint32
	prod     uint32
	cons     uint32
}

// room returns how many entries can be produced now. It reads the shared index only if
// fewer than want are known to be free.
func (r *ring[T]) room(want int) int {
	free := len(r.entries) - int(r.prod-r.cons)
	if free < want {
		r.cons = atomic.LoadUint32(r.consumer)
		free = len(r.entries) - int(r.prod-r.cons)
	}
	return free
}

// put writes the entry i positions after the last published one. There must be room for
// it.
func (r *ring[T]) put(i int, v T) { r.entries[(r.prod+uint32(i))&r.mask] = v }

// publish makes the n entries written by put visible to the kernel.
func (r *ring[T]) publish(n int) {
	r.prod += uint32(n)
	atomic.StoreUint32(r.producer, r.prod)
}

// unconsumed returns how many produced entries the kernel has not taken yet.
func (r *ring[T]) unconsumed() int {
	r.cons = atomic.LoadUint32(r.consumer)
	return int(r.prod - r.cons)
}

// available returns how many entries can be consumed now. It reads the shared index only
// if fewer than want are known to be available.
func (r *ring[T]) available(want int) int {
	n := int(r.prod - r.cons)
	if n < want {
		r.prod = atomic.LoadUint32(r.producer)
		n = int(r.prod - r.cons)
	}
	return n
}

// get returns the entry i positions after the last released one. It must be available.
func (r *ring[T]) get(i int) T { return r.entries[(r.cons+uint32(i))&r.mask] }

// release returns the n entries read by get to the kernel.
func (r *ring[T]) release(n int) {
	r.cons += uint32(n)
	atomic.StoreUint32(r.consumer, r.cons)
}

// needWakeup reports whether the kernel needs a system call to look at this ring again.
func (r *ring[T]) needWakeup() bool { return atomic.LoadUint32(r.flags)&ringNeedWakeup != 0 }
