// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// action is one step: its kind in the upper bits, its argument in the low four bits.
type action uint8

// Kinds of action. The argument is a link for the first four and portFull, a node for
// fire, a switch for change and those of its file, a host for the rest.
const (
	deliver action = iota << 4
	drop
	duplicate
	reorder
	fire
	post
	start
	die
	change
	portFull
	restart // a switch; withNewer and withLoss may be added
	read
	store // a switch; fileFails may be added
	meet  // the argument is a link to the switch
	fast  // a switch, and the step of its fast path
	work  // a switch whose driver does a step, or finds the fast path idle
)

func (a action) kind() action { return a &^ 15 }
func (a action) arg() int     { return int(a & 15) }

// actions appends every step that is possible in w.
func (w *World) actions(as []action) []action {
	busy := w.fastBusy()
	idle := !w.storing() && !busy && !w.apart()
	for i := range w.links {
		n := len(w.links[i].q)
		if n == 0 {
			continue
		}
		idle = false
		if !w.mayArrive(i, &w.links[i].q[0]) {
			continue
		}
		as = append(as, deliver|action(i))
		if !w.faulty(i) {
			continue
		}
		if w.left.Lose > 0 {
			as = append(as, drop|action(i))
		}
		if w.left.Duplicate > 0 {
			as = append(as, duplicate|action(i))
		}
		if w.left.Reorder > 0 && n > 1 && w.mayArrive(i, &w.links[i].q[1]) {
			as = append(as, reorder|action(i))
		}
	}
	if w.left.PortFull > 0 {
		for i := range w.links {
			if w.links[i].from >= node(len(w.hosts)) && w.links[i].to != 0 && w.links[i].full == 0 && w.faulty(i) {
				as = append(as, portFull|action(i))
			}
		}
	}
	if at, ok := w.earliest(); ok && (at <= w.now || !busy && (idle || w.left.Delay > 0)) {
		for n := range len(w.hosts) + len(w.switches) {
			if t, armed := w.deadline(n); armed && t == at {
				as = append(as, fire|action(n))
			}
		}
	}
	for i := range w.hosts {
		h := &w.hosts[i]
		if h.withheld > 0 && !h.dead {
			as = append(as, post|action(i))
		}
		if w.idleSource(i) && !w.mustWait(i) {
			as = append(as, start|action(i))
		}
	}
	for sw := range w.switches {
		if w.changeable(sw) {
			as = append(as, change|action(sw))
		}
		as = w.fastActions(as, sw)
		as = w.idleActions(as, sw)
		as = w.fileActions(as, sw)
	}
	as = w.meetActions(as)
	if w.mortal && !w.hosts[len(w.hosts)-1].dead {
		as = append(as, die|action(len(w.hosts)-1))
	}
	return as
}

// faulty reports whether link i may have faults.
func (w *World) faulty(i int) bool {
	return !w.cfg.OneLeg || w.links[i].from == 1 || w.links[i].to == 1
}

// idleSource reports whether host i has a stream that it has not begun to send.
func (w *World) idleSource(i int) bool {
	return i < maxSources && !w.hosts[i].started && len(w.streams[i].wrs) > 0
}

// mustWait reports whether host i begins only when it has all of A's stream, and lacks
// some of it.
func (w *World) mustWait(i int) bool {
	return w.hosts[i].dead || w.cfg.Turns && w.hosts[0].member() && int(w.hosts[i].progress[0].got) < len(w.streams[0].frames)
}

