// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/mcast"
)

// The place of a switch in the tree of a group is the same after a restart, in which neighbours
// may have other numbers. Neighbours that are not heard yet have theirs.
func TestPlacesAreKept(t *testing.T) {
	f, h, _ := newFakeTree(t, 4, 1, 2, 3)
	r := f.treeRegistration()
	r.Origin, r.Epoch, r.Numbers = 5, 9, []uint32{1, 2, 4, 5, 7, 8}
	r.Tree.Generation = 3
	saved := &envelope.SavedGroup{Registration: *r, LastNumber: 11, Branch: &envelope.SavedBranch{
		Root: 77, Number: 1<<64 - 1, Base: 8, Generation: 3, Hops: 1, Above: 2, Children: []envelope.SavedChild{{Neighbour: 1, Height: 0, Diameter: 1}},
		Adjacencies: []envelope.SavedAdjacency{{Neighbour: 1, ID: 101, Port: "f2"}, {Neighbour: 2, ID: 102, Port: "f3"}},
	}}
	x := &statefile.Group{Registration: *r, Identity: identityOf(saved), Place: placeOf(saved)}
	x.Registration.Tree, x.Registration.Origin, x.Registration.Numbers = nil, 0, nil // not in the file
	f.control.do(func() {
		c := f.control
		c.switches.Table.Recall(c.now(), 1, 100) // number 1
		got, err := c.savedGroup(x)
		if err != nil {
			t.Fatal(err)
		}
		renumber := map[mcast.Neighbor]mcast.Neighbor{0: 0, 1: 2, 2: 3}
		for i, n := range r.Tree.Legs {
			r.Tree.Legs[i] = renumber[n]
		}
		for i := range r.Tree.Neighbours {
			r.Tree.Neighbours[i].Neighbour = renumber[r.Tree.Neighbours[i].Neighbour]
		}
		r.Tree.Parent = renumber[r.Tree.Parent]
		b := saved.Branch
		b.Children[0].Neighbour, b.Adjacencies[0].Neighbour, b.Adjacencies[1].Neighbour = 2, 2, 3
		if !reflect.DeepEqual(got.Registration, *r) || got.LastNumber != 11 {
			t.Errorf("got  %+v %+v\nwant %+v %+v", got.Registration, got.Registration.Tree, *r, r.Tree)
		}
		if !reflect.DeepEqual(got.Branch, b) {
			t.Errorf("got  %+v\nwant %+v", got.Branch, b)
		}
		if a, ok := c.switches.Table.Find(3); !ok || a.Up || a.Port != 3 || a.ID != hello.SwitchID(102) {
			t.Errorf("neighbour 3 is %+v", a)
		}
		x.Place.Neighbours[0].Port = "f9"
		if _, err := c.savedGroup(x); err == nil || !strings.Contains(err.Error(), "port f9, toward switch 0000000000000065 of its tree, is no port") {
			t.Errorf("without the port: %v", err)
		}
		c.switches.Hellos = nil
		if _, err := c.savedGroup(x); err == nil || !strings.Contains(err.Error(), "no keys of switches") {
			t.Errorf("without hellos: %v", err)
		}
		c.switches.Hellos = h
		x.Identity, x.Place = nil, nil
		if got, err := c.savedGroup(x); err != nil || got.Registration.Origin != 9 || got.Registration.Tree != nil || got.Branch != nil {
			t.Errorf("without identity and place: %+v, %v", got, err)
		}
	})
	if p := placeOf(&envelope.SavedGroup{}); p != nil {
		t.Errorf("without a tree: %+v", p)
	}
}
