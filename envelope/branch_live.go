// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// endTime is how long an End is repeated to a neighbour that does not answer. The lease
// ends what it has not reached.
const endTime = 30 * time.Second

// leaseSlack is the part by which the lease below the root is longer, so that it does not
// end while a Renew is on its way.
const leaseSlack = 4

// endAt tells a neighbour that g, an attempt or a group, has ended.
func (r *Registrar) endAt(now time.Duration, to mcast.Neighbor, g *group, why EndReason, out *Output) {
	id, ip := g.branch.id, g.reg.Group
	for _, k := range [...]relayKind{relayPrepare, relayCommit, relayRenew, relayRebuild} {
		r.answered(requestID{to: to, kind: k, id: id})
	}
	m := &relay{kind: relayEnd, id: id, group: ip, why: why, lost: g.branch.lost}
	r.ask(now, now+endTime, requestID{to: to, kind: relayEnd, id: id}, ip, nil, [][]byte{encodeRelay(m)}, out)
}

// endFormer ends old, which g has replaced, at the switches that g does not lead to.
func (r *Registrar) endFormer(now time.Duration, old, g *group, out *Output) {
	if old == nil || old.branch == nil {
		return
	}
	r.delist(old)
	why := Replaced
	if g.reg.Base != 0 && !g.isRebuild() {
		why = Removed
	}
	for _, n := range old.branch.neighbours() {
		r.answered(requestID{to: n, kind: relayRenew, id: old.branch.id})
		r.answered(requestID{to: n, kind: relayRebuild, id: old.branch.id})
		if g.reg.Base != 0 && n == old.branch.parent {
			continue // the tree goes on above, and is not this switch's to end
		}
		if !g.reg.Tree.has(n) {
			r.endAt(now, n, old, why, out)
		}
	}
}

// endElsewhere tells the neighbours in the tree of g that it has ended here, but not the
// one that has reported it.
func (r *Registrar) endElsewhere(now time.Duration, g *group, why EndReason, out *Output) {
	b := g.branch
	if b == nil || b.over {
		return
	}
	b.over = true
	r.delist(g)
	for _, n := range b.neighbours() {
		if n != b.endedBy {
			r.endAt(now, n, g, why, out)
		} else {
			r.answered(requestID{to: n, kind: relayRenew, id: b.id})
		}
	}
}

// endRelay processes an End, or an Ended. An Ended that was not asked for is of a
// neighbour that does not have the group any more.
func (r *Registrar) endRelay(now time.Duration, from mcast.Neighbor, m *relay, out *Output) {
	if m.kind == relayEnd {
		r.sendRelay(from, &relay{kind: relayEnded, id: m.id, group: m.group}, out)
		r.endRefused(prepareKey{m.group, from}, m.id)
		if a := r.preparing[prepareKey{m.group, from}]; a != nil && a.id == m.id {
			r.forgetPrepare(prepareKey{m.group, from})
		}
	} else if r.answered(requestID{to: from, kind: relayRebuild, id: m.id}); r.answered(requestID{to: from, kind: relayEnd, id: m.id}) {
		return
	}
	g := r.attempt(m.group, m.id)
	if g == nil || !slices.Contains(g.branch.neighbours(), from) {
		if g = r.groups[m.group]; m.kind == relayEnd && g != nil && g.hasEnded(m, from) {
			r.askFor(now, g, from, out) // whether it has this attempt
			return
		}
		r.drop(DuplicateMsg, out)
		return
	}
	b := g.branch
	if b.state == branchInstalled {
		switch why := m.why; {
		case m.kind == relayEnded:
			r.edgeLost(now, g, from, out)
			return
		case b.base != 0 && why == NotEnded:
			r.undo(now, g, from, out)
			return
		case r.isSucceeded(g) && (why == Replaced || why == Removed):
			r.drop(DuplicateMsg, out) // it goes on with the attempt that is under way
			return
		}
		b.endedBy = from
		switch why := m.why; {
		case why == NotEnded || why >= NumEndReasons:
			r.removeGroup(now, g, Failed, true, out)
		default:
			b.lost = m.lost
			r.removeGroup(now, g, why, true, out)
		}
		return
	}
	b.endedBy = from
	b.problems = append(b.problems, Problem{Reason: UnknownGroup})
	if from != b.parent {
		if c := b.child(from); b.state == branchCommitting && b.base != 0 {
			r.answered(requestID{from, relayCommit, b.id, 0})
			c.done, c.lost = true, true
			r.proceed(now, g, out)
			return
		}
		r.fail(now, g, out)
		return
	}
	r.forgetLocating(g)
	r.abandon(now, g, out)
	r.reportFailed(g, b.problems[0], out)
}

