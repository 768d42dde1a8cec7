// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// forGroup returns the group that a Renew, Leave or Delete is about. If there is none, it
// answers the request with the reason.
func (r *Registrar) forGroup(m *Message, out *Output) *group {
	g := r.groups[m.Group]
	switch {
	case g == nil || m.Epoch > g.reg.Epoch:
		r.rejectRequest(&m.Header, Problem{Reason: UnknownGroup}, out)
	case m.Epoch < g.reg.Epoch:
		r.rejectRequest(&m.Header, Problem{Reason: StaleEpoch, Value: r.newest(m.Group)}, out)
	default:
		return g
	}
	return nil
}

// fromMaster reports whether m came from the master of g. The master's port may have
// changed.
func (g *group) fromMaster(m *Message) bool {
	return !g.local() && m.ReplyTo.Addr() == g.reg.Master.Addr()
}

// renew extends a lease and notifies members again. Each transaction counts once: a
// captured Renew neither keeps a group alive nor makes the switch send.
func (r *Registrar) renew(now time.Duration, m *Message, body *Renew, out *Output) {
	if r.isQuestion(m) {
		r.answerQuestion(m, out)
		return
	}
	g := r.forGroup(m, out)
	if g == nil {
		return
	}
	if !g.fromMaster(m) {
		r.rejectRequest(&m.Header, Problem{Reason: NotAllowed}, out)
		return
	}
	switch d := int32(m.Transaction - g.tx); {
	case d < 0:
		// A captured or delayed Renew, or one of a master that restarted with other
		// transaction numbers. Only that master has the transaction under way, and
		// continues from Value.
		r.rejectRequest(&m.Header, Problem{Reason: StaleTransaction, Value: uint64(g.tx)}, out)
		return
	case d == 0:
		r.drop(DuplicateMsg, out)
	default:
		g.tx = m.Transaction
		g.reg.Lease = r.leaseFor(g.key, body.Lease)
		r.extendLease(g, now+g.reg.Lease)
		if len(body.ListUnconfirmed) > 0 || now >= g.relayNext {
			g.relayNext = now + g.reg.Lease/4 // a master renews more often, to hear of a restart
			r.renewChildren(now, g, &relay{list: body.ListUnconfirmed}, out)
		}
		told := make(map[int]bool, len(body.ListUnconfirmed))
		for i := range body.ListUnconfirmed {
			if k := g.reg.Find(body.ListUnconfirmed[i].Key()); k >= 0 && !told[k] && g.reg.Tree.Leg(k) == NoNeighbour {
				told[k] = true
				r.notify(g, k, out)
			}
		}
	}
	r.reply(&m.Header, &Accept{Request: TypeRenew, Members: len(g.reg.Members), Lease: g.reg.Lease}, out)
}

// leave removes one member at its own or the master's request.
func (r *Registrar) leave(now time.Duration, m *Message, body *Leave, out *Output) {
	g := r.groups[m.Group]
	if e := r.epochs[m.Group]; g == nil && e != nil && m.Epoch <= e.accepted {
		r.drop(DuplicateMsg, out) // the whole group is gone, and the member with it
		r.reply(&m.Header, &Accept{Request: TypeLeave}, out)
		return
	}
	if since, ok := g.memberEpoch(body.Member); !ok || m.Epoch < since || m.Epoch > g.reg.Epoch {
		if g = r.forGroup(m, out); g == nil {
			return
		}
	}
	// The master's host may be a member too: only the port tells the two apart.
	self := m.ReplyTo.Addr() == body.Member.IP && m.ReplyTo != g.reg.Master
	if !self && !g.fromMaster(m) {
		r.rejectRequest(&m.Header, Problem{Reason: NotAllowed, Member: body.Member}, out)
		return
	}
	why := Removed
	if self {
		why = Left
	}
	gone := &Gone{Member: body.Member, EndReason: why}
	here := g.isHere(body.Member)
	if !r.removeMember(g, gone) {
		r.drop(DuplicateMsg, out)
	} else {
		r.table.RemoveMember(m.Group, body.Member, why)
		r.reportMember(g, gone, out)
		r.tell(now, g, gone, here, NoNeighbour, out)
	}
	r.reply(&m.Header, &Accept{Request: TypeLeave, Members: len(g.reg.Members)}, out)
}

// removeMember removes k from g's members.
func (r *Registrar) removeMember(g *group, b *Gone) bool {
	k := b.Member
	i := g.reg.Find(k)
	if i < 0 {
		return false
	}
	if g.gone == nil {
		g.gone = map[MemberKey]leftMember{}
	}
	g.gone[k] = leftMember{g.reg.Members[i], g.joinedIn(i), b}
	g.usedNumbers = r.noteUsedNumbers(g, g.usedNumbers, g.reg.Members[i])
	r.lose(g, i)
	r.members.remove(k)
	return true
}

func (r *Registrar) reportMember(g *group, b *Gone, out *Output) {
	out.Events = append(out.Events, Event{
		Kind: MemberGone, Group: g.reg.Group, Epoch: g.reg.Epoch, Member: b.Member, EndReason: b.EndReason, Code: b.Code, PSN: b.PSN,
	})
}

// memberEpoch returns the epoch in which the record of k was registered, also if k has left: a Leave
// of that epoch or a later one is about this group.
func (g *group) memberEpoch(k MemberKey) (epoch uint64, ok bool) {
	if g == nil {
		return 0, false
	}
	if i := g.reg.Find(k); i >= 0 {
		return g.joinedIn(i), true
	}
	epoch = g.gone[k].joined
	return epoch, epoch != 0
}

