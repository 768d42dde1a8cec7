// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Legs to other switches that have receivers of which this switch does not know what they
// have (R89): it has started again, or the receivers were nearer to the source before. Such
// a leg gets nothing, and the source gets no feedback, until a position is known.

// setUnplaced sets whether leg i is unplaced.
func (g *group) setUnplaced(i int, yes bool) {
	if g.acks == nil || g.acks[i].flags&isUnplaced != 0 == yes {
		return
	}
	g.acks[i].flags ^= isUnplaced
	g.set(unplaced, slices.ContainsFunc(g.acks, func(b ackState) bool { return b.flags&isUnplaced != 0 }))
}

// unplace makes leg i unplaced. What it has acknowledged is not true of all receivers behind
// it.
func (g *group) unplace(i int) {
	g.setJoining(i, false)
	g.stopReceiving(i)
	g.setUnplaced(i, true)
}

// placeLeg makes unplaced leg i receive: all behind it have everything before psn.
func (g *group) placeLeg(now time.Duration, i int, psn rocev2.PSN, out *Output) {
	if !g.isNear(psn) {
		return
	}
	g.activate(now)
	g.setUnplaced(i, false)
	psn = g.reach(psn)
	g.startAt(i, psn)
	g.watchTurn()
	g.resend(now, out)
	g.evaluate(out)
	if g.live.period != 0 && !g.due.armed(livenessCheck) && !g.is(failed) {
		g.startLiveness(now)
	}
}

// isNear reports whether psn can be a position in the present turn.
func (g *group) isNear(psn rocev2.PSN) bool {
	d := psn.Sub(g.fwd.nxt)
	return -maxBehind < d && d <= maxAhead && psn.Prev().Sub(g.agg.acked) <= maxAhead
}

// startAt makes leg i receive the present turn from psn on. Everything before is had by all
// behind it. What was forwarded since is repaired as a loss.
func (g *group) startAt(i int, psn rocev2.PSN) {
	if psn.LessEq(g.agg.acked) {
		g.lowerAcked(psn.Prev())
	}
	g.startReceiving(i, g.agg.acked.Next())
	g.noteAcked(&g.acks[i], psn.Prev())
	t := &g.activity[i]
	t.livenessPSN, t.lagPSN = psn.Prev(), psn.Prev()
	t.recovery.ackReqPSN, t.recovery.resentPSN, t.recovery.expectedACK = psn.Prev(), psn.Prev(), psn.Prev()
	g.resumeLeg(i)
}

// lowerAcked takes acked back to a. The members behind a new leg lack what all others have;
// nothing of it is acknowledged to the source, which every switch nearer to it counts for.
func (g *group) lowerAcked(a rocev2.PSN) {
	g.src.ackedCount = max(g.src.ackedCount-g.agg.acked.Sub(a), 0)
	g.agg.acked, g.agg.numAtAcked, g.agg.request = a, 0, request{}
	if a.Less(g.lag.floor) {
		g.lag.floor = a
	}
}

// reach raises nxt to psn, which all members behind a leg have everything before. It returns the
// PSN up to which that counts.
func (g *group) reach(psn rocev2.PSN) rocev2.PSN {
	if g.fwd.nxt.Less(psn) {
		if g.mayMiss() {
			return g.fwd.nxt
		}
		g.raiseNxt(psn)
	}
	return psn
}

// takeNext raises nxt to next, up to which the source's packets have come to a switch below (R99).
// They went through this switch before it started again, and nobody has to have acknowledged them:
// as long as one is in the middle of a message, the source is not at rest.
// It reports whether it does.
func (g *group) takeNext(now time.Duration, next rocev2.PSN) bool {
	was := g.fwd.nxt
	if was.Less(next) && g.isNear(next) && g.tree().edges.rejoined {
		g.activate(now)
		g.reach(next)
	}
	return g.fwd.nxt != was
}

// mayMiss reports whether receivers here wait to join, and their first message may be among those
// that a neighbour has: it had another place in the tree, and has not got them from here. A switch
// toward the source that says the same had it from here.
func (g *group) mayMiss() bool { return g.is(joiners) && g.src.neighbor != 0 }

// raiseNxt notes that everything before psn was forwarded, not by this switch since it knows
// the turn: a neighbour has it. The others get it as after a loss.
func (g *group) raiseNxt(psn rocev2.PSN) {
	if g.numbering.checks != nil {
		g.numbering.noteGap(psn, g.fwd.nxt)
	}
	g.setNxt(psn, g.fwd.limit)
	g.fwd.writeMessage = writeMessage{}
	if g.repair.store != nil {
		g.repair.store.contiguousFrom = psn
	}
	g.fwd.midMessage, g.watchTurn().unknownEnd = true, true
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&(isReceiver|recovering) == isReceiver && b.pending == sevNone {
			g.resumeLeg(i)
		}
	}
}

