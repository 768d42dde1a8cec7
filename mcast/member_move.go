// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"errors"
	"fmt"
	"time"
)

// Members that are behind another neighbour from now on (R90): the tree has another layout.

// addLeg checks a new leg of an update.
func (c *memberChange) addLeg(l LegSpec) error {
	if err := checkLeg(l); err != nil {
		return err
	}
	if l.Kind == Forwarded {
		for _, f := range c.g.forwardedLegs() {
			if c.g.legs[f].neighbor == l.Neighbor {
				return fmt.Errorf("leg %d already goes to neighbour %d", f, l.Neighbor)
			}
		}
		if f, ok := c.newTo[l.Neighbor]; ok {
			return fmt.Errorf("leg %d already goes to neighbour %d", f, l.Neighbor)
		}
		c.newTo[l.Neighbor] = LegID(c.legs)
	}
	c.legs++
	return nil
}

// isNewTo reports whether leg at is a new one, to neighbour n.
func (c *memberChange) isNewTo(at LegID, n Neighbor) bool {
	l, ok := c.newTo[n]
	return ok && l == at
}

func (s *Switch) checkMoves(c *memberChange, op *UpdateMembers) error {
	g, moved := c.g, make(map[MemberID]bool, len(op.Move))
	for _, m := range op.Move {
		switch {
		case int(m.Member) >= len(g.members) || !g.members[m.Member].live || c.leaving[m.Member] || moved[m.Member]:
			return fmt.Errorf("mcast: group %d: has no live member %d to be moved", g.id, m.Member)
		case g.is(failed):
			return fmt.Errorf("mcast: group %d: has failed; put it anew", g.id)
		}
		moved[m.Member] = true
		if err := c.checkMove(&m); err != nil {
			return fmt.Errorf("mcast: group %d: member %d to leg %d: %w", g.id, m.Member, m.To, err)
		}
	}
	if len(op.Move) > 0 && (op.Tree == nil || op.Tree.layout() == g.tree().place.layout()) {
		return fmt.Errorf("mcast: group %d: members are behind other switches, so the tree has another layout", g.id)
	}
	if p := op.Tree; p != nil && c.inTree && (p.Epoch != g.tree().place.Epoch || p.Running) {
		return fmt.Errorf("mcast: group %d: an update keeps epoch %d, and runs here", g.id, g.tree().place.Epoch)
	}
	return nil
}

func (c *memberChange) checkMove(m *MoveMember) error {
	g := c.g
	switch from := g.members[m.Member].leg; {
	case g.legs[from].connected():
		return errors.New("the member is at this switch, and has to join anew behind another one")
	case m.To == from:
		return errors.New("the member is there already")
	case int(m.To) > c.legs:
		return fmt.Errorf("the leg does not exist; the next free one is %d", c.legs)
	case int(m.To) < len(g.legs):
		if g.legs[m.To].connected() {
			return errors.New("the leg is a connected one")
		}
		return nil
	case m.Leg.Kind != Forwarded:
		return errors.New("a new leg for it has to go to another switch")
	case c.isNewTo(m.To, m.Leg.Neighbor):
		return nil
	case int(m.To) < c.legs:
		return errors.New("the leg goes to another neighbour")
	}
	return c.addLeg(m.Leg)
}

// highestNumber returns the highest number that a member has had here.
func (g *group) highestNumber() (n uint32) {
	for k := range g.members {
		n = max(n, uint32(g.numberOf(MemberID(k))))
	}
	if g.extra != nil {
		n = max(n, uint32(g.extra.highest))
	}
	return n
}

// origin is where the members come from that a leg gets.
type origin uint8

const (
	fromNowhere   origin = iota
	fromJoining          // receivers from the next message on
	fromReceivers        // they have what is acknowledged
	fromUpstream         // members from where the source is: what they have is not known
)

// moveMembers puts members behind other legs.
func (g *group) moveMembers(now time.Duration, moves []MoveMember) {
	if len(moves) == 0 {
		return
	}
	gained := make(map[LegID]origin)
	for i := range moves {
		m := &moves[i]
		if int(m.To) == len(g.legs) {
			g.addLeg(m.Leg)
		}
		k := &g.members[m.Member]
		from := g.originOf(k.leg)
		gained[m.To] = max(gained[m.To], from)
		if g.is(learning) { // the leg waits for the next message if all behind it do
			g.setJoining(int(m.To), from == fromJoining && (g.legs[m.To].joining || g.legs[m.To].members == 0))
		}
		g.legs[k.leg].members--
		g.legs[m.To].members++
		k.leg = m.To
	}
	for _, l := range g.forwardedLegs() {
		g.legs[l].member = g.firstMemberBehind(l)
	}
	if g.src.member != none {
		g.followSource(gained)
	}
	for _, l := range g.forwardedLegs() {
		switch i := int(l); {
		case g.legs[l].members == 0:
			g.removeLeg(i)
		case g.src.member == none || int32(l) == g.src.leg:
		default:
			g.extendLeg(now, i, gained[l])
		}
	}
	g.tree().noteMoved()
	g.tree().edges.rejoined = true
}

// originOf returns what is known of the members behind leg l.
func (g *group) originOf(l LegID) origin {
	switch f := g.ackStateOf(int(l)).flags; {
	case f&isReceiver != 0:
		return fromReceivers
	case g.legs[l].joining:
		return fromJoining
	}
	return fromUpstream
}

// followSource lets data come from the leg that the source is behind now. Members behind the
// leg where it was are receivers.
func (g *group) followSource(gained map[LegID]origin) {
	was, l := LegID(g.src.leg), g.members[g.src.member].leg
	if was == l {
		return
	}
	g.src.leg, g.src.neighbor = int32(l), g.legs[l].neighbor
	g.setJoining(int(l), false)
	g.setUnplaced(int(l), false)
	g.stopReceiving(int(l))
	gained[was] = fromUpstream
}

// extendLeg lets leg i, which leads to receivers, get what they need.
func (g *group) extendLeg(now time.Duration, i int, from origin) {
	b := &g.acks[i]
	switch receives := b.flags&isReceiver != 0; {
	case from == fromNowhere:
	case b.flags&isUnplaced != 0:
		g.setJoining(i, g.legs[i].joining && from == fromJoining)
	case from == fromUpstream:
		g.unplace(i)
	case from == fromReceivers:
		g.activate(now)
		g.setJoining(i, false)
		g.stopReceiving(i)
		g.startAt(i, g.agg.acked.Next())
	case !receives:
		g.setJoining(i, true)
	}
}
