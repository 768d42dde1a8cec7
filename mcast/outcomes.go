// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

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

	Positions uint32 // number of the positions that are to be stored (Group.Positions); 0: none are

	MismatchesReported uint64       // number of NumberMismatch so far
	Mismatches         []Mismatches // the members' mismatches, by MemberID; empty if MismatchesReported is 0
}

// Outcomes writes the outcomes of a group into o, whose Evicted and Mismatches it reuses.
// It reports whether the group exists.
func (v Group) Outcomes(o *Outcomes) bool {
	g := v.g
	if g == nil {
		*o = Outcomes{Group: v.id, Evicted: o.Evicted[:0], Mismatches: o.Mismatches[:0]}
		return false
	}
	if g.outcomes == nil {
		*o = Outcomes{Group: v.id, Generation: g.generation, Evicted: o.Evicted[:0], Mismatches: o.Mismatches[:0]}
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

// Number is a kind of number that both sides of a connection have to agree upon.
type Number uint8

// Numbers that a member's packets show.
const (
	SendPSN    Number = iota // the PSN of the member's send queue
	VirtualQPN               // the QPN that the member's queue pair is connected to
	ReceivePSN               // the ePSN of its receive queue (R55)
	NumNumbers
)

// mismatchThreshold is how often a number is observed before it is taken for the member's:
// as often as a queue pair repeats an unanswered packet, with the usual retry counts. A
// single packet may be late or damaged, and the first packet of a source may be lost
// several times while the second one gets through.
const mismatchThreshold = 4

// Mismatch is a number in a member's packets that is not the registered one (R72).
type Mismatch struct {
	Observed   rocev2.PSN // the PSN or QPN in the packets; of PSNs the lowest
	Registered rocev2.PSN // the registered PSN or QPN
	Count      uint32     // number of observations; 0: there is no mismatch
	reported   bool       // NumberMismatch was emitted for this number of this member
}

// Confirmed reports whether m was observed too often for a stray packet.
func (m *Mismatch) Confirmed() bool { return m.reported && m.Count > 0 }

// Mismatches are the mismatches of one member, by Number.
type Mismatches [NumNumbers]Mismatch

// mismatch returns the mismatch of number n of member k; nil if no number of any member of
// g ever differed.
func (g *group) mismatch(k MemberID, n Number) *Mismatch {
	if g.outcomes == nil || g.outcomes.Mismatches == nil {
		return nil
	}
	return &g.outcomes.Mismatches[k][n]
}

// newMismatch is mismatch for a caller that is about to note one: it does not return nil.
func (g *group) newMismatch(k MemberID, n Number) *Mismatch {
	if o := g.decided(); o.Mismatches == nil {
		o.Mismatches = make([]Mismatches, len(g.members))
	}
	return g.mismatch(k, n)
}

// noteMismatch notes that a packet of member k has the number seen instead of want.
func (g *group) noteMismatch(k MemberID, n Number, seen, want rocev2.PSN, out *Output) {
	m := g.newMismatch(k, n)
	switch {
	case m.Count > 0 && m.Registered == want && m.Observed == seen:
		if m.Count < math.MaxUint32 {
			m.Count++
		}
	case m.Count > 0 && m.Registered == want && n == SendPSN && m.Observed.Less(seen):
		return // a PSN after the one that is known
	default:
		*m = Mismatch{Observed: seen, Registered: want, Count: 1, reported: m.reported}
	}
	if m.Count >= mismatchThreshold {
		g.reportMismatch(k, n, out)
	}
}

// reportMismatch emits NumberMismatch for number n of member k, once.
func (g *group) reportMismatch(k MemberID, n Number, out *Output) {
	if m := g.mismatch(k, n); m != nil && m.Count > 0 && !m.reported {
		m.reported = true
		g.outcomes.MismatchesReported++
		g.emitEvent(out, Event{Kind: NumberMismatch, Group: g.id, Member: k, PSN: m.Observed, Number: n, Registered: m.Registered})
	}
}

// noteWrongQPN notes the destination QPN of p, if a live member has sent p.
func (g *group) noteWrongQPN(p *Packet, out *Output) Reason {
	if k, ok := g.memberAt(p.Src); ok && g.members[k].live {
		g.noteMismatch(MemberID(k), VirtualQPN, rocev2.PSN(p.DestQP), rocev2.PSN(g.qpn), out)
	}
	return WrongQPN
}

// recheckMismatch checks a PSN that the source has sent before. A source whose first
// packet was lost comes back to it; a source that was registered with a lower PSN never
// does.
func (g *group) recheckMismatch(psn rocev2.PSN, out *Output) {
	m := g.mismatch(MemberID(g.src.member), SendPSN)
	switch {
	case m == nil || m.Count == 0:
	case psn == m.Registered || m.Registered.LessEq(g.agg.acked):
		m.Count = 0
	case psn.LessEq(m.Observed):
		g.noteMismatch(MemberID(g.src.member), SendPSN, psn, m.Registered, out)
	}
}

// Switches of a tree that disagree on the source: a neighbour that may have the token sends data of
// one member, and that of another one is not complete here. The rules of R84 to R101 are to make that
// impossible. A group in which it lasts stands still, so the control plane is told.

// conflictTime is how long a disagreement lasts before it is reported.
const conflictTime = time.Second

// conflict is a disagreement on the source. It decides nothing.
type conflict struct {
	since    time.Duration // 0: there is none
	with     MemberID      // the member whose data a neighbour sends
	source   int32         // the present source
	acked    rocev2.PSN    // the group's acked, in source's space
	reported bool
}

// noteConflict notes that a neighbour sends data of member k, while that of the present source is not
// complete. It reports whether the packet has to be verified first.
func (g *group) noteConflict(now time.Duration, k MemberID, verified bool, out *Output) bool {
	c := &g.decided().conflict
	switch {
	case c.since == 0 || c.with != k || c.source != g.src.member || c.acked != g.agg.acked:
		*c = conflict{since: max(now, 1), with: k, source: g.src.member, acked: g.agg.acked}
	case c.reported || now-c.since < conflictTime:
	case !verified:
		return true
	default:
		c.reported = true
		g.emitEvent(out, Event{Kind: SourceConflict, Group: g.id, Member: k, PSN: g.agg.acked.Next()})
	}
	return false
}

// conflictsWith returns the member whose data a neighbour sends, if that has been reported and
// nothing has changed since.
func (g *group) conflictsWith() (k MemberID, ok bool) {
	if g.outcomes == nil {
		return 0, false
	}
	c := &g.outcomes.conflict
	return c.with, c.reported && c.source == g.src.member && c.acked == g.agg.acked
}
