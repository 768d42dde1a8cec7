// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"cmp"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// An update of a group that runs, and a rebuild of its tree, are an attempt like the first
// one, with these differences. A switch that has the group keeps it until the new attempt is
// installed, and longer if that fails. The first step may fail, and nothing has changed. In
// the second one a switch below that fails is lost: the others install the attempt, and
// the root is asked for a rebuild. The master hears of an update when a rebuild has brought it
// to all: until then the switch that lacks it acknowledges data for the former members alone.

// continues reports whether g goes on with a group that runs, here or at other switches.
func (g *group) continues() bool {
	if g.branch != nil {
		return g.branch.base != 0
	}
	return g.reg.Base != 0
}

// isRebuild reports whether g has the members of the group that it goes on with.
func (g *group) isRebuild() bool {
	if g.branch != nil {
		return g.branch.base == g.reg.Epoch
	}
	return g.rebuild
}

// isOlder reports whether g is older than an attempt of an epoch and a generation.
func (g *group) isOlder(epoch, generation uint64) bool {
	if g.reg.Epoch != epoch {
		return g.reg.Epoch < epoch
	}
	return g.generation < generation
}

// mayContinue returns the reason for which the attempt of m cannot go on with g, which is
// installed, or nil.
func (g *group) mayContinue(m *relay) *Problem {
	switch p := m.prepare; {
	case g.reg.Origin != p.origin || g.branch == nil || g.branch.id.root != m.id.root:
		return &Problem{Reason: WrongBase, Value: g.reg.Epoch}
	case !g.isOlder(m.id.epoch, p.generation):
		return &Problem{Reason: StaleEpoch, Value: g.reg.Epoch}
	}
	return nil
}

// checkContinued returns the reason for which g cannot go on with old, or nil.
func (g *group) checkContinued(old *group) *Problem {
	if v := changedParameter(&old.reg, &g.reg); v != 0 {
		return &Problem{Reason: FixedParameter, Value: uint64(v)}
	}
	was := make(map[uint32]int, len(old.reg.Members))
	for i := range old.reg.Members {
		was[old.reg.Number(i)] = i
	}
	for i := range g.reg.Members {
		if j, ok := was[g.reg.Number(i)]; ok && old.reg.Members[j] != g.reg.Members[i] {
			return &Problem{Reason: WrongBase, Member: g.reg.Members[i].Key(), Value: old.reg.Epoch}
		}
	}
	return nil
}

// setBase records in g, an attempt that goes on with a group, which epoch of that this switch
// has; none if the group is new here.
func (r *Registrar) setBase(g *group) {
	if b := g.branch; b != nil && b.base != 0 {
		g.reg.Base = 0
		if old := r.groups[g.reg.Group]; old != nil {
			g.reg.Base = old.reg.Epoch
		}
		if g.reg.Tree != nil {
			g.reg.Tree.Elsewhere = g.reg.Base == 0
		}
	}
}

// dropGone takes the members off g that have gone meanwhile from the group that it goes
// on with. When g is installed, its other switches are told.
func (g *group) dropGone(old *group) {
	if old == nil || g.reg.Base == 0 {
		return
	}
	for _, k := range old.goneMembers() {
		m := old.gone[k]
		if i := g.reg.Find(k); i >= 0 && g.reg.Members[i] == m.rec {
			g.reg.loseMember(i)
			g.branch.loseMember(i)
			g.noteGone(m)
		}
	}
	if old.failure != nil && !slices.Contains(g.untold, old.failure) {
		g.untold = append(g.untold, old.failure)
	}
}

// loseMember takes member i off what the parent has said of the members.
func (b *branch) loseMember(i int) {
	if b != nil && b.behind != nil {
		b.behind = slices.Delete(b.behind, i, i+1)
	}
}

// goneMembers returns the members that have gone, in order.
func (g *group) goneMembers() (ks []MemberKey) {
	for k := range g.gone {
		ks = append(ks, k)
	}
	slices.SortFunc(ks, func(a, b MemberKey) int { return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.QPN, b.QPN)) })
	return ks
}

