// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
)

// What a tree of switches hears: sessions and reports of its neighbours, and members that
// come and go.

// SetSession tells that the switch and a neighbour have a session, a number that both have
// agreed upon and never used before; 0: the neighbour cannot be reached. A session that is
// known already changes nothing. The error says that no leg of the group leads there.
func (s *Switch) SetSession(now time.Duration, id GroupID, n Neighbor, session uint64, out *Output) error {
	out.reset()
	g := s.group(id)
	if g == nil {
		return fmt.Errorf("mcast: group %d: does not exist", id)
	}
	t := g.tree()
	if t == nil {
		return fmt.Errorf("mcast: group %d: has no legs to other switches", id)
	}
	if err := s.checkTakenBack(id); err != nil {
		return err
	}
	leg, ok := t.legTo(n)
	if !ok {
		return fmt.Errorf("mcast: group %d: no leg leads to neighbour %d", id, n)
	}
	if leg > token.Parent && g.legs[t.legID(leg)].members == 0 {
		session = 0 // as if cut: a leg that has lost its members is no edge of the tree
	}
	if session == 0 {
		t.machine.Cut(now, leg, &t.g.sw.tokens)
	} else if session = token.SessionOf(session, t.place.Epoch); t.machine.Session(leg) != session {
		t.machine.Up(now, leg, session, &t.g.sw.tokens)
	} else {
		return nil
	}
	t.carryOut(now, out)
	return nil
}

// InputReport serves an authentic report of a neighbour about group id. Output.Drop is the
// reason why it was not taken. A neighbour to which no leg leads has no effect on the group.
func (s *Switch) InputReport(now time.Duration, id GroupID, n Neighbor, msg *token.Message, out *Output) {
	out.reset()
	g := s.group(id)
	if g == nil {
		out.Drop = UnknownGroup
		return
	}
	switch t, leg, ok := s.group(id).treeLeg(n); {
	case !ok:
		out.Drop = NoSession
	case g.repair.path == fastPath:
		out.NeedRevoke = true
		return
	default:
		out.Drop = t.receive(now, leg, msg, out)
	}
	if out.Drop != None {
		g.counters.rare().Drops[out.Drop]++
	}
	if len(out.Events) != 0 {
		g.noteEvictions(now, out.Events, out)
	}
	s.rearm(g)
}

// receive serves a report that came by a leg.
func (t *tree) receive(now time.Duration, leg token.Leg, msg *token.Message, out *Output) Reason {
	drop := t.machine.Receive(now, leg, msg, &t.g.sw.tokens)
	newest := drop == token.NoDrop && t.isNewest(leg, msg)
	if newest {
		t.noteNeeded(t.legID(leg), &msg.Position)
	}
	t.carryOut(now, out)
	if newest {
		t.takePosition(now, t.legID(leg), &msg.Position, out)
		t.takeIgnorance(now, t.legID(leg), msg, out)
		t.joinNeeded(now, leg, &msg.Position, out)
		t.rest(now, out)
	}
	return [...]Reason{token.NoDrop: None, token.NoSession: NoSession, token.LaterEpoch: LaterEpoch, token.Contradictory: ConflictingReport}[drop]
}

// leave tells the machine that member k is no member any more, and of the leg to a switch
// below if it was the last one there.
func (t *tree) leave(now time.Duration, k MemberID, out *Output) {
	t.machine.Leave(now, t.g.numberOf(k), &t.g.sw.tokens)
	t.carryOut(now, out)
	l := t.g.members[k].leg
	if leg := t.legOf(l); leg > token.Parent && t.g.legs[l].members == 0 {
		t.machine.Remove(now, leg, &t.g.sw.tokens)
		t.carryOut(now, out)
	}
}

// updateTree follows an update of the members: the group may have its first leg to another
// switch, other children, another parent, or another layout.
func (g *group) updateTree(now time.Duration, place *TreeSpec, newLayout bool, out *Output) {
	t := g.tree()
	if t == nil {
		if len(g.forwardedLegs()) == 0 {
			return
		}
		if place == nil {
			place = &TreeSpec{}
		}
		g.newTree(now, *place)
		g.tree().rest(now, out)
		return
	}
	if place != nil {
		for i, l := range g.forwardedLegs() {
			if n, ok := place.Levels[g.legs[l].neighbor]; ok {
				g.extra.levels[i] = min(n, maxLevels)
			}
		}
		t.placeAt(now, place, out)
	}
	for _, l := range g.forwardedLegs() {
		if leg := t.legOf(l); leg != token.Parent && g.legs[l].members > 0 {
			t.machine.Add(now, leg, &t.g.sw.tokens)
			t.carryOut(now, out)
		}
	}
	if newLayout {
		for _, l := range g.forwardedLegs() {
			t.poll(now, l, out)
		}
	}
	t.rest(now, out)
}

