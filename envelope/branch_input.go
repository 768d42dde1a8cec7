// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// InputFromSwitch processes one UDP payload that came from a neighbour switch: by its port
// and from its MAC address.
func (r *Registrar) InputFromSwitch(now time.Duration, from mcast.Neighbor, b []byte, out *Output) {
	out.reset()
	r.setTime(now)
	n := r.neighbours[from]
	if n == nil {
		r.drop(NotFromSwitch, out)
		return
	}
	m, perr := r.openRelay(n, b)
	if perr != nil {
		r.drop(perr.Drop, out)
		out.Detail = perr.Text
		if m.kind == relayPrepare { // of a key that this switch lacks
			r.sendRelay(from, &relay{kind: relayRefused, unproved: true, id: m.id, group: m.group, problems: []Problem{r.keyMissing()}}, out)
		}
		return
	}
	switch m.kind {
	case relayPrepare:
		r.prepareRelay(now, from, &m, out)
	case relayPrepared, relayRefused, relayCommitted:
		r.answerRelay(now, from, &m, out)
	case relayCommit:
		r.commitRelay(now, from, &m, out)
	case relayEnd, relayEnded:
		r.endRelay(now, from, &m, out)
	case relayRenew:
		r.renewRelay(now, from, &m, out)
	case relayRenewed:
		r.renewed(now, from, &m, out)
	case relayGone:
		r.goneRelay(now, from, &m, out)
	case relayNoted:
		r.answeredOnce(requestID{from, relayGone, m.id, m.serial}, out)
	case relayRebuild:
		r.rebuildRelay(now, from, &m, out)
	case relayRebuilds:
		r.answeredOnce(requestID{from, relayRebuild, m.id, 0}, out)
	}
	if out.Drop == Rejected { // the request of a host, which is not this message
		out.Drop, out.Detail = NoDrop, ""
	}
}

func (r *Registrar) answeredOnce(id requestID, out *Output) {
	if !r.answered(id) {
		r.drop(DuplicateMsg, out)
	}
}

// prepareKey identifies a group of which some segments have come from a neighbour.
type prepareKey struct {
	group netip.Addr
	from  mcast.Neighbor
}

// prepareAssembly is a Prepare of which some segments have arrived.
type prepareAssembly struct {
	id       attemptID
	body     *prepareBody // the body of the segment that came first
	parts    []*prepareBody
	received int
	expiry   timer[prepareKey]
}

// prepareRelay processes one segment of a Prepare.
func (r *Registrar) prepareRelay(now time.Duration, from mcast.Neighbor, m *relay, out *Output) {
	refuse := func(p Problem) { r.refuseRelay(from, m.group, m.id, []Problem{p}, out) }
	if g := r.attempt(m.group, m.id); g != nil || m.id.root == r.cfg.Switch.ID {
		switch {
		case g == nil || from != g.branch.parent:
			refuse(Problem{Reason: SecondParent, Value: uint64(r.cfg.Switch.ID)})
		case g.branch.state >= branchPrepared && m.seq == 0:
			r.drop(DuplicateMsg, out)
			height, diameter := g.branch.levels()
			r.sendRelay(from, &relay{kind: relayPrepared, id: m.id, group: m.group, height: height, diameter: diameter}, out)
		default:
			r.drop(DuplicateMsg, out) // it is answered when all below has answered
		}
		return
	}
	k := prepareKey{m.group, from}
	if problems := r.refused(k, m.id); problems != nil {
		r.drop(DuplicateMsg, out)
		if m.seq == 0 {
			r.refuseRelay(from, m.group, m.id, problems, out)
		}
		return
	}
	if p := r.mayPrepare(from, m); p != nil {
		refuse(*p)
		return
	}
	a := r.preparing[k]
	if a == nil || a.id != m.id || len(a.parts) != int(m.total) {
		if a == nil && len(r.preparing) >= r.cfg.MaxPending {
			r.drop(PendingFull, out) // it is repeated
			return
		}
		r.forgetPrepare(k)
		a = &prepareAssembly{id: m.id, body: m.prepare, parts: make([]*prepareBody, m.total)}
		a.expiry.owner = k
		r.preparing[k] = a
	}
	if a.parts[m.seq] != nil {
		r.drop(DuplicateMsg, out)
		return
	}
	a.parts[m.seq] = m.prepare
	a.received++
	r.prepareExpiries.set(&a.expiry, now+r.cfg.ReassemblyTimeout)
	if a.received < len(a.parts) {
		return
	}
	r.forgetPrepare(k)
	r.prepareComplete(now, from, m, a, out)
}

