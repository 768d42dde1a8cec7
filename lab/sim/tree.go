// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
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
	legs   []mcast.Neighbor // the neighbour behind which each member is, or envelope.NoNeighbour

	height, above int // levels of switches below this one, and on the other side of its parent's link
	children      []child
	reach         Time // the time of a packet of the registration from the root to here
}

// child is the branch behind a neighbour.
type child struct {
	neighbor mcast.Neighbor
	branch   int
}

// has reports whether neighbour n is next in the tree.
func (x *branch) has(n mcast.Neighbor) bool {
	return n == x.parent || slices.ContainsFunc(x.children, func(c child) bool { return c.neighbor == n })
}

// tree has the branches of a group: the root, and each behind its parent.
type tree []branch

// levels returns the number of levels of switches behind a neighbour.
func (t tree) levels(x *branch, n mcast.Neighbor) uint8 {
	if n == x.parent {
		return uint8(x.above)
	}
	for _, c := range x.children {
		if c.neighbor == n {
			return uint8(t[c.branch].height + 1)
		}
	}
	return 0
}

// at returns the branch at a switch, or nil.
func (t tree) at(node int32) *branch {
	for i := range t {
		if t[i].node == node {
			return &t[i]
		}
	}
	return nil
}

// measure counts the levels.
func (t tree) measure() {
	all, first := t, 0
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
	s     *Simulation
	over  []int32  // the number of groups that have a leg there, by port
	here  []uint32 // the numbers given to groups there, by node
	trees []tree   // the present trees, by group
	none  []mcast.Neighbor

	begun    []Time   // the time of the last rebuild, by group
	rebuilds []uint32 // the number of rebuilds, by group

	// Of the tree that is planned.
	group  int32
	hosts  []topology.Node
	routes *topology.Routes
	before tree // the tree that there was; nil: none
	tree   tree
}

// plan plans the trees of all groups.
func (s *Simulation) plan() (*planner, error) {
	t := s.cfg.Topology
	b := &planner{s: s, over: make([]int32, len(s.ports)), here: make([]uint32, t.Hosts+t.Switches)}
	for g, hosts := range s.groups {
		if len(hosts) < 2 {
			return nil, fmt.Errorf("sim: group %d has %d members: want 2 or more", g, len(hosts))
		}
		x, err := b.plan(int32(g), s.routes, nil)
		if err != nil {
			return nil, err
		}
		b.count(x, 1)
		b.trees = append(b.trees, x)
	}
	return b, nil
}

// register gives all groups to the switches and the queue pairs of their members.
func (s *Simulation) register() error {
	b, err := s.plan()
	if err != nil {
		return err
	}
	registered := slices.Clone(b.trees)
	b.planRebuilds()
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
	for i, n := range b.here {
		if n > 0 {
			s.switches[i-s.cfg.Topology.Hosts] = &groupSwitch{
				node: int32(i), groups: make([]groupTable, n),
				core: mcast.New(mcast.Limits{Groups: int(n), Members: longest, RepairBytes: s.cfg.RepairBytes}),
			}
		}
	}
	for _, x := range registered {
		for i := range x {
			if err := s.put(x, &x[i], mcast.TreeSpec{}); err != nil {
				return err
			}
		}
	}
	return s.meet(registered)
}

// plan returns the tree of a group over routes. before is the tree that it has had.
func (b *planner) plan(g int32, routes *topology.Routes, before tree) (tree, error) {
	b.group, b.hosts, b.routes, b.before, b.tree = g, b.s.groups[g], routes, before, nil
	for len(b.none) < len(b.hosts) {
		b.none = append(b.none, envelope.NoNeighbour)
	}
	behind := make([]int, len(b.hosts))
	for i := range behind {
		behind[i] = i
	}
	if err := b.split(int32(b.s.cfg.Topology.Leaf(b.hosts[0])), envelope.NoNeighbour, 0, behind, maxDepth); err != nil {
		return nil, err
	}
	b.tree.measure()
	return b.tree, nil
}

