// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// memberChange is an UpdateMembers while it is checked: the group as it would be after the
// entries that have been checked so far.
type memberChange struct {
	g       *group
	leaving map[MemberID]bool
	legs    int                // number of legs
	members int                // number of members, those included that have gone
	live    int                // number of live members
	taken   map[LegID]bool     // connected legs that were taken over
	freed   map[MemberID]bool  // gone members behind other switches, whose MemberIDs were given again
	joined  map[netip.Addr]int // index in Add
	inTree  bool               // there is a leg to another switch
	newTo   map[Neighbor]LegID // new legs to other switches
	highest uint32             // the highest of the numbers that members have had
}

// checkUpdate checks all of op before any part of it is applied.
func (s *Switch) checkUpdate(g *group, op *UpdateMembers) error {
	c := &memberChange{
		g: g, legs: len(g.legs), members: len(g.members),
		inTree: g.tree() != nil, leaving: make(map[MemberID]bool, len(op.Remove)), taken: make(map[LegID]bool), joined: make(map[netip.Addr]int), freed: make(map[MemberID]bool),
		newTo: make(map[Neighbor]LegID), highest: g.highestNumber(),
	}
	for _, m := range op.Remove {
		if int(m) >= len(g.members) || !g.members[m].live || c.leaving[m] {
			return fmt.Errorf("mcast: group %d: has no live member %d", g.id, m)
		}
		c.leaving[m] = true
	}
	for k := range g.members {
		if g.members[k].live && !c.leaving[MemberID(k)] {
			c.live++
		}
	}
	if err := s.checkMoves(c, op); err != nil {
		return err
	}
	for i := range op.Add {
		if err := s.checkJoin(c, &op.Add[i]); err != nil {
			return fmt.Errorf("mcast: group %d: new member %v: %w", g.id, op.Add[i].Member.IP, err)
		}
		c.joined[op.Add[i].Member.IP.Unmap()] = i
	}
	return nil
}

func (s *Switch) checkJoin(c *memberChange, op *AddMember) error {
	g, m := c.g, &op.Member
	if g.is(failed) {
		return errors.New("the group has failed; put it anew")
	}
	if err := checkMember(m, g.ip.Addr(), g.fwd.window); err != nil {
		return err
	}
	if c.live++; c.live > s.maxMembers() {
		return fmt.Errorf("the limit is %d members", s.maxMembers())
	}
	if j, ok := g.memberAt(m.IP); ok && g.members[j].live && !c.leaving[MemberID(j)] {
		return fmt.Errorf("member %d has the same address", j)
	}
	if j, ok := c.joined[m.IP.Unmap()]; ok {
		return fmt.Errorf("new member %d has the same address", j)
	}
	kind, err := s.checkJoinLeg(c, op)
	if err != nil {
		return err
	}
	if g.fwd.hasWindow && kind == Connected && m.Window == (Window{}) {
		return errors.New("has no window, but the group has one")
	}
	if c.inTree = c.inTree || kind == Forwarded; c.inTree && m.Number == 0 {
		return errors.New("has no number in the registration, which a group with legs to other switches needs")
	}
	if j, ok := g.numbered(m.Number); ok && !c.leaving[j] {
		return fmt.Errorf("member %d has the same number, %d", j, m.Number)
	}
	if c.inTree && m.Number <= c.highest {
		return fmt.Errorf("number %d is not above %d, which an earlier member has had", m.Number, c.highest)
	}
	return nil
}

