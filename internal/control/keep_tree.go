// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/mcast"
)

// What is kept over a restart of a group's members' numbers, and of its tree. The number of a
// neighbour is of this run of gleamd, so neighbours are kept by their IDs and ports.

// identityOf returns the part of s that updates do not change.
func identityOf(s *envelope.SavedGroup) *statefile.Identity {
	n := &statefile.Identity{Origin: s.Registration.Origin, Last: s.LastNumber}
	for i := range s.Registration.Members {
		n.Members = append(n.Members, s.Registration.Number(i))
	}
	return n
}

// placeOf returns the place of this switch in the tree of s; nil if there is no tree.
func placeOf(s *envelope.SavedGroup) *statefile.Place {
	t, b := s.Registration.Tree, s.Branch
	if t == nil || b == nil {
		return nil
	}
	p := &statefile.Place{Root: b.Root, Attempt: b.Number, Base: b.Base, Generation: b.Generation, Hops: b.Hops, Above: b.Above}
	index := func(n mcast.Neighbor) int {
		return slices.IndexFunc(b.Adjacencies, func(a envelope.SavedAdjacency) bool { return a.Neighbour == n })
	}
	for _, a := range b.Adjacencies {
		n := statefile.Neighbour{ID: a.ID, Port: a.Port}
		for _, x := range t.Neighbours {
			if x.Neighbour == a.Neighbour {
				n.Levels = x.Levels
			}
		}
		for _, c := range b.Children {
			if c.Neighbour == a.Neighbour {
				n.Height, n.Diameter = c.Height, c.Diameter
			}
		}
		p.Neighbours = append(p.Neighbours, n)
	}
	p.Parent = index(t.Parent)
	for _, n := range t.Legs {
		p.Members = append(p.Members, index(n))
	}
	return p
}

// savedGroup returns the registrar's form of a group in the file.
func (c *control) savedGroup(x *statefile.Group) (*envelope.SavedGroup, error) {
	s := &envelope.SavedGroup{Registration: x.Registration, Key: x.Key, Transaction: x.Transaction, Digests: x.Digests, Joined: x.Joined}
	for _, f := range x.Former {
		s.Former = append(s.Former, envelope.SavedFormer(f))
	}
	r := &s.Registration
	if r.Origin = r.Epoch; x.Identity != nil {
		r.Origin, r.Numbers, s.LastNumber = x.Identity.Origin, x.Identity.Members, x.Identity.Last
	}
	if x.Place != nil {
		return s, c.recallPlace(s, x.Place)
	}
	return s, nil
}

// recallPlace gives s the place p in its tree. Neighbours get numbers before they are heard.
func (c *control) recallPlace(s *envelope.SavedGroup, p *statefile.Place) error {
	if c.switches.Hellos == nil {
		return fmt.Errorf("it has members at other switches, and no keys of switches are configured any more")
	}
	t := &envelope.Tree{Generation: p.Generation}
	b := &envelope.SavedBranch{Root: p.Root, Number: p.Attempt, Base: p.Base, Generation: p.Generation, Hops: p.Hops, Above: p.Above}
	at := make([]mcast.Neighbor, len(p.Neighbours))
	for i := range p.Neighbours {
		n := &p.Neighbours[i]
		pi := slices.IndexFunc(c.ports, func(x *port) bool { return x.Name == n.Port })
		if pi < 0 {
			return fmt.Errorf("port %s, toward switch %v of its tree, is no port of this switch any more", n.Port, n.ID)
		}
		at[i] = c.switches.Table.Recall(c.now(), pi, hello.SwitchID(n.ID))
		t.Neighbours = append(t.Neighbours, envelope.TreeNeighbour{Neighbour: at[i], Levels: n.Levels})
		b.Adjacencies = append(b.Adjacencies, envelope.SavedAdjacency{Neighbour: at[i], ID: n.ID, Port: n.Port})
		if i != p.Parent {
			b.Children = append(b.Children, envelope.SavedChild{Neighbour: at[i], Height: n.Height, Diameter: n.Diameter})
		}
	}
	neighbour := func(i int) mcast.Neighbor {
		if i < 0 {
			return envelope.NoNeighbour
		}
		return at[i]
	}
	t.Parent = neighbour(p.Parent)
	for _, i := range p.Members {
		t.Legs = append(t.Legs, neighbour(i))
	}
	s.Registration.Tree, s.Branch = t, b
	return nil
}
