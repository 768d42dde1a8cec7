// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// A switch of a tree whose way to a neighbour in it cannot be used any more asks the root for
// a rebuild. The root registers the group again, with the same members and epoch, over the
// ways that there are now. Until that is installed everything stays as it is.

const (
	// rebuildInterval is the least time between two rebuilds of a group.
	rebuildInterval = 200 * time.Millisecond
	// rebuildRetry is the time after which a switch asks again.
	rebuildRetry = 250 * time.Millisecond
	// checkBatch bounds the members whose ways one Advance compares with the legs.
	checkBatch = 1024
)

// repair is what a switch does about ways of a group that are lost.
type repair struct {
	lostTo   mcast.Neighbor // the neighbour that has lost the group
	until    time.Duration  // the group ends then
	grace    timer[*group]  // the timer in Registrar.graces, set while lostTo is waited for
	wanted   timer[*group]  // the timer in Registrar.rebuilds: when the root begins the next one
	check    timer[*group]  // the timer in Registrar.routeChecks
	waysLost time.Duration  // the time when a way of a leg was found to be lost, plus 1; 0: all are there
	cause    LostLink
	begun    time.Duration // the time of the last rebuild, plus 1
	avoided  map[mcast.Neighbor]time.Duration
	reported Reason // why the last rebuild failed
}

// inheritRepair is called when b replaces a branch that the repair p is of. The grace of a
// neighbour that lacks b as well goes on.
func (b *branch) inheritRepair(p *repair) {
	b.repair.begun = p.begun
	if c := b.child(p.lostTo); c != nil && c.lost {
		b.repair.lostTo, b.repair.until = p.lostTo, p.until
	}
}

// stopRepair stops the timers of g.
func (r *Registrar) stopRepair(g *group) {
	if b := g.branch; b != nil {
		r.graces.stop(&b.repair.grace)
		r.rebuilds.stop(&b.repair.wanted)
		r.routeChecks.stop(&b.repair.check)
	}
}

// linkTo returns the link to neighbour n as one that is lost.
func (r *Registrar) linkTo(n mcast.Neighbor) LostLink {
	a := r.adjacencyOf(n)
	return LostLink{At: r.cfg.Switch.ID, To: a.ID, Port: a.Port}
}

// askRebuild asks the root of g for a rebuild. A switch whose parent is lost waits.
func (r *Registrar) askRebuild(now time.Duration, g *group, lost LostLink, out *Output) {
	b := g.branch
	if b.isRoot() {
		r.wantRebuild(now, g, lost)
		return
	}
	id := requestID{to: b.parent, kind: relayRebuild, id: b.id}
	if r.neighbours[b.parent] == nil || r.requests[id] != nil {
		return
	}
	m := &relay{kind: relayRebuild, id: b.id, group: g.reg.Group, lost: lost}
	r.ask(now, now+r.cfg.Switch.Grace, id, g.reg.Group, g, [][]byte{encodeRelay(m)}, out)
}

// rebuildRelay processes a Rebuild of a neighbour below. It counts too if this switch or that
// one has not installed the newest attempt.
func (r *Registrar) rebuildRelay(now time.Duration, from mcast.Neighbor, m *relay, out *Output) {
	g := r.groups[m.group]
	if g == nil || g.branch == nil || g.branch.id.root != m.id.root || g.key != m.id.key || g.branch.parent == from {
		r.drop(UnknownGroupMsg, out)
		r.sendRelay(from, &relay{kind: relayEnded, id: m.id, group: m.group}, out)
		return
	}
	r.sendRelay(from, &relay{kind: relayRebuilds, id: m.id, group: m.group}, out)
	r.askRebuild(now, g, m.lost, out)
}

// wantRebuild has the tree of g, whose root is here, rebuilt: at once, or rebuildInterval
// after the last time.
func (r *Registrar) wantRebuild(now time.Duration, g *group, lost LostLink) {
	p := &g.branch.repair
	p.cause = lost
	if p.wanted.index > 0 {
		return
	}
	at := now
	if p.begun > 0 {
		at = max(now, p.begun-1+rebuildInterval)
	}
	p.wanted.owner = g
	r.rebuilds.set(&p.wanted, at)
}