// renewChildren tells the switches below the lease, and whom to notify: all, or those of
// the list.
func (r *Registrar) renewChildren(now time.Duration, g *group, m *relay, out *Output) {
	b := g.branch
	if b == nil {
		return
	}
	if b.isRoot() {
		b.serial++
	}
	for i := range b.children {
		r.renewChild(now, g, &b.children[i], m, out)
	}
}

// renewChild tells one switch below.
func (r *Registrar) renewChild(now time.Duration, g *group, c *child, m *relay, out *Output) {
	b := g.branch
	n := &relay{kind: relayRenew, id: b.id, group: g.reg.Group, serial: b.serial, tx: g.tx, lease: g.reg.Lease, whom: m.whom}
	if !b.isRoot() && !b.renewed { // only a question
		n.lease = 0
	}
	if a := r.neighbours[c.to]; a != nil {
		v6 := g.reg.Group.Is6()
		var list []MemberRecord
		for k := range m.list {
			if j := g.reg.Find(m.list[k].Key()); j >= 0 && g.reg.Tree.Legs[j] == c.to {
				list = append(list, MemberRecord{IP: m.list[k].IP, QPN: m.list[k].QPN})
			}
		}
		n.list = list[:segmentFit(list, v6, relayRoom(a.MTU, v6)-17)] // the master rotates a list that is too long
	}
	until := c.heardAt + g.reg.Lease + g.reg.Lease/leaseSlack // then the lease there is over
	r.ask(now, until, requestID{to: c.to, kind: relayRenew, id: b.id}, g.reg.Group, g, [][]byte{encodeRelay(n)}, out)
}

// renewRelay processes a Renew. One of a child only asks whether the group is here.
func (r *Registrar) renewRelay(now time.Duration, from mcast.Neighbor, m *relay, out *Output) {
	if a := r.attempt(m.group, m.id); a != nil && a.branch.child(from) != nil {
		r.sendRelay(from, &relay{kind: relayRenewed, id: m.id, group: m.group, serial: m.serial}, out)
		return
	}
	g := r.groups[m.group]
	if g == nil || g.branch == nil || g.branch.id != m.id || g.branch.parent != from {
		r.drop(UnknownGroupMsg, out)
		r.sendRelay(from, &relay{kind: relayEnded, id: m.id, group: m.group}, out)
		return
	}
	b := g.branch
	r.sendRelay(from, &relay{kind: relayRenewed, id: m.id, group: m.group, serial: m.serial}, out)
	if m.lease == 0 || b.renewed && int32(m.serial-b.serial) <= 0 {
		r.drop(DuplicateMsg, out)
		return
	}
	b.renewed, b.serial, g.tx, g.reg.Lease = true, m.serial, m.tx, m.lease
	r.extendLease(g, now+m.lease+m.lease/leaseSlack)
	for i := range g.reg.Members {
		if g.reg.Tree.Leg(i) == NoNeighbour && (m.whom == notifyAll || m.whom == notifyFresh && g.isFresh(i)) {
			r.notify(g, i, out)
		}
	}
	for i := range m.list {
		if k := g.reg.Find(m.list[i].Key()); k >= 0 && g.reg.Tree.Leg(k) == NoNeighbour {
			r.notify(g, k, out)
		}
	}
	r.renewChildren(now, g, m, out)
}

func (r *Registrar) renewed(now time.Duration, from mcast.Neighbor, m *relay, out *Output) {
	g := r.attempt(m.group, m.id)
	if g == nil {
		r.drop(DuplicateMsg, out)
		return
	}
	if c := g.branch.child(from); c != nil { // else it is the parent's
		if g.branch.serial != m.serial {
			r.drop(DuplicateMsg, out)
			return
		}
		c.heardAt = now
	}
	r.answeredOnce(requestID{to: from, kind: relayRenew, id: m.id}, out)
}

// childSilent ends a group whose child has not answered for longer than its lease. A parent
// that is silent does not renew the lease here.
func (r *Registrar) childSilent(now time.Duration, q *relayRequest, out *Output) {
	if r.groups[q.ip] == q.group && q.to != q.group.branch.parent {
		r.endFor(now, q.group, q.to, out)
	}
}

