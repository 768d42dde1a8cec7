// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"slices"
	"time"
)

// Records hold PSNs of queue pairs. Once a group has carried data, the PSNs of its
// members' queue pairs differ from their records. If such a record were registered again,
// the switch would send packets that the receiver takes for duplicates, and acknowledges
// without reading them. So an identical registration of a live group leaves the group
// unchanged, and a record that has been in use is refused.

// maxUsed bounds the records of former members that a group remembers.
const maxUsed = 64

// sameNumbers reports whether a and b are one queue pair with the same PSNs.
func sameNumbers(a, b *MemberRecord) bool {
	return a.Key() == b.Key() && a.SQPSN == b.SQPSN && a.RQPSN == b.RQPSN
}

// identical reports whether to registers the same as g, which is installed and has not
// failed: equal parameters and equal records in any order. Epoch, lease and the master's
// address may differ. A member that has left makes a difference, since g lacks it.
func (g *group) identical(to *group) bool {
	if to.reg.Base != 0 || g.failed || !g.isRoot() || to.branch != nil || g.local() != to.local() ||
		changedParameter(&g.reg, &to.reg) != 0 || len(g.reg.Members) != len(to.reg.Members) {
		return false
	}
	for i := range to.reg.Members {
		if !g.hasRecord(&to.reg.Members[i]) {
			return false
		}
	}
	return true
}

// keepRunning answers a registration that is identical to old: the group goes on, as
// after an update that changes no member. A master's registration has a new epoch and
// lease, and all members are notified, since the master waits for their confirmations. It
// returns false if that is to be done through the tree.
func (r *Registrar) keepRunning(now time.Duration, old, g *group, out *Output) bool {
	if g.local() {
		r.supersede(now, g, out)
		r.located(g.reg.Group)
		out.Events = append(out.Events, Event{Kind: Unchanged, Group: g.reg.Group, Epoch: old.reg.Epoch, Total: len(old.reg.Members)})
		return true
	}
	g.reg.Base, g.unchanged = old.reg.Epoch, true
	if old.branch != nil {
		return false
	}
	r.supersede(now, g, out)
	g.usedNumbers = old.usedNumbers
	g.assignNumbers(old)
	if v := r.table.Install(&g.reg, g.key); v.Kind != VerdictAccepted { // cannot fail: there is no new member
		r.reject(g, v.Problem, out)
		return true
	}
	r.located(g.reg.Group) // a group being located here is obsolete, as after any acceptance
	r.commit(now, g, out)
	return true
}

// checkNumbers returns a problem if g names a record whose queue pair has carried
// traffic: that of a former member of old, or of a live member that g does not leave
// unchanged.
func (r *Registrar) checkNumbers(old, g *group) *Problem {
	if old == nil {
		return nil
	}
	for i := range g.reg.Members {
		m := &g.reg.Members[i]
		for j := range old.usedNumbers {
			if sameNumbers(&old.usedNumbers[j], m) {
				return &Problem{Reason: UsedNumbers, Member: m.Key()}
			}
		}
		if j := old.reg.Find(m.Key()); j < 0 || g.reg.Base != 0 && old.reg.Members[j] == *m || !sameNumbers(&old.reg.Members[j], m) {
			continue
		}
		if r.table.HadSource(old.reg.Group) {
			return &Problem{Reason: UsedNumbers, Member: m.Key()}
		}
	}
	return nil
}

// noteUsedNumbers adds to used the records ms of members that leave g, if g has carried
// data. Beyond maxUsed the oldest are dropped.
func (r *Registrar) noteUsedNumbers(g *group, used []MemberRecord, ms ...MemberRecord) []MemberRecord {
	if !r.table.HadSource(g.reg.Group) {
		return used
	}
	used = append(slices.Clone(used), ms...)
	return used[max(0, len(used)-maxUsed):]
}

// inheritUsedNumbers returns the used records that g, which replaces or updates old, must
// remember.
func (r *Registrar) inheritUsedNumbers(old, g *group) []MemberRecord {
	if old == nil {
		return nil
	}
	var leaving []MemberRecord
	for i := range old.reg.Members {
		if m := &old.reg.Members[i]; !g.hasRecord(m) {
			leaving = append(leaving, *m)
		}
	}
	return r.noteUsedNumbers(old, old.usedNumbers, leaving...)
}
