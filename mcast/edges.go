// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Positions at the edges of a tree (R89). Each message of the token says of one source what
// is had behind the edge, at the moment when the message goes out: "all members behind the
// downstream end have everything that source k has sent before PSN p". The upstream end says
// it of the leg's acked, the downstream end of its own. So a switch that has started again, or
// is new in the tree, learns where it goes on.

// edgePositions is what a switch has and lacks of the positions at its edges.
type edgePositions struct {
	needed   []token.Member `state:"own(needed)"`                // the source that the neighbour needs a position of, by LegID
	firsts   []knowledge    `state:"list"`                       // what is known of a member's first PSN in its next turn, by MemberID; of those beyond its end all is
	asked    int32          `state:"encoded"`                    // the member whose data waits for its position, or none
	askedPSN rocev2.PSN     `state:"encoded if x.asked != none"` // PSN of that data
	polledAt time.Duration  `state:"since(c.g.tree().retry())"`  // time of the last question to a neighbour
	relay    relay          `state:"encoded"`                    // a question that is passed on (R105)
	rejoined bool           `state:"encoded"`                    // the switch got the group, or its place, when the tree ran: neighbours may have acknowledged more than was forwarded here
}

// knowledge is what a switch knows of a member's first PSN in its next turn.
type knowledge uint8

const (
	positionKnown   knowledge = iota // the end of its last turn
	positionMoved                    // the same, in another tree: members that were not on this side may have more, or less
	positionLearnt                   // a PSN that a neighbour has said, perhaps within a turn
	positionUnknown                  // no PSN
)

// knows returns what is known of the position of member k.
func (t *tree) knows(k MemberID) knowledge {
	if int(k) >= len(t.edges.firsts) {
		return positionKnown
	}
	return t.edges.firsts[k]
}

// isUnknown reports whether the position of member k is not known.
func (t *tree) isUnknown(k MemberID) bool { return t.knows(k) == positionUnknown }

// note sets what is known of the position of member k.
func (t *tree) note(k MemberID, what knowledge) {
	e := &t.edges
	if n := len(t.g.members) - len(e.firsts); n > 0 && what != positionKnown {
		e.firsts = append(e.firsts, make([]knowledge, n)...)
	}
	if int(k) < len(e.firsts) {
		e.firsts[k] = what
	}
}

// forgetRemote makes the positions of members behind other switches unknown, in a group
// that runs already.
func (g *group) forgetRemote(spec *GroupSpec) {
	g.tree().edges.rejoined = spec.Tree.Running
	for k := range g.members {
		if spec.Tree.Running && !g.legs[g.members[k].leg].connected() {
			g.tree().note(MemberID(k), positionUnknown)
		}
	}
}

// position returns what a message to the neighbour behind leg l says, of the source that the
// neighbour needs a position of, or of the present one.
func (t *tree) position(l LegID) token.Position {
	g, e := t.g, &t.edges
	at := token.Position{Needed: t.needs(l), Layout: t.place.layout()}
	k := g.src.member
	if int(l) < len(e.needed) {
		if n, ok := t.memberOf(e.needed[l]); ok {
			k = int32(n)
		}
	}
	if k == none {
		return at
	}
	if r := &t.edges.relay; r.answered && r.member == k && g.members[k].leg == l && k != g.src.member {
		at.Source, at.PSN, at.Next, at.Ends = g.numberOf(MemberID(k)), uint32(r.low), uint32(r.next), r.ends
	} else if g.members[k].leg == l && (t.isIgnorant(MemberID(k)) || r.nothing && r.member == k) {
		at.Source, at.Over = g.numberOf(MemberID(k)), true
	} else if psn, ok := t.had(l, MemberID(k)); ok {
		downstream := k == g.src.member && g.members[k].leg != l
		at.Next = uint32(psn)
		if over, ok := g.passedOver(); ok && downstream && psn.Less(over) && !t.isNeeded(l, MemberID(k)) {
			psn, at.Over = over, true
		}
		at.Source, at.PSN, at.Ends = g.numberOf(MemberID(k)), uint32(psn), t.endsBefore(MemberID(k), psn)
		if k == g.src.member && g.members[k].leg == l { // the switch above has started again, perhaps
			at.Next = uint32(g.fwd.nxt)
		}
	}
	return at
}

