// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/mcast"
)

// Legs of groups. A member here has a leg of its own, a neighbour has one for all members
// behind it. A leg keeps its number when nobody is behind it any more.

// newSlots returns the slots of a registration whose members are all new, and its legs, as group.legs. places are the locations of the members that are
// here, in their order.
func newSlots(r *envelope.Registration, places []locate.Location) (slots []slot, legs []mcast.Neighbor) {
	slots, legs = make([]slot, len(r.Members)), make([]mcast.Neighbor, 0, len(r.Members))
	for i := range slots {
		s := &slots[i]
		s.record, s.number, s.behind = &r.Members[i], r.Number(i), r.Tree.Leg(i)
		s.leg, legs = legFor(legs, s.behind)
		if s.isHere() {
			s.location, places = &places[0], places[1:]
		}
	}
	if !inTree(legs) {
		legs = nil
	}
	return slots, legs
}

// legFor returns the leg to a neighbour, and the legs with it; for NoNeighbour it is a new
// one.
func legFor(legs []mcast.Neighbor, to mcast.Neighbor) (mcast.LegID, []mcast.Neighbor) {
	if i := slices.Index(legs, to); i >= 0 && to != envelope.NoNeighbour {
		return mcast.LegID(i), legs
	}
	return mcast.LegID(len(legs)), append(legs, to)
}

// legsOf returns the worker's legs of a group with legs to other switches, nil for any
// other.
func (d *directory) legsOf(legs []mcast.Neighbor) []dataplane.Leg {
	if !inTree(legs) {
		return nil
	}
	list := make([]dataplane.Leg, len(legs))
	for i, n := range legs {
		if n != envelope.NoNeighbour {
			l, _ := d.switches.LinkTo(n)
			list[i] = dataplane.Leg{Neighbour: n, Port: l.Port}
		}
	}
	return list
}

// inTree reports whether one of the legs leads, or has led, to another switch.
func inTree(legs []mcast.Neighbor) bool {
	return slices.ContainsFunc(legs, func(n mcast.Neighbor) bool { return n != envelope.NoNeighbour })
}

// treeSpec returns the place of this switch in the tree of r's data: a parent without
// members behind it has no part in that.
func treeSpec(r *envelope.Registration) mcast.TreeSpec {
	t := mcast.TreeSpec{Epoch: uint32(r.Origin), Layout: layoutOf(r), Rebuilt: r.Epoch != r.Origin || r.Tree != nil && r.Tree.Generation != 0}
	if r.Tree != nil && slices.Contains(r.Tree.Legs, r.Tree.Parent) {
		t.Parent = r.Tree.Parent
	}
	if r.Tree != nil {
		t.Levels = make(map[mcast.Neighbor]uint8, len(r.Tree.Neighbours))
		for _, n := range r.Tree.Neighbours {
			t.Levels[n.Neighbour] = uint8(n.Levels)
		}
	}
	return t
}

// layoutOf returns the number of the registration that built the group's tree: all its
// switches have the same one, and another one with each update.
func layoutOf(r *envelope.Registration) uint32 {
	if r.Tree == nil {
		return 0
	}
	return uint32(r.Epoch)*16 + uint32(r.Tree.Generation)
}

// legSpecs returns the core's legs of a registration with table t.
func (d *directory) legSpecs(r *envelope.Registration, t *dataplane.Table) (legs []mcast.LegSpec) {
	if t.Legs == nil {
		legs = make([]mcast.LegSpec, 0, len(t.Destinations))
		for i := range t.Destinations {
			legs = append(legs, legSpec(&t.Destinations[i]))
		}
		return legs
	}
	legs = make([]mcast.LegSpec, len(t.Legs))
	for i := range t.Destinations {
		to := &t.Destinations[i]
		if n := t.Legs[to.Leg].Neighbour; n != envelope.NoNeighbour {
			legs[to.Leg] = d.forwardedSpec(r, n)
		} else {
			legs[to.Leg] = legSpec(to)
		}
	}
	return legs
}

// legSpec returns the core's leg to a member here.
func legSpec(to *dataplane.Destination) mcast.LegSpec {
	return mcast.LegSpec{Kind: mcast.Connected, Port: mcast.Port(max(0, to.Port))}
}

// forwardedSpec returns the core's leg to a neighbour.
func (d *directory) forwardedSpec(r *envelope.Registration, n mcast.Neighbor) mcast.LegSpec {
	link, _ := d.switches.LinkTo(n)
	l := mcast.LegSpec{Kind: mcast.Forwarded, Port: mcast.Port(link.Port), Neighbor: n}
	for i := range r.Tree.Neighbours {
		if x := &r.Tree.Neighbours[i]; x.Neighbour == n {
			l.Levels = uint8(x.Levels)
		}
	}
	return l
}
