// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"cmp"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// What an adjacency that comes and goes means for the groups over it. When it is lost, the
// roots are asked for rebuilds, again and again. A neighbour that stays away for
// SwitchConfig.Grace has lost the groups that are still over it: they end. With one that comes
// back before that, each side asks the other by a Renew whether it still has them.

// neighbourBatch bounds the groups over one neighbour that one Advance ends, or asks for.
const neighbourBatch = 32

// neighbourChange is a change of an adjacency that has not been carried out for all groups
// over it.
type neighbourChange struct {
	to   mcast.Neighbor
	last Adjacency // the newest one that was up
	lost bool      // rebuilds are asked for until the groups end; else the neighbour is asked
	next int       // the groups before this index in Registrar.over are still to be asked for
	// until is the end of the grace, if the adjacency is lost.
	until time.Duration
	// timer fires when groups are to be asked for, or end; at once while some of them are left.
	timer timer[*neighbourChange]
}

// overEntry is a group among those over a neighbour.
type overEntry struct {
	group *group
	to    mcast.Neighbor
	index int // the index in Registrar.over[to]
}

// SetNeighbour records the adjacency with a neighbour, nil when it is lost. The groups over
// it end, or are asked for, in the next calls of Advance: see NextDeadline.
func (r *Registrar) SetNeighbour(now time.Duration, n mcast.Neighbor, a *Adjacency) {
	r.setTime(now)
	old := r.neighbours[n]
	switch {
	case a == nil && old == nil:
	case a == nil:
		delete(r.neighbours, n)
		r.noteChange(n, &neighbourChange{last: old.Adjacency, lost: true, next: len(r.over[n]), until: now + r.cfg.Switch.Grace}, now)
	case old != nil && old.Session == a.Session && old.ID == a.ID:
		old.MTU, old.Port = a.MTU, a.Port
	default:
		r.neighbours[n] = &neighbour{Adjacency: *a}
		r.noteChange(n, &neighbourChange{last: *a, next: len(r.over[n])}, now)
	}
}

// noteChange makes c the change of neighbour n that is carried out from the given time on, if
// there are groups over n.
func (r *Registrar) noteChange(n mcast.Neighbor, c *neighbourChange, at time.Duration) {
	r.forgetChange(n)
	if len(r.over[n]) == 0 {
		return
	}
	c.to, c.timer.owner = n, c
	r.changes[n] = c
	r.changeTimers.set(&c.timer, at)
}

func (r *Registrar) forgetChange(n mcast.Neighbor) {
	if c := r.changes[n]; c != nil {
		r.changeTimers.stop(&c.timer)
		delete(r.changes, n)
	}
}

// enlist adds g to the groups over its neighbours.
func (r *Registrar) enlist(g *group) {
	b := g.branch
	if len(b.entries) > 0 {
		return
	}
	for _, n := range b.neighbours() {
		e := &overEntry{group: g, to: n, index: len(r.over[n])}
		b.entries, r.over[n] = append(b.entries, e), append(r.over[n], e)
	}
}

// delist takes g off the groups over its neighbours.
func (r *Registrar) delist(g *group) {
	if g.branch == nil {
		return
	}
	for _, e := range g.branch.entries {
		list := r.over[e.to]
		end := len(list) - 1
		list[end].index, list[e.index] = e.index, list[end]
		list[end] = nil
		if r.over[e.to] = list[:end]; end == 0 {
			delete(r.over, e.to)
			r.forgetChange(e.to)
		}
	}
	g.branch.entries = nil
}

// advanceNeighbours carries out the changes that are due, for some groups each.
func (r *Registrar) advanceNeighbours(now time.Duration, out *Output) {
	due := r.changeTimers.fired(now)
	slices.SortFunc(due, func(a, b *neighbourChange) int { return cmp.Compare(a.to, b.to) })
	for _, c := range due {
		at := now
		switch {
		case c.lost && now >= c.until:
			r.endOver(now, c, out)
		case c.lost:
			at = r.missOver(now, c, out)
		default:
			r.askOver(now, c, out)
		}
		if r.changes[c.to] == c {
			r.changeTimers.set(&c.timer, at)
		}
	}
}