// needs returns the source that a position is needed of from the neighbour behind leg l: the
// member behind it whose data waits for one, the present source if its data cannot go on without,
// the member of a question that is passed on, or the present source if what all behind the leg have
// of it is not known.
func (t *tree) needs(l LegID) token.Member {
	g, k := t.g, t.edges.asked
	switch b := g.ackStateOf(int(l)); {
	case k != none && g.members[k].live && g.members[k].leg == l:
		return g.numberOf(MemberID(k))
	case g.src.member != none && (b.flags&isUnplaced != 0 || g.is(unplaced) && int32(l) == g.src.leg):
		return g.numberOf(MemberID(g.src.member))
	case t.relays(l):
		return g.numberOf(MemberID(t.edges.relay.member))
	case g.src.member != none && b.flags&isReceiver != 0 && g.isUnconfirmed() && (b.acked.Less(g.fwd.nxt.Prev()) || g.endUnknown()):
		return g.numberOf(MemberID(g.src.member))
	}
	return token.NoMember
}

// had returns the PSN of member k before which all members behind the downstream end of leg
// l have everything, if that is known.
func (t *tree) had(l LegID, k MemberID) (rocev2.PSN, bool) {
	g := t.g
	switch m := &g.members[k]; {
	case g.is(failed) || g.is(learning) || t.isUnknown(k):
		return 0, false
	case int32(k) != g.src.member:
		return m.sqPSN, !(t.knows(k) == positionMoved && m.leg == l) // between its turns all have everything
	case m.leg == l:
		return g.agg.acked.Next(), !g.is(unplaced)
	}
	b := g.ackStateOf(int(l))
	if b.flags&isUnplaced != 0 && g.src.neighbor == 0 && !g.legs[l].joining {
		return g.members[k].sqPSN, true // the stored position, which all have everything before
	}
	return b.acked.Next(), b.flags&isReceiver != 0
}

// endsBefore reports whether the packet of member k before psn, a position of it, is known to end a
// message. Turns end with a message.
func (t *tree) endsBefore(k MemberID, psn rocev2.PSN) bool {
	if int32(k) != t.g.src.member {
		return t.knows(k) != positionLearnt
	}
	return psn == t.g.fwd.nxt && !t.g.fwd.midMessage
}

// isNewest reports whether msg, which the machine has taken, is as new as any from leg.
func (t *tree) isNewest(leg token.Leg, msg *token.Message) bool {
	_, _, received, up := t.machine.Numbers(leg)
	return up && received == msg.Seq && msg.Position.Layout == t.place.layout()
}

// noteNeeded notes which source the neighbour behind leg l needs a position of.
func (t *tree) noteNeeded(l LegID, at *token.Position) {
	e := &t.edges
	for len(e.needed) <= int(l) {
		e.needed = append(e.needed, token.NoMember)
	}
	e.needed[l] = at.Needed
}

// isNeeded reports whether the neighbour behind leg l needs a position of member k.
func (t *tree) isNeeded(l LegID, k MemberID) bool {
	e := &t.edges
	return int(l) < len(e.needed) && e.needed[l] == t.g.numberOf(k)
}

// takePosition takes the position in a message of the neighbour behind leg l.
func (t *tree) takePosition(now time.Duration, l LegID, at *token.Position, out *Output) {
	g := t.g
	k, ok := t.memberOf(at.Source)
	if !ok || g.is(failed) {
		return
	}
	psn := rocev2.PSN(at.PSN)
	switch upstream := g.members[k].leg == l; {
	case at.Over && upstream && t.isUnknown(k):
		if next := rocev2.PSN(at.Next); next.Less(psn) {
			t.learn(k, next, out)
		}
	case at.Over && int32(k) == t.edges.relay.member && (upstream || t.relays(l)):
		t.takeRelayed(now, l, at, out)
	case at.Over:
		if upstream && int32(k) == g.src.member && !g.is(learning|unplaced) && g.isNear(psn) && g.isPassedOver(psn) {
			g.passOver(now, psn, out)
		}
	case upstream && t.isUnknown(k):
		t.learn(k, psn, out)
	case int32(k) == t.edges.relay.member && t.relays(l):
		t.takeRelayed(now, l, at, out)
	case g.is(learning) || int32(k) != g.src.member:
	case upstream && g.is(unplaced):
		if g.isNear(psn) && g.fwd.nxt.Less(psn) {
			g.activate(now)
			g.raiseNxt(psn)
		}
		for i := range g.acks {
			if g.acks[i].flags&isUnplaced != 0 {
				g.placeLeg(now, i, psn, out)
			}
		}
		if !g.is(unplaced) { // else the neighbour's answer would bring the same again, without end
			t.announce(now, out)
		}
	case upstream:
		g.takeFromAbove(now, psn, out)
	case g.acks[l].flags&isUnplaced != 0:
		g.takeNext(now, rocev2.PSN(at.Next))
		if g.placeLeg(now, int(l), psn, out); !g.is(unplaced) {
			t.announce(now, out)
		}
	default:
		raised := g.acks[l].flags&isReceiver != 0 && g.takeNext(now, rocev2.PSN(at.Next))
		if g.countPosition(now, int(l), psn, out); raised {
			g.evaluate(out) // what receivers lack of it is requested
			g.resend(now, out)
		}
	}
	if at.Ends && !at.Over && int32(k) == g.src.member {
		g.noteEnd(psn)
	}
}