// checkJoinLeg checks the leg that a new member is to have, and returns its kind.
func (s *Switch) checkJoinLeg(c *memberChange, op *AddMember) (LegKind, error) {
	g, at := c.g, op.Member.Leg
	if int(at) < len(g.legs) && g.legs[at].connected() {
		l := &g.legs[at]
		if c.taken[at] || l.members > 0 && !c.leaving[l.member] {
			return 0, fmt.Errorf("leg %d is connected to another member", at)
		}
		if op.Leg.Kind != Connected || op.Leg.Neighbor != 0 {
			return 0, fmt.Errorf("leg %d is a connected one and can only be taken over as such", at)
		}
		c.taken[at] = true
		return Connected, nil
	}
	switch most := min(2*s.maxMembers(), maxIndex); {
	case op.Replaces != 0:
		if err := c.checkReplaced(op); err != nil {
			return 0, err
		}
	case c.members >= most:
		return 0, fmt.Errorf("the limit is %d members, those included that left and are not replaced", most)
	default:
		c.members++
	}
	switch {
	case int(at) > c.legs:
		return 0, fmt.Errorf("leg %d does not exist; the next free one is %d", at, c.legs)
	case int(at) < len(g.legs):
		return g.legs[at].kind(), nil
	case int(at) < c.legs:
		if n := op.Leg.Neighbor; op.Leg.Kind == Forwarded && c.isNewTo(at, n) {
			return Forwarded, nil
		}
		return 0, fmt.Errorf("leg %d is another new member's", at)
	case g.policy.quorum > 0 && op.Leg.Kind == Forwarded:
		return 0, errors.New("a quorum counts members, but the switch behind a forwarded leg acknowledges for all of its own at once")
	}
	return op.Leg.Kind, c.addLeg(op.Leg)
}

// checkReplaced checks the MemberID that a new member is to have.
func (c *memberChange) checkReplaced(op *AddMember) error {
	g, id := c.g, MemberID(op.Replaces-1)
	at := int(op.Member.Leg)
	switch {
	case op.Replaces > uint32(len(g.members)) || g.members[id].live && !c.leaving[id] || c.freed[id]:
		return fmt.Errorf("there is no member %d that has gone", op.Replaces-1)
	case g.legs[g.members[id].leg].connected() || at >= len(g.legs) && op.Leg.Kind != Forwarded:
		return fmt.Errorf("member %d can be replaced by one at the same place alone", id)
	}
	c.freed[id] = true
	return nil
}

func (s *Switch) updateMembers(now time.Duration, op UpdateMembers, out *Output) error {
	g := s.group(op.Group)
	if g == nil {
		return fmt.Errorf("mcast: group %d: does not exist", op.Group)
	}
	if err := s.checkTakenBack(op.Group); err != nil {
		return err
	}
	if err := s.checkUpdate(g, &op); err != nil {
		return err
	}
	if g.activity == nil && g.src.member != none {
		g.activate(now)
	}
	newLayout := g.tree() != nil && op.Tree != nil && g.tree().setLayout(op.Tree)
	// The source is removed last: its data in flight is judged by the members that
	// stay, whatever the order of the list (R60).
	for _, m := range op.Remove {
		if int32(m) != g.src.member {
			g.removeMember(now, m, out)
		}
	}
	for _, m := range op.Remove {
		if int32(m) == g.src.member {
			g.removeMember(now, m, out)
		}
	}
	if t := g.tree(); t != nil {
		for _, m := range op.Remove {
			t.leave(now, m, out)
		}
	}
	if len(op.Add)+len(op.Move) > 0 {
		g.returnToTree(out)
	}
	g.moveMembers(now, op.Move)
	for i := range op.Add {
		g.addByUpdate(now, &op.Add[i])
	}
	if op.Stored && !g.policy.stored && g.numbering.interval > 0 {
		g.beginStoring(out)
	}
	g.endProbes(now, out)
	// Evaluated after all changes, so that a quorum counts the new members too.
	if len(op.Remove) > 0 && !g.is(failed) && g.src.member != none {
		g.afterRemoval(op.Remove[len(op.Remove)-1], out)
		g.unblock(out)
	}
	if len(op.Move) > 0 && !g.is(failed) && g.src.member != none {
		g.evaluate(out)
		if g.repair.numRecovering > 0 {
			g.armRecovery(now)
		}
	}
	s.rearm(g)
	g.noteEvictions(now, out.Events, out)
	g.updateTree(now, op.Tree, newLayout, out)
	return nil
}