// count adds a tree to the load of the ports, or takes it off. A branch that is new at its switch
// gets a number there.
func (b *planner) count(x tree, n int32) {
	for i := range x {
		at := b.s.firstPort[x[i].node] - 1
		if x[i].parent != envelope.NoNeighbour {
			b.over[at+uint32(x[i].parent)] += n
		}
		for _, c := range x[i].children {
			b.over[at+uint32(c.neighbor)] += n
		}
		if x[i].label == 0 {
			b.here[x[i].node]++
			x[i].label = b.here[x[i].node]
			if at := b.s.groupsAt; at != nil {
				at[x[i].node] = append(at[x[i].node], x[i].group)
			}
		}
	}
}

// maxDepth bounds the switches between the root and a leaf.
const maxDepth = 16

// split chooses the legs of a group at a switch, for the members that are behind it, and
// goes on to the next switches.
func (b *planner) split(node int32, parent mcast.Neighbor, reach Time, behind []int, depth int) error {
	s := b.s
	x := branch{group: b.group, node: node, parent: parent, reach: reach, legs: slices.Repeat([]mcast.Neighbor{parent}, len(b.hosts))}
	before := b.none[:len(b.hosts)]
	if old := b.before.at(node); old != nil {
		x.label, before = old.label, old.legs
	}
	hops := make([][]mcast.Neighbor, len(b.hosts))
	for _, i := range behind {
		if int32(s.cfg.Topology.Leaf(b.hosts[i])) == node {
			x.legs[i] = envelope.NoNeighbour
			continue
		}
		for _, port := range b.routes.NextHops(topology.Node(node), b.hosts[i]) {
			if n := mcast.Neighbor(port) + 1; n != parent {
				hops[i] = append(hops[i], n)
			}
		}
		if len(hops[i]) == 0 || depth == 0 {
			return fmt.Errorf("sim: group %d: no way from %s to %s", b.group, s.cfg.Topology.Name(topology.Node(node)), s.cfg.Topology.Name(b.hosts[i]))
		}
	}
	envelope.ChooseLegs(groupAddr(b.group), x.legs, before, hops, func(n mcast.Neighbor) envelope.NeighbourLoad { return b.loadOf(b.group, node, n) })
	here := len(b.tree)
	b.tree = append(b.tree, x)
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
	for _, n := range next {
		out := &s.ports[s.firstPort[node]+uint32(n)-1]
		to := s.ports[out.peer].node
		b.tree[here].children = append(b.tree[here].children, child{n, len(b.tree)})
		if err := b.split(to, mcast.Neighbor(out.peer-s.firstPort[to])+1, reach+s.prepareTime(out, len(b.hosts)), below[n], depth-1); err != nil {
			return err
		}
	}
	return nil
}

// loadOf returns what a switch knows of a neighbour when it chooses.
func (b *planner) loadOf(g, node int32, n mcast.Neighbor) envelope.NeighbourLoad {
	out := b.s.firstPort[node] + uint32(n) - 1
	load := envelope.NeighbourLoad{ID: envelope.SwitchID(b.s.ports[b.s.ports[out].peer].node)}
	switch b.s.cfg.Trees {
	case LeastUsed:
		load.Groups = int(b.over[out])
	case Random:
		load.Traffic = mix(b.s.cfg.Seed ^ mix(uint64(g)<<32|uint64(out)))
	}
	return load
}

