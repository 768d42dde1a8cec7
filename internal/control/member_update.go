// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/mcast"
)

// Updates: members that join and leave, and others to which another way leads, while their
// group continues.

// memberPlan is the change of a group by one update.
type memberPlan struct {
	slots  []slot // afterwards
	legs   []mcast.Neighbor
	update dataplane.Update
}

// newHere returns r with those of its members that are here and that were not before: they
// are to be located.
func (d *directory) newHere(r *envelope.Registration) (*envelope.Registration, envelope.Verdict) {
	if r.Base == 0 {
		return membersHere(r), accepted
	}
	g := d.groups[r.Group]
	if g == nil || g.reg.Epoch != r.Base {
		return nil, rejected(envelope.Problem{Reason: envelope.WrongBase})
	}
	fresh := *r
	fresh.Members = nil
	for i := range r.Members {
		m := &r.Members[i]
		here := r.Tree.Leg(i) == envelope.NoNeighbour
		if j := g.numbered(r.Number(i)); j >= 0 && *g.slots[j].record == *m {
			if here != g.slots[j].isHere() {
				return nil, rejected(envelope.Problem{Reason: envelope.NotInTrees, Value: uint64(envelope.LimitMove), Member: m.Key()})
			}
			continue
		}
		if r.Window != (mcast.Window{}) && m.Window == (mcast.Window{}) {
			// One member may lack a window if it is the source from the beginning; a new
			// member would receive the next WRITE.
			return nil, rejected(envelope.Problem{Reason: envelope.BadWindow, Member: m.Key()})
		}
		if here {
			fresh.Members = append(fresh.Members, *m)
		}
	}
	return &fresh, accepted
}

// adds reports whether r has members that its group does not have.
func (d *directory) adds(r *envelope.Registration) bool {
	g := d.groups[r.Group]
	if r.Base == 0 || g == nil {
		return true
	}
	for i := range r.Members {
		if j := g.numbered(r.Number(i)); j < 0 || *g.slots[j].record != r.Members[i] {
			return true
		}
	}
	return false
}

// numbered returns the MemberID of the live member with that number, or -1.
func (g *group) numbered(n uint32) int {
	return slices.IndexFunc(g.slots, func(s slot) bool { return !s.gone && s.number == n })
}

// update changes an installed group to r, whose new members that are here have places.
// Members whose number and way are the same are not touched.
func (d *directory) update(r *envelope.Registration, places []locate.Location) envelope.Verdict {
	g := d.groups[r.Group]
	p := d.planMembers(g, r, places)
	if err := g.handle.Update(&p.update, &d.scratch.Outcomes); err != nil {
		return d.workerRefused(r, err)
	}
	for _, m := range p.update.Remove {
		d.reportLastOutcome(g, int(m))
	}
	for _, x := range g.newTurns(&d.scratch.Outcomes) { // before slots changes, whose members the outcomes name
		d.onOutcome(g, &x)
	}
	was := g.slots
	g.slots, g.legs = p.slots, p.legs
	d.setSlots(g, was, r)
	return accepted
}

// reportLastOutcome reports the outcome of the member in slot i, which is being removed:
// d.scratch has the group's outcomes before the removal. They are not read again later.
func (d *directory) reportLastOutcome(g *group, i int) {
	if es := d.scratch.Outcomes.Evicted; i < len(es) && es[i].Kind != 0 && !g.slots[i].gone {
		d.onOutcome(g, &newOutcome{es[i], 1})
	}
}

// planMembers chooses slots and legs. A member that joins here gets those of one that has
// gone or is removed by this update, if there is one. The core does not regard such a member
// as live: slots are marked as gone after the core has removed the member.
func (d *directory) planMembers(g *group, r *envelope.Registration, places []locate.Location) memberPlan {
	p := memberPlan{slots: slices.Clone(g.slots), legs: slices.Clone(g.legs)}
	if p.legs == nil {
		p.legs = make([]mcast.Neighbor, len(p.slots))
	}
	stays := make(map[uint32]int, len(r.Members)) // by number: index in r
	for i := range r.Members {
		stays[r.Number(i)] = i
	}
	var free, away, added []int // free and away: slots of members that have gone, here and behind other switches
	for i := range p.slots {
		s := &p.slots[i]
		at, ok := stays[s.number]
		if ok = ok && r.Members[at] == *s.record; !s.gone && !ok {
			s.leave()
			p.update.Remove = append(p.update.Remove, mcast.MemberID(i))
		}
		switch {
		case s.gone && s.isHere():
			free = append(free, i)
		case s.gone:
			away = append(away, i)
		default:
			delete(stays, s.number)
			s.record = &r.Members[at] // an equal one
			if to := r.Tree.Leg(at); to != s.behind {
				s.behind = to
				s.leg, p.legs = legFor(p.legs, to)
				p.update.Move = append(p.update.Move, mcast.MoveMember{Member: mcast.MemberID(i), To: s.leg, Leg: d.forwardedSpec(r, to)})
			}
		}
	}
	for i := range r.Members {
		if _, joins := stays[r.Number(i)]; !joins {
			continue
		}
		s := slot{record: &r.Members[i], number: r.Number(i), behind: r.Tree.Leg(i)}
		at := len(p.slots)
		if s.isHere() && len(free) > 0 {
			at, free = free[0], free[1:]
			s.leg = p.slots[at].leg
		} else {
			s.leg, p.legs = legFor(p.legs, s.behind)
			if !s.isHere() && len(away) > 0 {
				at, away = away[0], away[1:]
			} else {
				p.slots = append(p.slots, slot{})
			}
		}
		if s.isHere() {
			s.location, places = &places[0], places[1:]
		}
		p.slots[at] = s
		added = append(added, at)
	}
	p.update.Table, p.update.Stored = d.makeTable(r, p.slots, p.legs), d.stores(r)
	for _, i := range added {
		s := &p.slots[i]
		a := mcast.AddMember{Member: mcast.MemberSpec{MemberRecord: *s.record, Number: s.number, Leg: s.leg}, Leg: legSpec(&p.update.Table.Destinations[i])}
		if !s.isHere() {
			a.Leg = d.forwardedSpec(r, s.behind)
			if i < len(g.slots) {
				a.Replaces = uint32(i) + 1
			}
		}
		p.update.Add = append(p.update.Add, a)
	}
	if inTree(p.legs) {
		t := treeSpec(r)
		p.update.Tree = &t
	} else {
		p.legs = nil
	}
	return p
}

// markGone records that the member in slot i has gone.
func (g *group) markGone(i int) { g.slots[i].leave() }

// leave marks the member as gone. Its record is copied, as later registrations do not have it.
func (s *slot) leave() {
	record := *s.record
	s.record, s.gone = &record, true
}

// rememberFormer records a member that has gone, for operators. port is where it was; "" if that is
// not known.
func (g *group) rememberFormer(e *envelope.Event, port string) {
	f := api.FormerMember{IP: e.Member.IP, QPN: api.QPN(e.Member.QPN), Port: port, Reason: e.EndReason.String(), Time: time.Now()}
	if e.EndReason == envelope.Evicted {
		psn := api.PSN(e.PSN)
		f.PSN, f.Reason = &psn, "evicted: "+envelope.Cause(e.Code)
	}
	if len(g.former) >= maxFormerMembers {
		g.former = slices.Delete(g.former, 0, 1)
	}
	g.former = append(g.former, f)
}
