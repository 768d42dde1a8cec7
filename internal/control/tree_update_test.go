// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/fib"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/mcast"
)

// updated is r with other legs; the members without a number in it are new.
func updated(r *envelope.Registration, parent mcast.Neighbor, numbers []uint32, legs []mcast.Neighbor, members ...envelope.MemberRecord) *envelope.Registration {
	n := *r
	n.Base, n.Epoch, n.Members, n.Numbers = r.Epoch, r.Epoch+1, members, numbers
	n.Tree = &envelope.Tree{Parent: parent, Legs: legs, Generation: r.Tree.Generation + 1}
	seen := map[mcast.Neighbor]bool{0: true}
	for _, l := range legs {
		if !seen[l] {
			seen[l] = true
			n.Tree.Neighbours = append(n.Tree.Neighbours, envelope.TreeNeighbour{Neighbour: l, Levels: 1})
		}
	}
	return &n
}

// An update in a tree takes members from one neighbour to another, makes a leg to a neighbour
// that is new, keeps the number of a leg that nobody is behind any more, and takes up the leg of a
// member here that leaves.
func TestUpdateInTree(t *testing.T) {
	f := newFakeSwitch(t, 5, 1)
	f.meet(1500, 5)
	r := f.treeRegistration()
	r.Origin, r.Epoch = 7, 7
	f.control.do(func() {
		f.know(3)
		d := f.control.dir
		if v := d.Install(r, 0); v != accepted {
			t.Fatalf("installed: %+v", v)
		}
		g := d.groups[r.Group]
		fresh := func(k int) envelope.MemberRecord { m := f.record(k, api.QPN(0x200+k)); return record(&m) }
		// Numbers 1 to 6 are hosts 10, 0, 11, 12, 1 and 13. Host 0 and host 12 leave, hosts 2 and 14 join.
		n := updated(r, 1, []uint32{1, 3, 5, 6, 7, 8}, []mcast.Neighbor{1, 1, 0, 1, 0, 1},
			r.Members[0], r.Members[2], r.Members[4], r.Members[5], fresh(2), fresh(14))
		p := d.planMembers(g, n, []locate.Location{f.locator.place(fakeHost(2))})
		if want := "[1 3]"; fmt.Sprint(p.update.Remove) != want {
			t.Errorf("removed %v, want %s", p.update.Remove, want)
		}
		var moves, adds []string
		for _, m := range p.update.Move {
			moves = append(moves, fmt.Sprintf("%d to leg %d, neighbour %d", m.Member, m.To, m.Leg.Neighbor))
		}
		for _, a := range p.update.Add {
			adds = append(adds, fmt.Sprintf("number %d at leg %d, neighbour %d, for %d", a.Member.Number, a.Member.Leg, a.Leg.Neighbor, int(a.Replaces)-1))
		}
		if want := "[0 to leg 2, neighbour 1 5 to leg 2, neighbour 1]"; fmt.Sprint(moves) != want {
			t.Errorf("moved %v, want %s", moves, want)
		}
		if want := "[number 7 at leg 1, neighbour 0, for -1 number 8 at leg 2, neighbour 1, for 3]"; fmt.Sprint(adds) != want {
			t.Errorf("added %v, want %s", adds, want)
		}
		if p.update.Tree == nil || p.update.Tree.Parent != 1 || p.update.Tree.Epoch != 7 || p.update.Tree.Layout == treeSpec(r).Layout || !p.update.Tree.Rebuilt || treeSpec(r).Rebuilt {
			t.Errorf("place in the tree %+v", p.update.Tree)
		}
		if len(p.update.Table.Legs) != 4 || p.update.Table.Legs[0].Neighbour != 2 || p.update.Table.Layout != layoutOf(n) {
			t.Errorf("the worker's legs: %+v", p.update.Table)
		}
		if s := &p.slots[1]; s.record.IP != fakeHost(2) || s.gone || s.number != 7 {
			t.Errorf("slot 1: %+v", s)
		}
		// Behind a neighbour that the group has had no leg to.
		n = updated(r, 2, []uint32{1, 2, 3, 4, 5, 6}, []mcast.Neighbor{3, 0, 1, 3, 0, 2}, r.Members...)
		p = d.planMembers(g, n, nil)
		if len(p.update.Move) != 2 || p.update.Move[0].To != 4 || p.update.Move[1].To != 4 || len(p.update.Add)+len(p.update.Remove) != 0 || copiesOf(p.slots) != 5 {
			t.Errorf("%+v", p.update)
		}
		// A member does not move between a port here and another switch.
		n = updated(r, 2, []uint32{1, 2, 3, 4, 5, 6}, []mcast.Neighbor{2, 1, 1, 2, 0, 2}, r.Members...)
		want := rejected(envelope.Problem{Reason: envelope.NotInTrees, Value: uint64(envelope.LimitMove), Member: r.Members[1].Key()})
		if v := d.Check(n, 0); v != want {
			t.Errorf("a member moves away: %+v", v)
		}
	})
}

