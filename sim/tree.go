// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/sim/topology"
	"github.com/gleam-rdma/gleam/sim/workload"
)

// Registration. The root of a group's tree is the switch of its first member; each switch
// splits the members that are behind it between its next hops as envelope.Registrar does, and
// asks the next switches.

// branch is the part of a group's tree at one switch.
type branch struct {
	group  int32
	node   int32
	parent mcast.Neighbor
	label  uint32           // the group's number at the switch
	legs   []mcast.Neighbor // by member: the neighbour behind which it is, or envelope.NoNeighbour

	height, above int // levels of switches below this one, and on the other side of its parent's link
	children      []child
}

// child is the branch behind a neighbour.
type child struct {
	neighbor mcast.Neighbor
	branch   int
}

// levels returns the number of levels of switches behind a neighbour.
func (b *planner) levels(x *branch, n mcast.Neighbor) uint8 {
	if n == x.parent {
		return uint8(x.above)
	}
	for _, c := range x.children {
		if c.neighbor == n {
			return uint8(b.branches[c.branch].height + 1)
		}
	}
	return 0
}

// measure counts the levels of the branches from first on, those of one group.
func (b *planner) measure(first int) {
	all := b.branches
	for i := len(all) - 1; i >= first; i-- {
		for _, c := range all[i].children {
			all[i].height = max(all[i].height, all[c.branch].height+1)
		}
	}
	for i := first; i < len(all); i++ {
		for _, c := range all[i].children {
			above := all[i].above
			for _, other := range all[i].children {
				if other != c {
					above = max(above, all[other.branch].height+1)
				}
			}
			all[c.branch].above = above + 1
		}
	}
}

// planner builds the trees of all groups, one after the other.
type planner struct {
	s        *Simulation
	over     []int32 // by port: groups that have a leg there
	here     []uint32
	branches []branch
	none     []mcast.Neighbor
}

// register gives all groups to the switches and the queue pairs of their members.
func (s *Simulation) register() error {
	t := s.cfg.Topology
	b := planner{s: s, over: make([]int32, len(s.ports)), here: make([]uint32, t.Hosts+t.Switches)}
	for g, hosts := range s.groups {
		if err := b.plan(int32(g), hosts); err != nil {
			return err
		}
	}
	longest := 0
	for g, hosts := range s.groups {
		longest = max(longest, len(hosts))
		for _, h := range hosts {
			p := s.partitionOf(int32(h))
			id := memberOf(int32(g), h)
			c := p.newConn(h, id, workload.Flow{To: workload.None, Group: int32(g)}, groupQPN, s.firstPSN(id), s.firstPSN(id^fromHost))
			p.byEnds.put(id, c.number)
		}
	}
	for i := range b.branches {
		x := &b.branches[i]
		sw := &s.switches[int(x.node)-t.Hosts]
		if *sw == nil {
			*sw = &groupSwitch{node: x.node, core: mcast.New(mcast.Limits{Groups: int(b.here[x.node]), Members: longest, RepairBytes: s.cfg.RepairBytes})}
		}
	}
	for i := range b.branches {
		if err := b.put(&b.branches[i]); err != nil {
			return err
		}
	}
	return b.meet()
}

// plan builds the tree of a group.
func (b *planner) plan(g int32, hosts []topology.Node) error {
	if len(hosts) < 2 {
		return fmt.Errorf("sim: group %d has %d members: want 2 or more", g, len(hosts))
	}
	for len(b.none) < len(hosts) {
		b.none = append(b.none, envelope.NoNeighbour)
	}
	behind := make([]int, len(hosts))
	for i := range behind {
		behind[i] = i
	}
	first := len(b.branches)
	err := b.split(g, hosts, int32(b.s.cfg.Topology.Leaf(hosts[0])), envelope.NoNeighbour, behind, maxDepth)
	b.measure(first)
	return err
}

// maxDepth bounds the switches between the root and a leaf.
const maxDepth = 16

// split chooses the legs of a group at a switch, for the members that are behind it, and
// goes on to the next switches.
func (b *planner) split(g int32, hosts []topology.Node, node int32, parent mcast.Neighbor, behind []int, depth int) error {
	s := b.s
	x := branch{group: g, node: node, parent: parent, label: b.here[node], legs: slices.Repeat([]mcast.Neighbor{parent}, len(hosts))}
	b.here[node]++
	hops := make([][]mcast.Neighbor, len(hosts))
	for _, i := range behind {
		if int32(s.cfg.Topology.Leaf(hosts[i])) == node {
			x.legs[i] = envelope.NoNeighbour
			continue
		}
		for _, port := range s.routes.NextHops(topology.Node(node), hosts[i]) {
			if n := mcast.Neighbor(port) + 1; n != parent {
				hops[i] = append(hops[i], n)
			}
		}
		if len(hops[i]) == 0 || depth == 0 {
			return fmt.Errorf("sim: group %d: no way from %s to %s", g, s.cfg.Topology.Name(topology.Node(node)), s.cfg.Topology.Name(hosts[i]))
		}
	}
	envelope.ChooseLegs(groupAddr(g), x.legs, b.none[:len(hosts)], hops, func(n mcast.Neighbor) envelope.NeighbourLoad { return b.loadOf(g, node, n) })
	here := len(b.branches)
	b.branches = append(b.branches, x)
	var next []mcast.Neighbor
	below := map[mcast.Neighbor][]int{}
	for _, i := range behind {
		if n := x.legs[i]; n != envelope.NoNeighbour {
			if below[n] == nil {
				next = append(next, n)
			}
			below[n] = append(below[n], i)
		}
	}
	if parent != envelope.NoNeighbour {
		b.over[s.firstPort[node]+uint32(parent)-1]++
	}
	for _, n := range next {
		out := s.firstPort[node] + uint32(n) - 1
		b.over[out]++
		peer := s.ports[out].peer
		to := s.nodeOf[peer]
		b.branches[here].children = append(b.branches[here].children, child{n, len(b.branches)})
		if err := b.split(g, hosts, to, mcast.Neighbor(peer-s.firstPort[to])+1, below[n], depth-1); err != nil {
			return err
		}
	}
	return nil
}

