// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package spsc is a bounded queue between two goroutines: one puts, one takes,
// and neither ever waits for the other.
package spsc

import (
	"fmt"
	"math/bits"
	"sync/atomic"
)

// cacheLine keeps what the two sides write apart: 64 bytes, and 128 where the
// processor fetches lines in pairs.
const cacheLine = 128

// Ring is a single-producer single-consumer ring of a power of two entries. What
// the producer did before Publish, to the entries and to what they name, has
// happened for the consumer that sees them, and the same the other way round with
// Release: sync/atomic gives release and acquire. So a value that travels through
// the ring is owned by one side at a time.
//
// Each side has private copies of both indices, and reads the other side's shared
// one only when its copy says that the ring is exhausted: a batch costs two moves
// of a cache line, however long it is. Room, Put and Publish are the producer's,
// Len, At and Release the consumer's. None of them allocates.
type Ring[T any] struct {
	entries []T
	mask    uint32

	_         [cacheLine]byte
	tail      atomic.Uint32 // published; written by the producer
	tailLocal uint32        // the producer's: tail, and what was put since
	headSeen  uint32        // the producer's copy of head
	_         [cacheLine]byte
	head      atomic.Uint32 // released; written by the consumer
	tailSeen  uint32        // the consumer's copy of tail
	_         [cacheLine]byte
}

// New returns an empty ring of size entries, a power of two up to 2^30.
func New[T any](size int) *Ring[T] {
	if size < 1 || size > 1<<30 || bits.OnesCount(uint(size)) != 1 {
		panic(fmt.Sprintf("spsc: ring of %d entries: want a power of two up to 2^30", size))
	}
	return &Ring[T]{entries: make([]T, size), mask: uint32(size - 1)}
}

// Size returns how many entries the ring holds. Anybody may ask.
func (r *Ring[T]) Size() int { return len(r.entries) }

// Published returns how many entries were published and not released a moment ago.
// Anybody may ask.
func (r *Ring[T]) Published() int {
	head := r.head.Load() // first: it cannot overtake a tail that is read later
	return int(r.tail.Load() - head)
}

// Room returns how many more entries can be put. It looks at the shared index if
// fewer than want are known to be free, so that the answer is exact below want.
func (r *Ring[T]) Room(want int) int {
	n := len(r.entries) - int(r.tailLocal-r.headSeen)
	if n < want {
		r.headSeen = r.head.Load()
		n = len(r.entries) - int(r.tailLocal-r.headSeen)
	}
	return n
}

// Put puts v at the end, for the consumer to see after the next Publish. It
// returns false if the ring is full.
func (r *Ring[T]) Put(v T) bool {
	if r.tailLocal-r.headSeen == uint32(len(r.entries)) && r.Room(1) == 0 {
		return false
	}
	r.entries[r.tailLocal&r.mask] = v
	r.tailLocal++
	return true
}

// Next returns the place of the next entry, for the producer to fill before Commit; nil if the
// ring is full. The place has what was there before, so that memory of it can be used again.
func (r *Ring[T]) Next() *T {
	if r.tailLocal-r.headSeen == uint32(len(r.entries)) && r.Room(1) == 0 {
		return nil
	}
	return &r.entries[r.tailLocal&r.mask]
}

// Commit puts the entry of Next, for the consumer to see after the next Publish. The producer
// may change it until then.
func (r *Ring[T]) Commit() { r.tailLocal++ }

// Unpublished returns how many entries were put since the last Publish.
func (r *Ring[T]) Unpublished() int { return int(r.tailLocal - r.tail.Load()) }

// Publish hands the consumer what was put. It returns false if that was nothing.
func (r *Ring[T]) Publish() bool {
	if r.tailLocal == r.tail.Load() {
		return false
	}
	r.tail.Store(r.tailLocal)
	return true
}

// Len returns how many entries can be taken now. It looks at the shared index if
// fewer than want are known.
func (r *Ring[T]) Len(want int) int {
	head := r.head.Load()
	n := int(r.tailSeen - head)
	if n < want {
		r.tailSeen = r.tail.Load()
		n = int(r.tailSeen - head)
	}
	return n
}

// At returns the entry i places after the first one. It must be one of those that
// Len counted.
func (r *Ring[T]) At(i int) T { return r.entries[(r.head.Load()+uint32(i))&r.mask] }

// Ref is At without a copy. The entry is the consumer's until Release.
func (r *Ring[T]) Ref(i int) *T { return &r.entries[(r.head.Load()+uint32(i))&r.mask] }

// Release gives back the places of the first n entries.
func (r *Ring[T]) Release(n int) {
	if n == 0 {
		return
	}
	if uint32(n) > r.tailSeen-r.head.Load() {
		panic("spsc: more released than there was")
	}
	r.head.Store(r.head.Load() + uint32(n))
}
