// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// Outcomes are the decisions of a group since it was put. An Event reports each of them at
// once, but a driver may lose an Event. Outcomes are state: they stay until PutGroup or
// DeleteGroup ends the group, or another member takes over a MemberID. Their size is
// bounded by the number of members.
type Outcomes struct {
	Group       GroupID
	Generation  uint64  // GroupSpec.Generation
	Turns       uint64  // number of SourceChanged so far
	LastSource  Event   // the last SourceChanged; Kind is 0 if there was none
	Refusals    uint64  // number of SourceRefused so far
	LastRefusal Event   // the last SourceRefused
	Failure     Event   // GroupFailed, if the group has failed
	Evicted     []Event // MemberEvicted, by MemberID; Kind is 0 for a member that was not evicted; empty if none was

	Conflicts    uint64 // number of SourceConflict so far
	LastConflict Event  // the last SourceConflict
	conflict     conflict

	Positions uint32 // number of the positions that are to be stored (Switch.Positions); 0: none are

	MismatchesReported uint64       // number of NumberMismatch so far
	Mismatches         []Mismatches // by MemberID; empty if MismatchesReported is 0
}

// Outcomes writes the outcomes of a group into o, whose Evicted and Mismatches it reuses.
// It reports whether the group exists.
func (s *Switch) Outcomes(id GroupID, o *Outcomes) bool {
	g := s.group(id)
	if g == nil {
		*o = Outcomes{Group: id, Evicted: o.Evicted[:0], Mismatches: o.Mismatches[:0]}
		return false
	}
	if g.outcomes == nil {
		*o = Outcomes{Group: id, Generation: g.generation, Evicted: o.Evicted[:0], Mismatches: o.Mismatches[:0]}
		return true
	}
	evicted, mismatches := append(o.Evicted[:0], g.outcomes.Evicted...), o.Mismatches[:0]
	if g.outcomes.MismatchesReported > 0 {
		mismatches = append(mismatches, g.outcomes.Mismatches...)
	}
	*o = *g.outcomes
	o.Evicted, o.Mismatches = evicted, mismatches
	return true
}

// emitCause notes a decision whose cause is the syndrome of its NAK, and emits its event.
func (g *group) emitCause(out *Output, k EventKind, m MemberID, psn rocev2.PSN, syn rocev2.Syndrome) {
	g.emitEvent(out, Event{Kind: k, Group: g.id, Member: m, PSN: psn, Syndrome: syn, Cause: syn})
}

func (g *group) emitEvent(out *Output, e Event) {
	switch o := g.decided(); e.Kind {
	case SourceChanged:
		o.Turns++
		o.LastSource = e
	case SourceRefused:
		o.Refusals++
		o.LastRefusal = e
	case SourceConflict:
		o.Conflicts++
		o.LastConflict = e
	case GroupFailed:
		o.Failure = e
	case MemberEvicted:
		if o.Evicted == nil {
			o.Evicted = make([]Event, len(g.members))
		}
		o.Evicted[e.Member] = e
	}
	out.Events = append(out.Events, e)
}

// decided returns g's outcomes, for a caller that is about to add one.
func (g *group) decided() *Outcomes {
	if g.outcomes == nil {
		g.outcomes = &Outcomes{Group: g.id, Generation: g.generation}
	}
	return g.outcomes
}

// resetMember makes room for the outcomes of a new member m, and clears those of the
// member whose MemberID it takes over.
func (o *Outcomes) resetMember(m MemberID) {
	if o == nil {
		return
	}
	o.conflict = conflict{}
	if o.Evicted != nil {
		o.Evicted = append(o.Evicted, make([]Event, max(0, int(m)+1-len(o.Evicted)))...)
		o.Evicted[m] = Event{}
	}
	if o.Mismatches != nil {
		o.Mismatches = append(o.Mismatches, make([]Mismatches, max(0, int(m)+1-len(o.Mismatches)))...)
		o.Mismatches[m] = Mismatches{}
	}
}
