// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"math"
	"slices"

	"github.com/gleam-rdma/gleam/envelope"
)

// Identity is what stays the same over the updates of a group.
type Identity struct {
	Origin  uint64   // the epoch of the registration that made the group
	Last    uint32   // the highest number that a member has had
	Members []uint32 // the numbers of the registration's members
}

// Place is that of the switch in the tree of a group.
type Place struct {
	Root        envelope.SwitchID // where the group is registered
	Attempt     uint64            // its number for that
	Base        uint64            // the epoch that it has updated; 0: none
	Generation  uint64            // how often the tree was built
	Hops, Above uint8             // switches to the root, and levels of switches behind the parent
	Parent      int               // index in Neighbours; -1: this is the root
	Neighbours  []Neighbour       // the switches next in the tree
	Members     []int             // the index in Neighbours of the switch that each member of the registration is behind; -1: it is here
}

// Neighbour is a switch next to this one.
type Neighbour struct {
	ID               envelope.SwitchID
	Port             string // name of the interface toward it
	Levels           int    // levels of switches behind it
	Height, Diameter uint8  // height and diameter of the part of the tree below it
}

func appendIdentity(b []byte, n *Identity) []byte {
	b = appendUvarint(appendUvarint(b, n.Origin), uint64(n.Last))
	b = appendCount(b, len(n.Members))
	for _, m := range n.Members {
		b = appendUvarint(b, uint64(m))
	}
	return b
}

func (r *reader) identity() *Identity {
	n := &Identity{Origin: r.uvarint(), Last: uint32(r.upTo(math.MaxUint32))}
	for k := r.uvarint(); k > 0 && r.ok(); k-- {
		n.Members = append(n.Members, uint32(r.upTo(math.MaxUint32)))
	}
	return n
}

func appendPlace(b []byte, p *Place) []byte {
	b = appendUvarint(appendUvarint(appendUvarint(appendUvarint(b, uint64(p.Root)), p.Attempt), p.Base), p.Generation)
	b = appendCount(append(b, p.Hops, p.Above), p.Parent+1)
	b = appendCount(b, len(p.Neighbours))
	for i := range p.Neighbours {
		n := &p.Neighbours[i]
		b = appendCount(appendString(appendUvarint(b, uint64(n.ID)), n.Port), n.Levels)
		b = append(b, n.Height, n.Diameter)
	}
	b = appendCount(b, len(p.Members))
	for _, at := range p.Members {
		b = appendCount(b, at+1)
	}
	return b
}

func (r *reader) place() *Place {
	p := &Place{Root: envelope.SwitchID(r.uvarint()), Attempt: r.uvarint(), Base: r.uvarint(), Generation: r.uvarint(), Hops: r.u8(), Above: r.u8(), Parent: r.count() - 1}
	for n := r.uvarint(); n > 0 && r.ok(); n-- {
		p.Neighbours = append(p.Neighbours, Neighbour{ID: envelope.SwitchID(r.uvarint()), Port: r.text(), Levels: r.count(), Height: r.u8(), Diameter: r.u8()})
	}
	for n := r.uvarint(); n > 0 && r.ok(); n-- {
		p.Members = append(p.Members, r.count()-1)
	}
	if i := len(p.Neighbours); p.Parent >= i || slices.ContainsFunc(p.Members, func(at int) bool { return at >= i }) {
		r.fail()
	}
	return p
}

// fits reports whether the parts of g about its members are about as many as it has.
func (g *Group) fits() bool {
	n := len(g.Registration.Members)
	return (g.Identity == nil || len(g.Identity.Members) == n) && (g.Place == nil || len(g.Place.Members) == n)
}

// removeMember takes member i from all that is kept by member.
func (g *Group) removeMember(i int) {
	g.Registration.Members = slices.Delete(g.Registration.Members, i, i+1)
	g.Joined = slices.Delete(g.Joined, i, i+1)
	if g.Identity != nil {
		g.Identity.Members = slices.Delete(g.Identity.Members, i, i+1)
	}
	if g.Place != nil {
		g.Place.Members = slices.Delete(g.Place.Members, i, i+1)
	}
}
