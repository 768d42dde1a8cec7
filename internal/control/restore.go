// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/mcast"
)

// restoreGroups takes up the groups of before the restart. What cannot be taken up is said, and
// is in the file no more.
func (c *control) restoreGroups() {
	if c.keeper.Keeper == nil {
		return
	}
	s, silent := c.keeper.Before(), c.plane.SilentFor()
	var change statefile.Change
	for _, ip := range slices.SortedFunc(maps.Keys(s.Epochs), netip.Addr.Compare) {
		if s.Epochs[ip] > c.keeper.epochBase {
			c.registrar.RestoreEpoch(ip, s.Epochs[ip])
		} else {
			change.SetEpoch(ip, 0)
		}
	}
	places := c.dir.hosts.Recall(c.kernel.locator, s)
	together := installTogether * c.plane.Workers() // a multiple: groups take the workers in turn
	for ips := range slices.Chunk(slices.SortedFunc(maps.Keys(s.Groups), netip.Addr.Compare), together) {
		c.restoreTogether(s, ips, silent, &change)
		for _, ip := range ips {
			delete(s.Groups, ip) // what was in the file is no longer needed
		}
	}
	for ip := range s.Hosts {
		change.PutHost(ip, &statefile.Host{}) // unless it is the host of a member
	}
	for _, h := range places {
		c.dir.hosts.Release(h, &change)
	}
	c.announcePort(everyPort)
	c.keeper.Append(&change)
	c.restoreCreations(s.Created)
	c.keeper.ForgetBefore()
}

// installTogether bounds the groups that a worker takes up at a time: it moves no packets meanwhile.
const installTogether = 64

// restoreTogether takes up some of the groups of s. What could not be is added to change.
func (c *control) restoreTogether(s *statefile.State, ips []netip.Addr, silent time.Duration, change *statefile.Change) {
	failed := func(ip netip.Addr, err error) {
		c.notify(true, "a group of before the restart is not served any more", "group", ip, "error", err, "remedy", "its members have to reset their queue pairs and register again")
		change.DropGroup(ip)
	}
	groups, installs := make([]*group, 0, len(ips)), make([]dataplane.Installation, 0, len(ips))
	for _, ip := range ips {
		g, install, err := c.prepareRestored(s.Groups[ip], silent)
		if err != nil {
			failed(ip, err)
			continue
		}
		groups, installs = append(groups, g), append(installs, install)
	}
	c.plane.InstallGroups(installs)
	for i, g := range groups {
		r := g.reg
		if err := installs[i].Err; err != nil {
			c.dir.freeIDs = append(c.dir.freeIDs, g.id)
			failed(r.Group, errors.Join(err, c.registrar.DeleteLocal(c.now(), r.Group, &c.out)))
			continue
		}
		c.restored(g)
		c.notify(false, "group goes on after the restart", "group", r.Group, "epoch", r.Epoch, "members", len(r.Members))
	}
}

// prepareRestored makes x, a group of before the restart, one of the registrar, and returns it for its worker to install.
func (c *control) prepareRestored(x *statefile.Group, silent time.Duration) (g *group, install dataplane.Installation, err error) {
	switch {
	case x.Failed:
		return nil, install, errors.New("the group had failed")
	case c.dir.defaults.psnProbe == 0:
		return nil, install, errors.New("with psn_probe 0s receivers are not asked what they have")
	case len(c.dir.freeIDs) == 0:
		return nil, install, fmt.Errorf("the table is full with %d groups", c.dir.maxGroups)
	}
	saved, err := c.savedGroup(x)
	if err != nil {
		return nil, install, err
	}
	r := &saved.Registration
	here := membersHere(r).Members
	places := make([]locate.Location, 0, len(here))
	for _, m := range here {
		h := c.dir.hosts.Of(m.IP)
		if h == nil {
			return nil, install, fmt.Errorf("member %s is here, and was behind another switch", m.IP)
		}
		at, _ := h.Place(x.Key)
		places = append(places, at)
	}
	if err := c.dir.checkRestored(r, places); err != nil {
		return nil, install, err
	}
	if err := c.registrar.Restore(c.now(), saved); err != nil {
		return nil, install, err
	}
	g, install = c.dir.prepareRestored(x, r, places, silent)
	g.reg = c.registrar.Registration(r.Group)
	return g, install, nil
}

// restored makes the switch's what its worker has installed.
func (c *control) restored(g *group) {
	c.dir.groups[g.reg.Group], c.dir.byID[g.id] = g, g
	c.dir.setSlots(g, nil, g.reg)
	for ip := range g.hosts() {
		c.dir.hosts.RequestOnce(c.dir.hosts.Of(ip)) // the host may have moved meanwhile
	}
	c.checkPMTU(g)
	c.checkIsolation(g)
}

// prepareRestored returns r, a group of before the restart, of which the file has x, with what its worker is to install.
// The members here were at places, and nothing has gone to them for the time of silent.
func (d *directory) prepareRestored(x *statefile.Group, r *envelope.Registration, places []locate.Location, silent time.Duration) (*group, dataplane.Installation) {
	id := d.freeIDs[len(d.freeIDs)-1]
	g := &group{id: id, key: x.Key, handle: *d.plane.NewGroup(id, r.Group)}
	slots, legs := newSlots(r, places)
	table := d.makeTable(r, slots, legs)
	spec := d.makeSpec(id, r, &table)
	spec.Tree.Running = r.Tree != nil
	d.generations++
	spec.Generation = d.generations
	spec.Resume, spec.SilentFor = positionsOf(x.Turn, r.Members), silent
	d.freeIDs = d.freeIDs[:len(d.freeIDs)-1]
	g.slots, g.legs, g.registeredAt, g.generation = slots, legs, x.RegisteredAt, spec.Generation
	g.kept.inFile, g.kept.turn = true, x.Turn
	if x.Turn != nil {
		for i := range r.Members {
			g.kept.records = append(g.kept.records, &r.Members[i])
		}
	}
	return g, dataplane.Installation{Group: &g.handle, Spec: spec, Table: table}
}

// positionsOf returns the core's form of a stored turn. If no member had sent, all have their registered
// PSNs.
func positionsOf(t *statefile.Turn, members []envelope.MemberRecord) *mcast.Positions {
	p := &mcast.Positions{Members: make([]mcast.Position, len(members))}
	if t == nil {
		return p
	}
	for _, at := range t.Positions {
		i := slices.IndexFunc(members, func(m envelope.MemberRecord) bool { return m.IP == at.Member })
		if i < 0 {
			continue
		}
		p.Members[i] = mcast.Position{Known: true, Send: at.Send, Receive: at.Receive, FullHistory: at.FullHistory}
		if at.Member == t.Source {
			p.HasSource, p.Source = true, mcast.MemberID(i)
		}
	}
	for i := range members {
		p.Members[i].Joining = slices.Contains(t.Joining, members[i].IP)
	}
	return p
}

// checkRestored returns why a group of before the restart, with members here at places, may not be
// served as the ports are configured now. Whether its address, its size, its path MTU and its key's
// quota are still allowed the registrar knows (Registrar.Restore). A port whose MTU has become too
// small is reported as it is while the switch runs: it may grow again.
func (d *directory) checkRestored(r *envelope.Registration, places []locate.Location) error {
	here := membersHere(r)
	for i := range places {
		if err := d.checkAllowed(here.Members[i].IP, places[i]); err != nil {
			return err
		}
	}
	if p := d.neverFast(r, here, places); p != nil {
		return fmt.Errorf("fast_path: require: %w", p)
	}
	return nil
}
