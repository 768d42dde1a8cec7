// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
)

// This file is about legs to other switches whose members have all joined in the present turn, at
// the source's own switch when it starts again (R101). These legs wait for the next message, and get
// nothing that is before it: the source may have got an acknowledgement of that data without them.
// Stored positions mark the members of such a leg. The first message of the leg waits until newer
// positions are durable, so a leg that is marked has had nothing of the turn. A switch that cannot
// store has old positions, so the mark alone is not enough: the leg is unplaced too, until the
// switch behind it says that it knows no position of the source.

// holdJoining marks legs as joining whose members are all marked in the stored positions p.
func (g *group) holdJoining(p *Positions) {
	for _, l := range g.forwardedLegs() {
		joining := true
		for i := range g.members {
			joining = joining && (g.members[i].leg != l || p.Members[i].Joining)
		}
		g.setJoining(int(l), joining)
	}
}

// isHeld reports whether leg i is marked as joining, and the switch behind it has not confirmed it yet.
func (g *group) isHeld(i int) bool {
	return g.legs[i].joining && g.ackStateOf(i).flags&isUnplaced != 0
}

// awaitsJoining reports whether a leg is marked as joining without being confirmed.
func (g *group) awaitsJoining() bool {
	if !g.is(unplaced) || !g.is(joiners) {
		return false
	}
	for _, l := range g.forwardedLegs() {
		if g.isHeld(int(l)) {
			return true
		}
	}
	return false
}

// takeIgnorance takes a message without a position. If it acknowledges a message of this session,
// the neighbour knows which turn is meant, so it knows no position of the turn's source.
func (t *tree) takeIgnorance(now time.Duration, l LegID, msg *token.Message, out *Output) {
	g := t.g
	if msg.Position.Source != token.NoMember || msg.Ack == 0 || g.is(failed) || g.src.member == none || !g.isHeld(int(l)) {
		return
	}
	g.activate(now)
	g.setUnplaced(int(l), false)
	g.unblock(out)
	g.evaluate(out)
	if !g.is(unplaced) {
		t.announce(now, out)
	}
}

// joinNeeded joins the turn of the source that the neighbour toward it needs a position of, if this
// switch has learnt where that goes on, and has had no data of it: what the switches below have, the
// neighbour hears from here alone. It may have nothing to send before it has.
func (t *tree) joinNeeded(now time.Duration, leg token.Leg, at *token.Position, out *Output) {
	g, e := t.g, &t.edges
	k, ok := t.memberOf(at.Needed)
	t.noteRelay(t.legID(leg), at)
	if !ok || g.is(failed) || g.members[k].leg != t.legID(leg) {
		return
	}
	if int32(k) == g.src.member && g.isUnconfirmed() {
		t.pollForPositions(now, out)
	}
	if int(k) >= len(e.learnt) || !e.learnt[k] || int32(k) == g.src.member {
		return
	}
	switch {
	case g.is(learning) || t.isUnknown(k):
		return
	case !t.machine.Accepts(leg) || !t.mayFollow():
		t.passOn(now, k, out)
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
