// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Group is the control plane's handle of a group: it names the worker that owns the group,
// and the group's ID there. Its methods run on that worker, between two batches.
type Group struct {
	plane     *Plane
	ip        netip.Addr
	id        mcast.GroupID
	installed bool
	worker    *worker
	alias     *alias    // the other address that hosts know the group by; nil: none
	nicRules  []nicRule // steer its packets to its worker's queues
}

// Table is what a worker has of a group beside the core's state: where the copies for each
// leg go.
type Table struct {
	IP           netip.Addr // the address that hosts know the group by
	QPN          rocev2.QPN
	PMTU         int
	Destinations []Destination // destinations by MemberID
	Legs         []Leg         // legs by LegID; nil: every member is here, and has the leg of its own number
	Layout       uint32        // mcast.TreeSpec.Layout, if there are legs to neighbours
}

// Destination is a member of a group, and where it is.
type Destination struct {
	Origin // Port is -1 while the location is not known, or if the member is behind another switch; VLAN 0 is untagged
	IP     netip.Addr
	QPN    rocev2.QPN
	Leg    mcast.LegID // the member's leg, if Table.Legs is not nil
	Gone   bool        // true: the member has left or was evicted
}

// Leg is a leg of a group with members behind other switches: to the member that has it,
// or else to a neighbour.
type Leg struct {
	Neighbour mcast.Neighbor // 0: the leg is connected
	Port      int            // the port of the neighbour
}

// Update is a change of a group's members, and of its place in a tree. Members that it does not
// name are not touched.
type Update struct {
	Remove []mcast.MemberID
	Move   []mcast.MoveMember
	Add    []mcast.AddMember
	Tree   *mcast.TreeSpec // nil: as before
	Stored bool            // mcast.UpdateMembers.Stored
	Table  Table           // the table after the update
}

// GroupState is the core's state of a group.
type GroupState struct {
	Outcomes mcast.Outcomes
	Status   mcast.GroupStatus
	Fast     FastStatus
	Bytes    uint64        // payload of the data that was forwarded
	Stalled  time.Duration // the time for which the group's ACK has not advanced, though packets are outstanding
	Delay    Delay
	Blamed   Blamed
	Costs    []mcast.Cost // costs by MemberID
}

// NewGroup chooses the worker of a group that is about to be installed. It changes
// nothing.
func (p *Plane) NewGroup(id mcast.GroupID, ip netip.Addr) *Group {
	return &Group{plane: p, ip: ip, id: id, worker: p.workers.all[p.workers.owners.choose(ip)]}
}

// Worker returns the index of the worker that owns the group.
func (g *Group) Worker() int { return g.worker.index }

// Install makes the worker serve the group, or replaces the group that it serves by this
// handle, whose last state goes to was. Packets for the group are then handed, and as far
// as NICs can, steered to the worker. If the worker refuses the group, nothing changes.
func (g *Group) Install(spec mcast.GroupSpec, t *Table, was *GroupState) error {
	x := g.worker.makeTable(t)
	var err error
	if !g.worker.do(func() {
		g.worker.read(g.id, was)
		err = g.worker.install(spec, x)
	}) {
		return ErrStopped
	}
	if err == nil && !g.installed {
		g.noteInstalled(t)
	}
	return err
}

// noteInstalled has packets for the group handed to the worker, now that the core has it.
func (g *Group) noteInstalled(t *Table) {
	g.installed = true
	g.plane.workers.owners.put(g.ip, g.worker.index)
	if t.IP != g.ip {
		g.alias = &alias{rocev2.KeyOf(t.IP), t.QPN}
		g.worker.aliases.change(*g.alias, g.ip)
	}
	g.addNICRules()
}

// Installation is one new group of Plane.InstallGroups.
type Installation struct {
	Group *Group
	Spec  mcast.GroupSpec
	Table Table
	Err   error // the result: why the worker does not serve the group
}

// InstallGroups makes the workers serve new groups, as Group.Install does. It waits once for each worker, and not for each
// group: the workers serve no packet meanwhile.
func (p *Plane) InstallGroups(all []Installation) {
	for _, w := range p.workers.all {
		tables := make([]groupTable, len(all))
		for i := range all {
			if all[i].Group.worker == w {
				tables[i] = w.makeTable(&all[i].Table)
			}
		}
		stopped := !w.do(func() {
			for i := range all {
				if x := &all[i]; x.Group.worker == w {
					x.Err = w.install(x.Spec, tables[i])
				}
			}
		})
		for i := range all {
			switch x := &all[i]; {
			case x.Group.worker != w:
			case stopped:
				x.Err = ErrStopped
			case x.Err == nil:
				x.Group.noteInstalled(&x.Table)
			}
		}
	}
}

