// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"time"
)

// The changes of a treeNet's tree.

// adopt gives switch s the planned tree.
func (s *treeSwitch) adopt() {
	s.parent, s.layout, s.links = s.n.parent, s.n.layout, map[int]bool{}
	for c, p := range s.parent {
		if c == s.id && p >= 0 {
			s.links[p] = true
		} else if p == s.id {
			s.links[c] = true
		}
	}
}

// reshape changes the parents of switches while data flows. Each switch follows after those
// below it.
func (n *treeNet) reshape() {
	if n.busy {
		return
	}
	next := append([]int(nil), n.parent...)
	x := 1 + n.rng(len(next)-1)
	below := func(a, b int) bool { // a is b, or below it
		for ; a >= 0; a = next[a] {
			if a == b {
				return true
			}
		}
		return false
	}
	if y := n.rng(len(next)); !below(y, x) {
		next[x] = y
	} else if y != x { // the switch below takes its place
		c := y
		for next[c] != x {
			c = next[c]
		}
		next[c], next[x] = next[x], c
	}
	if fmt.Sprint(next) == fmt.Sprint(n.parent) || !n.fits(next) {
		return
	}
	n.parent, n.busy = next, true
	n.layout++
	n.log("reshape %v", next)
	n.follow(n.postorder(), n.layout)
}

// fits reports whether each switch that is no root has a member at or below it, and one
// beyond.
func (n *treeNet) fits(parent []int) bool {
	for c, p := range parent {
		if p < 0 {
			continue
		}
		behind := 0
		for _, h := range n.hosts {
			if h.at != p && toward(parent, p, h.at) == c {
				behind++
			}
		}
		if behind == 0 || behind == len(n.hosts) {
			return false
		}
	}
	return true
}

func (n *treeNet) postorder() (order []int) {
	var visit func(s int)
	visit = func(s int) {
		for c := range n.parent {
			if n.parent[c] == s {
				visit(c)
			}
		}
		order = append(order, s)
	}
	visit(0)
	return order
}

// follow lets the switches install the layout, one after the other.
func (n *treeNet) follow(order []int, layout uint32) {
	if len(order) == 0 {
		n.busy = false
		return
	}
	s := n.switches[order[0]]
	if s.down {
		n.after(100*time.Microsecond, func() { n.follow(order, layout) })
		return
	}
	s.update()
	n.after(time.Duration(n.rng(200))*time.Microsecond, func() { n.follow(order[1:], layout) })
}

// update installs the planned tree at a switch that has the group.
func (s *treeSwitch) update() {
	n, g := s.n, s.sw.groups[0]
	s.adopt()
	op := UpdateMembers{Tree: &TreeSpec{Layout: s.layout}}
	if p := s.parent[s.id]; p >= 0 {
		op.Tree.Parent = Neighbor(p + 1)
	}
	legs := map[Neighbor]LegID{}
	for _, l := range g.forwardedLegs() {
		legs[g.legs[l].neighbor] = l
	}
	next := LegID(len(g.legs))
	for _, h := range n.hosts {
		if h.at == s.id {
			continue
		}
		nbr := Neighbor(toward(s.parent, s.id, h.at) + 1)
		to, ok := legs[nbr]
		if !ok {
			to, legs[nbr] = next, next
			next++
		}
		if g.members[h.id].leg != to {
			op.Move = append(op.Move, MoveMember{MemberID(h.id), to, LegSpec{Kind: Forwarded, Neighbor: nbr}})
		}
	}
	n.log("update %d %+v", s.id, op)
	if err := s.sw.Apply(n.now, op, &s.out); err != nil {
		n.tb.Fatalf("switch %d: %v", s.id, err)
	}
	s.output()
	s.connect()
}