// fair returns the next step of a network without faults, in one of two schedules; false
// if nothing is left to do.
func (w *World) fair(schedule int) (action, bool) {
	for sw := range w.switches {
		if as := w.fastActions(nil, sw); len(as) > 0 {
			return as[0], true
		}
	}
	at, armed := w.earliest()
	timer := func() action {
		for n := 0; ; n++ {
			if t, ok := w.deadline(n); ok && t == at {
				return fire | action(n)
			}
		}
	}
	if armed && at <= w.now {
		return timer(), true
	}
	for k := range w.links {
		i := k
		if schedule == 1 {
			i = len(w.links) - 1 - k
		}
		if len(w.links[i].q) > 0 {
			return deliver | action(i), true
		}
	}
	for sw := range w.switches {
		switch f := &w.switches[sw].storage; {
		case f.due:
			return read | action(sw), true
		case f.number != 0:
			return store | action(sw), true
		}
	}
	for i := range w.hosts {
		if w.hosts[i].withheld > 0 && !w.hosts[i].dead {
			return post | action(i), true
		}
	}
	for i := range w.hosts {
		if w.idleSource(i) && !w.mustWait(i) {
			return start | action(i), true
		}
	}
	for sw := range w.switches {
		if w.changeable(sw) {
			return change | action(sw), true
		}
	}
	for l := range w.links {
		if w.isLate(l) {
			return meet | action(l), true
		}
	}
	if armed {
		return timer(), true
	}
	return 0, false
}

// finished reports whether every message has been completed at its source and has reached
// every live member, or else the group has failed and its source has been told, or has
// been removed; and whether no change can be made.
func (w *World) finished() bool {
	failed, behind, told := false, false, w.untold
	for i := range w.switches {
		failed = failed || w.switches[i].failed
		behind = behind || w.changeable(i)
	}
	if behind && !failed {
		return false
	}
	for s := range w.streams {
		src := &w.hosts[s]
		told = told || src.started && (src.broken() || src.dead || src.excluded)
	}
	if failed && told || w.cfg.Above > 0 && told {
		return true
	}
	for s := range w.streams {
		src := &w.hosts[s]
		if n := len(w.streams[s].wrs); n == 0 || !src.member() || src.dead || failed && !src.started {
			continue
		} else if int(src.done) < n {
			return false
		}
		for i := range w.hosts {
			h := &w.hosts[i]
			if i != s && !h.dead && h.member() && h.progress[s].lacks(len(w.streams[s].frames)) && w.owed(i) {
				return false
			}
		}
	}
	return true
}

// owed reports whether host i must receive all data. Under a quorum whose switch does not
// detect silence, only a quorum must.
func (w *World) owed(i int) bool {
	return w.cfg.Policy != mcast.Quorum || w.cfg.WithDeadAfter
}

func (w *World) deadline(n int) (time.Duration, bool) {
	if n < len(w.hosts) {
		if w.hosts[n].dead {
			return 0, false
		}
		return w.hosts[n].qp.NextDeadline()
	}
	r := &w.switches[n-len(w.hosts)]
	if len(r.fast.todo) > 0 {
		return 0, false // the driver is busy
	}
	return r.dev.NextDeadline()
}

