// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"container/heap"
	"time"
)

// timers are the connections that wait for a time: a heap, so that a change of one costs
// the same however many there are.
type timers []*connection

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (q timers) Len() int           { return len(q) }
func (q timers) Less(i, j int) bool { return q[i].due < q[j].due }
func (q timers) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].queued, q[j].queued = i+1, j+1
}

func (q *timers) Push(x any) {
	c := x.(*connection)
	*q = append(*q, c)
	c.queued = len(*q)
}

func (q *timers) Pop() any {
	n := len(*q) - 1
	c := (*q)[n]
	(*q)[n] = nil
	*q = (*q)[:n]
	c.queued = 0
	return c
}

// set lets the timer of c expire at a time.
func (q *timers) set(c *connection, at time.Duration) {
	c.due = at
	if c.queued == 0 {
		heap.Push(q, c)
	} else {
		heap.Fix(q, c.queued-1)
	}
}

// stop stops the timer of c, if it is set.
func (q *timers) stop(c *connection) {
	if c.queued > 0 {
		heap.Remove(q, c.queued-1)
	}
}