// copiesOf returns the number of legs with a member.
func copiesOf(slots []slot) int {
	used := make(map[mcast.LegID]struct{}, len(slots))
	for i := range slots {
		if s := &slots[i]; !s.gone {
			used[s.leg] = struct{}{}
		}
	}
	return len(used)
}

// The registrar is told of a group when the ways to a member below change, and of no other; the
// hosts of such members are remembered as long as the group is there.
func TestWaysOfMembersBelow(t *testing.T) {
	f, h, routes := newFakeTree(t, 4, 2, 3)
	h.set(gatewayAt(2, 10, 100))
	h.set(gatewayAt(3, 11, 100))
	f.eventually("neighbours", func() (up bool) {
		f.control.do(func() { _, up = f.control.switches.Table.Find(2) })
		return up
	})
	r := f.treeRegistration() // neighbour 2 is the parent, host 11 is behind neighbour 1
	for _, k := range []int{0, 1} {
		routes.set(fakeHost(k), fib.Route{Status: fib.Usable, Hops: []fib.NextHop{{Link: k + 1}}})
	}
	routes.set(fakeHost(11), by(2, 3))
	var g *group
	f.control.do(func() {
		f.know(2)
		f.control.dir.waysTo(fakeHost(11)) // as the registrar asks
		if v := f.control.dir.Install(r, 0); v != accepted {
			t.Fatalf("installed: %+v", v)
		}
		g = f.control.dir.groups[r.Group]
	})
	hops := func(n int) func() bool {
		return func() (there bool) {
			f.control.do(func() { x := f.control.dir.hosts.Of(fakeHost(11)); there = x != nil && len(x.Hops()) == n })
			return there
		}
	}
	f.eventually("the ways are known", hops(2))
	f.control.do(func() {
		d := f.control.dir
		if len(g.routed) != 1 || len(slices.Collect(d.hosts.Of(fakeHost(11)).Below())) != 1 {
			t.Errorf("members below: %v", g.routed)
		}
		if d.hosts.Of(fakeHost(12)) != nil {
			t.Error("a member behind the parent is followed")
		}
		d.hosts.Of(fakeHost(11)).Use(0)
		d.expirePending(f.control.now() + time.Minute)
		if d.hosts.Of(fakeHost(11)) == nil {
			t.Error("a member below is forgotten")
			return
		}
		d.staleWays = nil
		d.waysChanged(d.hosts.Of(fakeHost(11)))
		d.waysChanged(d.hosts.Of(fakeHost(11)))
		if len(d.staleWays) != 1 || d.staleWays[0] != g {
			t.Errorf("groups to look at: %v", d.staleWays)
		}
		f.control.tellWays()
		if len(d.staleWays) != 0 || g.waysStale {
			t.Error("the registrar is told again")
		}
		d.RemoveMember(r.Group, r.Members[2].Key(), envelope.Left)
		if x := d.hosts.Of(fakeHost(11)); x == nil || len(slices.Collect(x.Below())) > 0 {
			t.Errorf("the host of a member that has left: %+v", x)
		}
		d.Remove(r.Group, envelope.Left)
		d.expirePending(f.control.now() + 2*time.Minute)
		if d.hosts.Of(fakeHost(11)) != nil {
			t.Error("the host is still known")
		}
	})
}
