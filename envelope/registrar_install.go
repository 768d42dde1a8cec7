// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// RegisterLocal registers a group by hand: without a master, a lease or the members'
// confirmation. It returns the epoch, which is reg.Epoch or, if that is 0, the next one.
// If reg is identical to the live group, that group goes on, and its epoch is returned.
// Rejections are errors that wrap a *Problem. If the Table must locate members first, the
// outcome is an event, Registered or RegistrationFailed.
func (r *Registrar) RegisterLocal(now time.Duration, reg Registration, out *Output) (epoch uint64, err error) {
	out.reset()
	r.setTime(now)
	if !r.Serves(reg.Group) {
		return 0, fmt.Errorf("register group %s: %w: the configured ones are %v", reg.Group, &Problem{Reason: NotGroupPrefix}, r.cfg.Prefixes)
	}
	newest := r.newest(reg.Group)
	if reg.Epoch == 0 {
		reg.Epoch = newest + 1
	}
	if reg.Epoch <= newest {
		return 0, fmt.Errorf("register group %s: %w", reg.Group, &Problem{Reason: StaleEpoch, Value: newest})
	}
	if len(reg.Members) > r.cfg.MaxMembers {
		return 0, fmt.Errorf("register group %s: %w", reg.Group, &Problem{Reason: TooManyMembers, Value: uint64(r.cfg.MaxMembers)})
	}
	reg.Members = slices.Clone(reg.Members)
	reg.Master, reg.Lease = netip.AddrPort{}, 0
	reg.Origin, reg.Numbers, reg.Tree = 0, nil, nil
	r.tryInstall(now, &group{reg: reg, began: now}, out)
	for _, ev := range out.Events {
		if ev.Kind == Unchanged {
			return ev.Epoch, nil
		}
		if ev.Kind == RegistrationFailed {
			return 0, fmt.Errorf("register group %s: %w", reg.Group, ev.Err)
		}
	}
	return reg.Epoch, nil
}

// DeleteLocal removes a group, whether a master or the operator registered it. The master
// and the members are told. If the group does not exist, DeleteLocal deletes its record
// of epochs, so that a master that insists on a lower epoch may register it again; all
// cookies become void, and captured requests with them.
func (r *Registrar) DeleteLocal(now time.Duration, ip netip.Addr, out *Output) error {
	out.reset()
	r.setTime(now)
	if r.locating[ip] == nil && r.groups[ip] == nil {
		if r.epochs[ip] == nil {
			return fmt.Errorf("delete group %s: %w", ip, &Problem{Reason: UnknownGroup})
		}
		delete(r.epochs, ip)
		r.generation++
		return nil
	}
	r.endHere(now, ip, Problem{Reason: UnknownGroup}, Deleted, out)
	return nil
}

// RetryGroup calls Install again for one group whose members were not all located. The
// driver calls it when it has learnt all locations.
func (r *Registrar) RetryGroup(now time.Duration, ip netip.Addr, out *Output) {
	out.reset()
	r.setTime(now)
	if g := r.locating[ip]; g != nil {
		r.tryInstall(now, g, out)
	}
	out.Drop, out.Detail = NoDrop, "" // a rejection here answers no message of this call
}

// check returns the Problem, if any, for which g cannot be installed, whatever the Table
// says.
func (r *Registrar) check(g *group) *Problem {
	if p := g.validate(); p != nil {
		if p.Reason == PathMTUMismatch {
			p.Value = uint64(r.cfg.MaxPMTU)
		}
		return p
	}
	if g.reg.PathMTU > r.cfg.MaxPMTU {
		return &Problem{Reason: PathMTUMismatch, Value: uint64(r.cfg.MaxPMTU)}
	}
	old := r.groups[g.reg.Group]
	for i := range g.reg.Members {
		k := g.reg.Members[i].Key()
		if r.members.has(k) && (old == nil || old.reg.Find(k) < 0) { // a member of another group
			return &Problem{Reason: OverlappingMembers, Member: k, Value: uint64(InAnotherGroup)}
		}
		if r.Serves(k.IP) {
			return &Problem{Reason: BadMember, Member: k, Value: uint64(InGroupPrefix)}
		}
	}
	switch {
	case g.branch != nil && g.reg.Base != 0:
		if p := g.checkContinued(old); p != nil {
			return p
		}
	case g.reg.Base != 0 && !g.isRebuild():
		if p := r.checkUpdate(g); p != nil {
			return p
		}
	}
	if !g.continues() || g.branch == nil && !g.isRebuild() {
		if p := r.checkNumbers(old, g); p != nil {
			return p
		}
		if p := r.checkQuota(g); p != nil {
			return p
		}
	}
	if r.served(g.reg.Group) == nil && r.addresses >= r.cfg.MaxGroups {
		return &Problem{Reason: TableFull, Value: uint64(r.cfg.MaxGroups)}
	}
	return nil
}

