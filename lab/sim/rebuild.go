// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/mcast"
)

// Rebuilds. A group of which a leg is no way to its members any more is registered again by its root,
// with the same members, over the routes that there are then. Failures are known beforehand, so the
// trees are, too. What comes at a time is their installation, switch by switch: each after those below it.

// install is the change of a group at a switch.
type install struct {
	at     Time
	node   int32
	tree   tree
	branch int    // the branch of tree; below 0: the group ends at the switch
	known  bool   // the switch has the group
	label  uint32 // the label of the group there, plus 1
	layout uint32
}

// rebuildInterval is the least time between two rebuilds of a group, as in package envelope.
const rebuildInterval = 200 * topology.Millisecond

// A request to register a group has packets of prepareBytes for each recordsPerPacket members. The
// other messages of a registration are as long as those of the token.
const (
	prepareBytes     = 1500 + 38
	recordsPerPacket = 183
)

// prepareTime returns how long the request for n members takes over the link of a port.
func (s *Simulation) prepareTime(o *port, n int) Time {
	packets := int64((n + recordsPerPacket - 1) / recordsPerPacket)
	return o.timeOf(packets*prepareBytes) + o.delay
}

// planRebuilds plans the trees after each failure.
func (b *planner) planRebuilds() {
	s := b.s
	if len(s.failures) == 0 {
		return
	}
	b.begun, b.rebuilds = make([]Time, len(b.trees)), make([]uint32, len(b.trees))
	wanted := map[int32]Time{} // groups whose last rebuild was too shortly before
	for i := range s.failures {
		at := s.failures[i].At + s.cfg.Detect
		b.rebuildWanted(wanted, at, i-1)
		for g, t := range b.trees {
			asked, lost := b.lostWay(t, s.routesAfter[i])
			switch {
			case !lost:
				delete(wanted, int32(g))
			case b.rebuilds[g] > 0 && at+asked < b.begun[g]+rebuildInterval:
				wanted[int32(g)] = b.begun[g] + rebuildInterval
			default:
				b.rebuild(int32(g), at+asked, i)
			}
		}
	}
	b.rebuildWanted(wanted, math.MaxInt64, len(s.failures)-1)
}

// rebuildWanted rebuilds the groups whose rebuild is due before a time, over the routes after a failure.
func (b *planner) rebuildWanted(wanted map[int32]Time, before Time, failure int) {
	var due []int32
	for g, at := range wanted {
		if at < before {
			due = append(due, g)
		}
	}
	slices.SortFunc(due, func(x, y int32) int { return cmp.Or(cmp.Compare(wanted[x], wanted[y]), cmp.Compare(x, y)) })
	for _, g := range due {
		b.rebuild(g, wanted[g], failure)
		delete(wanted, g)
	}
}

// lostWay reports whether a leg of a tree is no way to its members any more, and after what time the
// root has heard of it.
func (b *planner) lostWay(t tree, routes *topology.Routes) (asked Time, lost bool) {
	s := b.s
	for i := range t {
		x := &t[i]
		if lost && x.reach >= asked {
			continue
		}
		for k, n := range x.legs {
			if n == envelope.NoNeighbour || n == x.parent {
				continue
			}
			if !slices.Contains(routes.NextHops(topology.Node(x.node), s.groups[x.group][k]), int32(n-1)) {
				asked, lost = x.reach, true
				break
			}
		}
	}
	return asked, lost
}