// advanceRebuilds begins the rebuilds that are due, some of them in each call.
func (r *Registrar) advanceRebuilds(now time.Duration, out *Output) {
	for i, g := range inOrder(r.rebuilds.fired(now)) {
		p := &g.branch.repair
		switch {
		case i >= neighbourBatch:
			r.rebuilds.set(&p.wanted, now)
		case r.locating[g.reg.Group] != nil: // it takes the present ways as well
			r.rebuilds.set(&p.wanted, now+rebuildInterval)
		default:
			p.begun = now + 1
			r.rebuild(now, g, out)
		}
	}
}

// rebuild begins a new attempt of g.
func (r *Registrar) rebuild(now time.Duration, g *group, out *Output) {
	n := &group{reg: g.reg, key: g.key, tx: g.tx, segments: g.segments, known: g.last, last: g.last, rebuild: true}
	n.reg.Base, n.reg.Tree = g.reg.Epoch, nil
	n.reg.Members, n.reg.Numbers = slices.Clone(g.reg.Members), slices.Clone(g.reg.Numbers)
	r.tryInstall(now, n, out)
}

// rebuildFailed reports that a rebuild was refused; again only for another reason.
func (r *Registrar) rebuildFailed(g *group, p Problem, more []Problem, out *Output) {
	old := r.groups[g.reg.Group]
	if old != nil && old.branch != nil {
		if old.branch.repair.reported == p.Reason {
			return
		}
		old.branch.repair.reported = p.Reason
	}
	out.Events = append(out.Events, Event{Kind: RebuildFailed, Group: g.reg.Group, Epoch: g.reg.Epoch, Member: p.Member, Err: &p, More: more})
}

// noteRefusal has the next attempts avoid neighbour c, if it is not the only way, since it
// has no way to a member, no route even (UnknownMemberLocation), or is none. One that cannot
// write its state file is not lost meanwhile.
func (r *Registrar) noteRefusal(now time.Duration, g *group, c *child, problems []Problem) {
	old := r.groups[g.reg.Group]
	if old != nil && old.branch != nil && old.branch.repair.lostTo == c.to && slices.ContainsFunc(problems, func(p Problem) bool { return p.Reason == NotStored }) {
		old.branch.repair.until = now + r.cfg.Switch.Grace
	}
	if old == nil || old.branch == nil || !slices.ContainsFunc(problems, func(p Problem) bool {
		return p.Reason == NoWay || p.Reason == UnknownMemberLocation || p.Reason == SwitchSilent || p.Reason == SecondParent || p.Reason == TreeTooDeep
	}) {
		return
	}
	p := &old.branch.repair
	if p.avoided == nil {
		p.avoided = map[mcast.Neighbor]time.Duration{}
	}
	p.avoided[c.to] = now + r.cfg.Switch.Grace
}

// unavoided returns the hops that no refusal speaks against, or all if there are none.
func (r *Registrar) unavoided(ip netip.Addr, hops []mcast.Neighbor) []mcast.Neighbor {
	g := r.groups[ip]
	if g == nil || g.branch == nil || g.branch.repair.avoided == nil {
		return hops
	}
	var out []mcast.Neighbor
	for _, n := range hops {
		if g.branch.repair.avoided[n] <= r.now {
			out = append(out, n)
		}
	}
	if out == nil {
		return hops
	}
	return out
}

// edgeLost records that neighbour n does not have g any more, or never got the newest attempt.
// The root is asked for a rebuild; without one the group ends after the grace.
func (r *Registrar) edgeLost(now time.Duration, g *group, n mcast.Neighbor, out *Output) {
	p := &g.branch.repair
	if p.grace.index == 0 {
		if p.lostTo != n || p.until == 0 {
			p.lostTo, p.until = n, now+r.cfg.Switch.Grace
		}
		p.grace.owner = g
		r.graces.set(&p.grace, min(now+rebuildRetry, p.until))
	}
	if n != g.branch.parent {
		r.askRebuild(now, g, r.linkTo(n), out)
	}
}