// validate is Registration.Validate, but for what a group that runs may have lost: members.
func (g *group) validate() *Problem {
	reg := g.reg
	runs := g.branch != nil && g.continues() || g.isRebuild()
	if runs {
		reg.Base = 0
	}
	p := reg.Validate()
	if runs && p != nil && (p.Reason == TooFewMembers || p.Reason == NoSender) {
		return nil
	}
	return p
}

// checkQuota returns how g exceeds the quota of its key, or nil. Groups that are being
// located count too.
func (r *Registrar) checkQuota(g *group) *Problem {
	q := r.cfg.Rights[g.key].Quota
	if g.local() {
		return nil
	}
	u := r.usage[g.key]
	groups, members := u.groups+1, u.members+len(g.reg.Members)
	if old := r.served(g.reg.Group); old != nil && old.key == g.key && !old.local() {
		groups, members = groups-1, members-len(old.reg.Members) // g replaces it
	}
	switch {
	case q.Groups > 0 && groups > q.Groups:
		return &Problem{Reason: QuotaExceeded, Value: uint64(q.Groups)}
	case q.Members > 0 && members > q.Members:
		return &Problem{Reason: QuotaExceeded, Value: uint64(q.Members)}
	}
	return nil
}

// CheckCreation returns which right or quota of a key forbids that a REQ of RDMA-CM makes a group
// under it, or nil. expect is the number of the group's members; groups and members are the numbers
// of those that REQs have made under the key before, which usage does not count.
func (r *Registrar) CheckCreation(key KeyID, group netip.Addr, expect, groups, members int) *Problem {
	k := r.cfg.Rights[key]
	u := r.usage[key]
	switch q := k.Quota; {
	case !k.Roles.has(RoleMaster):
		return &Problem{Reason: KeyRole}
	case !k.mayUse(group):
		return &Problem{Reason: KeyPrefix}
	case q.Groups > 0 && u.groups+groups >= q.Groups:
		return &Problem{Reason: QuotaExceeded, Value: uint64(q.Groups)}
	case q.Members > 0 && u.members+members+expect > q.Members:
		return &Problem{Reason: QuotaExceeded, Value: uint64(q.Members)}
	case groups >= r.cfg.MaxGroups:
		return &Problem{Reason: TableFull, Value: uint64(r.cfg.MaxGroups)}
	}
	return nil
}

// tryInstall passes g to Table.Install and acts on the verdict.
func (r *Registrar) tryInstall(now time.Duration, g *group, out *Output) {
	ip := g.reg.Group
	if g.branch != nil && g.branch.state != branchPlanning {
		r.checkHere(now, g, out)
		return
	}
	if old := r.groups[ip]; old != nil && old.identical(g) && r.keepRunning(now, old, g, out) {
		return
	}
	if l := r.locating[ip]; l != nil && l != g && g.branch == nil && l.branch != nil && l.branch.state == branchCommitting && l.continues() && g.continues() {
		r.drop(PendingFull, out) // it is repeated, and one after the other is installed
		return
	}
	if p := r.check(g); p != nil {
		r.forgetLocating(g)
		r.reject(g, *p, out)
		if p.Reason == MembersChanged {
			r.requeueGone(now, r.groups[ip], p.Member, out)
		}
		return
	}
	if g.branch == nil && !g.isRebuild() {
		g.assignNumbers(r.groups[ip])
	}
	r.supersede(now, g, out)
	retry := r.cfg.LocateRetry
	tree, v := r.plan(g)
	switch {
	case tree != nil:
		r.prepare(now, g, tree, out)
		return
	case v.Kind == VerdictLater:
		retry = r.cfg.Switch.Retry
	}
	old := r.groups[ip]
	used := r.inheritUsedNumbers(old, g) // before the group is replaced
	if v.Kind == VerdictAccepted {
		v = r.table.Install(&g.reg, g.key)
	}
	switch v.Kind {
	case VerdictAccepted:
		r.located(ip) // any group being located here is obsolete: a newer one has been accepted
		g.usedNumbers = used
		r.commit(now, g, out)
		r.endFormer(now, old, g, out)
	case VerdictLater:
		if r.locating[ip] != g {
			r.locate(g)
			g.locateDeadline = now + r.cfg.LocateTimeout
		}
		g.missingMember, g.nextTry = v.Problem, now+retry
		r.tries.set(&g.try, min(g.nextTry, g.locateDeadline))
	case VerdictRejected:
		r.forgetLocating(g)
		r.reject(g, v.Problem, out)
	default:
		panic(fmt.Sprintf("envelope: Table.Install answered with verdict %d", v.Kind))
	}
}

