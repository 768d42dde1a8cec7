// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// A registration through a tree has two steps. In the first, Prepare travels down: every
// switch plans its legs, locates the members that are at its ports, and has a place for
// the group; Prepared, or Refused with the reasons, travels up. In the second, Commit
// travels down, and every switch installs the group when all below it have, so that
// no data meets a switch without the group. docs/TREES.md has the states.

// branchState is the state of a group's registration through a tree, at one switch.
type branchState uint8

const (
	branchPlanning   branchState = iota // the ways to members are not all known; no switch below has been asked
	branchPreparing                     // switches below are preparing, or members here are being located
	branchPrepared                      // not at the root: the parent has been told, its Commit is awaited
	branchCommitting                    // switches below are installing
	branchInstalled
)

// branch is a group's registration through a tree, at one switch.
type branch struct {
	id       attemptID
	base     uint64 // the epoch that it updates, or its own if it rebuilds the tree; 0: the group begins
	state    branchState
	parent   mcast.Neighbor // NoNeighbour at the root
	hops     uint8
	behind   []bool // true: the member is not behind the parent; nil at the root. Valid until the tree is planned
	left     time.Duration
	deadline time.Duration // the deadline of the present step
	children []child
	checked  bool // the Planner has decided about the members here
	problems []Problem
	above    uint8        // levels behind the parent
	entries  []*overEntry // entries of Registrar.over, one for each neighbour; none when it is not there
	serial   uint32
	renewed  bool           // a Renew of the parent has come
	repair   repair         // the repair of an installed branch
	over     bool           // the end has been reported, or need not be
	endedBy  mcast.Neighbor // the neighbour that has reported the end
	lost     LostLink       // what has ended the group, if that is SwitchLost
}

// child is a switch below, in a step.
type child struct {
	to       mcast.Neighbor
	done     bool // true: the child has answered in this step, or is lost
	lost     bool // did not install an attempt that goes on with a group
	lacking  bool // true: the child has installed it, and a switch below it has not
	height   uint8
	diameter uint8
	heardAt  time.Duration // the time of the last Renewed
}

// isRoot reports whether no other switch has asked for the group.
func (b *branch) isRoot() bool { return b.parent == NoNeighbour }

// isRoot reports whether g was registered here, and not by another switch.
func (g *group) isRoot() bool { return g.branch == nil || g.branch.isRoot() }

// endedByParent reports whether the parent of g has ended it.
func (g *group) endedByParent() bool { return !g.isRoot() && g.branch.endedBy == g.branch.parent }

// isHere reports whether member k of g is at this switch.
func (g *group) isHere(k MemberKey) bool {
	i := g.reg.Find(k)
	return i >= 0 && g.reg.Tree.Leg(i) == NoNeighbour
}

func (b *branch) child(n mcast.Neighbor) *child {
	i := slices.IndexFunc(b.children, func(c child) bool { return c.to == n })
	if i < 0 {
		return nil
	}
	return &b.children[i]
}

// waits reports whether a child has not answered in this step.
func (b *branch) waits() bool {
	return slices.ContainsFunc(b.children, func(c child) bool { return !c.done })
}

// neighbours returns the switches next in the tree.
func (b *branch) neighbours() (ns []mcast.Neighbor) {
	if b == nil {
		return nil
	}
	if !b.isRoot() {
		ns = append(ns, b.parent)
	}
	for i := range b.children {
		ns = append(ns, b.children[i].to)
	}
	return ns
}

// levels returns the levels of switches below this one, and the number of links between
// the two edges below it that are furthest apart.
func (b *branch) levels() (height, diameter uint8) {
	second := uint8(0)
	for i := range b.children {
		c := &b.children[i]
		diameter = max(diameter, c.diameter)
		switch h := c.height + 1; {
		case h > height:
			height, second = h, height
		case h > second:
			second = h
		}
	}
	return height, max(diameter, height+second)
}

// aboveChild returns the levels of switches that child i has behind its parent.
func (b *branch) aboveChild(i int) uint8 {
	most := b.above
	for j := range b.children {
		if j != i {
			most = max(most, b.children[j].height+1)
		}
	}
	return most + 1
}

// setLevels notes in t the levels behind each leg.
func (b *branch) setLevels(t *Tree) {
	for i := range t.Neighbours {
		n := &t.Neighbours[i]
		if n.Levels = int(b.above); n.Neighbour != b.parent {
			n.Levels = int(b.child(n.Neighbour).height) + 1
		}
	}
}

// attempt returns the group of that attempt, installed or not.
func (r *Registrar) attempt(ip netip.Addr, id attemptID) *group {
	for _, g := range [...]*group{r.locating[ip], r.groups[ip]} {
		if g != nil && g.branch != nil && g.branch.id == id {
			return g
		}
	}
	return nil
}