// Remove ends the group. Its last state goes to last.
func (g *Group) Remove(last *GroupState) error {
	g.removeNICRules()
	g.plane.workers.owners.remove(g.ip)
	if g.alias != nil {
		g.worker.aliases.change(*g.alias, netip.Addr{})
	}
	if !g.worker.do(func() {
		g.worker.read(g.id, last)
		g.worker.deleteGroup(g.id)
	}) {
		return ErrStopped
	}
	return nil
}

// RemoveMember removes one member. The outcomes of the group until then go to before.
func (g *Group) RemoveMember(m mcast.MemberID, before *mcast.Outcomes) error {
	if !g.worker.do(func() {
		g.worker.disturbFastGroup(g.id)
		g.worker.core.Group(g.id).Outcomes(before)
		g.worker.removeMember(g.id, m)
	}) {
		return ErrStopped
	}
	return nil
}

// Update changes members. The outcomes of the group until then go to before. If the worker
// refuses the update, nothing changes.
func (g *Group) Update(u *Update, before *mcast.Outcomes) error {
	x := g.worker.makeTable(&u.Table)
	var err error
	if !g.worker.do(func() {
		if err = g.worker.checkCapacity(&x); err != nil {
			return
		}
		g.worker.disturbFastGroup(g.id)
		g.worker.core.Group(g.id).Outcomes(before)
		err = g.worker.updateGroup(g.id, u, x)
	}) {
		return ErrStopped
	}
	return err
}

// SetTable gives the worker another table for the same members, and tells the core of new
// sessions with the group's neighbours.
func (g *Group) SetTable(t *Table) {
	x := g.worker.makeTable(t)
	g.worker.do(func() {
		g.worker.setTable(g.id, x)
		g.worker.setSessions(g.id)
	})
}

// RefreshIsolation makes the worker find out again whether members are behind several
// isolated ports.
func (g *Group) RefreshIsolation() error {
	if !g.worker.do(func() {
		g.worker.disturbFastGroup(g.id)
		g.worker.groups[g.id].noteIsolation(g.worker.ports)
	}) {
		return ErrStopped
	}
	return nil
}

// Read reads the state of the group.
func (g *Group) Read(s *GroupState) error {
	if !g.worker.do(func() { g.worker.read(g.id, s) }) {
		return ErrStopped
	}
	return nil
}

// Outcomes reads the outcomes of the group.
func (g *Group) Outcomes(o *mcast.Outcomes) error {
	if !g.worker.do(func() {
		g.worker.reportFast(g.id)
		g.worker.core.Group(g.id).Outcomes(o)
	}) {
		return ErrStopped
	}
	return nil
}

// makeTable makes the worker's form of t. Any goroutine may call it.
func (w *worker) makeTable(t *Table) groupTable {
	longest := rocev2.EthernetLen + rocev2.VLANLen + rocev2.MaxHeaders(t.IP.Is4()) + t.PMTU
	x := groupTable{
		ip: t.IP, qpn: t.QPN, pmtu: t.PMTU, layout: t.Layout, maxFrameBytes: longest,
		maxBuffers: (longest + w.umem.MaxReceive() - 1) / w.umem.MaxReceive(),
	}
	legs := len(t.Destinations)
	if t.Legs != nil {
		legs = len(t.Legs)
	}
	x.legs = make([]leg, legs)
	if t.Legs != nil {
		x.members = make([]member, len(t.Destinations))
	}
	for i := range t.Legs {
		if l := &t.Legs[i]; l.Neighbour != 0 {
			x.legs[i] = leg{kind: mcast.Forwarded, port: l.Port, neighbour: l.Neighbour, vlan: w.ports[l.Port].vlan}
			x.forwards = true
		}
	}
	for i := range t.Destinations {
		d := &t.Destinations[i]
		at := mcast.LegID(i)
		if t.Legs != nil {
			at = d.Leg
			x.members[i] = member{ip: d.IP, qpn: d.QPN, leg: at, gone: d.Gone}
		}
		l := &x.legs[at]
		if l.kind == mcast.Connected {
			*l = leg{kind: mcast.Connected, port: d.Port, mac: d.MAC, vlan: d.VLAN, ip: rocev2.KeyOf(d.IP), qpn: d.QPN}
		}
		if !d.Gone {
			l.live++
		}
	}
	x.countCopies()
	return x
}

// The methods below run on the worker.