// delete removes a group, or the incomplete registration that its master has given up. It
// records the epoch so that delayed segments do not restore the group.
func (r *Registrar) delete(now time.Duration, m *Message, out *Output) {
	g := r.groups[m.Group]
	if g != nil && m.Epoch <= g.reg.Epoch {
		if g = r.forGroup(m, out); g == nil {
			return
		}
		if !g.fromMaster(m) {
			r.rejectRequest(&m.Header, Problem{Reason: NotAllowed}, out)
			return
		}
		r.removeGroup(now, g, Deleted, false, out)
		r.reply(&m.Header, &Accept{Request: TypeDelete}, out)
		return
	}
	if l := r.locating[m.Group]; l != nil && l.reg.Epoch <= m.Epoch {
		if !l.fromMaster(m) {
			r.rejectRequest(&m.Header, Problem{Reason: NotAllowed}, out)
			return
		}
		r.located(m.Group)
		r.abandon(now, l, out)
		r.reportReject(m.Group, l.reg.Epoch, Problem{Reason: UnknownGroup}, out)
	}
	k := pendingKey{m.Group, m.KeyID}
	if a := r.pending[k]; a != nil && a.header.Epoch <= m.Epoch {
		if a.header.ReplyTo.Addr() != m.ReplyTo.Addr() {
			r.rejectRequest(&m.Header, Problem{Reason: NotAllowed}, out)
			return
		}
		r.forgetAssembly(k)
	}
	if e := r.epochOf(m.Group); m.Epoch > e.newest() {
		e.rejected, e.problem = m.Epoch, &Problem{Reason: StaleEpoch, Value: m.Epoch}
	} else {
		r.drop(DuplicateMsg, out)
	}
	r.reply(&m.Header, &Accept{Request: TypeDelete}, out)
}

// removeGroup removes an installed group and tells its members and, with tellMaster, its
// master.
func (r *Registrar) removeGroup(now time.Duration, g *group, why EndReason, tellMaster bool, out *Output) {
	var lost LostLink
	if g.branch != nil {
		lost = g.branch.lost
	}
	succeeded := r.isSucceeded(g)
	r.takeOff(g, why, out)
	r.endElsewhere(now, g, why, out)
	switch l := r.locating[g.reg.Group]; { // there is nothing to go on with any more
	case succeeded && g.endedByParent(): // which has ended the attempt as well, or has it begin anew here
	case succeeded:
		l.branch.problems = []Problem{{Reason: WrongBase}}
		r.fail(now, l, out)
	case l != nil && l.branch == nil && l.isRebuild(): // the ways are not known yet
		r.located(g.reg.Group)
	}
	if g.local() {
		return
	}
	if tellMaster && g.isRoot() {
		r.queueGone(now, g, g.reg.Master, &Gone{EndReason: why, Lost: lost}, out)
	}
	for i := range g.reg.Members {
		if k := g.reg.Members[i].Key(); g.reg.Tree.Leg(i) == NoNeighbour {
			r.queueGone(now, g, r.addrOf(k), &Gone{Member: k, EndReason: why, Lost: lost}, out)
		}
	}
}

// takeOff removes an installed group, and tells nobody.
func (r *Registrar) takeOff(g *group, why EndReason, out *Output) {
	ip := g.reg.Group
	var lost LostLink
	if g.branch != nil {
		lost = g.branch.lost
	}
	r.remove(g)
	for i := range g.reg.Members {
		r.members.remove(g.reg.Members[i].Key())
	}
	r.table.Remove(ip, why)
	out.Events = append(out.Events, Event{Kind: GroupGone, Group: ip, Epoch: g.reg.Epoch, EndReason: why, Err: lost.err()})
}

// MemberEvicted records that the data path has evicted a member (mcast.MemberEvicted):
// the member acknowledged all data up to psn, and code is the cause. The master and the
// member are told. The Table is not called.
func (r *Registrar) MemberEvicted(now time.Duration, ip netip.Addr, k MemberKey, code rocev2.Syndrome, psn rocev2.PSN, out *Output) {
	out.reset()
	r.setTime(now)
	g := r.groups[ip]
	gone := &Gone{Member: k, EndReason: Evicted, Code: code, PSN: psn & rocev2.PSNMask}
	if g == nil {
		return
	}
	here := g.isHere(k)
	if !r.removeMember(g, gone) {
		return
	}
	r.reportMember(g, gone, out)
	r.tell(now, g, gone, here, NoNeighbour, out)
}

// GroupFailed records that the data path has failed a group because of member k
// (mcast.GroupFailed). The master is told; the registration stays until the master
// deletes it or its lease ends.
func (r *Registrar) GroupFailed(now time.Duration, ip netip.Addr, k MemberKey, code rocev2.Syndrome, psn rocev2.PSN, out *Output) {
	out.reset()
	r.setTime(now)
	g := r.groups[ip]
	if g == nil {
		return
	}
	first := !g.failed
	g.failed = true
	if first || g.branch == nil { // in a tree each switch notices, and tells the others
		g.failure = &Gone{Member: k, EndReason: Failed, Code: code, PSN: psn & rocev2.PSNMask}
		r.tell(now, g, g.failure, false, NoNeighbour, out)
	}
}

// elsewhere returns the reason for which m, about a group that another switch has
// registered here, is to be sent to that switch, or nil. A member leaves at its own.
func (r *Registrar) elsewhere(m *Message) *Problem {
	g := r.groups[m.Group]
	if g == nil || g.isRoot() || m.Epoch > g.reg.Epoch || r.isQuestion(m) {
		return nil
	}
	if l, ok := m.Body.(*Leave); ok && l.Member.IP == m.ReplyTo.Addr() && m.ReplyTo != g.reg.Master {
		return nil
	}
	return &Problem{Reason: OtherSwitch}
}
