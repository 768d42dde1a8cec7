// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/gleam-rdma/gleam/mcast"
)

// Rebuilds: the group's tree becomes another one while data flows (R90). A switch installs it
// after those below it have; one that is not in it any more forgets the group after the root
// has installed it. Members stay at their switches.

// reshapes reports whether switches may have sessions that differ from each other's.
func (c *Config) reshapes() bool {
	return c.Meet > 0 || slices.ContainsFunc(c.Changes, func(k Change) bool { return k.Rebuilt })
}

// treeAfter returns the tree after the first changes.
func (w *World) treeAfter(changes int) Tree {
	for k := changes - 1; k >= 0; k-- {
		if c := &w.cfg.Changes[k]; c.Rebuilt {
			return c.To
		}
	}
	return w.cfg.Tree
}

// layoutOf returns the number of the tree's layout after the first changes.
func (w *World) layoutOf(changes int) uint32 {
	for k := changes - 1; k >= 0; k-- {
		if w.cfg.Changes[k].Rebuilt {
			return uint32(k) + 1
		}
	}
	return 0
}

// place returns the place of switch sw in the tree after the first changes.
func (w *World) place(sw, changes int) *mcast.TreeSpec {
	return &mcast.TreeSpec{Parent: w.treeAfter(changes).parent(sw, w.home), Layout: w.layoutOf(changes)}
}

// commits reports whether it is switch sw's turn to install the tree of its next change, if that
// is a rebuild.
func (w *World) commits(sw int) bool {
	k := w.switches[sw].form.changed
	if !w.cfg.Changes[k].Rebuilt {
		return true
	}
	t := w.cfg.Changes[k].To
	for i := range w.switches {
		switch n := w.switches[i].form.changed; {
		case n < k:
			return false // the last change is not complete
		case n > k:
		case !t.has(sw) && i == 0, t.has(sw) && t.below(i, sw):
			return false
		}
	}
	return true
}

// comeOrGo returns the operation for a switch that comes into the group's tree t by the last of
// the changes, or goes, and the membership after it.
func (w *World) comeOrGo(sw int, f *membership, t Tree, changes int) (mcast.Op, *membership) {
	n := w.formIn(sw, t)
	n.dev = f.dev
	switch {
	case n.near != nil:
		spec := w.switches[sw].spec
		spec.Tree = *w.place(sw, changes)
		spec.Tree.Running = true
		w.fill(&spec, n)
		return mcast.PutGroup{Spec: spec}, n
	case f.near != nil:
		return mcast.DeleteGroup{}, n
	}
	return nil, n
}

// legTo returns the leg to a neighbour, which may be a new one.
func (f *membership) legTo(nbr mcast.Neighbor) mcast.LegID {
	l := slices.Index(f.legNear, nbr)
	if l < 0 {
		l = len(f.legNear)
		f.at, f.legNear = append(f.at, 0), append(f.legNear, nbr)
	}
	return mcast.LegID(l)
}

// move puts the members, but those that leave, behind the neighbours of the new tree.
func (f *membership) move(c *Change) (moves []mcast.MoveMember) {
	for i, nbr := range f.near {
		if nbr == 0 || f.leg[i] == noLeg || slices.Contains(c.Leave, i) || f.legNear[f.leg[i]] == nbr {
			continue
		}
		f.leg[i] = f.legTo(nbr)
		moves = append(moves, mcast.MoveMember{Member: f.member(i), To: f.leg[i], Leg: legSpec(nbr)})
	}
	return moves
}

// begins tells the switch at the end of link l of its present session with the neighbour
// there, if the group has a leg to it. Sessions of two layouts differ.
func (w *World) begins(l int) {
	k := &w.links[l]
	if !w.isTrunk(k) {
		return
	}
	sw := int(k.to) - len(w.hosts)
	if r := &w.switches[sw]; slices.Contains(r.legNear, k.nbr) {
		w.session(sw, k.nbr, w.sessionAt(l))
	}
}

// sessionAt returns the number of the session that the switch at the end of link l has.
func (w *World) sessionAt(l int) uint64 {
	k := &w.links[l]
	layout := w.layoutOf(w.switches[int(k.to)-len(w.hosts)].form.changed)
	return 1 + uint64(k.session) + uint64(layout)<<8
}

// meetAll begins the sessions of switch sw, which has another layout.
func (w *World) meetAll(sw int) {
	for l := range w.links {
		if int(w.links[l].to)-len(w.hosts) == sw {
			w.begins(l)
		}
	}
}

// apart reports whether some switches have installed a tree, or begun a session, that others have
// not yet, or a request is about to be repeated. That lasts for as long as packets do.
func (w *World) apart() bool {
	for sw := range w.switches {
		if w.repeats(sw) {
			return true
		}
	}
	if !w.cfg.reshapes() {
		return false
	}
	for i := range w.switches {
		if w.switches[i].form.changed != w.switches[0].form.changed {
			return true
		}
	}
	for l := range w.links {
		if w.isLate(l) {
			return true
		}
	}
	return false
}

// back returns the other direction of link l between two switches.
func (w *World) back(l int) int {
	return w.trunkTo(int(w.links[l].to)-len(w.hosts), int(w.links[l].from)-len(w.hosts))
}

// isLate reports whether the switch at the end of link l is still in the last session of the two.
func (w *World) isLate(l int) bool {
	return w.isTrunk(&w.links[l]) && w.links[l].session < w.links[w.back(l)].session
}

// meetActions appends the beginnings of sessions: at the first end, and then at the other one.
func (w *World) meetActions(as []action) []action {
	if !w.cfg.reshapes() {
		return as
	}
	for l := range w.links {
		if k := &w.links[l]; w.isTrunk(k) && (w.isLate(l) || w.left.Meet > 0 && k.session == w.links[w.back(l)].session) {
			as = append(as, meet|action(l))
		}
	}
	return as
}

// meetNew begins the new session at the end of link l.
func (w *World) meetNew(l int) {
	if !w.isLate(l) {
		w.left.Meet--
	}
	w.links[l].session++
	w.begins(l)
}
