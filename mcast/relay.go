// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A switch between others that has started again knows of a source what the switch toward that has
// said. If that one has started again too, it has said a stored position, and needs to know more: it
// hears from here alone what the switches below have. Where the turn of another source is under way
// here, the source's own cannot be joined (R101), so the question is passed on (R105).

// relay is a question that is passed on to the switches below.
type relay struct {
	member   int32       `state:"encoded"`               // the member whose position is asked for, or none
	said     []edgeBound `state:"own(said)"`             // answers of the switches below, by LegID
	asking   bool        `state:"encoded"`               // answers are missing
	answered bool        `state:"encoded"`               // all have answered, once
	nothing  bool        `state:"encoded"`               // all have answered that they know no position, and no member is here
	low      rocev2.PSN  `state:"encoded if x.answered"` // all members but those behind the switch that asks have everything before
	next     rocev2.PSN  `state:"encoded if x.answered"` // the highest PSN that a switch below has had, and one
	ends     bool        `state:"encoded"`               // the packet before low ends a message, and is the last that any switch below has had
}

// edgeBound is the answer of a neighbour: all members behind it have everything before psn, and one of them, or a switch
// there, has had the packet before next.
type edgeBound struct {
	known   bool       `state:"encoded"`
	nothing bool       `state:"encoded"` // the neighbour knows no position
	ends    bool       `state:"encoded"`
	psn     rocev2.PSN `state:"encoded"`
	next    rocev2.PSN `state:"encoded"`
}

// passOn asks the switches below for the position of member k, which the switch toward k needs and
// this one knows from there, or of another tree. Where the position is from a neighbour, this switch does not know what
// its own members have, and asks nobody; if k sends nothing before a later PSN, and all are joining, they are removed (R115).
func (t *tree) passOn(now time.Duration, k MemberID, at *token.Position, out *Output) {
	g, r := t.g, &t.edges.relay
	if t.knows(k) >= positionLearnt && t.hasReceivers(true) {
		over := at.Over && at.Source == at.Needed && g.members[k].sqPSN.Less(rocev2.PSN(at.PSN))
		if t.isUnknown(k) || !over || t.hasReceivers(false) {
			return
		}
		g.removeJoining(out)
	}
	switch {
	case r.member != int32(k):
		*r = relay{member: int32(k), asking: true}
	case !r.asking && t.mayPoll(now): // the neighbour needs more
		r.asking, r.said = true, r.said[:0]
	}
	if r.asking {
		t.answerRelay(now, out)
		t.pollForPositions(now, out)
	}
}

// hasReceivers reports whether members are at this switch, those that are joining too or others.
func (t *tree) hasReceivers(joining bool) bool {
	return slices.ContainsFunc(t.g.legs, func(l leg) bool { return l.members != 0 && l.connected() && (joining || !l.joining) })
}

// isIgnorant reports whether nobody can say what the members here have of member k: its switch knew no position when it
// started. They take part from the next message on.
func (t *tree) isIgnorant(k MemberID) bool {
	return t.isUnknown(k) && t.hasReceivers(true) && !t.g.is(failed|learning)
}

// endRelay forgets the question.
func (t *tree) endRelay() { t.edges.relay = relay{member: none} }

// noteRelay notes what the neighbour behind leg l, toward a source, asks for: a question that it does
// not repeat is not passed on any more.
func (t *tree) noteRelay(l LegID, at *token.Position) {
	r := &t.edges.relay
	if r.member == none {
		return
	}
	if m := &t.g.members[r.member]; m.leg == l && at.Needed != t.g.numberOf(MemberID(r.member)) {
		t.endRelay()
	}
}

// relays reports whether the neighbour behind leg l is asked for what another one needs.
func (t *tree) relays(l LegID) bool {
	r := &t.edges.relay
	if !r.asking || r.member == t.g.src.member {
		return false
	}
	m := &t.g.members[r.member]
	return m.live && m.leg != l && t.g.legs[l].members != 0
}

// takeRelayed takes the answer of the neighbour behind leg l, or that the source sends nothing before a PSN.
func (t *tree) takeRelayed(now time.Duration, l LegID, at *token.Position, out *Output) {
	g, r := t.g, &t.edges.relay
	psn, next := rocev2.PSN(at.PSN), rocev2.PSN(at.Next)
	if g.members[r.member].leg == l {
		if d := psn.Sub(r.low); r.answered && d > 0 && d <= maxAhead {
			r.low, r.next = psn, rocev2.MaxPSN(psn, r.next)
			r.ends = at.Ends && r.low == r.next
			t.poll(now, l, out)
		}
		return
	}
	for len(r.said) < len(g.legs) {
		r.said = append(r.said, edgeBound{})
	}
	r.said[l] = edgeBound{known: true, nothing: at.Over, ends: at.Ends, psn: psn, next: rocev2.MaxPSN(psn, next)}
	t.answerRelay(now, out)
}

// answerRelay answers the question if all switches below have: all members but those behind the switch that
// has asked have everything before the lowest PSN, and that one is told so.
func (t *tree) answerRelay(now time.Duration, out *Output) {
	g, r := t.g, &t.edges.relay
	m := &g.members[r.member]
	all := edgeBound{known: t.knows(MemberID(r.member)) < positionLearnt && t.hasReceivers(true), ends: true, psn: m.sqPSN, next: m.sqPSN}
	for _, o := range g.forwardedLegs() {
		switch {
		case !t.relays(o):
			continue
		case int(o) >= len(r.said) || !r.said[o].known:
			return
		}
		b := &r.said[o]
		switch {
		case b.nothing:
			continue
		case !all.known:
			all = *b
			continue
		}
		all.ends = all.ends && b.ends && b.psn == all.psn && b.next == all.next
		if b.psn.Less(all.psn) {
			all.psn = b.psn
		}
		all.next = rocev2.MaxPSN(all.next, b.next)
	}
	if r.nothing = !all.known && !r.answered; r.nothing {
		r.asking, r.said = false, r.said[:0]
		t.poll(now, m.leg, out)
		return
	}
	if d := all.psn.Sub(m.sqPSN); !all.known || !t.isUnknown(MemberID(r.member)) && (d > maxAhead || d < -maxAhead) {
		return
	}
	r.asking, r.said = false, r.said[:0]
	if !r.answered || !all.psn.Less(r.low) {
		r.answered, r.low, r.next, r.ends = true, all.psn, all.next, all.ends
	}
	if d := all.psn.Sub(m.sqPSN); d > 0 && !t.isUnknown(MemberID(r.member)) { // nobody is here
		m.ackedCount = addAckedCount(m.ackedCount, d)
		m.sqPSN = all.psn
	}
	t.poll(now, m.leg, out)
}