// loadOf returns what a switch knows of a neighbour when it chooses.
func (b *planner) loadOf(g, node int32, n mcast.Neighbor) envelope.NeighbourLoad {
	out := b.s.firstPort[node] + uint32(n) - 1
	load := envelope.NeighbourLoad{ID: envelope.SwitchID(b.s.nodeOf[b.s.ports[out].peer])}
	switch b.s.cfg.Trees {
	case LeastUsed:
		load.Groups = int(b.over[out])
	case Random:
		load.Traffic = mix(b.s.cfg.Seed ^ mix(uint64(g)<<32|uint64(out)))
	}
	return load
}

// put gives a group to the core of a switch.
func (b *planner) put(x *branch) error {
	s := b.s
	hosts := s.groups[x.group]
	sw := s.switches[int(x.node)-s.cfg.Topology.Hosts]
	spec := mcast.GroupSpec{
		ID: mcast.GroupID(x.label), IP: groupAddr(x.group), QPN: groupQPN, PMTU: s.cfg.PathMTU, SourceTimeout: -1,
		Repair: s.cfg.Repair, Tree: mcast.TreeSpec{Parent: x.parent, Epoch: 1},
	}
	table := groupTable{hosts: hosts}
	at := map[mcast.Neighbor]mcast.LegID{}
	for i, h := range hosts {
		n := x.legs[i]
		id, known := at[n]
		if n == envelope.NoNeighbour || !known {
			id = mcast.LegID(len(spec.Legs))
			at[n] = id
			spec.Legs = append(spec.Legs, b.legSpec(x, n, h))
			table.legs = append(table.legs, b.leg(x, n, h))
		}
		table.legOf = append(table.legOf, id)
		m := memberOf(x.group, h)
		spec.Members = append(spec.Members, mcast.MemberSpec{
			IP: hostAddr(h), QPN: hostQPN, SQPSN: s.firstPSN(m), RQPSN: s.firstPSN(m ^ fromHost), Leg: id, Number: uint32(i) + 1,
		})
	}
	sw.groups = append(sw.groups, table)
	var out mcast.Output
	if err := sw.core.Apply(clockOf(-setup), mcast.PutGroup{Spec: spec}, &out); err != nil {
		return fmt.Errorf("sim: group %d at %s: %w", x.group, s.cfg.Topology.Name(topology.Node(x.node)), err)
	}
	return nil
}

func (b *planner) legSpec(x *branch, n mcast.Neighbor, h topology.Node) mcast.LegSpec {
	if n != envelope.NoNeighbour {
		return mcast.LegSpec{Kind: mcast.Forwarded, Port: mcast.Port(n - 1), Neighbor: n, Levels: b.levels(x, n)}
	}
	return mcast.LegSpec{Port: mcast.Port(b.s.ports[b.s.hosts[h].port].peer - b.s.firstPort[x.node])}
}

func (b *planner) leg(x *branch, n mcast.Neighbor, h topology.Node) leg {
	s := b.s
	if n == envelope.NoNeighbour {
		c := s.partitionOf(x.node).member(x.group, h)
		c.label = x.label
		return leg{port: s.ports[s.hosts[h].port].peer, label: c.number}
	}
	return leg{port: s.firstPort[x.node] + uint32(n) - 1, forwarded: true}
}

// meet sets the labels of legs between switches, and begins the sessions of these.
func (b *planner) meet() error {
	s := b.s
	type place struct{ group, node int32 }
	labels := make(map[place]uint32, len(b.branches))
	for i := range b.branches {
		x := &b.branches[i]
		labels[place{x.group, x.node}] = x.label
	}
	for i := range b.branches {
		x := &b.branches[i]
		legs := s.switches[int(x.node)-s.cfg.Topology.Hosts].groups[x.label].legs
		for k := range legs {
			if l := &legs[k]; l.forwarded {
				l.label = labels[place{x.group, s.nodeOf[s.ports[l.port].peer]}]
			}
		}
	}
	for i := range b.branches {
		x := &b.branches[i]
		sw, p := s.switches[int(x.node)-s.cfg.Topology.Hosts], s.partitionOf(x.node)
		for _, l := range sw.groups[x.label].legs {
			if !l.forwarded {
				continue
			}
			session := 1 + uint64(min(l.port, s.ports[l.port].peer))
			if err := sw.core.SetSession(p.clock(), mcast.GroupID(x.label), mcast.Neighbor(l.port-s.firstPort[x.node])+1, session, &p.coreOut); err != nil {
				return fmt.Errorf("sim: %w", err)
			}
			p.carryOutCore(sw)
		}
	}
	return nil
}
