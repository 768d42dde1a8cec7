// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "time"

// Rings are shared by need (bpf/fastpath/share.go). A group whose ring was full gets a larger one, and one whose
// ring is larger than its share gives it up when others find none. It is then put into the maps anew, as soon as the
// core retains nothing of the old ring. A group without data gives up its place when others need it, and after a while
// anyway. The worker has those that are not granted in the order in which they were taken back: it looks at
// few of them.

const (
	// ringIdle is the time without data after which a group gives its place in the maps to
	// another one that finds none.
	ringIdle = fastRetry
	// ringRest is the time without data after which it does so anyway.
	ringRest = 10 * time.Second
	// reclaimEvery is the least time between two attempts to find such groups.
	reclaimEvery = 10 * time.Millisecond
	// maxReclaimLooks bounds the groups that one attempt looks at.
	maxReclaimLooks = 16
)

// fastIdleList is a list of groups, the one that was added first at the front. The zero value is empty.
type fastIdleList struct{ head fastGroup }

// add adds f at the end.
func (l *fastIdleList) add(f *fastGroup) {
	h := &l.head
	if h.older == nil {
		h.older, h.younger = h, h
	}
	f.older, f.younger = h.older, h
	f.older.younger, h.older = f, f
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

// tellSlots tells the core the size of f's ring.
func (w *worker) tellSlots(f *fastGroup) {
	if f.ring != nil && f.step != fastChanging {
		w.core.SetOffloadSlots(f.id, f.ring.Slots())
	}
}

// isToResize reports whether f, which is not granted, is to have another ring.
func (w *worker) isToResize(f *fastGroup) bool {
	if f.ring.HasExcess() {
		return true
	}
	return w.now >= f.resizeAt && (f.full || f.ring.Slots() < minACKSlots) && f.ring.MayGrow(f.most, f.full)
}

// reclaimRing takes the place in the maps from the group of this worker that was taken back first of those that have
// had no data for a time, and of which nothing is retained. It returns false if there is none.
func (w *worker) reclaimRing(idle time.Duration) bool {
	f := w.fast.idle.next(nil)
	for range maxReclaimLooks {
		if f == nil {
			return false
		}
		least := idle
		if idle == ringIdle && f.step != fastChanging && f.ring.HasExcess() {
			least = fastIdle
		}
		if f.step != fastChanging && w.now-f.movedAt >= least && !w.isInUse(f) {
			f.copiesWas += f.gateCopies()
			f.spec.Legs, f.step, f.judgedAt, f.full = nil, fastUnset, 0, false
			w.leaveFast(f, whyReclaimed)
			w.deleteFast(f)
			return true
		}
		f = w.fast.idle.next(f)
	}
	return false
}

// tendIdle has groups without data give up their places: those of which another worker's groups have need, too.
func (w *worker) tendIdle() {
	if w.now < w.fast.reclaimAt {
		return
	}
	w.fast.reclaimAt = w.now + reclaimEvery
	idle := ringRest
	if w.fast.shared.maps.IsShort() {
		idle = ringIdle
	}
	for range maxReclaimLooks {
		if !w.reclaimRing(idle) {
			return
		}
	}
}