// put gives a group to the core of a switch. The place has what is not the tree's.
func (s *Simulation) put(t tree, x *branch, place mcast.TreeSpec) error {
	hosts := s.groups[x.group]
	p, sw := s.partitionOf(x.node), s.switchAt(x.node)
	place.Parent, place.Epoch = x.parent, 1
	spec := mcast.GroupSpec{
		ID: x.id(), IP: groupAddr(x.group), GroupParams: mcast.GroupParams{QPN: groupQPN, PathMTU: s.cfg.PathMTU}, SourceTimeout: -1,
		Repair: s.cfg.Repair, AckEvery: s.cfg.SwitchAckEvery, Tree: place,
	}
	if s.cfg.DeadAfter > 0 {
		spec.Policy, spec.DeadAfter = mcast.Evict, s.cfg.DeadAfter
	}
	table := groupTable{hosts: hosts}
	at := map[mcast.Neighbor]mcast.LegID{}
	for i, h := range hosts {
		n := x.legs[i]
		id, known := at[n]
		if n == envelope.NoNeighbour || !known {
			id = mcast.LegID(len(spec.Legs))
			at[n] = id
			spec.Legs = append(spec.Legs, s.legSpec(t, x, n, h))
			table.legs = append(table.legs, s.leg(x, n, h))
		}
		table.legOf = append(table.legOf, id)
		m := memberOf(x.group, h)
		spec.Members = append(spec.Members, mcast.MemberSpec{
			MemberRecord: mcast.MemberRecord{IP: hostAddr(h), QPN: hostQPN, SQPSN: s.firstPSN(m), RQPSN: s.firstPSN(m ^ fromHost)}, Leg: id, Number: uint32(i) + 1,
		})
	}
	sw.groups[x.id()] = table
	if err := sw.core.Apply(p.clock(), mcast.PutGroup{Spec: spec}, &p.coreOut); err != nil {
		return fmt.Errorf("sim: group %d at %s: %w", x.group, s.cfg.Topology.Name(topology.Node(x.node)), err)
	}
	return nil
}

// id returns the number of the group at the switch.
func (x *branch) id() mcast.GroupID { return mcast.GroupID(x.label - 1) }

// switchAt returns what serves groups at a switch.
func (s *Simulation) switchAt(node int32) *groupSwitch {
	return s.switches[int(node)-s.cfg.Topology.Hosts]
}

func (s *Simulation) legSpec(t tree, x *branch, n mcast.Neighbor, h topology.Node) mcast.LegSpec {
	if n != envelope.NoNeighbour {
		return mcast.LegSpec{Kind: mcast.Forwarded, Port: mcast.Port(n - 1), Neighbor: n, Levels: t.levels(x, n)}
	}
	return mcast.LegSpec{Port: mcast.Port(s.ports[s.hosts[h].port].peer - s.firstPort[x.node])}
}

func (s *Simulation) leg(x *branch, n mcast.Neighbor, h topology.Node) leg {
	if n == envelope.NoNeighbour {
		c := s.partitionOf(x.node).member(x.group, h)
		c.label = uint32(x.id())
		return leg{port: s.ports[s.hosts[h].port].peer, label: c.number}
	}
	return leg{port: s.firstPort[x.node] + uint32(n) - 1, forwarded: true}
}

// meet sets the labels of legs between switches, and begins the sessions of these.
func (s *Simulation) meet(trees []tree) error {
	for _, t := range trees {
		for i := range t {
			s.setLabels(t, &t[i])
		}
	}
	for _, t := range trees {
		for i := range t {
			if err := s.partitionOf(t[i].node).connect(&t[i]); err != nil {
				return fmt.Errorf("sim: %w", err)
			}
		}
	}
	return nil
}

// setLabels sets the labels of the legs to other switches.
func (s *Simulation) setLabels(t tree, x *branch) {
	legs := s.switchAt(x.node).groups[x.id()].legs
	for k := range legs {
		if l := &legs[k]; l.forwarded {
			if y := t.at(s.ports[s.ports[l.port].peer].node); y != nil {
				l.label = uint32(y.id())
			}
		}
	}
}

// connect begins the sessions of a group at a switch with the next switches.
func (p *Partition) connect(x *branch) error {
	s := p.s
	sw := s.switchAt(x.node)
	for _, l := range sw.groups[x.id()].legs {
		n := mcast.Neighbor(l.port-s.firstPort[x.node]) + 1
		if !l.forwarded || !x.has(n) {
			continue
		}
		if err := sw.core.SetSession(p.clock(), x.id(), n, s.session(l.port), &p.coreOut); err != nil {
			return err
		}
		p.carryOutCore(sw)
	}
	return nil
}

// session returns the number of the session between the switches at both ends of a port's link; 0:
// there is none. It begins anew each time that the link is back.
func (s *Simulation) session(n uint32) uint64 {
	o := &s.ports[n]
	if o.cut {
		return 0
	}
	return 1 + uint64(min(n, o.peer)) + uint64(o.sessions)<<32
}
