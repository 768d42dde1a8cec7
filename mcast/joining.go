// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
)

// Legs to other switches whose members have all joined in the present turn, at the source's own
// switch when it starts again (R101). They wait for the next message: what is before it, which the
// source may have been acknowledged, nobody owes them. Stored positions tell them from other legs;
// the first message of such a leg waits until newer positions are durable, so it has had nothing.
// Where nothing can be stored the positions are old. So a leg is joining only when the switch behind
// it says that it knows nothing of the turn: until then it is unplaced too.

// holdJoining makes those legs joining that p says to be.
func (g *group) holdJoining(p *Positions) {
	for _, l := range g.forwardedLegs() {
		joining := true
		for i := range g.members {
			joining = joining && (g.members[i].leg != l || p.Members[i].Joining)
		}
		g.setJoining(int(l), joining)
	}
}

// isHeld reports whether leg i is joining if the switch behind it has had nothing of the turn.
func (g *group) isHeld(i int) bool {
	return g.legs[i].joining && g.ackStateOf(i).flags&isUnplaced != 0
}

// awaitsJoining reports whether it is not known for a leg that is joining whether it has had
// something of the turn.
func (g *group) awaitsJoining() bool {
	if !g.agg.unplaced || g.recv.joining == 0 {
		return false
	}
	for _, l := range g.forwardedLegs() {
		if g.isHeld(int(l)) {
			return true
		}
	}
	return false
}

// takeIgnorance takes a message of a neighbour without a position: if it has had one of this
// session, by which it knows what is asked, it knows nothing of the present turn.
func (t *tree) takeIgnorance(now time.Duration, l LegID, msg *token.Message, out *Output) {
	g := t.g
	if msg.Position.Source != token.NoMember || msg.Ack == 0 || g.failed || g.src.member == none || !g.isHeld(int(l)) {
		return
	}
	g.activate(now)
	g.setUnplaced(int(l), false)
	g.unblock(out)
	g.evaluate(out)
	if !g.agg.unplaced {
		t.announce(now, out)
	}
}

// joinNeeded joins the turn of the source that the neighbour toward it needs a position of, if this
// switch has learnt where that goes on, and has had no data of it: what the switches below have, the
// neighbour hears from here alone. It may have nothing to send before it has.
func (t *tree) joinNeeded(now time.Duration, leg token.Leg, at *token.Position, out *Output) {
	g, e := t.g, &t.edges
	k, ok := t.memberOf(at.Needed)
	if !ok || g.failed || g.members[k].leg != t.legID(leg) {
		return
	}
	if int32(k) == g.src.member && g.isUnconfirmed() {
		t.pollForPositions(now, out)
	}
	if int(k) >= len(e.learnt) || !e.learnt[k] || int32(k) == g.src.member {
		return
	}
	if g.isResuming() || !t.machine.Accepts(leg) || !t.mayFollow() {
		return
	}
	if g.endUnknown() {
		g.endResume()
		g.fwd.midMessage = false
	}
	g.openTurn(now, k, out)
	g.watchTurn().unconfirmed = true
	t.notePolled(now)
	t.announce(now, out)
}
