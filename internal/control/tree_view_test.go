// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/mcast"
)

// A group's tree has a leg for each neighbour, with the members behind it, and where the
// neighbour says that its API is.
func TestGroupsTreeIsDescribed(t *testing.T) {
	f, h, _ := newFakeTree(t, 4, 2, 3)
	one, two := gatewayAt(2, 0x10, 7), gatewayAt(3, 0x20, 8)
	one.Neighbour.API = netip.MustParseAddrPort("10.9.0.1:4798")
	h.set(one)
	h.set(two)
	parent, child := mcast.Neighbor(0), mcast.Neighbor(0)
	f.eventually("both neighbours are up", func() bool {
		f.control.do(func() {
			for _, a := range f.control.switches.Table.All() {
				switch {
				case a.Up && a.ID == 0x10:
					child = a.Number
				case a.Up && a.ID == 0x20:
					parent = a.Number
				}
			}
		})
		return parent != 0 && child != 0
	})
	r := f.treeRegistration()
	for i, n := range r.Tree.Legs {
		r.Tree.Legs[i] = map[mcast.Neighbor]mcast.Neighbor{0: 0, 1: child, 2: parent}[n]
	}
	r.Tree.Parent, r.Tree.Neighbours = parent, []envelope.TreeNeighbour{{Neighbour: child, Levels: 1}, {Neighbour: parent, Levels: 2}}
	f.control.do(func() {
		f.know(2)
		if v := f.control.dir.Install(r, 0); v != accepted {
			t.Errorf("installed: %+v", v)
		}
	})
	g, err := f.Group(r.Group)
	if err != nil || g.Tree == nil {
		t.Fatal(g, err)
	}
	x := g.Tree
	if x.Switch != f.control.switches.Hellos.ID().String() || x.Parent != hello.SwitchID(0x20).String() || x.Token == nil || len(x.Legs) != 2 {
		t.Fatalf("%+v", x)
	}
	want := []api.TreeLeg{
		{Switch: hello.SwitchID(0x10).String(), Port: "f2", State: api.LinkUp, API: "10.9.0.1:4798", Levels: 1, Members: 1, Live: 1},
		{Switch: hello.SwitchID(0x20).String(), Port: "f3", State: api.LinkUp, Levels: 2, Members: 3, Live: 3},
	}
	for i, l := range x.Legs {
		l.AckPSN, l.Lag, l.Awaited = 0, 0, false
		if l != want[i] {
			t.Errorf("leg %d: %+v, want %+v", i, l, want[i])
		}
	}
	top, err := f.Topology()
	if err != nil || len(top.Neighbours) != 2 || top.Neighbours[0].API != "10.9.0.1:4798" && top.Neighbours[1].API != "10.9.0.1:4798" {
		t.Errorf("%+v, %v", top, err)
	}
	k := slices.Index(r.Tree.Legs, child)
	f.control.do(func() { // told once
		g := f.control.dir.groups[r.Group]
		o := mcast.Outcomes{Group: g.id, Generation: g.generation, Conflicts: 1, LastConflict: mcast.Event{Kind: mcast.SourceConflict, Member: mcast.MemberID(k), PSN: 0x77}}
		f.control.applyOutcomes(g, &o)
		f.control.applyOutcomes(g, &o)
	})
	if es := f.events(0, api.EventConflict); len(es) != 1 || es[0].Member != r.Members[k].IP || *es[0].PSN != 0x77 || !strings.Contains(es[0].Reason, "switch "+hello.SwitchID(0x10).String()+" sends data of "+r.Members[k].IP.String()) {
		t.Errorf("of switches that disagree on the source: %+v", es)
	}
	h.set(neighbours.Link{Port: 2, Reason: hello.Silent, Lost: hello.Silent})
	f.eventually("the leg is down", func() bool {
		g, err := f.Group(r.Group)
		return err == nil && g.Tree.Legs[0].State == api.LinkDown && g.Tree.Legs[0].Reason != ""
	})
}