// read reads the core's state of a group.
func (w *worker) read(id mcast.GroupID, s *GroupState) {
	w.reportFast(id)
	w.core.Group(id).Outcomes(&s.Outcomes)
	w.core.Group(id).Snapshot(&s.Status)
	s.Status.Counters.Copies = w.exactCopies(id, s.Status.Counters.Copies)
	s.Fast = w.fastStatus(id)
	s.Bytes, s.Stalled = w.meters.groups[id].dataBytes, w.meters.groups[id].stalledFor(w.now)
	s.Delay, s.Blamed = w.delays.groups[id].Delay, w.delays.groups[id].blamed()
	s.Costs = w.core.Group(id).Costs(w.now, true, s.Costs)
}

// install is putGroup, unless there is too little packet memory.
func (w *worker) install(spec mcast.GroupSpec, t groupTable) error {
	if err := w.checkCapacity(&t); err != nil {
		return err
	}
	return w.putGroup(spec, t)
}

// putGroup makes the core serve a group and installs its tables.
func (w *worker) putGroup(spec mcast.GroupSpec, t groupTable) error {
	w.disturbFastGroup(spec.ID)
	w.offerFast(&spec, &t)
	if err := w.core.Apply(w.readClock(), mcast.PutGroup{Spec: spec}, &w.out); err != nil {
		return err
	}
	w.beginFast(&spec)
	w.meters.groups[spec.ID] = meter{}
	w.delays.forget(spec.ID)
	w.setTable(spec.ID, t)
	w.sendApplied()
	w.setSessions(spec.ID)
	return nil
}

func (w *worker) deleteGroup(id mcast.GroupID) {
	w.disturbFastGroup(id)
	if err := w.core.Apply(w.readClock(), mcast.DeleteGroup{Group: id}, &w.out); err == nil {
		w.sendApplied()
		w.meters.ended(w.now, id)
		w.delays.forget(id)
		w.groups[id] = groupTable{}
		w.endFast(id)
	}
}

func (w *worker) removeMember(id mcast.GroupID, m mcast.MemberID) {
	w.disturbFastGroup(id)
	if err := w.core.Apply(w.readClock(), mcast.RemoveMember{Group: id, Member: m}, &w.out); err == nil {
		w.sendApplied()
		w.groups[id].markGone(m)
	}
}

// updateGroup applies u to the core and to the tables of a group.
func (w *worker) updateGroup(id mcast.GroupID, u *Update, t groupTable) error {
	w.disturbFastGroup(id)
	op := mcast.UpdateMembers{Group: id, Move: u.Move, Add: u.Add, Tree: u.Tree, Stored: u.Stored}
	var st mcast.GroupStatus
	w.core.Group(id).Snapshot(&st)
	for _, m := range u.Remove {
		if int(m) < len(st.Members) && st.Members[m].Live { // the core may have removed it already
			op.Remove = append(op.Remove, m)
		}
	}
	old := w.groups[id]
	w.groups[id] = t.withLeaving(&old, op.Remove)
	if err := w.core.Apply(w.readClock(), op, &w.out); err != nil {
		w.groups[id] = old
		return err
	}
	w.sendApplied()
	w.setTable(id, t)
	w.setSessions(id)
	return nil
}

// withLeaving returns t, the table after an update, with the members that leave by it where
// they were before: a removal may release feedback for the source, which may itself be leaving.
func (t *groupTable) withLeaving(old *groupTable, leaving []mcast.MemberID) groupTable {
	x := *t
	x.legs, x.members = slices.Clone(t.legs), slices.Clone(t.members)
	for _, id := range leaving {
		m := old.member(id)
		if x.legs[m.leg] = old.legs[m.leg]; x.members != nil {
			x.members[id] = m
		}
	}
	return x
}

// Positions reads the positions of the group's members, and their number. It returns false
// if there are none to store.
func (g *Group) Positions(p *mcast.Positions) (number uint32, ok bool) {
	g.worker.do(func() {
		g.worker.reportFast(g.id)
		number, ok = g.worker.core.Group(g.id).Positions(p)
	})
	return number, ok
}

// LastPositions reads the positions of the group's members as Run has left them. It returns
// false if there are none to store. Run must have returned.
func (g *Group) LastPositions(p *mcast.Positions) (ok bool) {
	return g.worker.core.Group(g.id).LastPositions(p)
}

// PositionsStored tells the group that the positions p, with that number, are durable.
func (g *Group) PositionsStored(number uint32, p *mcast.Positions) {
	g.worker.do(func() {
		g.worker.reportFast(g.id)
		g.worker.core.PositionsStored(g.worker.readClock(), g.id, number, p, &g.worker.out)
		g.worker.sendApplied()
	})
}
