// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math"
	"time"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
)

// Rings are shared by need (bpf/fastpath/share.go). A group whose ring was full gets a larger one, and one whose
// ring is larger than its share gives it up when others find none. It is then put into the maps anew, as soon as the
// core retains nothing of the old ring. A group without data gives up its place when others need it, and after a while
// anyway. The worker has those that are not granted in the order in which they were taken back: it looks at
// few of them.

const (
	// ringIdle is the time without data after which a group gives its place in the maps to
	// another one that finds none.
	ringIdle = fastRetry
	// ringExcessIdle is that of a group whose ring is larger than its share.
	ringExcessIdle = 10 * time.Millisecond
	// ringRest is the time without data after which it does so anyway.
	ringRest = 10 * time.Second
	// reclaimEvery is the least time between two attempts to find such groups.
	reclaimEvery = 10 * time.Millisecond
	// maxReclaimLooks bounds the groups that one attempt looks at.
	maxReclaimLooks = 64
)

// fastIdleList is a list of groups, the one that was added first at the front. The zero value is empty.
type fastIdleList struct{ head fastGroup }

// add adds f at the end, or in front.
func (l *fastIdleList) add(f *fastGroup, front bool) {
	h := &l.head
	if h.older == nil {
		h.older, h.younger = h, h
	}
	if f.older, f.younger = h.older, h; front {
		f.older, f.younger = h, h.younger
	}
	f.older.younger, f.younger.older = f, f
}

// remove removes f, if it is there.
func (l *fastIdleList) remove(f *fastGroup) {
	if f.older == nil {
		return
	}
	f.older.younger, f.younger.older = f.younger, f.older
	f.older, f.younger = nil, nil
}

// next returns the group behind f, of nil the first one; nil: there is none.
func (l *fastIdleList) next(f *fastGroup) *fastGroup {
	if f == nil {
		f = &l.head
	}
	if f.younger == &l.head {
		return nil
	}
	return f.younger
}

// isInUse reports whether the core may retain packets of f's ring. The group is not granted.
func (w *worker) isInUse(f *fastGroup) bool {
	f.used = f.used && w.core.Group(f.id).RetainsBefore(f.reported)
	return f.used
}

// isToResize reports whether f, which is not granted, is to have another ring.
func (w *worker) isToResize(f *fastGroup) bool {
	if f.ring.HasExcess() {
		return true
	}
	return w.now >= f.resizeAt && (f.full || f.ring.Slots() < minACKSlots) && f.ring.MayGrow(f.most, f.full)
}

// reclaimRings takes the places in the maps from groups of this worker that have had no data for a time, and of which
// nothing is retained: those first that were taken back first, until their rings have as many slots. It reports
// whether there are any. The thread takes its time for all together.
func (w *worker) reclaimRings(idle time.Duration, slots int) bool {
	var rings []*fastpath.Group
	var from []*fastGroup
	f := w.fast.idle.next(nil)
	for looks := 0; f != nil && looks < maxReclaimLooks && slots > 0; looks++ {
		next, least := w.fast.idle.next(f), idle
		if f.step == fastChanging {
			f = next
			continue
		}
		if idle == ringIdle && f.ring.HasExcess() {
			least = ringExcessIdle
		}
		if w.now-f.movedAt >= least && !w.isInUse(f) {
			slots -= f.ring.Slots()
			rings, from = append(rings, f.ring), append(from, f)
			w.forgetRing(f)
		}
		f = next
	}
	if len(rings) == 0 {
		return false
	}
	w.fast.reclaiming = true
	w.fast.jobs = append(w.fast.jobs, func() {
		w.deleteRings(rings, from)
		w.put(func() { w.fast.reclaiming = false })
	})
	return true
}

// forgetRing notes that f, which is not granted, has no place in the maps any more.
func (w *worker) forgetRing(f *fastGroup) {
	f.copiesWas += f.gateCopies()
	f.spec.Legs, f.judgedAt, f.full = nil, 0, false
	if f.step = fastUnset; !f.ended {
		w.leaveFast(f, whyReclaimed)
	}
	f.ring, f.used = nil, false
	w.fast.idle.remove(f)
}

// deleteRings deletes groups from the maps, on the thread.
func (w *worker) deleteRings(rings []*fastpath.Group, from []*fastGroup) {
	left := make([]fastpath.Counters, len(rings))
	for i, ring := range rings {
		left[i], _ = ring.Counters() // an error: none are known
	}
	if err := fastpath.DeleteAll(rings); err != nil {
		w.fast.shared.notify(true, "places on the fast path were not given back", "groups", len(rings), "error", err)
	}
	w.put(func() {
		for i, f := range from {
			f.addLeft(&left[i])
		}
	})
}

// addLeft adds what programs have left to the worker to what they have with earlier places.
func (f *fastGroup) addLeft(left *fastpath.Counters) {
	for r, n := range left {
		f.leftBefore[r] += n
	}
}

// tendIdle has groups without data give up their places: those of which another worker's groups have need, too.
func (w *worker) tendIdle() {
	if w.now < w.fast.reclaimAt || w.fast.reclaiming {
		return
	}
	w.fast.reclaimAt = w.now + reclaimEvery
	m := w.fast.shared.maps
	if n := m.Wanted(); n > 0 && w.reclaimRings(ringIdle, n) {
		return
	}
	w.reclaimRings(ringRest, math.MaxInt)
}
