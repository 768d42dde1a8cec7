// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

// ring is a bounded FIFO that allocates once. Index 0 is the oldest element.
type ring[T any] struct {
	buf   []T
	head  int
	count int
}

func newRing[T any](depth int) ring[T] { return ring[T]{buf: make([]T, depth)} }

func (r *ring[T]) full() bool { return r.count == len(r.buf) }

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
	r.count++
	return r.at(r.count - 1)
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