// rebuild plans the tree of a group over the routes after a failure, and its installation. If a member
// cannot be reached everything stays as it is.
func (b *planner) rebuild(g int32, now Time, failure int) {
	s, old := b.s, b.trees[g]
	b.begun[g] = now
	b.rebuilds[g]++
	b.count(old, -1)
	t, err := b.plan(g, s.routesAfter[failure], old)
	if err != nil {
		b.count(old, 1)
		return
	}
	known := make([]bool, len(t))
	for i := range t {
		known[i] = t[i].label != 0
	}
	b.count(t, 1)
	b.trees[g] = t
	prepared := Time(0) // when the root knows that all switches are prepared
	for i := range t {
		prepared = max(prepared, 2*t[i].reach)
	}
	at := make([]Time, len(t))
	for i := len(t) - 1; i >= 0; i-- {
		at[i] = max(at[i], now+prepared+t[i].reach)
		for _, c := range t[i].children {
			at[i] = max(at[i], at[c.branch]+t[c.branch].reach-t[i].reach)
		}
		s.installs = append(s.installs, install{at: at[i], node: t[i].node, tree: t, branch: i, known: known[i], label: t[i].label, layout: b.rebuilds[g] + 1})
	}
	for i := range old {
		if t.at(old[i].node) == nil { // its parent ends the group there, having installed the new tree
			s.installs = append(s.installs, install{at: at[0] + old[i].reach, node: old[i].node, branch: -1, known: true, label: old[i].label})
		}
	}
}

// install changes a group at a switch.
func (p *Partition) install(x *install) {
	s := p.s
	sw, id := s.switchAt(x.node), mcast.GroupID(x.label-1)
	var err error
	switch {
	case x.branch < 0:
		sw.groups[id] = groupTable{}
		err = sw.core.Apply(p.clock(), mcast.DeleteGroup{Group: id}, &p.coreOut)
	case !x.known:
		err = s.put(x.tree, &x.tree[x.branch], mcast.TreeSpec{Layout: x.layout, Running: true})
	default:
		err = p.updateTree(x)
	}
	if err != nil {
		p.result.Failed++ // the group has failed before
		return
	}
	p.serving = sw
	p.carryOutCore(sw)
	if x.branch < 0 {
		return
	}
	s.setLabels(x.tree, &x.tree[x.branch])
	if err := p.connect(&x.tree[x.branch]); err != nil {
		p.result.Failed++
	}
}

// updateTree gives a group that the switch has the new tree.
func (p *Partition) updateTree(x *install) error {
	s, b := p.s, &x.tree[x.branch]
	sw := s.switchAt(x.node)
	table := &sw.groups[b.id()]
	place := mcast.TreeSpec{Parent: b.parent, Epoch: 1, Layout: x.layout, Levels: map[mcast.Neighbor]uint8{}}
	op := mcast.UpdateMembers{Group: b.id(), Tree: &place}
	for i, n := range b.legs {
		if n == envelope.NoNeighbour {
			continue
		}
		place.Levels[n] = x.tree.levels(b, n)
		to := slices.IndexFunc(table.legs, func(l leg) bool { return l.forwarded && l.port == s.firstPort[x.node]+uint32(n)-1 })
		if to < 0 {
			to = len(table.legs)
			table.legs = append(table.legs, s.leg(b, n, 0))
		}
		if id := mcast.LegID(to); id != table.legOf[i] {
			table.legOf[i] = id
			op.Move = append(op.Move, mcast.MoveMember{Member: mcast.MemberID(i), To: id, Leg: s.legSpec(x.tree, b, n, 0)})
		}
	}
	return sw.core.Apply(p.clock(), op, &p.coreOut)
}

// adjacenciesChanged is called when the neighbours at both ends of links know that these have failed,
// or are back.
func (p *Partition) adjacenciesChanged(f *topology.Failure) {
	s := p.s
	for _, n := range s.failingPorts(f) {
		o, node := &s.ports[n], s.ports[n].node
		if s.part[node] != p.index || o.cut == !f.Up {
			continue
		}
		if o.cut = !f.Up; o.cut {
			o.sessions++
		}
		if int(node) < s.cfg.Topology.Hosts || s.switchAt(node) == nil {
			continue
		}
		sw := s.switchAt(node)
		for id := range sw.groups {
			for _, l := range sw.groups[id].legs {
				if l.port != n || !l.forwarded {
					continue
				}
				p.serving = sw
				if err := sw.core.SetSession(p.clock(), mcast.GroupID(id), s.at[n].neighbor, s.session(n), &p.coreOut); err == nil {
					p.carryOutCore(sw)
				} // else the leg has lost its members
			}
		}
	}
}