func (w *World) earliest() (at time.Duration, ok bool) {
	for n := range len(w.hosts) + len(w.switches) {
		if t, armed := w.deadline(n); armed && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// do takes one step. A violation is in w.wrong.
func (w *World) do(a action) {
	i := a.arg()
	if w.cfg.reshapes() {
		w.renumberReports() // as encode does: where the two ends' sessions differ later, the numbers stay
	}
	if w.recorder != nil {
		w.recorder.step(w, a)
	}
	switch a.kind() {
	case deliver:
		w.take(i, 0)
	case drop:
		w.left.Lose--
		w.corrupt(i)
		w.remove(i, 0)
	case duplicate:
		w.left.Duplicate--
		w.arrive(i, w.links[i].q[0])
	case reorder:
		w.left.Reorder--
		w.corrupt(i)
		w.take(i, 1)
	case fire:
		w.fire(i)
	case post:
		h := &w.hosts[i]
		id := uint64(len(h.bufs) - int(h.withheld))
		h.withheld--
		if err := h.qp.PostRecv(h.posted.Recv(id)); err != nil {
			w.fault(-1, "host %s: %v", name(i), err)
		}
	case start:
		w.begin(i)
	case die:
		w.mortal = false
		w.kill(i)
	case change:
		w.change(i)
	case portFull:
		w.left.PortFull--
		w.links[i].full, w.links[i].room = w.now+portFullTime, uint8(w.cfg.PortFullRoom)
	case restart:
		w.restart(i&3, i&withNewer != 0, i&withLoss != 0)
	case read:
		w.read(i)
	case store:
		w.stored(i&3, i&fileFails != 0)
	case meet:
		w.meetNew(i)
	case fast:
		w.fastStep(i&3, i&^3)
	case work:
		if i&idleStep != 0 {
			w.rest(i & 3)
		} else {
			w.work(i)
		}
	}
	if w.cfg.Tree != Flat {
		w.hasten()
		w.checkToken()
	}
}

// kill ends host i.
func (w *World) kill(i int) {
	w.hosts[i].dead = true
	for l := range w.links {
		if w.links[l].to == node(i) {
			w.links[l].q = w.links[l].q[:0]
		}
	}
}

// corrupt records that a packet on link l was lost or delayed: a host behind it may be
// taken for silent.
func (w *World) corrupt(l int) {
	if !w.cfg.counts() {
		return
	}
	from, to, n := int(w.links[l].from), int(w.links[l].to), len(w.hosts)
	for i := range w.hosts {
		for sw := range w.switches {
			// Between hosts and the root, and between the root and other switches.
			if w.home[i] == sw && (i == from || i == to || sw > 0 && (n+sw == from || n+sw == to) && from >= n && to >= n) {
				w.hosts[i].corrupted = true
			}
		}
	}
}

func (w *World) take(l, k int) { w.arrive(l, w.remove(l, k)) }

func (w *World) remove(l, k int) packet {
	q := w.links[l].q
	p := q[k]
	copy(q[k:], q[k+1:])
	w.links[l].q = q[:len(q)-1]
	return p
}

func (w *World) send(l int, p packet) {
	if to := w.links[l].to; int(to) < len(w.hosts) && w.hosts[to].dead {
		return
	}
	w.links[l].q = append(w.links[l].q, p)
}

func (w *World) arrive(l int, p packet) {
	if to := int(w.links[l].to); to < len(w.hosts) {
		w.toHost(to, p)
	} else if w.cfg.FastPath > 0 {
		w.arriveFast(to-len(w.hosts), l, p)
	} else {
		w.toSwitch(to-len(w.hosts), l, p)
	}
}

// begin makes host i post its stream.
func (w *World) begin(i int) {
	h := &w.hosts[i]
	h.started = true
	for _, wr := range w.streams[i].wrs {
		if err := h.qp.PostSend(wr); err != nil {
			w.fault(-1, "host %s: %v", name(i), err)
			return
		}
	}
	w.served(i)
}

func (w *World) fire(n int) {
	at, _ := w.deadline(n)
	if at > w.now {
		if !w.idle() {
			w.left.Delay--
			for l := range w.links {
				if len(w.links[l].q) > 0 {
					w.corrupt(l)
				}
			}
		}
		w.now = at
	}
	if n < len(w.hosts) {
		w.hosts[n].qp.Advance(w.now, &w.qpOut)
		w.served(n)
		return
	}
	if f := &w.switches[n-len(w.hosts)].fast; w.cfg.FastPath > 0 {
		f.todo = append(append(f.todo, w.reports(f)...), chore{kind: callAdvance})
		return
	}
	w.advance(n - len(w.hosts))
}

// advance calls Advance of switch sw.
func (w *World) advance(sw int) {
	w.callSwitch(sw, func(r *switchState) { r.dev.Advance(w.now, &w.swOut) })
}

// idle reports whether nothing is in flight, nothing is being stored, and all switches are at the
// same point.
func (w *World) idle() bool { return w.pending() < 0 && !w.storing() && !w.apart() && !w.fastBusy() }
