// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane/blame"
	"github.com/gleam-rdma/gleam/mcast"
)

// Members that cost their group time. Of a group with outstanding packets a worker reads what the
// core has counted of the members once in readInterval. What has changed in api.SlowTime is
// judged by package blame. A member is named when two judgements in a row have found it, and until
// two have not.

const (
	readInterval  = time.Second
	readingsKept  = api.SlowTime + 1
	leastJudged   = 2 * readInterval // a shorter time is not judged
	judgedToClear = 2
	maxBlamed     = 4
	overtake      = 5 // a member costs more than the one named first if it does by 1/overtake
)

// Blamed are the members that cost a group time now, the costliest first.
type Blamed struct {
	Count   int
	Members [maxBlamed]blame.Verdict
	Named   [maxBlamed]time.Duration // the time when each was named, by the workers' clock
}

// indexOf returns the index of a member in b, or -1.
func (b *Blamed) indexOf(m mcast.MemberID) int {
	for i := range b.Count {
		if b.Members[i].Member == m {
			return i
		}
	}
	return -1
}

// Cause returns why a member costs its group time; blame.None if it does not.
func (b *Blamed) Cause(m mcast.MemberID) blame.Cause {
	if i := b.indexOf(m); i >= 0 {
		return b.Members[i].Cause
	}
	return blame.None
}

// Blames reports whether a member costs a group time.
func (b *Blamed) Blames(m mcast.MemberID) bool { return b.indexOf(m) >= 0 }

// history has what was read of a group's members lately.
type history struct {
	Blamed
	samples    [readingsKept]blame.Sample // a ring
	last, kept int
	verdicts   []blame.Verdict // the verdicts of the last judgement
	before     []mcast.MemberID
	unfound    [maxBlamed]int // judgements in a row that have not found Blamed.Members
}

// beginHistory returns a history without readings.
func (x *delays) beginHistory() *history {
	if n := len(x.spare); n > 0 {
		h := x.spare[n-1]
		x.spare = x.spare[:n-1]
		h.clear()
		return h
	}
	return new(history)
}

// endHistory takes a group's history back.
func (x *delays) endHistory(d *delayed) {
	if d.history != nil {
		x.spare = append(x.spare, d.history)
		d.history = nil
	}
}

// clear forgets the readings.
func (h *history) clear() {
	h.Blamed, h.kept, h.verdicts, h.before, h.unfound = Blamed{}, 0, h.verdicts[:0], h.before[:0], [maxBlamed]int{}
}

// judge reads what the members of group id have cost, if that is due, and judges. It reports
// whether other members are named than before.
func (w *worker) judge(id mcast.GroupID, d *delayed) (changed bool) {
	h := d.history
	if h == nil {
		if !w.meters.groups[id].outstanding {
			return false
		}
		h = w.delays.beginHistory()
		d.history = h
	}
	if h.kept > 0 && w.now-h.samples[h.last].At < readInterval {
		return false
	}
	next := (h.last + 1) % readingsKept
	w.readMembers(id, &h.samples[next])
	if h.kept > 0 && !blame.Comparable(&h.samples[h.last], &h.samples[next]) {
		h.kept, h.verdicts = 0, h.verdicts[:0] // other members
	}
	h.last, h.kept = next, min(h.kept+1, readingsKept)
	changed = h.dropGone()
	first := &h.samples[(h.last-h.kept+1+readingsKept)%readingsKept]
	if h.samples[h.last].At-first.At < leastJudged {
		return changed
	}
	h.before = h.before[:0]
	for i := range h.verdicts {
		h.before = append(h.before, h.verdicts[i].Member)
	}
	h.verdicts = w.delays.blame.Verdicts(first, &h.samples[h.last], h.verdicts[:0])
	changed = h.judged(w.now) || changed
	if h.Count == 0 && h.kept == readingsKept && first.Busy == h.samples[h.last].Busy {
		w.delays.endHistory(d) // nothing was outstanding all the time
	}
	return changed
}

// dropGone drops the named members that do not receive any more. It reports whether there were some.
func (h *history) dropGone() (changed bool) {
	members, kept := h.samples[h.last].Members, 0
	for i := range h.Count {
		if m := h.Members[i].Member; int(m) < len(members) && members[m].Receives {
			h.Members[kept], h.Named[kept], h.unfound[kept] = h.Members[i], h.Named[i], h.unfound[i]
			kept++
		}
	}
	changed = kept != h.Count
	h.Count = kept
	return changed
}

// readMembers reads what the members of group id have cost so far.
func (w *worker) readMembers(id mcast.GroupID, s *blame.Sample) {
	x := &w.delays
	x.costs = w.core.Group(id).Costs(w.now, false, x.costs)
	x.read += len(x.costs)
	s.At, s.Busy, s.Packets = w.now, w.meters.groups[id].busyFor(w.now), w.core.Group(id).DataIn()
	s.Members = s.Members[:0]
	for i := range x.costs {
		s.Members = append(s.Members, blame.Of(&x.costs[i]))
	}
}

// judged notes the last judgement. It reports whether other members, or other causes, are named.
func (h *history) judged(now time.Duration) (changed bool) {
	b := &h.Blamed
	was := *b
	kept := 0
	for i := range b.Count { // those named already: their numbers of now
		found := false
		for k := range h.verdicts {
			if v := &h.verdicts[k]; v.Member == b.Members[i].Member {
				b.Members[i], h.unfound[i], found = *v, 0, true
			}
		}
		if !found {
			h.unfound[i]++
		}
		if h.unfound[i] < judgedToClear {
			b.Members[kept], b.Named[kept], h.unfound[kept] = b.Members[i], b.Named[i], h.unfound[i]
			kept++
		}
	}
	b.Count = kept
	for k := range h.verdicts {
		v := &h.verdicts[k]
		if b.Count < maxBlamed && b.indexOf(v.Member) < 0 && slices.Contains(h.before, v.Member) {
			b.Members[b.Count], b.Named[b.Count], h.unfound[b.Count] = *v, now, 0
			b.Count++
		}
	}
	for i := 1; i < b.Count; i++ { // the costliest first; equals do not take turns
		if first := &b.Members[0]; b.Members[i].Waited > first.Waited+first.Waited/overtake {
			b.Members[0], b.Members[i] = b.Members[i], b.Members[0]
			b.Named[0], b.Named[i] = b.Named[i], b.Named[0]
			h.unfound[0], h.unfound[i] = h.unfound[i], h.unfound[0]
		}
	}
	if b.Count != was.Count {
		return true
	}
	for i := range b.Count {
		if b.Members[i].Member != was.Members[i].Member || b.Members[i].Cause != was.Members[i].Cause {
			return true
		}
	}
	return false
}
