// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
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
		behind, all := 0, 0
		for _, h := range n.hosts {
			if h.out {
				continue
			}
			all++
			if h.at != p && toward(parent, p, h.at) == c {
				behind++
			}
		}
		if behind == 0 || behind == all {
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
		n.owe()
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
	op := UpdateMembers{Tree: &TreeSpec{Layout: s.layout}, Stored: s.stores()}
	legs := map[Neighbor]LegID{}
	for _, l := range g.forwardedLegs() {
		legs[g.legs[l].neighbor] = l
	}
	next := LegID(len(g.legs))
	for _, h := range n.hosts {
		_, ok := g.numbered(uint32(h.id) + 1)
		switch {
		case h.out && ok:
			op.Remove = append(op.Remove, s.memberOf(h))
		case !h.out && !ok && h.at == s.id:
			op.Add = append(op.Add, AddMember{Member: h.member(next)})
			next++
		}
		if h.out || h.at == s.id {
			continue
		}
		nbr := Neighbor(toward(s.parent, s.id, h.at) + 1)
		if p := s.parent[s.id]; p >= 0 && nbr == Neighbor(p+1) { // a parent without members behind it has no part
			op.Tree.Parent = nbr
		}
		to, ok := legs[nbr]
		if !ok {
			to, legs[nbr] = next, next
			next++
		}
		spec := LegSpec{Kind: Forwarded, Neighbor: nbr}
		if k, ok := g.numbered(uint32(h.id) + 1); !ok {
			op.Add = append(op.Add, AddMember{Member: h.member(to), Leg: spec})
		} else if g.members[k].leg != to {
			op.Move = append(op.Move, MoveMember{k, to, spec})
		}
	}
	n.log("update %d %+v", s.id, op)
	n.reports = 0 // an idle second begins again
	if err := s.sw.Apply(n.now, op, &s.out); err != nil {
		n.tb.Fatalf("switch %d: %v", s.id, err)
	}
	s.output()
	s.read()
	s.connect()
}

// memberOf returns the member that host h is at switch s.
func (s *treeSwitch) memberOf(h *treeHost) MemberID {
	k, ok := s.sw.groups[0].numbered(uint32(h.id) + 1)
	if !ok {
		s.n.tb.Fatalf("switch %d: host %d is no member", s.id, h.id)
	}
	return k
}

// member returns h as a member behind leg l.
func (h *treeHost) member(l LegID) MemberSpec {
	return MemberSpec{MemberRecord: MemberRecord{IP: h.ip, QPN: rocev2.QPN(0x100 + h.id), SQPSN: h.sq, RQPSN: h.rq}, Number: uint32(h.id) + 1, Leg: l}
}

// leave lets host h, which sends nothing, leave: its own switch knows it first.
func (n *treeNet) leave(h *treeHost) {
	h.out = true
	n.log("host %d leaves", h.id)
	for s := range n.switches {
		at := time.Duration(0)
		if s != h.at {
			at = time.Duration(1+n.rng(100)) * time.Microsecond
		}
		n.after(at, func() { n.remove(s, h) })
	}
}

// remove takes host h, which has left, off switch s.
func (n *treeNet) remove(id int, h *treeHost) {
	s := n.switches[id]
	if s.down {
		n.after(100*time.Microsecond, func() { n.remove(id, h) })
		return
	}
	k, ok := s.sw.groups[0].numbered(uint32(h.id) + 1)
	if !ok { // it has started again
		return
	}
	if err := s.sw.Apply(n.now, RemoveMember{Member: k}, &s.out); err != nil {
		n.tb.Fatalf("switch %d: %v", s.id, err)
	}
	s.output()
	s.read()
}

// join brings in host h by an update of the tree.
func (n *treeNet) join(h *treeHost) {
	if n.busy {
		n.after(100*time.Microsecond, func() { n.join(h) })
		return
	}
	n.log("host %d joins at %d", h.id, h.at)
	h.out, h.begun, n.busy = false, make([]bool, len(n.hosts)), true
	n.layout++
	n.follow(n.postorder(), n.layout)
}

// owe notes what the hosts that have joined are to get.
func (n *treeNet) owe() {
	for _, h := range n.hosts {
		if h.out || h.begun == nil || h.owed != nil {
			continue
		}
		for _, src := range n.hosts {
			i := src.top
			for i < len(src.ops) && !src.ops[i].Is(rocev2.OpStart) {
				i++
			}
			h.owed = append(h.owed, i)
		}
	}
}

// comeAndGo lets some of the hosts leave, and others join, during the run. It returns the number of
// those that stay, the first ones, two at least.
func (n *treeNet) comeAndGo() (stay int) {
	stay = 2 + n.rng(2)
	for _, h := range n.hosts[stay:] {
		if n.rng(3) > 0 {
			n.after(time.Duration(n.rng(50))*time.Millisecond, func() { n.leave(h) })
		}
	}
	first := len(n.hosts)
	for i := range 1 + n.rng(4) {
		h := n.joiner(first+i, n.hosts[n.rng(first)].at)
		n.hosts = append(n.hosts, h)
	}
	at := time.Duration(0)
	for _, h := range n.hosts[first:] { // in the order of their numbers
		at += time.Duration(n.rng(30)) * time.Millisecond
		n.after(at, func() { n.join(h) })
	}
	for _, h := range n.hosts {
		h.got = make([]int, len(n.hosts))
	}
	return stay
}

// rejoin lets a host that was evicted join anew, with another queue pair. It has joined, and has had nothing:
// nobody knows where its first message begins.
func (n *treeNet) rejoin(h *treeHost) {
	if h.begun == nil || slices.Contains(h.begun, true) {
		n.tb.Fatalf("%v: host %d is evicted, and has data", n.now, h.id)
	}
	n.rejoined++
	n.log("%v host %d is evicted", n.now, h.id)
	n.leave(h)
	n.after(max(0, joined-n.now), func() { n.joinAnew(h.at) })
}

// joined is when all hosts have joined that join by the run's plan: members have their numbers in that order.
const joined = 200 * time.Millisecond

// joinAnew brings in a new host.
func (n *treeNet) joinAnew(at int) {
	if n.busy {
		n.after(100*time.Microsecond, func() { n.joinAnew(at) })
		return
	}
	h := n.joiner(len(n.hosts), at)
	n.hosts = append(n.hosts, h)
	for _, o := range n.hosts {
		o.got = append(o.got, make([]int, len(n.hosts)-len(o.got))...)
		if o.begun != nil {
			o.begun = append(o.begun, false)
		}
		if o.owed != nil {
			o.owed = append(o.owed, 0)
		}
	}
	n.join(h)
}

// joiner returns a host that is no member yet.
func (n *treeNet) joiner(id, at int) *treeHost {
	h := &treeHost{n: n, id: id, at: at, ip: netip.AddrFrom4([4]byte{10, 0, 1, byte(id + 1)}), sq: rocev2.PSN(n.rng(1 << 24)), rq: rocev2.PSN(n.rng(1 << 24)), mid: -1, out: true}
	h.ePSN = h.rq
	return h
}