// prepare begins the first step of g, whose legs are those of t.
func (r *Registrar) prepare(now time.Duration, g *group, t *Tree, out *Output) {
	b := g.branch
	if b == nil {
		b = &branch{id: attemptID{g.reg.Epoch, r.cfg.Switch.ID, r.random.next(), g.key}, base: g.reg.Base, left: r.cfg.Switch.Timeout}
		if g.isRebuild() { // there is time for a second one before the groups over a lost link end
			b.left = min(b.left, r.cfg.Switch.Grace/2)
		}
		b.serial = r.firstSerial()
		g.branch = b
		r.setGeneration(g)
	}
	if b.isRoot() {
		b.deadline = now + b.left
	}
	b.state, g.reg.Tree = branchPreparing, t
	t.Parent, t.Generation = b.parent, g.generation
	r.setBase(g)
	for _, n := range t.Legs {
		if n != NoNeighbour && n != b.parent && b.child(n) == nil {
			b.children = append(b.children, child{to: n})
		}
	}
	for _, n := range b.neighbours() {
		t.Neighbours = append(t.Neighbours, TreeNeighbour{Neighbour: n})
	}
	r.enlist(g)
	r.locate(g)
	for i := range b.children {
		n := b.children[i].to
		segments := r.prepareSegments(g, n)
		if segments == nil {
			b.children[i].done = true
			b.problems = append(b.problems, Problem{Reason: NoWay})
			continue
		}
		r.ask(now, b.deadline, requestID{to: n, kind: relayPrepare, id: b.id}, g.reg.Group, g, segments, out)
	}
	r.checkHere(now, g, out)
}

// checkHere asks the Planner about the members of g that are here.
func (r *Registrar) checkHere(now time.Duration, g *group, out *Output) {
	b := g.branch
	if b.state == branchPreparing && !b.checked {
		v := r.cfg.Switch.Planner.Check(&g.reg, g.key)
		switch b.checked = v.Kind != VerdictLater; v.Kind {
		case VerdictLater:
			g.missingMember, g.nextTry = v.Problem, now+r.cfg.LocateRetry
		case VerdictRejected:
			b.problems = append(b.problems, v.Problem)
		}
	}
	r.proceed(now, g, out)
}

// proceed is the transition function: it takes g to the next state if this one has all
// that it waits for.
func (r *Registrar) proceed(now time.Duration, g *group, out *Output) {
	b := g.branch
	switch b.state {
	case branchPreparing:
		if b.checked && !b.waits() {
			r.prepared(now, g, out)
		}
	case branchCommitting:
		if len(b.problems) > 0 && b.base == 0 {
			r.fail(now, g, out)
		} else if !b.waits() {
			r.installBranch(now, g, out)
		}
	}
	r.setBranchTimer(g)
}

// prepared ends the first step.
func (r *Registrar) prepared(now time.Duration, g *group, out *Output) {
	b := g.branch
	height, diameter := b.levels()
	if b.isRoot() && len(b.problems) == 0 {
		params := g.reg.GroupParams
		if params.DeadAfter != mcast.NeverDead {
			params.DeadAfter = min(params.DeadAfter, (1<<63-1)>>diameter) << diameter
		}
		if e := params.Check(len(g.reg.Members) - 1); e != nil {
			b.problems = append(b.problems, Problem{Reason: BadDeadAfter, Value: uint64(e.Bound >> diameter)})
		}
	}
	switch {
	case len(b.problems) > 0:
		r.fail(now, g, out)
	case b.isRoot():
		r.commitChildren(now, g, out)
	default:
		b.state, b.deadline = branchPrepared, now+3*b.left
		r.sendRelay(b.parent, &relay{kind: relayPrepared, id: b.id, group: g.reg.Group, height: height, diameter: diameter}, out)
	}
}

// commitChildren begins the second step.
func (r *Registrar) commitChildren(now time.Duration, g *group, out *Output) {
	b := g.branch
	b.state, b.deadline = branchCommitting, now+b.left
	b.setLevels(g.reg.Tree)
	for i := range b.children {
		b.children[i].done = false
	}
	r.askCommits(now, g, out)
	r.proceed(now, g, out)
}

// askCommits asks the children that have not answered to install g.
func (r *Registrar) askCommits(now time.Duration, g *group, out *Output) {
	b := g.branch
	for i := range b.children {
		if c := &b.children[i]; !c.done {
			m := &relay{kind: relayCommit, id: b.id, group: g.reg.Group, above: b.aboveChild(i)}
			r.ask(now, b.deadline, requestID{to: c.to, kind: relayCommit, id: b.id}, g.reg.Group, g, [][]byte{encodeRelay(m)}, out)
		}
	}
}

