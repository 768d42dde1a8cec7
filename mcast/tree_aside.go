// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

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
			t.forget(MemberID(k))
		}
	}
	if g.policy.stored {
		g.reportPositions(out)
	}
	t.refresh()
}

// lacksWitness reports whether a group that resumes has a source behind another switch, and nobody else
// who could show how far its turn has come: the members at this switch that had a part of it have left,
// and no other switch is behind this one. The stored position of that source may be of a turn that has
// gone on, or ended.
func (g *group) lacksWitness() bool {
	source := g.members[g.extra.resume.source].leg
	if g.legs[source].connected() {
		return false
	}
	for i := range g.legs {
		if l := &g.legs[i]; LegID(i) != source && l.members != 0 && (!l.connected() || g.numbering.checks[i].positioned) {
			return false
		}
	}
	return true
}

// forgetTurn is forgetTree of a group that resumes. The stored positions of members behind other
// switches are true, and may be low.
func (g *group) forgetTurn(out *Output) {
	t, low := g.tree(), make([]bool, len(g.members))
	for k := range g.members {
		low[k] = !t.isUnknown(MemberID(k))
	}
	g.forgetTree(out)
	for k := range t.edges.unknown {
		t.edges.learnt[k] = t.edges.unknown[k] && low[k]
	}
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

// forgetLearnt forgets the positions that neighbours have said and that no turn has begun from yet.
// Each was of the members that were behind the neighbour's leg then, and may be within a turn.
func (t *tree) forgetLearnt() {
	for k, learnt := range t.edges.learnt {
		if learnt {
			t.edges.unknown[k], t.edges.learnt[k] = true, false
		}
	}
}
