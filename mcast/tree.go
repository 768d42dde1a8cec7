// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A group with legs to other switches (R84): the right to be its source is a token, which
// moves from switch to switch. docs/TREES.md has the protocol, package token its machine.
//
// What passes the data path is two gates: frozen and wanted.

// tree is a group's part in the agreement of its switches on who may send.
type tree struct {
	g       *group         `state:"constant"`
	place   TreeSpec       `state:"constant"`
	machine *token.Machine `state:"encoded"`
	edges   edgePositions  `state:"encoded"`
}

// newTree makes the tree of g, which has a forwarded leg now. A source with data in flight
// is served from the beginning.
func (g *group) newTree(now time.Duration, place TreeSpec) {
	t := &tree{g: g, place: place}
	g.newExtra().tree = t
	var children []token.Leg
	for _, l := range g.forwardedLegs() {
		if leg := t.legOf(l); leg != token.Parent {
			children = append(children, leg)
		}
	}
	t.machine = token.New(token.Config{
		Group: g.ip.Addr(), Epoch: place.Epoch, Root: place.Parent == 0, Children: children, Retry: place.Retry, Switch: t,
	})
	if g.src.member != none && !g.isQuiescent() && g.src.neighbor == 0 {
		t.machine.Request(now, t.g.numberOf(MemberID(g.src.member)), &t.g.sw.tokens)
	}
	g.turn.next = none // a tree has the order of waiting members in its token machine
	t.edges.asked = none
	t.endRelay()
	t.refresh()
}

// legOf returns the machine's leg of a leg of the group.
func (t *tree) legOf(l LegID) token.Leg {
	switch n := t.g.legs[l].neighbor; n {
	case 0:
		return token.Here
	case t.place.Parent:
		return token.Parent
	}
	return token.Leg(l) + 1
}

// neighborOf returns the neighbour behind a leg of the machine.
func (t *tree) neighborOf(leg token.Leg) Neighbor {
	if leg == token.Parent {
		return t.place.Parent
	}
	return t.g.legs[leg-1].neighbor
}

// legID returns the group's leg of a leg of the machine.
func (t *tree) legID(leg token.Leg) LegID {
	if leg != token.Parent {
		return LegID(leg - 1)
	}
	for _, l := range t.g.forwardedLegs() {
		if t.g.legs[l].neighbor == t.place.Parent {
			return l
		}
	}
	panic("mcast: a tree with a parent and no leg to it")
}

// legTo returns the machine's leg to a neighbour.
func (t *tree) legTo(n Neighbor) (token.Leg, bool) {
	if n == 0 || n == t.place.Parent {
		return token.Parent, n != 0
	}
	for _, l := range t.g.forwardedLegs() {
		if t.g.legs[l].neighbor == n {
			return token.Leg(l) + 1, true
		}
	}
	return 0, false
}

// numberOf returns the number of member k in the registration.
func (g *group) numberOf(k MemberID) token.Member {
	if g.extra != nil && int(k) < len(g.extra.numbers) {
		return g.extra.numbers[k]
	}
	return token.Member(k) + 1
}

// memberOf returns the live member with a number.
func (t *tree) memberOf(n token.Member) (MemberID, bool) { return t.g.numbered(uint32(n)) }

// numbered returns the live member with a number in the registration; 0 is none's.
func (g *group) numbered(n uint32) (MemberID, bool) {
	k := int(n) - 1
	if x := g.extra; x != nil && x.numbers != nil {
		if m, ok := x.byNumber[token.Member(n)]; ok {
			k = int(m)
		} else if k < len(x.numbers) {
			k = none
		}
	}
	return MemberID(k), 0 <= k && k < len(g.members) && g.members[k].live
}

// setNumber records the number of member k, if it is not MemberID+1.
func (g *group) setNumber(k MemberID, n uint32) {
	if n == 0 {
		n = uint32(k) + 1
	}
	if n == uint32(k)+1 && (g.extra == nil || int(k) >= len(g.extra.numbers)) {
		return
	}
	x := g.newExtra()
	if x.byNumber == nil {
		x.byNumber = make(map[token.Member]MemberID)
	}
	for len(x.numbers) <= int(k) {
		m := MemberID(len(x.numbers))
		x.numbers = append(x.numbers, token.Member(m)+1)
		if _, ok := x.byNumber[token.Member(m)+1]; !ok {
			x.byNumber[token.Member(m)+1] = m
		}
	}
	if was := x.numbers[k]; x.byNumber[was] == k {
		delete(x.byNumber, was) // of a member that was at this place
	}
	x.numbers[k] = token.Member(n)
	x.byNumber[token.Member(n)] = k
}