// learn sets the position of member k, whose leg is upstream. A packet of k that came before
// is asked for, or answered.
func (t *tree) learn(k MemberID, psn rocev2.PSN, out *Output) {
	g, e := t.g, &t.edges
	m := &g.members[k]
	m.ackedCount = addAckedCount(m.ackedCount, int32((psn-m.sqPSN)&rocev2.PSNMask))
	m.sqPSN = psn
	t.note(k, positionLearnt)
	if e.asked != int32(k) {
		return
	}
	e.asked = none
	at, syndrome := psn, rocev2.SyndromeNAKSequence
	if e.askedPSN.Less(psn) {
		at, syndrome = psn.Prev(), rocev2.SyndromeACK
	}
	g.counters.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{Group: g.id, To: k, Op: rocev2.Acknowledge, PSN: at, Syndrome: syndrome, MSN: g.msnTo(k, 0)})
}

// requestOfUnknown serves a packet of member k, behind another switch, whose position is not
// known: the neighbour is asked for it.
func (t *tree) requestOfUnknown(now time.Duration, k MemberID, p *Packet, out *Output) Reason {
	l := t.g.members[k].leg
	if !t.machine.Accepts(t.legOf(l)) {
		return NoToken
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	e := &t.edges
	fresh := e.asked != int32(k)
	e.asked, e.askedPSN = int32(k), p.PSN&rocev2.PSNMask
	if fresh || t.mayPoll(now) {
		t.notePolled(now)
		t.poll(now, l, out)
	}
	return Resuming
}

// pollForPositions asks the neighbours whose positions are needed, if they have not been asked
// just now.
func (t *tree) pollForPositions(now time.Duration, out *Output) {
	if !t.mayPoll(now) {
		return
	}
	t.notePolled(now)
	for _, l := range t.g.forwardedLegs() {
		if t.needs(l) != token.NoMember {
			t.poll(now, l, out)
		}
	}
}

// mayPoll reports whether the last poll is long enough ago.
func (t *tree) mayPoll(now time.Duration) bool {
	return t.edges.polledAt == 0 || now-t.edges.polledAt >= t.retry()
}

func (t *tree) notePolled(now time.Duration) { t.edges.polledAt = max(now, 1) }

func (t *tree) retry() time.Duration {
	if t.place.Retry == 0 {
		return token.DefaultRetry
	}
	return t.place.Retry
}

// poll asks the neighbour behind leg l.
func (t *tree) poll(now time.Duration, l LegID, out *Output) {
	t.machine.Poll(now, t.legOf(l), &t.g.sw.tokens)
	t.carryOut(now, out)
}

// announce tells all neighbours the positions that the switch knows now: they may lack them.
func (t *tree) announce(now time.Duration, out *Output) {
	for _, l := range t.g.forwardedLegs() {
		t.poll(now, l, out)
	}
}

// takeOverTurn notes that the turn of member k, which has just begun here, may have begun
// elsewhere before, if k's position is from a neighbour, or of another tree. It returns what was known of it.
func (t *tree) takeOverTurn(now time.Duration, k MemberID, out *Output) (was knowledge) {
	was = t.knows(k)
	if t.note(k, positionKnown); t.edges.relay.member == int32(k) {
		t.endRelay()
	}
	switch was {
	case positionLearnt:
		t.joinLate()
	case positionMoved:
		t.g.unplaceReceivers()
		t.g.watchTurn()
		t.notePolled(now)
		t.announce(now, out)
	}
	return was
}

// joinLate joins a turn that has gone on without this switch. Nobody here has had anything of it.
func (t *tree) joinLate() {
	g := t.g
	for i := range g.legs {
		if g.legs[i].connected() && g.acks[i].flags&isReceiver != 0 {
			g.stopReceiving(i)
			g.setJoining(i, true)
		}
	}
	t.joinTurn()
}

// joinTurn marks the present turn as one that has gone on without this switch.
func (t *tree) joinTurn() {
	g := t.g
	g.fwd.midMessage = true
	g.set(resumes, true)
	g.extra.resume = resume{source: MemberID(g.src.member), unknownEnd: true, unconfirmed: true}
}