func (g *group) addByUpdate(now time.Duration, op *AddMember) {
	at := op.Member.Leg
	if old, ok := g.memberAt(op.Member.IP); ok { // was removed earlier, and comes back
		g.unindex(old)
	}
	switch {
	case int(at) == len(g.legs):
		g.addLeg(op.Leg)
	case g.legs[at].connected():
		g.takeOver(now, &op.Member, op.Leg)
		return
	}
	if op.Replaces == 0 {
		g.addMember(&op.Member)
	} else {
		g.replaceGone(MemberID(op.Replaces-1), &op.Member)
	}
	g.joinAtNextMessage(now, at)
}

// replaceGone gives the MemberID of a member behind another switch that has gone to m.
func (g *group) replaceGone(id MemberID, m *MemberSpec) {
	g.renew(id, m)
	l := &g.legs[m.Leg]
	l.members++
	l.member = g.firstMemberBehind(m.Leg)
	g.tree().note(id, positionKnown)
	if e := &g.tree().edges; e.asked == int32(id) {
		e.asked = none
	}
	if g.tree().edges.relay.member == int32(id) {
		g.tree().endRelay()
	}
}

// renew gives the MemberID of a removed member to new member m.
func (g *group) renew(id MemberID, m *MemberSpec) {
	g.unindex(id)
	if n := g.numberOf(id); g.extra != nil {
		g.extra.highest = max(g.extra.highest, n)
	}
	g.members[id] = newMember(m)
	if g.historyOf(id) != (memberHistory{}) {
		*g.newHistory(id) = memberHistory{}
	}
	g.outcomes.resetMember(id)
	g.setNumber(id, m.Number)
	g.index(id)
}

// takeOver gives the leg and the MemberID of a removed member to new member m.
func (g *group) takeOver(now time.Duration, m *MemberSpec, spec LegSpec) {
	l := &g.legs[m.Leg]
	id := l.member
	*l = newLeg(spec)
	l.setWindow(m.Window)
	l.member, l.members = id, 1
	if g.activity != nil {
		g.activity[m.Leg] = legActivity{}
	}
	if g.fwd.targets != nil {
		g.fwd.targets.forgetLeg(int(m.Leg))
	}
	g.renew(id, m)
	g.joinAtNextMessage(now, m.Leg)
}

// joinAtNextMessage lets leg i, which has its first member now, receive from the next
// message on: the next source's first one, if there is no source (R30).
func (g *group) joinAtNextMessage(now time.Duration, i LegID) {
	if l := &g.legs[i]; l.members == 1 {
		g.setJoining(int(i), g.src.member != none || g.is(learning) && !l.connected())
		g.startVerification(now, i)
	}
}

// removeMember removes a live member. afterRemoval evaluates the group's ACK without it.
func (g *group) removeMember(now time.Duration, id MemberID, out *Output) {
	m := &g.members[id]
	m.live = false
	g.noteLeft(now, id)
	l := &g.legs[m.leg]
	l.members--
	if l.members > 0 && l.member == id {
		l.member = g.firstMemberBehind(m.leg)
	}
	switch {
	case g.is(learning) && id == g.extra.resume.source:
		g.removeLeg(int(m.leg))
		g.failResume(id, SourceRemoved, out)
	case int32(id) == g.src.member:
		g.endVerification(m.leg)
		g.sourceRemoved(id, out)
	case l.members == 0:
		g.removeLeg(int(m.leg))
	}
}

// afterRemoval lets the group go on without the removed members, the last of which is m.
func (g *group) afterRemoval(m MemberID, out *Output) {
	g.freeAfterEviction(out)
	if g.recv.count-g.recv.joinedInFlight < g.policy.quorum && g.agg.acked != g.fwd.nxt.Prev() {
		g.failBecauseOf(m, TooFewReceivers, out) // the data in flight can never reach the quorum
		return
	}
	g.evaluate(out)
}

func (g *group) firstMemberBehind(l LegID) MemberID {
	for i := range g.members {
		if g.members[i].live && g.members[i].leg == l {
			return MemberID(i)
		}
	}
	return 0
}