// Locate implements token.Switch.
func (t *tree) Locate(n token.Member) token.Leg {
	k, ok := t.memberOf(n)
	if !ok {
		return token.Nowhere
	}
	return t.legOf(t.g.members[k].leg)
}

// Unfinished implements token.Switch.
func (t *tree) Unfinished() (k token.Member, certain bool) {
	g := t.g
	switch certain = g.isUnfinished(); {
	case g.is(failed), g.isAside(): // what is aside has not heard how the message has ended
		return token.NoMember, false
	case g.is(learning) && g.legs[g.members[g.extra.resume.source].leg].connected():
		return g.numberOf(g.extra.resume.source), false // its turn may have ended since
	case g.isQuiescent() || g.src.neighbor != 0 && !certain: // a switch nearer to the source knows
		return token.NoMember, false
	}
	return g.numberOf(MemberID(g.src.member)), certain
}

// serves reports whether member k, of this switch, may send.
func (t *tree) serves(k MemberID) bool { return t.machine.Serving() == t.g.numberOf(k) }

// request asks for the turn of member k, of this switch, whose packet is verified. It
// reports whether the turn is there.
func (t *tree) request(now time.Duration, k MemberID, out *Output) bool {
	if h := t.g.newHistory(k); h.waits == 0 {
		h.waits = max(now, 1)
	}
	t.machine.Request(now, t.g.numberOf(k), &t.g.sw.tokens)
	t.carryOut(now, out)
	return t.serves(k)
}

// carryOut does what the machine orders.
func (t *tree) carryOut(now time.Duration, out *Output) {
	g, o := t.g, &t.g.sw.tokens
	for {
		for i := range o.Messages {
			m := &o.Messages[i]
			m.Message.Position = t.position(t.legID(m.Leg))
			out.Reports = append(out.Reports, Report{g.id, t.neighborOf(m.Leg), m.Message})
		}
		for _, a := range o.Actions {
			switch a.Kind {
			case token.Serve:
				if g.src.member != none && t.g.numberOf(MemberID(g.src.member)) == a.Member {
					g.src.hasLastPSN = false
					g.set(messageRefused, false)
				}
			case token.Wanted:
				if g.turn.contendedSince = max(now, 1); t.machine.Doubted() {
					g.setEnding(max(now, 1))
				}
			}
		}
		t.refresh()
		if !t.rests() {
			break
		}
		t.machine.Rested(now, o)
	}
	t.arm()
}

// refresh derives the state of the turn from that of the machine.
func (t *tree) refresh() {
	g := t.g
	g.set(wanted, t.machine.Wanted())
	if !g.is(wanted) {
		if g.turn.contendedSince = 0; g.is(ending) {
			g.setEnding(0)
		}
	}
	g.set(frozen, g.src.member != none && !t.mayPass())
}

// mayPass reports whether data of the present source may be forwarded.
func (t *tree) mayPass() bool {
	if l := LegID(t.g.src.leg); !t.g.legs[l].connected() {
		return t.machine.Accepts(t.legOf(l))
	}
	return t.serves(MemberID(t.g.src.member))
}

// arm arms the group's next deadline here.
func (t *tree) arm() {
	if at, ok := t.machine.NextDeadline(); ok {
		t.g.sw.timers.arm(t.g.id, at)
	}
	t.armTurn()
}

func (t *tree) armTurn() {
	if at, e := t.turnDeadline(); e != noTurnEvent {
		t.g.sw.timers.arm(t.g.id, at)
	}
}

// Turns in a tree of switches (R84, R85): the switch that a source is connected to ends its
// turn. Time decides here, not the next request of a member, which may be anywhere.

// begun reports whether the member that is served has sent something in its turn.
func (t *tree) begun() bool {
	return t.g.src.member != none && t.g.src.hasLastPSN && t.serves(MemberID(t.g.src.member))
}

// unfinished reports whether the member that is served is in the middle of its data.
func (t *tree) unfinished() bool {
	return t.g.src.member != none && t.serves(MemberID(t.g.src.member)) && !t.g.isQuiescent()
}

// rests reports whether the turn of the member that is served ends now: others wait for
// it, and its data is complete. Data that waits here is not.
func (t *tree) rests() bool {
	return t.machine.Wanted() && t.begun() && t.g.isQuiescent() && !t.g.is(failed|awaitsFile|blocking)
}