// advanceGraces asks for rebuilds again, and ends the groups whose grace is over.
func (r *Registrar) advanceGraces(now time.Duration, out *Output) {
	for i, g := range inOrder(r.graces.fired(now)) {
		p := &g.branch.repair
		if r.storageFails {
			p.until = now + r.cfg.Switch.Grace
		}
		switch {
		case i >= neighbourBatch:
			r.graces.set(&p.grace, now)
		case now >= p.until:
			r.endFor(now, g, p.lostTo, out)
		default:
			r.graces.set(&p.grace, min(now+rebuildRetry, p.until))
			if p.lostTo != g.branch.parent {
				r.askRebuild(now, g, r.linkTo(p.lostTo), out)
			}
		}
	}
}

// missLost treats the switches below that have not installed g as lost.
func (r *Registrar) missLost(now time.Duration, g *group, out *Output) {
	for i := range g.branch.children {
		if c := &g.branch.children[i]; c.lost {
			r.edgeLost(now, g, c.to, out)
		}
	}
}

// installedLate records that c, and all below it, have installed g after the others: no rebuild is needed for it.
func (r *Registrar) installedLate(now time.Duration, g *group, c *child, out *Output) {
	b := g.branch
	c.lost, c.lacking, c.heardAt = false, false, now
	if p := &b.repair; p.lostTo == c.to {
		r.graces.stop(&p.grace)
		p.lostTo, p.until = NoNeighbour, 0
	}
	switch {
	case b.isLacking():
	case !b.isRoot():
		r.sendRelay(b.parent, &relay{kind: relayCommitted, id: b.id, group: g.reg.Group}, out)
	case g.unaccepted:
		r.acceptInstalled(g, g, out)
	}
}

// GroupRoutesChanged records that the ways to members of a group may have changed. The next
// calls of Advance compare them with the legs: see NextDeadline.
func (r *Registrar) GroupRoutesChanged(now time.Duration, ip netip.Addr) {
	r.setTime(now)
	if g := r.groups[ip]; g != nil && g.branch != nil {
		p := &g.branch.repair
		p.check.owner, p.waysLost = g, 0
		r.routeChecks.set(&p.check, now)
	}
}

// advanceRoutes asks for the rebuild of groups with a leg whose next hop has gone, and again
// within the grace, since the first one may be refused. The leg may still work: nothing ends.
func (r *Registrar) advanceRoutes(now time.Duration, out *Output) {
	members := 0
	for _, g := range inOrder(r.routeChecks.fired(now)) {
		c := &g.branch.repair.check
		if members += len(g.reg.Members); members > checkBatch && members > len(g.reg.Members) {
			r.routeChecks.set(c, now)
			continue
		}
		switch n, verdict := r.lostWay(g); verdict {
		case VerdictLater:
			r.routeChecks.set(c, now+r.cfg.LocateRetry)
		case VerdictRejected:
			p := &g.branch.repair
			if p.waysLost == 0 {
				p.waysLost = now + 1
			}
			if now < p.waysLost-1+r.cfg.Switch.Grace {
				r.routeChecks.set(c, now+rebuildRetry)
			}
			r.askRebuild(now, g, r.linkTo(n), out)
		}
	}
}

// lostWay returns the first leg that is no way to its members any more, with VerdictRejected.
func (r *Registrar) lostWay(g *group) (mcast.Neighbor, VerdictKind) {
	verdict := VerdictAccepted
	for i := range g.reg.Members {
		n := g.reg.Tree.Legs[i]
		if n == NoNeighbour || n == g.branch.parent {
			continue
		}
		switch w := r.cfg.Switch.Planner.Ways(g.reg.Members[i].IP); {
		case w.Kind == VerdictLater:
			verdict = VerdictLater
		case w.Kind == VerdictRejected || !w.Here && !slices.Contains(w.Hops, n):
			return n, VerdictRejected
		}
	}
	return NoNeighbour, verdict
}
