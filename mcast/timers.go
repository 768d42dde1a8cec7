// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"math/bits"
	"time"
)

// deadlines are the times that a group waits for, each plus 1; 0: it does not.
type deadlines [numDeadlines]time.Duration

// Deadlines of a group, in the order in which those that have come at the same time are served.
const (
	livenessCheck = iota // some receiver may be silent, or lag
	repairTimer          // some leg is to be probed, or gets what its port had no room for
	probeRound           // receivers are to show their numbering
	numDeadlines
)

// onDeadline is what is done at each of them.
var onDeadline = [numDeadlines]func(*group, time.Duration, *Output){(*group).checkLiveness, (*group).recoveryTimer, (*group).sendKeepalives}

func (d *deadlines) armed(k int) bool            { return d[k] != 0 }
func (d *deadlines) at(k int) time.Duration      { return d[k] - 1 }
func (d *deadlines) arm(k int, at time.Duration) { d[k] = at + 1 }
func (d *deadlines) stop(k int)                  { d[k] = 0 }

// earliest returns the first of the deadlines, and false if none is armed.
func (d *deadlines) earliest() (time.Duration, bool) {
	first := uint64(math.MaxUint64)
	for _, at := range d {
		first = min(first, uint64(at)-1) // one that is not armed is the latest
	}
	return time.Duration(first), first != math.MaxUint64
}

// timers has the groups that wait for a time. It is a heap, the earliest time first and,
// at equal times, the lowest GroupID, so that no call visits groups for which nothing is
// due (R81).
//
// The time of a group is a lower bound of its deadlines. A deadline that ends, or moves
// to a later time, does not change it: a packet then costs no operation on the heap. When
// the time has come, the group is served, and waits for its next deadline from then on.
type timers struct {
	heap      []timer   `state:"own(deadline)"` // 4 children each: those of heap[i] are heap[4*i+1] to heap[4*i+4]
	heapIndex []int32   `state:"derived"`       // the group's index in heap, by GroupID, or notWaiting
	due       []GroupID `state:"ignored"`
}

// timer is a group that waits. Four of them are a cache line.
type timer struct {
	at time.Duration `state:"own(deadline)"`
	id GroupID       `state:"derived"`
}

const notWaiting = -1

// grow makes room for groups up to id. The heap itself grows with the number of groups
// that wait at the same time.
func (t *timers) grow(id GroupID) {
	for int(id) >= len(t.heapIndex) {
		t.heapIndex = append(t.heapIndex, notWaiting)
	}
}

// first returns the earliest time, if a group waits for one.
func (t *timers) first() (time.Duration, bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].at, true
}

// deadline returns the time of a group, if it waits for one.
func (t *timers) deadline(id GroupID) (time.Duration, bool) {
	if i := t.heapIndex[id]; i != notWaiting {
		return t.heap[i].at, true
	}
	return 0, false
}

// arm makes a group wait until at, or until its present time if that is earlier.
func (t *timers) arm(id GroupID, at time.Duration) {
	i := int(t.heapIndex[id])
	switch {
	case i == notWaiting:
		i = len(t.heap)
		t.heap = append(t.heap, timer{})
	case t.heap[i].at <= at:
		return
	}
	t.up(i, timer{at, id})
}

// stop removes a group from the heap, if it waits.
func (t *timers) stop(id GroupID) {
	i := int(t.heapIndex[id])
	if i == notWaiting {
		return
	}
	t.heapIndex[id] = notWaiting
	last := t.heap[len(t.heap)-1]
	t.heap = t.heap[:len(t.heap)-1]
	switch {
	case i == len(t.heap):
	case i > 0 && last.before(t.heap[(i-1)/4]):
		t.up(i, last)
	default:
		t.down(i, last)
	}
}

// reset removes all groups from the heap.
func (t *timers) reset() {
	t.heap = t.heap[:0]
	for i := range t.heapIndex {
		t.heapIndex[i] = notWaiting
	}
}

// expire returns the groups whose time is not after now, in the order of the heap.
// They wait no longer. The slice is valid until the next call.
func (t *timers) expire(now time.Duration) []GroupID {
	t.due = t.due[:0]
	for len(t.heap) > 0 && t.heap[0].at <= now {
		id := t.heap[0].id
		t.due = append(t.due, id)
		t.stop(id)
	}
	return t.due
}

func (a timer) before(b timer) bool { return a.less(b) != 0 }

// less returns 1 if a is before b, and 0 otherwise. It has no branch: which of two
// waiting groups is first cannot be predicted.
func (a timer) less(b timer) int {
	_, borrow := bits.Sub64(uint64(a.id), uint64(b.id), 0)
	_, borrow = bits.Sub64(uint64(a.at)^1<<63, uint64(b.at)^1<<63, borrow)
	return int(borrow)
}

// firstOf4 returns the index of the first of heap[c] to heap[c+3].
func (t *timers) firstOf4(c int) int {
	h := t.heap[c : c+4 : c+4]
	i := h[1].less(h[0])
	j := 2 + h[3].less(h[2])
	return c + i + (j-i)*h[j&3].less(h[i&3])
}

// up puts x at i, which is free, or at an ancestor of i.
func (t *timers) up(i int, x timer) {
	for i > 0 {
		p := (i - 1) / 4
		if !x.before(t.heap[p]) {
			break
		}
		t.set(i, t.heap[p])
		i = p
	}
	t.set(i, x)
}

// down puts x at i, which is free, or at a descendant of i.
func (t *timers) down(i int, x timer) {
	for {
		c := 4*i + 1
		if c >= len(t.heap) {
			break
		}
		if c+4 <= len(t.heap) {
			c = t.firstOf4(c)
		} else {
			for k := c + 1; k < len(t.heap); k++ {
				if t.heap[k].before(t.heap[c]) {
					c = k
				}
			}
		}
		if !t.heap[c].before(x) {
			break
		}
		t.set(i, t.heap[c])
		i = c
	}
	t.set(i, x)
}

func (t *timers) set(i int, x timer) {
	t.heap[i] = x
	t.heapIndex[x.id] = int32(i)
}