// rest gives the token to those that wait, if the source is at rest.
func (t *tree) rest(now time.Duration, out *Output) {
	if t.rests() {
		t.machine.Rested(now, &t.g.sw.tokens)
		t.carryOut(now, out)
		return
	}
	t.armTurn() // the source may have begun
}

// turnEvent is what is due about the turn of the member that is served, while others wait.
type turnEvent uint8

const (
	noTurnEvent  turnEvent = iota
	turnTimeOver           // the turn has lasted for TurnTime: it ends with the message under way (R77)
	turnNotUsed            // the member that is served has sent nothing since its request (R78)
	sourceSilent           // the source has sent nothing for SourceTimeout (R65)
)

// turnDeadline returns when something is due about the turn, and what.
func (t *tree) turnDeadline() (time.Duration, turnEvent) {
	g := t.g
	k, ok := t.memberOf(t.machine.Serving())
	if !ok || !t.machine.Wanted() || g.is(failed) || g.is(learning) {
		return 0, noTurnEvent
	}
	since, begun := g.turn.contendedSince, t.begun()
	if int32(k) != g.src.member && !t.mayFollow() {
		return 0, noTurnEvent // the last source's data is not complete here
	}
	if !begun && !t.unfinished() { // it has the token since it asked, or since it might have been unfinished
		return since + turnReserved, turnNotUsed
	}
	at, e := time.Duration(0), noTurnEvent
	if begun && g.turn.time > 0 && !g.is(ending) && !g.waitsForFile() {
		at, e = since+g.turn.time, turnTimeOver
	}
	if begun {
		since = max(since, g.src.lastPSNAt)
	}
	if s := since + g.turn.sourceTimeout; g.turn.sourceTimeout > 0 && (e == noTurnEvent || s < at) {
		at, e = s, sourceSilent
	}
	return at, e
}

// advance does what is due.
func (t *tree) advance(now time.Duration, out *Output) {
	if at, ok := t.machine.NextDeadline(); ok && at <= now {
		t.machine.Advance(now, &t.g.sw.tokens)
		t.carryOut(now, out)
	}
	switch at, e := t.turnDeadline(); {
	case e == noTurnEvent || now < at:
	case e == turnTimeOver:
		t.g.setEnding(max(now, 1))
	default:
		t.giveUp(now, out)
	}
	t.arm()
	t.rest(now, out)
}

// isDoubted reports whether the source, which may begin no message, has not shown yet whether it is within one.
func (g *group) isDoubted() bool {
	return g.is(resumes) && g.extra.resume.unknownEnd && g.tree() != nil && g.tree().machine.Doubted()
}

// mayFollow reports whether a member may begin that has the token: the last source is at
// rest. If only that is not known, whether its message has ended, the token shows it.
// Data of a source without the token that waits for the file is not forwarded before that
// source has the token again.
func (t *tree) mayFollow() bool {
	g := t.g
	return g.isQuiescent() || g.endUnknown() || g.is(frozen) && g.isComplete()
}

// giveUp ends the turn of a member that sends nothing.
func (t *tree) giveUp(now time.Duration, out *Output) {
	if t.unfinished() {
		t.g.abandonSource(out)
	}
	if t.g.is(failed) || !t.mayFollow() {
		return
	}
	if k, ok := t.memberOf(t.machine.Serving()); ok {
		t.g.newHistory(k).waits = 0
	}
	t.machine.Rested(now, &t.g.sw.tokens)
	t.carryOut(now, out)
}

// requestInTree serves a packet of member k, not the present source.
func (g *group) requestInTree(now time.Duration, k MemberID, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	t, m, free := g.tree(), &g.members[k], g.isQuiescent()
	if p.Neighbor != 0 {
		switch {
		case !t.machine.Accepts(t.legOf(m.leg)):
			return NoToken
		case !t.mayFollow():
			if g.noteConflict(now, k, p.Verified, out) {
				out.NeedVerify = true
				return None
			}
			return NotSource
		}
	} else if !free && p.PSN&rocev2.PSNMask != m.sqPSN {
		return NotSource
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	if p.Neighbor == 0 && !(t.request(now, k, out) && t.mayFollow()) {
		if !free {
			g.deferSource(k, turnRNRCode, out)
			return NotSource
		}
		code := turnSoon // nobody sends here: perhaps only the token has to come
		if now-g.historyOf(k).waits >= turnReserved {
			code = turnRNRCode
		}
		g.deferSource(k, code, out)
		return NoToken
	}
	if g.endUnknown() { // the token has left the source, so that is at rest
		g.extra.resume.unknownEnd, g.fwd.midMessage = false, false
	}
	return g.beginTurn(now, k, p, f, out)
}
