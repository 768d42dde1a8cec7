// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "sync"

// visited is the set of all states found, by hash, with the data for the way back and for
// the fair runs. All workers may use it.
type visited struct{ shards [64]shard }

type shard struct {
	sync.Mutex
	slots []slot // open addressing, a power of two
	used  int
}

// schedules is the number of fair schedules.
const schedules = 2

type slot struct {
	hash   uint64 // 0: free
	parent uint64
	// next are the successors in the fair schedules: 0 is unknown, the state itself is
	// the end of the run.
	next   [schedules]uint64
	step   action // the step from parent
	ending uint8  // fates of the fair runs from here
	depth  uint16 // steps from the first state
}

const firstSlots = 1 << 8

func newVisited() *visited {
	v := &visited{}
	for i := range v.shards {
		v.shards[i].slots = make([]slot, firstSlots)
	}
	return v
}

// shard selects by the upper bits; the slot within it is selected by the lower ones.
func (v *visited) shard(h uint64) *shard { return &v.shards[h>>58] }

// add inserts state h, and reports whether it is new.
func (v *visited) add(h, parent uint64, how action, depth int) bool {
	s := v.shard(h)
	s.Lock()
	defer s.Unlock()
	if 4*(s.used+1) > 3*len(s.slots) {
		s.grow()
	}
	e := s.find(h)
	if e.hash == h {
		return false
	}
	*e = slot{hash: h, parent: parent, step: how, depth: uint16(depth)}
	s.used++
	return true
}

// find returns the slot of h, or the free slot for it.
func (s *shard) find(h uint64) *slot {
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		if e := &s.slots[i]; e.hash == h || e.hash == 0 {
			return e
		}
	}
}

func (s *shard) grow() {
	old := s.slots
	s.slots = make([]slot, 2*len(old))
	for i := range old {
		if old[i].hash != 0 {
			*s.find(old[i].hash) = old[i]
		}
	}
}

// setNext sets the successors of h in the fair schedules.
func (v *visited) setNext(h uint64, next [schedules]uint64) {
	s := v.shard(h)
	s.Lock()
	s.find(h).next = next
	s.Unlock()
}

// get returns the slot of h, which must exist. It must not be called while workers run.
func (v *visited) get(h uint64) *slot { return v.shard(h).find(h) }

func (v *visited) len() int {
	n := 0
	for i := range v.shards {
		n += v.shards[i].used
	}
	return n
}

// path returns the steps from the first state to h.
func (v *visited) path(h uint64) []action {
	var as []action
	for e := v.get(h); e.parent != 0; e = v.get(e.parent) {
		as = append(as, e.step)
	}
	for i, j := 0, len(as)-1; i < j; i, j = i+1, j-1 {
		as[i], as[j] = as[j], as[i]
	}
	return as
}