// tell reports what has become of a member of g, or of g itself: to the master from the
// root, to the member from the switch that it is at, and to the switches next in the tree
// but the one that has reported it.
func (r *Registrar) tell(now time.Duration, g *group, gone *Gone, here bool, from mcast.Neighbor, out *Output) {
	if !g.local() && g.isRoot() && gone.EndReason != Removed {
		r.queueGone(now, g, g.reg.Master, gone, out)
	}
	if !g.local() && here && gone.EndReason != Left && gone.EndReason != Failed {
		r.queueGone(now, g, r.addrOf(gone.Member), gone, out)
	}
	r.relayGone(now, g, gone, from, out)
	if gone.EndReason == Failed {
		r.tellFailed(now, g, gone, out)
	} else {
		r.endEmpty(now, g, gone.EndReason, out)
	}
}

// endEmpty ends g at the children that have no member behind them any more. They forward
// nothing from then on, and could not go on from where they are for a member that comes
// later. An attempt that is under way ends what it has no use for itself.
func (r *Registrar) endEmpty(now time.Duration, g *group, why EndReason, out *Output) {
	b := g.branch
	if b == nil || b.state != branchInstalled || r.locating[g.reg.Group] != nil {
		return
	}
	var kept []child
	for _, c := range b.children {
		if slices.Contains(g.reg.Tree.Legs, c.to) {
			kept = append(kept, c)
			continue
		}
		r.endAt(now, c.to, g, why, out)
		if p := &b.repair; p.lostTo == c.to {
			r.graces.stop(&p.grace)
			p.lostTo, p.until = NoNeighbour, 0
		}
	}
	if len(kept) < len(b.children) {
		r.delist(g)
		b.children = kept
		r.enlist(g)
	}
}

// relayGone tells the switches next in the tree of g, but the one that has reported it.
func (r *Registrar) relayGone(now time.Duration, g *group, gone *Gone, from mcast.Neighbor, out *Output) {
	for _, n := range g.branch.neighbours() {
		if n == from {
			continue
		}
		r.goneSerial++
		m := &relay{kind: relayGone, id: g.branch.id, group: g.reg.Group, serial: r.goneSerial, gone: gone}
		r.ask(now, now+endTime, requestID{n, relayGone, g.branch.id, m.serial}, g.reg.Group, g, [][]byte{encodeRelay(m)}, out)
	}
}

// goneRelay processes a Gone of a neighbour.
func (r *Registrar) goneRelay(now time.Duration, from mcast.Neighbor, m *relay, out *Output) {
	r.sendRelay(from, &relay{kind: relayNoted, id: m.id, group: m.group, serial: m.serial}, out)
	g := r.groups[m.group]
	if l := r.attempt(m.group, m.id); l != nil && l != g && slices.Contains(l.branch.neighbours(), from) {
		if l = r.goneMeanwhile(g, l, m.gone); l == nil {
			r.drop(DuplicateMsg, out)
			return
		}
	} else if l == nil || l != g || !slices.Contains(g.branch.neighbours(), from) {
		r.drop(UnknownGroupMsg, out)
		return
	}
	gone := m.gone
	here := g.isHere(gone.Member)
	switch {
	case gone.EndReason == Failed && !g.failed:
		g.failed, g.failure = true, gone
	case gone.EndReason != Failed && r.removeMember(g, gone):
		r.table.RemoveMember(m.group, gone.Member, gone.EndReason)
		r.reportMember(g, gone, out)
	default:
		r.drop(DuplicateMsg, out)
		return
	}
	r.tell(now, g, gone, here, from, out)
}

// goneMeanwhile records that a member of l, which is under way, has gone at a switch that has
// installed l already. It returns the group g that l goes on with if the same member is in
// that, else nil.
func (r *Registrar) goneMeanwhile(g, l *group, gone *Gone) *group {
	if gone.EndReason == Failed {
		if g == nil {
			l.untold = append(l.untold, gone)
		}
		return g
	}
	i := l.reg.Find(gone.Member)
	if i < 0 {
		return nil
	}
	rec := l.reg.Members[i]
	if g != nil && g.hasRecord(&rec) {
		return g // dropGone takes it off l
	}
	l.noteGone(leftMember{rec: rec, body: gone})
	r.lose(l, i)
	l.branch.loseMember(i)
	return nil
}
