// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
)

// Updates: members that join and leave while their group continues.

// memberPlan is the change of a group's slots by one update.
type memberPlan struct {
	slots  []slot // afterwards
	update dataplane.Update
}

// update changes the members of an installed group to those of r. Members whose record is
// the same are not touched.
func (d *directory) update(r *envelope.Registration, key envelope.KeyID) envelope.Verdict {
	g := d.groups[r.Group]
	if g == nil || g.reg.Epoch != r.Base {
		return rejected(envelope.Problem{Reason: envelope.WrongBase})
	}
	fresh := *r
	fresh.Members = nil
	for i := range r.Members {
		m := &r.Members[i]
		if j := g.slotOf(m.Key()); j >= 0 && g.slots[j].record == *m {
			continue
		}
		if r.Window != (mcast.Window{}) && m.Window == (mcast.Window{}) {
			// One member may lack a window if it is the source from the beginning; a new
			// member would receive the next WRITE.
			return rejected(envelope.Problem{Reason: envelope.BadWindow, Member: m.Key()})
		}
		fresh.Members = append(fresh.Members, *m)
	}
	places, verdict := d.locateMembers(&fresh, r, key)
	if verdict.Kind != envelope.VerdictAccepted {
		return verdict
	}
	if limit := d.largestPMTU(places, r.Group.Is4()); r.PMTU > limit {
		return rejected(envelope.Problem{Reason: envelope.PathMTUMismatch, Value: uint64(limit)})
	}
	joiners := make([]slot, len(places))
	for i := range joiners {
		joiners[i] = slot{record: fresh.Members[i], location: places[i]}
	}
	p := d.planMembers(g, r, joiners)
	limit, err := g.handle.MaxMembers(&p.update.Table)
	if err == nil && len(r.Members) > limit {
		return rejected(envelope.Problem{Reason: envelope.TooManyMembers, Value: uint64(limit)})
	}
	if err := g.handle.Update(&p.update, &d.scratch.Outcomes); err != nil {
		return d.coreRefused(r, err)
	}
	for _, m := range p.update.Remove {
		d.reportLastOutcome(g, int(m))
	}
	for _, x := range g.newTurns(&d.scratch.Outcomes) { // before slots changes, whose members the outcomes name
		d.onOutcome(g, &x)
	}
	g.slots = p.slots
	d.hosts.setMembers(g, g.slots)
	g.setRegistration(r)
	return envelope.Verdict{Kind: envelope.VerdictAccepted}
}

// reportLastOutcome reports the outcome of the member in slot i, which is being removed:
// d.scratch has the group's outcomes before the removal. They are not read again later.
func (d *directory) reportLastOutcome(g *group, i int) {
	if es := d.scratch.Outcomes.Evicted; i < len(es) && es[i].Kind != 0 && !g.slots[i].gone {
		d.onOutcome(g, &newOutcome{es[i], 1})
	}
}

// planMembers chooses a slot for each joiner: that of a member that has gone or is
// removed by this update, if there is one. The core does not regard such a member as
// live: slots are marked as gone after the core has removed the member.
func (d *directory) planMembers(g *group, r *envelope.Registration, joiners []slot) memberPlan {
	p := memberPlan{slots: slices.Clone(g.slots)}
	var free, added []int
	for i := range p.slots {
		s := &p.slots[i]
		if !s.gone && !slices.Contains(r.Members, s.record) {
			s.gone = true
			p.update.Remove = append(p.update.Remove, mcast.MemberID(i))
		}
		if s.gone {
			free = append(free, i)
		}
	}
	for _, j := range joiners {
		at := len(p.slots)
		if len(free) > 0 {
			at, free = free[0], free[1:]
			p.slots[at] = j
		} else {
			p.slots = append(p.slots, j)
		}
		added = append(added, at)
	}
	t := d.makeTable(r, p.slots)
	for _, i := range added {
		p.update.Add = append(p.update.Add, mcast.AddMember{
			Member: memberSpec(&p.slots[i].record, mcast.LegID(i)), Leg: legSpec(&t.Destinations[i]),
		})
	}
	p.update.Table = t
	return p
}

// markGone records that the member in slot i has gone.
func (g *group) markGone(i int) { g.slots[i].gone = true }

// rememberFormer records a member that has gone, for operators.
func (g *group) rememberFormer(e *envelope.Event) {
	f := api.FormerMember{IP: e.Member.IP, QPN: uint32(e.Member.QPN), Reason: e.EndReason.String(), Time: time.Now()}
	if e.EndReason == envelope.Evicted {
		psn := uint32(e.PSN)
		f.PSN, f.Reason = &psn, "evicted: "+envelope.Cause(e.Code)
	}
	if len(g.former) >= maxFormerMembers {
		g.former = slices.Delete(g.former, 0, 1)
	}
	g.former = append(g.former, f)
}