// missOver has groups over a neighbour that is lost rebuilt, and ends attempts that need it.
// It returns when the next ones are due.
func (r *Registrar) missOver(now time.Duration, c *neighbourChange, out *Output) time.Duration {
	for range neighbourBatch {
		list := r.over[c.to]
		if c.next = min(c.next, len(list)); c.next == 0 {
			c.next = len(list)
			return min(now+rebuildRetry, c.until)
		}
		c.next--
		switch g := list[c.next].group; {
		case g.branch.state != branchInstalled:
			r.missAttempt(now, g, c, out)
		case g.branch.parent != c.to:
			r.askRebuild(now, g, r.linkTo(c.to), out)
		}
	}
	return now
}

// missAttempt ends the first step of g, which goes on with a group and needs a neighbour that
// is lost. The second step goes on without it. An attempt to begin a group has the grace.
func (r *Registrar) missAttempt(now time.Duration, g *group, c *neighbourChange, out *Output) {
	b := g.branch
	at := b.child(c.to)
	switch {
	case b.base == 0:
	case b.state != branchCommitting:
		p := Problem{Reason: SwitchSilent, Value: uint64(c.last.ID)}
		b.problems = append(b.problems, p)
		if at != nil {
			r.noteRefusal(now, g, at, []Problem{p})
		}
		r.fail(now, g, out)
	case at != nil && !at.done:
		r.answered(requestID{c.to, relayCommit, b.id, 0})
		at.done, at.lost = true, true
		r.proceed(now, g, out)
	}
}

// endOver ends groups over a neighbour that is lost.
func (r *Registrar) endOver(now time.Duration, c *neighbourChange, out *Output) {
	for range neighbourBatch {
		list := r.over[c.to]
		if len(list) == 0 {
			return
		}
		g := list[len(list)-1].group
		if g.branch.state == branchInstalled {
			r.endFor(now, g, c.to, out)
			continue
		}
		g.branch.problems = append(g.branch.problems, Problem{Reason: SwitchSilent, Value: uint64(c.last.ID)})
		r.fail(now, g, out)
	}
}

// askOver asks a neighbour with a new session whether it still has groups.
func (r *Registrar) askOver(now time.Duration, c *neighbourChange, out *Output) {
	for range neighbourBatch {
		list := r.over[c.to]
		if c.next = min(c.next, len(list)); c.next == 0 {
			r.forgetChange(c.to)
			return
		}
		c.next--
		r.askFor(now, list[c.next].group, c.to, out)
	}
}

// askFor sends neighbour n a Renew about g at once: its answer is Ended if it has forgotten
// the group.
func (r *Registrar) askFor(now time.Duration, g *group, n mcast.Neighbor, out *Output) {
	b := g.branch
	if b.state != branchInstalled {
		return // the step's requests are under way, or end with its deadline
	}
	id := requestID{to: n, kind: relayRenew, id: b.id}
	if q := r.requests[id]; q != nil { // it says more
		r.ask(now, q.until, id, q.ip, g, q.data, out)
		return
	}
	if c := b.child(n); c != nil {
		r.renewChild(now, g, c, &relay{}, out)
		return
	}
	m := &relay{kind: relayRenew, id: b.id, group: g.reg.Group, serial: b.serial, tx: g.tx, lease: g.reg.Lease}
	r.ask(now, g.lease.at, id, g.reg.Group, g, [][]byte{encodeRelay(m)}, out)
}

// endFor ends an installed group since neighbour n is lost, or has lost it.
func (r *Registrar) endFor(now time.Duration, g *group, n mcast.Neighbor, out *Output) {
	a := r.adjacencyOf(n)
	g.branch.lost = LostLink{At: r.cfg.Switch.ID, To: a.ID, Port: a.Port}
	r.removeGroup(now, g, SwitchLost, true, out)
}

// adjacencyOf returns the adjacency with a neighbour of a group, or the last one.
func (r *Registrar) adjacencyOf(n mcast.Neighbor) Adjacency {
	if a := r.neighbours[n]; a != nil {
		return a.Adjacency
	}
	if c := r.changes[n]; c != nil {
		return c.last
	}
	return Adjacency{}
}
