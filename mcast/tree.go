// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
)

// A group with legs to other switches (R84): the right to be its source is a token, which
// moves from switch to switch. docs/TREES.md has the protocol, package token its machine.
//
// What passes the data path is two flags of source: frozen and wanted.

// tree is a group's part in the agreement of its switches on who may send.
type tree struct {
	g       *group
	place   TreeSpec
	machine *token.Machine
	edges   edgePositions
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
	case g.is(failed):
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
				g.turn.contendedSince = max(now, 1)
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
