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
	member int32       // whose position is asked for, or none
	said   []edgeBound // by LegID: what the switches below have said
}

// edgeBound is what a neighbour has said: all behind it have everything before psn.
type edgeBound struct {
	known bool
	psn   rocev2.PSN
}

// passOn asks the switches below for the position of member k, which the switch toward k needs and
// this one knows from there. A switch with members of its own does not know what these have.
func (t *tree) passOn(now time.Duration, k MemberID, out *Output) {
	g, r := t.g, &t.edges.relay
	if slices.ContainsFunc(g.legs, func(l leg) bool { return l.members != 0 && l.connected() }) {
		return
	}
	if r.member != int32(k) {
		*r = relay{member: int32(k)}
	}
	t.pollForPositions(now, out)
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
	if r.member == none || r.member == t.g.src.member {
		return false
	}
	m := &t.g.members[r.member]
	return m.live && m.leg != l && t.g.legs[l].members != 0
}

// takeRelayed takes the answer of the neighbour behind leg l. When all have answered, all members but
// those behind the switch that has asked have everything before the lowest PSN, and that one is told so.
func (t *tree) takeRelayed(now time.Duration, l LegID, psn rocev2.PSN, out *Output) {
	g, r := t.g, &t.edges.relay
	if !t.relays(l) {
		return
	}
	for len(r.said) < len(g.legs) {
		r.said = append(r.said, edgeBound{})
	}
	r.said[l] = edgeBound{true, psn}
	low := psn
	for _, o := range g.forwardedLegs() {
		switch {
		case !t.relays(o):
		case !r.said[o].known:
			return
		case r.said[o].psn.Less(low):
			low = r.said[o].psn
		}
	}
	m := &g.members[r.member]
	if d := low.Sub(m.sqPSN); d > 0 && d <= maxAhead {
		m.ackedCount = addAckedCount(m.ackedCount, d)
		m.sqPSN = low
		t.poll(now, m.leg, out)
	}
}