// installBranch installs g, which all switches below have installed, but those that were
// lost meanwhile.
func (r *Registrar) installBranch(now time.Duration, g *group, out *Output) {
	b, ip := g.branch, g.reg.Group
	old := r.groups[ip]
	r.setBase(g)
	g.dropGone(old)
	p := r.check(g)
	if p == nil {
		used := r.inheritUsedNumbers(old, g)
		v := r.table.Install(&g.reg, g.key)
		if v.Kind == VerdictAccepted {
			b.state = branchInstalled
			if old != nil && old.branch != nil {
				b.inheritRepair(&old.branch.repair)
			}
			r.located(ip)
			g.usedNumbers = used
			r.commit(now, g, out)
			r.endFormer(now, old, g, out)
			if b.isRoot() {
				r.renewChildren(now, g, &relay{whom: g.whomToNotify()}, out)
			} else {
				r.sendRelay(b.parent, &relay{kind: relayCommitted, id: b.id, group: ip, lacking: b.isLacking()}, out)
			}
			r.tellUntold(now, g, out)
			r.missLost(now, g, out)
			return
		}
		p = &v.Problem
	}
	b.problems = append(b.problems, *p)
	r.fail(now, g, out)
	if b.isRoot() && g.continues() { // the switches below have what this one lacks
		r.endInstalled(now, old, g, out)
	}
}

// fail ends an attempt: below by End, above by Refused, at the root by Reject.
func (r *Registrar) fail(now time.Duration, g *group, out *Output) {
	r.forgetLocating(g)
	r.abandon(now, g, out)
	problems := g.branch.problems
	first := problems[0]
	if g.isRoot() && first.Reason == StaleEpoch && !g.isRebuild() { // of another switch: the next epoch of a master is above it
		e := r.epochOf(g.reg.Group)
		e.rejected = max(e.rejected, first.Value)
	}
	n := len(out.Events)
	r.reject(g, first, out)
	for i := n; i < len(out.Events); i++ {
		out.Events[i].More = problems[1:]
	}
}

// abandon ends what an attempt that is not installed has below.
func (r *Registrar) abandon(now time.Duration, g *group, out *Output) {
	b := g.branch
	if b == nil || b.over {
		return
	}
	b.over = true
	r.delist(g)
	for i := range b.children {
		r.endAt(now, b.children[i].to, g, NotEnded, out)
	}
}

func (r *Registrar) refuseRelay(to mcast.Neighbor, ip netip.Addr, id attemptID, problems []Problem, out *Output) {
	for i := range problems {
		if problems[i].Member.IP.IsValid() && problems[i].Member.IP.Is4() != ip.Is4() {
			problems[i].Member = MemberKey{}
		}
	}
	r.sendRelay(to, &relay{kind: relayRefused, id: id, group: ip, problems: problems}, out)
}

// advanceBranch fires the deadline of an attempt that is not installed.
func (r *Registrar) advanceBranch(now time.Duration, g *group, out *Output) {
	b := g.branch
	if now < b.deadline {
		r.checkHere(now, g, out)
		return
	}
	if b.state == branchPreparing && !b.checked {
		b.problems = append(b.problems, g.missingMember)
	}
	if b.state == branchCommitting && b.base != 0 {
		if r.storageFails {
			b.deadline = now + b.left
			r.askCommits(now, g, out)
			r.setBranchTimer(g)
			return
		}
		for i := range b.children {
			if c := &b.children[i]; !c.done {
				c.done, c.lost = true, true
			}
		}
		r.proceed(now, g, out)
		return
	}
	if b.state == branchCommitting && r.storageFails {
		b.problems = append(b.problems, Problem{Reason: NotStored})
	}
	for i := range b.children {
		if c := &b.children[i]; !c.done {
			b.problems = append(b.problems, Problem{Reason: SwitchSilent, Value: uint64(r.loadOf(c.to).ID)})
		}
	}
	if len(b.problems) == 0 {
		b.problems = []Problem{{Reason: SwitchSilent, Value: uint64(r.loadOf(b.parent).ID)}} // no Commit came
	}
	r.fail(now, g, out)
}

func (r *Registrar) setBranchTimer(g *group) {
	b := g.branch
	if r.locating[g.reg.Group] != g || b.state == branchPlanning {
		return
	}
	at := b.deadline
	if b.state == branchPreparing && !b.checked {
		at = min(at, g.nextTry)
	}
	r.tries.set(&g.try, at)
}

// sortRequests puts requests into the order in which they were made.
func sortRequests(qs []*relayRequest) {
	slices.SortFunc(qs, func(a, b *relayRequest) int {
		if a.order < b.order {
			return -1
		}
		return 1
	})
}
