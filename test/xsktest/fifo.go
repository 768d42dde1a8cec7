// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsktest

// fifo is a ring of a fixed number of entries.
type fifo[T any] struct {
	entries    []T
	head, tail int // free-running: the entry popped next, and pushed next
}

func newFIFO[T any](size int) fifo[T] { return fifo[T]{entries: make([]T, size)} }

func (f *fifo[T]) len() int  { return f.tail - f.head }
func (f *fifo[T]) room() int { return len(f.entries) - f.len() }

// at returns the entry i positions after the first.
func (f *fifo[T]) at(i int) *T { return &f.entries[(f.head+i)%len(f.entries)] }

func (f *fifo[T]) push(v T) {
	if f.room() == 0 {
		panic("xsktest: a ring overruns")
	}
	f.tail++
	*f.at(f.len() - 1) = v
}

func (f *fifo[T]) pop() T {
	v := *f.at(0)
	f.head++
	return v
}
