// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

// ring is a bounded FIFO. Index 0 is the oldest element. Its memory grows with what is in it, so that
// many queue pairs with little to do are small: it allocates when there is more in it than ever before.
type ring[T any] struct {
	buf   []T `state:"own(length)"`
	head  int `state:"derived"`
	count int `state:"own(length)"`
	depth int `state:"constant"` // most elements
}

// firstSlots is the length of a ring's memory at its first element.
const firstSlots = 2

func newRing[T any](depth int) ring[T] { return ring[T]{depth: depth} }

func (r *ring[T]) full() bool { return r.count == r.depth }

// at returns element i, 0 <= i < n.
func (r *ring[T]) at(i int) *T {
	i += r.head
	if i >= len(r.buf) {
		i -= len(r.buf)
	}
	return &r.buf[i]
}

// push makes room for one more element and returns it. The ring must not be
// full.
func (r *ring[T]) push() *T {
	if r.full() {
		panic("rc: push to a full ring")
	}
	if r.count == len(r.buf) {
		r.grow()
	}
	r.count++
	return r.at(r.count - 1)
}

// grow doubles the memory, up to the depth.
func (r *ring[T]) grow() {
	buf := make([]T, min(max(2*len(r.buf), firstSlots), r.depth))
	n := copy(buf, r.buf[r.head:])
	copy(buf[n:], r.buf[:r.head])
	r.buf, r.head = buf, 0
}

// pop removes the oldest element, and drops its references.
func (r *ring[T]) pop() {
	if r.count == 0 {
		panic("rc: pop from an empty ring")
	}
	var zero T
	r.buf[r.head] = zero
	r.head++
	if r.head == len(r.buf) {
		r.head = 0
	}
	r.count--
}