func (r *Registrar) forgetPrepare(k prepareKey) {
	if a := r.preparing[k]; a != nil {
		r.prepareExpiries.stop(&a.expiry)
		delete(r.preparing, k)
	}
}

// mayPrepare returns the reason for which the group of m cannot be prepared here, whoever
// its members are. The epoch is compared with those that this switch has seen, not with
// EpochBase: the root has compared it with its own, and no relay is replayed.
func (r *Registrar) mayPrepare(from mcast.Neighbor, m *relay) *Problem {
	p := m.prepare
	rights := r.cfg.Rights[m.id.key]
	switch {
	case m.hops > maxHops:
		return &Problem{Reason: TreeTooDeep, Value: maxHops}
	case r.storageFails: // it could not say Committed
		return &Problem{Reason: NotStored}
	case !r.Serves(m.group):
		return &Problem{Reason: NotGroupPrefix}
	case !rights.Roles.has(RoleMaster):
		return &Problem{Reason: KeyRole}
	case !rights.mayUse(m.group):
		return &Problem{Reason: KeyPrefix}
	case p.group.TotalMembers > r.cfg.MaxMembers:
		return &Problem{Reason: TooManyMembers, Value: uint64(r.cfg.MaxMembers)}
	case int(m.total) > max(1, p.group.TotalMembers):
		return &Problem{Reason: Malformed}
	}
	for _, g := range [...]*group{r.groups[m.group], r.locating[m.group]} {
		if g != nil && !r.owns(m.id.key, g) {
			return &Problem{Reason: OtherKey}
		}
	}
	if p := r.mayFollow(m); p != nil {
		return p
	}
	if l := r.locating[m.group]; l != nil {
		switch other := r.rootOf(l); {
		case m.id.root == other && !l.isOlder(m.id.epoch, p.generation):
			return &Problem{Reason: StaleEpoch, Value: l.reg.Epoch}
		case m.id.root != other && (m.id.epoch < l.reg.Epoch || m.id.epoch == l.reg.Epoch && m.id.root < other):
			return &Problem{Reason: Contended, Value: uint64(other)}
		}
	}
	return nil
}

// mayFollow returns the reason for which the attempt of m is too old, or not about the group
// that is here, or nil.
func (r *Registrar) mayFollow(m *relay) *Problem {
	e := r.epochs[m.group]
	switch old := r.groups[m.group]; {
	case m.prepare.group.Base == 0 && e != nil && m.id.epoch <= e.newest():
		return &Problem{Reason: StaleEpoch, Value: e.newest()}
	case m.prepare.group.Base == 0:
		return nil
	case old != nil:
		return old.mayContinue(m)
	case e != nil && m.id.epoch < e.accepted:
		return &Problem{Reason: StaleEpoch, Value: e.accepted}
	}
	return nil
}

// rootOf returns the switch that g was registered at.
func (r *Registrar) rootOf(g *group) SwitchID {
	if g.branch == nil {
		return r.cfg.Switch.ID
	}
	return g.branch.id.root
}

// prepareComplete begins the first step of a group that a neighbour has sent whole.
func (r *Registrar) prepareComplete(now time.Duration, from mcast.Neighbor, m *relay, a *prepareAssembly, out *Output) {
	p := a.body
	g := &group{key: m.id.key, tx: p.tx, reg: p.group.registration(&Header{Group: m.group, Epoch: m.id.epoch, ReplyTo: p.master})}
	g.branch = &branch{id: m.id, base: p.group.Base, parent: from, hops: m.hops, left: p.left, deadline: now + p.left}
	g.reg.Members, g.reg.Origin, g.generation, g.known = nil, p.origin, p.generation, p.known
	var ns []uint32
	for _, s := range a.parts {
		g.reg.Members = append(g.reg.Members, s.group.Members...)
		g.branch.behind = append(g.branch.behind, s.behind...)
		ns = append(ns, s.numbers...)
	}
	if len(g.reg.Members) != p.group.TotalMembers {
		r.refuseRelay(from, m.group, m.id, []Problem{{Reason: Malformed}}, out)
		return
	}
	if !g.isRebuild() { // its members are those of a registration
		r.restrict(g)
	}
	g.reg.setNumbers(ns)
	g.last = max(p.known, slices.Max(ns))
	r.setBase(g)
	g.dropGone(r.groups[m.group])
	if l := r.locating[m.group]; l != nil && l.branch == nil { // of a host, and not asked for at a switch yet
		r.located(m.group)
		r.reject(l, Problem{Reason: Contended, Value: uint64(m.id.root)}, out)
	}
	r.supersede(now, g, out)
	r.tryInstall(now, g, out)
}