func (r *Registrar) forgetLocating(g *group) {
	if r.locating[g.reg.Group] == g {
		r.located(g.reg.Group)
	}
}

// header returns the header that g was registered with, for an answer to it.
func (g *group) header() Header {
	return Header{Type: TypeRegister, KeyID: g.key, Epoch: g.reg.Epoch, Transaction: g.tx, Total: 1, Group: g.reg.Group, ReplyTo: g.reg.Master}
}

func (r *Registrar) reject(g *group, p Problem, out *Output) {
	if g.isRoot() && g.isRebuild() {
		r.rebuildFailed(g, p, nil, out)
		return
	}
	if b := g.branch; !g.isRoot() {
		if len(b.problems) == 0 {
			b.problems = []Problem{p}
		}
		r.refuseRelay(b.parent, g.reg.Group, b.id, b.problems, out)
		r.noteRefused(g)
	}
	if g.local() || !g.isRoot() {
		r.reportFailed(g, p, out)
		return
	}
	h := g.header()
	r.refuse(&h, p, out)
}

// commit makes g the group that is served, and tells the master and the members.
func (r *Registrar) commit(now time.Duration, g *group, out *Output) {
	ip := g.reg.Group
	defer out.attribute(len(out.Events), Actor{g.key, g.reg.Master})
	r.epochOf(ip).accepted = g.reg.Epoch
	old := r.groups[ip]
	if old != nil {
		for i := range old.reg.Members {
			r.members.remove(old.reg.Members[i].Key())
		}
	}
	r.put(g)
	for i := range g.reg.Members {
		r.members.put(g.reg.Members[i].Key())
	}
	fresh := g.keepConfirmed(old)
	e := Event{Kind: Registered, Group: ip, Epoch: g.reg.Epoch, Lease: g.reg.Lease, Total: len(g.reg.Members), Began: g.began}
	switch {
	case g.unchanged:
		e.Kind = Unchanged
	case g.isRebuild():
		e.Kind = Rebuilt
		if old != nil && old.branch != nil {
			e.Err = old.branch.repair.cause.err()
		}
	}
	out.Events = append(out.Events, e)
	if g.reg.Base != 0 {
		r.reportChanges(old, g, fresh, out)
	}
	if old != nil {
		r.queueReplaced(now, old, g, out)
	}
	if g.local() {
		return
	}
	if !g.isRoot() { // the root's Renew follows, by which members here are notified
		at := now + 3*g.branch.left
		if old != nil {
			at = max(at, old.lease.at)
		}
		r.extendLease(g, at)
		return
	}
	r.acceptInstalled(g, old, out)
	if g.isRebuild() {
		r.extendLease(g, old.lease.at)
		return
	}
	r.extendLease(g, now+g.reg.Lease)
	if !g.unchanged {
		for _, i := range fresh { // an update does not affect the other members
			if g.reg.Tree.Leg(i) == NoNeighbour {
				r.notify(g, i, out)
			}
		}
		return
	}
	for i := range g.reg.Members {
		if g.reg.Tree.Leg(i) == NoNeighbour {
			r.notify(g, i, out)
		}
	}
}

// queueReplaced sends a Gone to the members of old that the new registration lacks.
func (r *Registrar) queueReplaced(now time.Duration, old, g *group, out *Output) {
	if old.local() {
		return
	}
	why := Replaced
	if g.reg.Base != 0 && !g.unchanged {
		why = Removed
	}
	if old.isRoot() && old.reg.Master != g.reg.Master && why == Replaced {
		r.queueGone(now, old, old.reg.Master, &Gone{EndReason: Replaced}, out)
	}
	for i := range old.reg.Members {
		if k := old.reg.Members[i].Key(); g.reg.Find(k) < 0 && old.reg.Tree.Leg(i) == NoNeighbour {
			r.queueGone(now, old, r.addrOf(k), &Gone{Member: k, EndReason: why}, out)
		}
	}
}

// addrOf returns the address at which a member receives messages.
func (r *Registrar) addrOf(k MemberKey) netip.AddrPort { return netip.AddrPortFrom(k.IP, r.cfg.Port) }

// notify sends member i of g its record.
func (r *Registrar) notify(g *group, i int, out *Output) {
	ip := g.reg.Group
	r.sendUnder(g.key, netip.AddrPortFrom(ip, r.cfg.Port), r.addrOf(g.reg.Members[i].Key()), &Message{Header: Header{
		Epoch: g.reg.Epoch, Instance: r.cookie(r.addrOf(g.reg.Members[i].Key()), g.key), Transaction: g.tx, Total: 1, Group: ip, ReplyTo: g.reg.Master,
	}, Body: &Notify{g.reg.groupBody(g.reg.Members[i : i+1])}}, out)
}
