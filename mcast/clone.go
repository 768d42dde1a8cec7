// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"maps"
	"slices"
)

// Clone returns a switch that has a copy of the group and nothing else; nil if there is no such
// group. The same calls for the group have the same output at both. They share no memory: the
// copy may be used by another goroutine.
//
// It costs a copy of the group's tables: 16 KiB, 0.3 KiB for each member, and the ring of the
// store.
func (v Group) Clone() *Switch {
	g := v.g
	if g == nil {
		return nil
	}
	s, id := g.sw, g.id
	c := &Switch{limits: s.limits, repair: s.repair, departures: s.departures, blank: s.blank}
	c.ports = portTimes{slices.Clone(s.ports.ports), s.ports.pauses}
	c.sortScratch = make([]int32, len(s.sortScratch))
	c.groups = make([]*group, int(id)+1)
	c.timers.grow(id)
	c.groups[id] = g.clone(c)
	c.index(c.groups[id])
	if at, armed := s.timers.deadline(id); armed {
		c.timers.arm(id, at)
	}
	if g.activity != nil {
		c.actives.add(id)
	}
	return c
}

// clone returns a copy of g for the switch c.
func (g *group) clone(c *Switch) *group {
	n := *g
	n.sw = c
	n.acks, n.legs, n.activity, n.members = slices.Clone(g.acks), slices.Clone(g.legs), slices.Clone(g.activity), slices.Clone(g.members)
	if n.cost = copyOf(g.cost); n.cost != nil {
		n.cost.legs = slices.Clone(g.cost.legs)
	}
	n.byIP.slots = slices.Clone(g.byIP.slots)
	n.numbering.checks = slices.Clone(g.numbering.checks)
	n.agg.messages.ends, n.agg.messages.spare = slices.Clone(g.agg.messages.ends), &c.pools.ends
	n.counters.more = copyOf(g.counters.more)
	n.fwd.targets = g.fwd.targets.clone()
	n.repair.store = g.repair.store.clone(c)
	if o := copyOf(g.outcomes); o != nil {
		o.Evicted, o.Mismatches = slices.Clone(o.Evicted), slices.Clone(o.Mismatches)
		n.outcomes = o
	}
	n.extra = g.extra.clone(&n)
	return &n
}

// copyOf returns a pointer to a copy of *p; nil if p is nil.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	x := *p
	return &x
}

func (t *targets) clone() *targets {
	n := copyOf(t)
	if n == nil {
		return nil
	}
	n.acked = slices.Clone(t.acked)
	for i := range n.ring {
		n.ring[i].legs = slices.Clone(t.ring[i].legs)
	}
	return n
}

func (s *store) clone(c *Switch) *store {
	n := copyOf(s)
	if n == nil {
		return nil
	}
	n.sw, n.ring, n.held.packets = c, slices.Clone(s.ring), slices.Clone(s.held.packets)
	return n
}

// clone returns a copy of x for group g.
func (x *extra) clone(g *group) *extra {
	n := copyOf(x)
	if n == nil {
		return nil
	}
	n.forwards, n.levels, n.history = slices.Clone(x.forwards), slices.Clone(x.levels), slices.Clone(x.history)
	n.firstPSN, n.numbers, n.byNumber = slices.Clone(x.firstPSN), slices.Clone(x.numbers), maps.Clone(x.byNumber)
	n.offload = copyOf(x.offload)
	if t := copyOf(x.tree); t != nil {
		t.g, t.machine = g, x.tree.machine.Clone(t)
		t.place.Levels = maps.Clone(t.place.Levels)
		e := &t.edges
		e.needed, e.firsts, e.relay.said = slices.Clone(e.needed), slices.Clone(e.firsts), slices.Clone(e.relay.said)
		n.tree = t
	}
	return n
}
