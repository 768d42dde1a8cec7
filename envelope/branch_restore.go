// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// A group over several switches comes back as a part of its tree. Its neighbours there are
// asked as after any other new session whether they have the same attempt.

// restartStep is added to the generation of a root's last attempt when it is restored: it is
// more than the attempts that the root may have made since that was stored.
const restartStep = 1024

// SavedBranch is the place of a switch in the tree of a group, as a driver stores it.
// Neighbours have other numbers after a restart: the driver replaces them here and in
// Registration.Tree.
type SavedBranch struct {
	Root        SwitchID
	Number      uint64 // the number of the attempt, which has it with Root and the epoch
	Base        uint64
	Generation  uint64
	Hops, Above uint8
	Children    []SavedChild
	Adjacencies []SavedAdjacency // the adjacencies of all neighbours in the tree
}

// SavedChild is a switch below.
type SavedChild struct {
	Neighbour        mcast.Neighbor
	Height, Diameter uint8
}

// SavedAdjacency says who a neighbour is.
type SavedAdjacency struct {
	Neighbour mcast.Neighbor
	ID        SwitchID
	Port      string
}

// savedBranch returns what is to be stored of g's tree, nil if it has none.
func (r *Registrar) savedBranch(g *group) *SavedBranch {
	b := g.branch
	if b == nil {
		return nil
	}
	s := &SavedBranch{Root: b.id.root, Number: b.id.number, Base: b.base, Generation: g.generation, Hops: b.hops, Above: b.above}
	for i := range b.children {
		s.Children = append(s.Children, SavedChild{b.children[i].to, b.children[i].height, b.children[i].diameter})
	}
	for _, n := range b.neighbours() {
		a := r.adjacencyOf(n)
		s.Adjacencies = append(s.Adjacencies, SavedAdjacency{n, a.ID, a.Port})
	}
	return s
}

// restoreBranch gives g its place in the tree back.
func (r *Registrar) restoreBranch(g *group, s *SavedBranch) error {
	t := g.reg.Tree
	switch {
	case s == nil && t == nil:
		return nil
	case s == nil || t == nil:
		return fmt.Errorf("its place in the tree of switches is not known")
	case r.cfg.Switch.Planner == nil:
		return fmt.Errorf("it is a group over several switches, and no keys of switches are configured any more")
	case (s.Root == r.cfg.Switch.ID) != (t.Parent == NoNeighbour):
		return fmt.Errorf("this switch, %v, has another place in its tree than before the restart", r.cfg.Switch.ID)
	case len(t.Legs) != len(g.reg.Members):
		return fmt.Errorf("%d legs of %d members", len(t.Legs), len(g.reg.Members))
	}
	b := &branch{
		id: attemptID{g.reg.Epoch, s.Root, s.Number, g.key}, base: s.Base, state: branchInstalled, parent: t.Parent, hops: s.Hops, above: s.Above,
		left: r.cfg.Switch.Timeout,
	}
	if b.isRoot() {
		b.serial = r.firstSerial()
	}
	for _, c := range s.Children {
		b.children = append(b.children, child{to: c.Neighbour, done: true, height: c.Height, diameter: c.Diameter, heardAt: r.now})
	}
	ns := b.neighbours()
	for i, n := range ns {
		if n == NoNeighbour || slices.Contains(ns[:i], n) {
			return fmt.Errorf("the port toward a switch of its tree is not there any more")
		}
	}
	for _, n := range t.Legs {
		if n != NoNeighbour && !slices.Contains(ns, n) {
			return fmt.Errorf("a leg leads to a switch that is not in its tree")
		}
	}
	g.branch, g.generation = b, s.Generation
	g.attempts = s.Generation + restartStep
	return nil
}

// awaitNeighbours gives the neighbours in g's tree, which is restored, the grace to be there
// again. Those that are not there by half of it are missed. They are told again which members
// have gone: this switch may have restarted before they had answered.
func (r *Registrar) awaitNeighbours(now time.Duration, g *group, s *SavedBranch) {
	if g.branch == nil {
		return
	}
	r.enlist(g)
	for _, k := range g.goneMembers() {
		var out Output // nobody is there yet
		r.relayGone(now, g, g.gone[k].body, NoNeighbour, &out)
	}
	grace := r.cfg.Switch.Grace
	for _, a := range s.Adjacencies {
		if n := a.Neighbour; r.neighbours[n] == nil && r.changes[n] == nil {
			r.noteChange(n, &neighbourChange{last: Adjacency{ID: a.ID, Port: a.Port}, lost: true, next: len(r.over[n]), until: now + grace}, now+grace/2)
		}
	}
}

// firstSerial is the number before that of a root's first Renew. It grows over restarts.
func (r *Registrar) firstSerial() uint32 { return uint32(r.cfg.EpochBase >> 6) }