// setLayout gives the tree another layout, before the update has any effect: feedback that the
// update releases is of the new layout. It reports whether it is another one.
func (t *tree) setLayout(place *TreeSpec) bool {
	was := t.place.layout()
	t.place.Layout = place.Layout
	if t.place.layout() == was {
		return false
	}
	clear(t.edges.needed)
	t.endRelay()
	return true
}

// placeAt gives the switch another place in the tree.
func (t *tree) placeAt(now time.Duration, place *TreeSpec, out *Output) {
	if place.Parent != t.place.Parent {
		t.machine.SetRoot(now, place.Parent == 0, &t.g.sw.tokens)
		t.carryOut(now, out)
	}
	t.place.Parent = place.Parent
	for _, l := range t.g.forwardedLegs() {
		if leg := token.Leg(l) + 1; t.legOf(l) == token.Parent || t.g.legs[l].members == 0 {
			t.machine.Remove(now, leg, &t.g.sw.tokens)
			t.carryOut(now, out)
		}
	}
}

// ReportNumbers returns the sequence numbers of the group's reports to and from a neighbour:
// the last one sent, the last one of these that is acknowledged, and the last one received.
// It reports whether there is a session. It is for models, as is RenumberReports.
func (v Group) ReportNumbers(n Neighbor) (sent, acked, received uint64, up bool) {
	if t, leg, ok := v.g.treeLeg(n); ok {
		return t.machine.Numbers(leg)
	}
	return 0, 0, 0, false
}

// RenumberReports takes a number off those of the reports sent, and one off those of the
// reports received. If the neighbour and the reports on their way are changed alike, the
// behaviour is the same.
func (s *Switch) RenumberReports(id GroupID, n Neighbor, sent, received uint64) {
	if t, leg, ok := s.group(id).treeLeg(n); ok {
		t.machine.Renumber(leg, sent, received)
	}
}

// treeLeg returns the tree of a group, and its leg to a neighbour.
func (g *group) treeLeg(n Neighbor) (*tree, token.Leg, bool) {
	if g == nil || g.tree() == nil {
		return nil, 0, false
	}
	leg, ok := g.tree().legTo(n)
	return g.tree(), leg, ok
}

// A switch of a tree all of whose members are behind one other switch is aside: the members on its
// own side have left. It gets nothing of what the others send, so it knows neither their positions
// nor whose turn it is when an update brings in members on its side. That is what a switch knows
// that is new in the tree (R89).

// isAside reports whether all members are behind one other switch.
func (g *group) isAside() bool {
	behind := 0
	for i := range g.legs {
		l := &g.legs[i]
		if l.members == 0 {
			continue
		}
		if l.connected() {
			return false
		}
		behind++
	}
	return behind == 1
}

// returnToTree makes the group one that runs elsewhere, before members are on its own side again.
// Nobody here has a part of what the others have sent.
func (g *group) returnToTree(out *Output) {
	if g.tree() != nil && g.isAside() {
		g.forgetTree(out)
	}
}

// forgetTree makes the group one that runs elsewhere: nothing that it knows of the turn, or of members
// behind other switches, counts.
func (g *group) forgetTree(out *Output) {
	t := g.tree()
	g.endResume()
	g.endTurn(out)
	g.set(awaitsFile|asking|blocked, false)
	g.due.stop(livenessCheck)
	t.edges.rejoined, t.edges.asked = true, none
	for k := range g.members {
		if m := &g.members[k]; m.live && !g.legs[m.leg].connected() {
			t.note(MemberID(k), positionUnknown)
		}
	}
	if g.policy.stored {
		g.reportPositions(out)
	}
	t.refresh()
}

// isStale reports whether p is of before the switch was aside: it has no position of any of the
// members here, so nobody here has a part of what was sent.
func (g *group) isStale(p *Positions) bool {
	here := false
	for i := range g.members {
		if g.legs[g.members[i].leg].connected() {
			if here = true; p.Members[i].Known {
				return false
			}
		}
	}
	return here && g.tree() != nil
}

// noteMoved notes that the tree is another one. Positions that neighbours have said, and that no turn has begun from
// yet, were of the members behind the neighbour's leg then, and may be within a turn: they are forgotten. The end of the
// last turn of a member behind another switch was had by the members that were on this side then, and by no others.
func (t *tree) noteMoved() {
	for k := range t.g.members {
		switch t.knows(MemberID(k)) {
		case positionLearnt:
			t.note(MemberID(k), positionUnknown)
		case positionKnown:
			if m := &t.g.members[k]; m.live && !t.g.legs[m.leg].connected() {
				t.note(MemberID(k), positionMoved)
			}
		}
	}
}