// noteGone records that m, which g had, went before g was installed.
func (g *group) noteGone(m leftMember) {
	if g.gone == nil {
		g.gone = map[MemberKey]leftMember{}
	}
	if !g.isRebuild() {
		m.joined = 0
	}
	g.gone[m.rec.Key()] = m
	g.untold = append(g.untold, m.body)
}

// tellUntold tells the switches next in the tree of g, which is installed now, and the master
// of an update, of the members that went while it was under way.
func (r *Registrar) tellUntold(now time.Duration, g *group, out *Output) {
	for _, gone := range g.untold {
		if g.isRebuild() {
			r.relayGone(now, g, gone, NoNeighbour, out)
		} else {
			again := *gone // in this epoch
			r.tell(now, g, &again, false, NoNeighbour, out)
		}
	}
	g.untold = nil
}

// setGeneration numbers the attempt g of a root.
func (r *Registrar) setGeneration(g *group) {
	g.generation = 1
	if old := r.groups[g.reg.Group]; old != nil && g.continues() {
		old.attempts++
		g.generation = old.attempts
	}
}

// whomToNotify returns which members hear of g, which is installed, when the root renews it.
func (g *group) whomToNotify() renewWhom {
	switch {
	case g.unchanged || !g.continues():
		return notifyAll
	case g.isRebuild():
		return notifyListed
	}
	return notifyFresh
}

// isSucceeded reports whether an attempt is under way that goes on with g.
func (r *Registrar) isSucceeded(g *group) bool {
	l := r.locating[g.reg.Group]
	return l != nil && l.branch != nil && l.continues() && l.reg.Origin == g.reg.Origin
}

// hasEnded reports whether an End is about another attempt in the life of g, which has ended
// with that at a switch that is next in the tree of g.
func (g *group) hasEnded(m *relay, from mcast.Neighbor) bool {
	b := g.branch
	return b != nil && b.id.root == m.id.root && b.id.key == m.id.key && m.id.epoch >= g.reg.Origin && slices.Contains(b.neighbours(), from) &&
		m.why != NotEnded && m.why != Replaced && m.why != Removed
}

// undo takes back g, whose attempt has failed above. Where the group was before, it waits for
// the next attempt.
func (r *Registrar) undo(now time.Duration, g *group, from mcast.Neighbor, out *Output) {
	if g.reg.Base != 0 || g.branch.renewed {
		r.edgeLost(now, g, from, out)
		return
	}
	g.branch.endedBy = from
	r.takeOff(g, Replaced, out)
	r.endElsewhere(now, g, NotEnded, out)
}

// endInstalled ends g, as this switch, its root, cannot install what all below it have.
func (r *Registrar) endInstalled(now time.Duration, g, failed *group, out *Output) {
	for i := range failed.branch.children {
		r.endAt(now, failed.branch.children[i].to, failed, Failed, out)
	}
	if g != nil {
		r.removeGroup(now, g, Failed, true, out)
	}
}

// legsBefore returns the legs of g's members in the group that it goes on with; NoNeighbour
// for a member without one.
func (r *Registrar) legsBefore(g *group) []mcast.Neighbor {
	legs := make([]mcast.Neighbor, len(g.reg.Members))
	old := r.groups[g.reg.Group]
	if old == nil || old.reg.Tree == nil || !g.continues() {
		return legs
	}
	at := make(map[MemberKey]int, len(old.reg.Members))
	for i := range old.reg.Members {
		at[old.reg.Members[i].Key()] = i
	}
	for i := range g.reg.Members {
		if j, ok := at[g.reg.Members[i].Key()]; ok {
			legs[i] = old.reg.Tree.Legs[j]
		}
	}
	return legs
}

// isLacking reports whether a switch below has not installed the attempt of b.
func (b *branch) isLacking() bool {
	return slices.ContainsFunc(b.children, func(c child) bool { return c.lost || c.lacking })
}

// acceptInstalled tells the master that g is registered, if all switches of its tree have
// installed it. Else a rebuild does.
func (r *Registrar) acceptInstalled(g, old *group, out *Output) {
	if g.isRebuild() && !old.unaccepted {
		return
	}
	if g.unaccepted = g.branch != nil && g.branch.isLacking(); !g.unaccepted {
		h := g.header()
		r.acceptRegister(&h, g, out)
	}
}