// supersede ends an attempt that is under way, for the newer registration g. If that is of
// another root the end is final: a master that tried again would end the other one's.
func (r *Registrar) supersede(now time.Duration, g *group, out *Output) {
	l := r.locating[g.reg.Group]
	if l == nil || l.branch == nil || l == g {
		return
	}
	if l.isRebuild() && l.isRoot() && r.rootOf(g) == r.cfg.Switch.ID { // g takes the present ways as well
		r.forgetLocating(l)
		r.abandon(now, l, out)
		return
	}
	p := Problem{Reason: StaleEpoch, Value: g.reg.Epoch}
	if by := r.rootOf(g); by != l.branch.id.root {
		p = Problem{Reason: Contended, Value: uint64(by)}
	}
	l.branch.problems = []Problem{p}
	r.fail(now, l, out)
}

// answerRelay processes the answer of a child to a Prepare or Commit.
func (r *Registrar) answerRelay(now time.Duration, from mcast.Neighbor, m *relay, out *Output) {
	g := r.attempt(m.group, m.id)
	if g == nil {
		r.drop(UnknownGroupMsg, out)
		if m.kind != relayRefused { // without End the neighbour would wait, or serve the group until its lease ends
			r.sendRelay(from, &relay{kind: relayEnd, id: m.id, group: m.group}, out)
		}
		return
	}
	b := g.branch
	c := b.child(from)
	if c != nil && b.state == branchInstalled && m.kind == relayCommitted && !m.lacking && (c.lost || c.lacking) {
		r.installedLate(now, g, c, out)
		return
	}
	step := map[branchState]relayKind{branchPreparing: relayPrepare, branchCommitting: relayCommit}[b.state]
	answers := map[relayKind]relayKind{relayPrepare: relayPrepared, relayCommit: relayCommitted}[step]
	if c == nil || c.done || m.kind != answers && m.kind != relayRefused || !r.answered(requestID{from, step, m.id, 0}) {
		r.drop(DuplicateMsg, out)
		return
	}
	switch c.done = true; m.kind {
	case relayPrepared:
		if c.height, c.diameter = m.height, m.diameter; max(m.height, m.diameter) > 2*maxHops {
			b.problems = append(b.problems, Problem{Reason: TreeTooDeep, Value: maxHops})
		}
	case relayRefused:
		c.lost = true
		b.problems = append(b.problems, m.problems...)
		r.noteRefusal(now, g, c, m.problems)
	}
	c.heardAt, c.lacking = now, m.lacking
	r.proceed(now, g, out)
}

// commitRelay processes a Commit.
func (r *Registrar) commitRelay(now time.Duration, from mcast.Neighbor, m *relay, out *Output) {
	g := r.attempt(m.group, m.id)
	if g == nil || g.branch.parent != from || g.branch.state < branchPrepared {
		r.drop(UnknownGroupMsg, out)
		problems := r.refused(prepareKey{m.group, from}, m.id) // after Prepared was sent
		if problems == nil {
			problems = []Problem{{Reason: UnknownGroup}}
		}
		r.refuseRelay(from, m.group, m.id, problems, out)
		return
	}
	switch b := g.branch; b.state {
	case branchPrepared:
		b.above = min(m.above, 4*maxHops)
		r.commitChildren(now, g, out)
	case branchInstalled:
		r.drop(DuplicateMsg, out)
		if !b.renewed { // the parent waits for an answer that has not left
			r.extendLease(g, max(g.lease.at, now+3*b.left))
		}
		r.sendRelay(from, &relay{kind: relayCommitted, id: m.id, group: m.group, lacking: b.isLacking()}, out)
	default:
		r.drop(DuplicateMsg, out)
	}
}
