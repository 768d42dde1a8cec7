// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// apply follows a change by the control plane. It returns the number of groups put.
func (j *judge) apply(op mcast.Op) int {
	switch op := op.(type) {
	case mcast.PutGroup:
		j.groups[op.Spec.ID] = newGroup(op.Spec)
		return 1
	case mcast.DeleteGroup:
		delete(j.groups, op.Group)
	case mcast.AddMember:
		j.groups[op.Group].add(&op)
	case mcast.RemoveMember:
		j.groups[op.Group].remove(int(op.Member))
	case mcast.UpdateMembers:
		g := j.groups[op.Group]
		for _, m := range op.Remove {
			g.remove(int(m))
		}
		for _, m := range op.Move {
			if int(m.To) == len(g.legs) {
				g.addLeg(m.Leg)
			}
			g.leave(g.members[m.Member].Leg)
			g.members[m.Member].Leg = m.To
			g.legs[m.To].live++
		}
		for i := range op.Add {
			g.add(&op.Add[i])
		}
		if op.Tree != nil {
			g.resumed, g.rejoins = true, true // R90: others may count what is behind a leg
		}
	}
	return 0
}

func newGroup(spec mcast.GroupSpec) *group {
	g := &group{spec: spec, source: none, rejoins: spec.Tree.Running}
	for _, l := range spec.Legs {
		g.addLeg(l)
	}
	for _, m := range spec.Members {
		g.members = append(g.members, member{m, true, m.SQPSN, m.RQPSN})
		g.bind(len(g.members) - 1)
	}
	p := spec.Resume
	if p == nil {
		return g
	}
	for i, at := range p.Members {
		if m := &g.members[i]; at.Known {
			m.send, m.recv = at.Send, at.Receive
		}
	}
	if p.HasSource {
		g.begin(int(p.Source), p.Members[p.Source].Send)
		g.resumed = true
		for i, at := range p.Members {
			m := &g.members[i]
			if g.legs[m.Leg].due = false; i != g.source && at.Known && !at.Joining {
				g.start(int(m.Leg), g.first, m.recv.Sub(g.first))
			}
		}
	}
	return g
}

func (g *group) addLeg(l mcast.LegSpec) {
	g.legs = append(g.legs, leg{member: none, neighbor: l.Neighbor})
	g.inTree = g.inTree || l.Kind == mcast.Forwarded
}

// bind makes member k that of its leg, if the leg is connected.
func (g *group) bind(k int) {
	m := &g.members[k]
	l := &g.legs[m.Leg]
	if m.Number == 0 {
		m.Number = uint32(k) + 1
	}
	if m.IP = m.IP.Unmap(); l.neighbor == 0 {
		*l = leg{member: k}
	}
	l.live++
	g.replies = g.replies || m.Reply != mcast.NoReply
}

func (g *group) add(op *mcast.AddMember) {
	m := member{op.Member, true, op.Member.SQPSN, op.Member.RQPSN}
	k := len(g.members)
	switch at := int(m.Leg); {
	case at == len(g.legs):
		g.addLeg(op.Leg)
	case g.legs[at].member != none:
		k = g.legs[at].member
	}
	if op.Replaces != 0 {
		k = int(op.Replaces) - 1
	}
	if k == len(g.members) {
		g.members = append(g.members, member{})
	}
	g.members[k] = m
	g.bind(k)
}

// remove ends the membership of member k, and its turn if it is the source.
func (g *group) remove(k int) {
	if m := &g.members[k]; m.live {
		m.live = false
		g.leave(m.Leg)
	}
	if k == g.source {
		g.end()
	}
}

// leave takes a member off leg i. Whoever is behind it later joins anew.
func (g *group) leave(i mcast.LegID) {
	l := &g.legs[i]
	if l.live--; l.live == 0 {
		l.receives, l.due = false, false
	}
}

func (g *group) legOf(k int) int {
	if k == none {
		return none
	}
	return int(g.members[k].Leg)
}

// event follows a decision of the core, and judges the beginning of a turn.
func (g *group) event(e *mcast.Event) error {
	k := int(e.Member)
	switch e.Kind {
	case mcast.MemberEvicted:
		g.remove(k)
	case mcast.SourceChanged:
		if g.resumed && k == g.source && e.PSN == g.first {
			return nil // the turn of before the restart goes on
		}
		for i := range g.legs {
			if l := &g.legs[i]; l.receives && l.live > 0 && l.acked != g.nxt.Prev() && g.source != none && !g.resumed && !g.inTree {
				return fmt.Errorf("the turn of member %d ends, and leg %d has acknowledged %#x of %#x", g.source, i, uint32(l.acked), uint32(g.nxt.Prev()))
			}
		}
		g.end()
		if send := g.members[k].send; e.PSN != send && !g.inTree {
			return fmt.Errorf("the turn of member %d begins at %#x, its next PSN is %#x", k, uint32(e.PSN), uint32(send))
		}
		g.begin(k, e.PSN)
		g.resumed, g.rejoins = g.rejoins, false
	}
	return nil
}

func (g *group) begin(k int, psn rocev2.PSN) {
	g.source, g.first, g.nxt, g.acked, g.sent = k, psn, psn, psn.Prev(), mcast.SentACK{}
	for i := range g.legs {
		g.legs[i].due, g.legs[i].dueAt = g.legs[i].live > 0, psn
	}
}

// end ends a turn: the next one of each member begins behind it.
func (g *group) end() {
	if g.source == none {
		return
	}
	for i := range g.legs {
		l := &g.legs[i]
		if l.receives && g.resumed && g.nxt.LessEq(l.acked) {
			g.nxt = l.acked.Next()
		}
	}
	for i := range g.legs {
		if l := &g.legs[i]; l.member != none && l.receives {
			g.members[l.member].recv = l.acked.Next().Add(l.delta)
		}
		g.legs[i].receives, g.legs[i].due = false, false
	}
	g.members[g.source].send = g.nxt
	g.source, g.resumed, g.starts = none, false, nil
}
