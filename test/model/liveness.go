// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

// Fates of the fair runs from a state: four bits for each schedule.
const (
	unknown uint8 = iota
	completes
	endless
	onPath      // the state while the run is followed
	endsOutside // outside of the searched states
)

func (e *slot) fateOf(schedule int) uint8 { return e.ending >> (4 * schedule) & 15 }

func (e *slot) setFate(schedule int, f uint8) {
	e.ending = e.ending&^(15<<(4*schedule)) | f<<(4*schedule)
}

// checkFairRuns follows the fair runs of all states. Each state has one fair successor
// per schedule, so a run that does not end returns to one of its states. Among the states
// from which that happens it reports one that is nearest to the first state.
func (s *search) checkFairRuns(w *World) {
	var bad *slot
	schedule := 0
	for i := range s.seen.shards {
		slots := s.seen.shards[i].slots
		for j := range slots {
			e := &slots[j]
			if e.hash == 0 {
				continue
			}
			followed := true
			for k := range schedules {
				f := s.follow(e, k)
				followed = followed && f != endsOutside
				if f == endless && (bad == nil || e.depth < bad.depth) {
					bad, schedule = e, k
				}
			}
			if followed {
				s.res.FairRuns++
			}
		}
	}
	if bad != nil {
		s.res.Violation = s.livelock(w, bad.hash, schedule)
	}
}

// follow follows one fair run from e and records, for all states on it, how it ends.
func (s *search) follow(e *slot, schedule int) uint8 {
	var path []*slot
	f := e.fateOf(schedule)
	for f == unknown {
		next := e.next[schedule]
		if next == 0 {
			e.setFate(schedule, endsOutside)
			f = endsOutside
			break
		}
		e.setFate(schedule, onPath)
		path = append(path, e)
		if next == e.hash {
			f = completes
			break
		}
		e = s.seen.get(next)
		f = e.fateOf(schedule)
	}
	if f == onPath {
		f = endless
	}
	for _, p := range path {
		p.setFate(schedule, f)
	}
	return f
}

// livelock describes the endless fair run from state h: the path to it, and one cycle.
func (s *search) livelock(w *World, h uint64, schedule int) *Violation {
	as := s.seen.path(h)
	round := map[uint64]bool{}
	for e := s.seen.get(h); !round[e.hash]; e = s.seen.get(e.next[schedule]) {
		round[e.hash] = true
		s.replay(w, as)
		a, _ := w.fair(schedule)
		as = append(as, a)
	}
	v := s.trace(w, as)
	v.What = "LIVELOCK: without any more faults the transfer does not complete; the end of the trace repeats for ever"
	return v
}
