// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"slices"
	"time"
)

// An update is a registration that names the installed epoch as its base. The group goes
// on; members with an unchanged record keep their state.

// checkUpdate returns the Problem, if any, for which g cannot update the installed group.
func (r *Registrar) checkUpdate(g *group) *Problem {
	old := r.groups[g.reg.Group]
	if old == nil {
		return &Problem{Reason: WrongBase}
	}
	if old.reg.Epoch != g.reg.Base {
		return &Problem{Reason: WrongBase, Value: old.reg.Epoch}
	}
	if old.reg.Master.Addr() != g.reg.Master.Addr() {
		return &Problem{Reason: NotAllowed}
	}
	if v := changedParameter(&old.reg, &g.reg); v != 0 {
		return &Problem{Reason: FixedParameter, Value: uint64(v)}
	}
	for i := range g.reg.Members {
		m := &g.reg.Members[i]
		if old.gone[m.Key()].rec == *m && !g.local() {
			// The master counts on a member that has already left. If it were accepted as
			// new, it would join with the PSNs of its first membership.
			return &Problem{Reason: MembersChanged, Member: m.Key()}
		}
	}
	return nil
}

// changedParameter returns the first parameter, members aside, in which a and b differ, or
// 0.
func changedParameter(a, b *Registration) Parameter {
	switch {
	case a.QPN != b.QPN:
		return ParameterQPN
	case a.PathMTU != b.PathMTU:
		return ParameterPMTU
	case a.Window != b.Window || a.TargetKey != b.TargetKey:
		return ParameterWindow
	case a.GroupParams != b.GroupParams || a.NoRepair != b.NoRepair:
		return ParameterPolicy
	}
	return 0
}

// keepConfirmed copies from old, if g updates it, the state of the members that stay, and
// returns the indices of the new members.
func (g *group) keepConfirmed(old *group) (fresh []int) {
	joined := make([]uint64, len(g.reg.Members))
	if g.reg.Base != 0 {
		g.failed, g.failure, g.attempts = old.failed, old.failure, old.attempts
		if g.branch == nil {
			g.generation = old.generation
		}
	}
	g.attempts = max(g.attempts, g.generation)
	if g.reg.Base != 0 && g.isRebuild() { // the members that have gone, too
		if g.gone == nil {
			g.gone = map[MemberKey]leftMember{}
		}
		for k, m := range old.gone {
			g.gone[k] = m
		}
	}
	for i := range g.reg.Members {
		m := &g.reg.Members[i]
		switch {
		case g.reg.Base != 0 && old.hasRecord(m):
			joined[i] = old.joinedIn(old.reg.Find(m.Key()))
			continue
		case g.isFresh(i):
			joined[i] = g.reg.Epoch
		default: // new at this switch alone
			joined[i] = g.reg.Origin
		}
		fresh = append(fresh, i)
	}
	g.setJoined(joined)
	return fresh
}

// joinedIn returns the epoch in which the record of member i was registered.
func (g *group) joinedIn(i int) uint64 {
	if g.joined == nil {
		return g.reg.Origin
	}
	return g.joined[i]
}

// setJoined sets these epochs.
func (g *group) setJoined(epochs []uint64) {
	if g.joined = nil; slices.ContainsFunc(epochs, func(e uint64) bool { return e != g.reg.Origin }) {
		g.joined = epochs
	}
}

// hasRecord reports whether a member has exactly the record m.
func (g *group) hasRecord(m *MemberRecord) bool {
	i := g.reg.Find(m.Key())
	return i >= 0 && g.reg.Members[i] == *m
}

// reportChanges reports the members that have joined and left to the driver.
func (r *Registrar) reportChanges(old, g *group, fresh []int, out *Output) {
	for i := range old.reg.Members {
		if m := &old.reg.Members[i]; !g.hasRecord(m) {
			r.reportMember(g, &Gone{Member: m.Key(), EndReason: Removed}, out)
		}
	}
	for _, i := range fresh {
		out.Events = append(out.Events, Event{Kind: MemberJoined, Group: g.reg.Group, Epoch: g.reg.Epoch, Member: g.reg.Members[i].Key()})
	}
}

// leftMember is a member that has left since the group's epoch began.
type leftMember struct {
	rec    MemberRecord
	joined uint64 // the epoch in which rec was registered; 0: the member left before this epoch was installed
	body   *Gone
}

// requeueGone makes sure that a Gone about k reaches the master.
func (r *Registrar) requeueGone(now time.Duration, g *group, k MemberKey, out *Output) {
	body := g.gone[k].body
	if r.events.underWay(body, g.reg.Master) {
		return
	}
	if !g.local() {
		r.queueGone(now, g, g.reg.Master, body, out)
	}
}
