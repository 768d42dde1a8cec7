// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

// ringIdle is the time without data after which a group gives its place in the maps to
// another one that finds none.
const ringIdle = fastRetry

// reclaimRing takes the place in the maps from the group of this worker that has had no data
// for the longest time, and of which nothing is retained. It returns false if there is none.
func (w *worker) reclaimRing() bool {
	var idle *fastGroup
	for _, f := range w.fast.rings {
		if (f.step == fastSet || f.step == fastUnset) && w.now-f.movedAt >= ringIdle && (idle == nil || f.movedAt < idle.movedAt) {
			if w.core.Group(f.id).Snapshot(&w.fast.snapshot); w.fast.snapshot.Retained == 0 {
				idle = f
			}
		}
	}
	if idle == nil {
		return false
	}
	idle.copiesWas += idle.gateCopies()
	idle.spec.Legs, idle.step, idle.judgedAt = nil, fastUnset, 0
	w.leaveFast(idle, whyReclaimed)
	w.deleteFast(idle)
	return true
}