// watchTurn returns what the present turn has to show, which goes on elsewhere.
func (g *group) watchTurn() *resume {
	if !g.is(resumes) {
		g.set(resumes, true)
		g.newExtra().resume = resume{source: MemberID(g.src.member), unconfirmed: true}
	}
	return &g.extra.resume
}

// countPosition counts a position from below as an acknowledgement of leg i.
func (g *group) countPosition(now time.Duration, i int, psn rocev2.PSN, out *Output) {
	b := &g.acks[i]
	if b.flags&isReceiver == 0 || !g.isNear(psn) || psn.LessEq(b.acked.Next()) {
		return
	}
	if g.fwd.nxt.Less(psn) {
		if !g.tree().edges.rejoined {
			return
		}
		g.activate(now)
		if psn = g.reach(psn); psn.LessEq(b.acked.Next()) {
			return
		}
	}
	g.activate(now)
	g.applyPauses(i)
	if g.live.deadAfter != 0 {
		g.activity[i].lastHeard = now
	}
	g.ackReceived(now, i, psn.Prev(), out)
	g.evaluate(out)
	g.resend(now, out)
}

// takeFromAbove takes a position of the switch toward the source: all behind the leg to this
// switch have everything before psn. So has a receiver here that had accepted nothing as far as
// its answer to a probe shows (R52). Another one that lacks something of it was evicted before
// the switch started again, and the eviction had not become durable.
func (g *group) takeFromAbove(now time.Duration, psn rocev2.PSN, out *Output) {
	if psn.Prev().LessEq(g.agg.acked) || !g.tree().edges.rejoined || !g.isNear(psn) {
		return
	}
	g.activate(now)
	if g.fwd.nxt.Less(psn) {
		g.raiseNxt(psn)
	}
	for i := range g.acks {
		b := &g.acks[i]
		switch lacks := b.flags&isReceiver != 0 && b.acked.Less(psn.Prev()); {
		case !lacks || g.is(failed):
		case b.flags&isConnected == 0:
			g.ackReceived(now, i, psn.Prev(), out)
		case g.numbering.checks != nil && g.numbering.checks[i].acceptedNothing:
			g.numbering.checks[i].acceptedNothing = false
			g.ackReceived(now, i, psn.Prev(), out)
		default:
			g.judge(i, Stranded, out)
		}
	}
	if !g.is(failed) {
		g.evaluate(out)
		g.resend(now, out)
	}
}

// mayRaise reports whether feedback of the neighbour behind leg i, which acknowledges acked
// that was not forwarded here, is true all the same: it is of the present registration (R87),
// and the turn has gone on without this switch.
func (g *group) mayRaise(i int, acked rocev2.PSN) bool {
	return !g.legs[i].connected() && g.tree().edges.rejoined && acked.Sub(g.agg.acked) <= maxAhead
}

// What follows is about legs to other switches whose members have all joined in the present turn, at
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
	if msg.Position.Source != token.NoMember && !msg.Position.Over || msg.Ack == 0 || g.is(failed) || g.src.member == none || !g.isHeld(int(l)) {
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

// unplaceReceivers makes all legs to other switches that receive unplaced.
func (g *group) unplaceReceivers() {
	for _, i := range g.forwardedLegs() {
		if g.acks[i].flags&isReceiver != 0 {
			g.unplace(int(i))
		}
	}
}

// joinNeeded joins the turn of the source that the neighbour toward it needs a position of, if this
// switch has learnt where that goes on, and has had no data of it: what the switches below have, the
// neighbour hears from here alone. It may have nothing to send before it has. Else the question is passed on.
func (t *tree) joinNeeded(now time.Duration, leg token.Leg, at *token.Position, out *Output) {
	g := t.g
	k, ok := t.memberOf(at.Needed)
	t.noteRelay(t.legID(leg), at)
	if !ok || g.is(failed) || g.members[k].leg != t.legID(leg) {
		return
	}
	if int32(k) == g.src.member && g.isUnconfirmed() {
		t.pollForPositions(now, out)
	}
	was := t.knows(k)
	switch {
	case int32(k) == g.src.member || was == positionKnown || g.is(learning):
		return
	case was != positionLearnt || !t.machine.Accepts(leg) || !t.mayFollow():
		t.passOn(now, k, at, out)
		return
	}
	if g.endUnknown() {
		g.extra.resume.unknownEnd, g.fwd.midMessage = false, false
	}
	g.openTurn(now, k, out)
	g.watchTurn()
	t.notePolled(now)
	t.announce(now, out)
}
