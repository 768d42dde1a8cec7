// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"container/heap"
	"time"
)

// timer is a deadline of owner. The zero value with an owner is not set.
type timer[T any] struct {
	at    time.Duration // the time when it fires, or was to fire
	index int           // the index in the timers that it is set on, plus one; 0: it is not set
	owner T
}

// timers are the timers that are set: a heap, the first to fire on top, so that a change
// of one costs the same however many there are.
type timers[T any] []*timer[T]

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (q timers[T]) Len() int           { return len(q) }
func (q timers[T]) Less(i, j int) bool { return q[i].at < q[j].at }
func (q timers[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i+1, j+1
}

func (q *timers[T]) Push(x any) {
	t := x.(*timer[T])
	*q = append(*q, t)
	t.index = len(*q)
}

func (q *timers[T]) Pop() any {
	n := len(*q) - 1
	t := (*q)[n]
	(*q)[n] = nil
	*q = (*q)[:n]
	t.index = 0
	return t
}

// set makes t fire at the given time.
func (q *timers[T]) set(t *timer[T], at time.Duration) {
	t.at = at
	if t.index == 0 {
		heap.Push(q, t)
	} else {
		heap.Fix(q, t.index-1)
	}
}

// stop makes t fire no more, if it is set.
func (q *timers[T]) stop(t *timer[T]) {
	if t.index > 0 {
		heap.Remove(q, t.index-1)
	}
}

// next returns when the first timer fires; ok is false if none is set.
func (q timers[T]) next() (at time.Duration, ok bool) {
	if len(q) == 0 {
		return 0, false
	}
	return q[0].at, true
}

// fired removes the timers that fire by now, and returns their owners in any order.
func (q *timers[T]) fired(now time.Duration) (owners []T) {
	for len(*q) > 0 && (*q)[0].at <= now {
		owners = append(owners, heap.Pop(q).(*timer[T]).owner)
	}
	return owners
}
