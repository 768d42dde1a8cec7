// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/mcast"
)

// Restarts of a switch (R83). What it knew is gone, but for its file; the hosts and what is
// on the links remain. The group that it puts again has the members and the positions of the
// file.

// record is what the file of a switch has of the group.
type record struct {
	hasSource bool
	failed    bool // the group has failed; it is not put again
	source    uint8
	absent    uint8 // hosts that are no members, one bit each
	changed   uint8 // changes of the members that it has, where they are not durable at once
	at        [maxFileHosts]mcast.Position
}

// maxFileHosts bounds the hosts of scenarios with a file.
const maxFileHosts = 4

// storage is the file of a switch, as the control plane writes it.
type storage struct {
	durable record
	writing record // a record that is not durable yet, if number is not 0
	number  uint32 // the number of the positions in writing
	due     bool   // something has to be written that the control plane has not read
}

// restarted reports whether a switch has restarted.
func (w *World) restarted() bool { return w.left.Restart < w.cfg.Restart }

// storing reports whether something is to be stored, or is being stored.
func (w *World) storing() bool {
	return slices.ContainsFunc(w.switches, func(r switchState) bool { return r.storage.due || r.storage.number != 0 })
}

// fileActions appends the steps of switch sw and its file.
func (w *World) fileActions(as []action, sw int) []action {
	f := &w.switches[sw].storage
	if f.due || w.left.Store > 0 {
		as = append(as, read|action(sw))
	}
	if f.number != 0 {
		as = append(as, store|action(sw))
		if w.cfg.FileFails && f.writing.changed == f.durable.changed { // a change waits until it is durable
			as = append(as, store|action(sw)|fileFails)
		}
	}
	if w.left.Restart == 0 || len(w.cfg.RestartOf) > 0 && !slices.Contains(w.cfg.RestartOf, sw) || w.switches[sw].near == nil {
		return as
	}
	incoming := false
	for l := range w.links {
		incoming = incoming || int(w.links[l].to) == len(w.hosts)+sw && len(w.links[l].q) > 0
	}
	for _, newer := range []action{0, withNewer} {
		n := &f.durable
		if newer != 0 {
			if n = &f.writing; f.number == 0 {
				break
			}
		}
		if !n.restartable(len(w.hosts)) {
			continue
		}
		as = append(as, restart|action(sw)|newer)
		if incoming {
			as = append(as, restart|action(sw)|newer|withLoss)
		}
	}
	return as
}

// registered records that the members have changed at switch sw. Where that is durable at
// once, positions of before remain of those that were members before.
func (w *World) registered(sw int, c *Change) {
	f := &w.switches[sw].storage
	if w.cfg.StoredChanges {
		f.due = true
		return
	}
	for _, n := range []*record{&f.durable, &f.writing} {
		for _, i := range c.Leave {
			n.absent |= 1 << i
		}
		n.forget(n.absent)
		for _, j := range c.Join {
			n.absent &^= 1 << j.Host
			n.at[j.Host] = mcast.Position{}
		}
	}
}

// read reads what has to be stored of the group at switch sw.
func (w *World) read(sw int) {
	r := &w.switches[sw]
	if !r.storage.due {
		w.left.Store--
	}
	last := r.storage.durable
	if r.storage.number != 0 {
		last = r.storage.writing
	}
	n := record{hasSource: last.hasSource, source: last.source, at: last.at, failed: r.failed, changed: last.changed}
	if w.cfg.StoredChanges {
		for n.changed = uint8(r.form.changed); last.changed < n.changed; last.changed++ {
			for _, j := range w.cfg.Changes[last.changed].Join {
				n.at[j.Host] = mcast.Position{}
			}
		}
	}
	w.snapshot(sw, &w.before)
	for i := range w.hosts {
		if !w.before.Members[i].Live {
			n.absent |= 1 << i
		}
	}
	var p mcast.Positions
	number, ok := r.dev.Group(0).Positions(&p)
	if ok && number != 0 {
		n.hasSource, n.source, n.at = p.HasSource, 0, [maxFileHosts]mcast.Position{}
		if p.HasSource {
			n.source = uint8(r.host[p.Source])
		}
		for m, at := range p.Members {
			if at.Known || at.Joining {
				n.at[r.host[m]] = at
			}
		}
	}
	n.forget(n.absent)
	if n == last && r.storage.number == 0 && !r.storage.due {
		return
	}
	r.storage.writing, r.storage.number, r.storage.due = n, max(number, 1), false
}

// forget removes the positions of hosts that are no members.
func (n *record) forget(hosts uint8) {
	for i := range n.at {
		if hosts>>i&1 != 0 {
			n.at[i] = mcast.Position{}
			if n.hasSource && int(n.source) == i {
				n.hasSource, n.source = false, 0
			}
		}
	}
}

// positions returns the core's form of a record at a switch.
func (f *membership) positions(n *record) *mcast.Positions {
	p := &mcast.Positions{HasSource: n.hasSource, Members: make([]mcast.Position, len(f.host))}
	for m, i := range f.host {
		p.Members[m] = n.at[i]
		if n.hasSource && i == int(n.source) {
			p.Source = mcast.MemberID(m)
		}
	}
	return p
}

// stored makes what is being written durable; with fails it only seems to be.
func (w *World) stored(sw int, fails bool) {
	r := &w.switches[sw]
	n, number := r.storage.writing, r.storage.number
	told := r.storage.durable.changed
	if fails {
		w.outdated = true
	} else {
		r.storage.durable = n
	}
	r.storage.writing, r.storage.number = record{}, 0
	w.snapshot(sw, &w.before)
	w.stepOp = "durable"
	r.dev.PositionsStored(w.now, 0, number, r.positions(&n), &w.swOut)
	w.snapshot(sw, &w.after)
	w.forwarded(sw, nil)
	w.stepOp = ""
	if w.cfg.StoredChanges && !w.cfg.earlyAnswers {
		w.answered(sw, int(told), int(n.changed))
	}
}

// answered tells the hosts of the changes after the first from, and up to the first to, that these are
// made: a host that joins is promised data from now on, and one that leaves ends its queue pair.
func (w *World) answered(sw, from, to int) {
	for k := from; k < to; k++ {
		c := &w.cfg.Changes[k]
		w.promise(c, k+1)
		for _, i := range c.Leave {
			if !slices.ContainsFunc(w.cfg.Changes, func(x Change) bool { return x.joins(i) }) {
				w.kill(i)
			}
		}
	}
}

// repeats reports whether a host repeats a request at switch sw, which has made the change before a restart
// and had not answered.
func (w *World) repeats(sw int) bool {
	if !w.cfg.StoredChanges || !w.changeable(sw) {
		return false
	}
	c := &w.cfg.Changes[w.switches[sw].form.changed]
	return slices.ContainsFunc(c.Leave, func(i int) bool { return w.hosts[i].excluded }) ||
		slices.ContainsFunc(c.Join, func(j Join) bool { return w.hosts[j.Host].gen == 1 })
}

// undo takes back the changes after the first n, which a switch has lost by a restart: a host that was to
// join has no promise, and begins again.
func (w *World) undo(sw, n int) {
	if w.cfg.earlyAnswers {
		return
	}
	for k := n; k < w.switches[sw].form.changed; k++ {
		for _, j := range w.cfg.Changes[k].Join {
			h := &w.hosts[j.Host]
			h.excluded = true
			for s := range h.progress {
				h.progress[s].since = uint8(len(w.streams[s].frames))
			}
		}
	}
}

// Bits of the argument of restart and of store, above the switch.
const (
	withNewer = 1 << 2 // what was being written has become durable
	withLoss  = 1 << 3 // all packets on the way to the switch are lost
	fileFails = 1 << 2
)

// restart restarts switch sw.
func (w *World) restart(sw int, newer, loss bool) {
	r := &w.switches[sw]
	w.left.Restart--
	if newer {
		r.storage.durable = r.storage.writing
	}
	n := &r.storage.durable
	r.storage.writing, r.storage.number, r.storage.due = record{}, 0, false
	w.snapshot(sw, &w.before)
	for i := range w.hosts {
		h := &w.hosts[i]
		if h.evicted && n.absent>>i&1 == 0 && !h.broken() && w.before.HasSource && !h.progress[w.before.Source].lacks(w.count(int(w.before.Source), w.before.Acked)) {
			h.evicted = false // its eviction had not become durable, and it lacks nothing
		}
	}
	if loss {
		for l := range w.links {
			if k := &w.links[l]; int(k.to) == len(w.hosts)+sw && len(k.q) > 0 {
				w.corrupt(l)
				k.q = k.q[:0]
			}
		}
	}
	w.refused = w.refused || r.failed
	changed := r.form.changed
	if w.cfg.StoredChanges {
		w.undo(sw, int(n.changed))
		changed = int(n.changed)
	}
	r.failed, r.nakRank, r.nakPSN, r.held = false, 0, 0, r.held[:0]
	clear(r.legs)
	r.fast = newProgram(len(r.legs))
	f, spec, err := w.restartForm(sw, changed, n.absent)
	if err != nil {
		w.fault(sw, "%v", err)
		return
	}
	if w.cfg.Stored {
		spec.Resume = f.positions(n)
	}
	s := mcast.New(mcast.Limits{Groups: 1, Members: 8})
	w.stepOp, w.op = "restart", mcast.PutGroup{Spec: spec}
	f.dev = s
	if w.wrap != nil {
		f.dev = w.wrap(s, spec)
	}
	if err := f.dev.Apply(w.now, w.op, &w.swOut); err != nil {
		w.fault(sw, "%v", err)
		return
	}
	r.form = formKey{changed: changed, since: changed, absent: n.absent, restarted: true}
	r.membership, r.memberships[r.form] = f, f
	w.snapshot(sw, &w.before)
	w.snapshot(sw, &w.after)
	w.forwarded(sw, nil)
	w.stepOp, w.op = "", nil
	w.meetAgain(sw)
}

// restartForm returns the group as it is put after a number of changes and a restart, without a
// device, and its spec without positions.
func (w *World) restartForm(sw, changes int, absent uint8) (*membership, mcast.GroupSpec, error) {
	r := &w.switches[sw]
	spec := r.spec
	if w.cfg.Tree != Flat {
		f := w.formIn(sw, w.treeAfter(changes))
		spec.Tree = *w.place(sw, changes)
		spec.Tree.Running, spec.Tree.Rebuilt = true, w.layoutOf(changes) > 0
		w.fill(&spec, f)
		for k := range changes {
			for _, j := range w.cfg.Changes[k].Join {
				m := w.add(f, j)
				if int(m.Member.Leg) == len(spec.Legs) {
					spec.Legs = append(spec.Legs, m.Leg)
				}
				spec.Members = append(spec.Members, m.Member)
			}
		}
		return f, spec, nil
	}
	spec.Legs, spec.Members = nil, nil
	f := &membership{leg: slices.Repeat([]mcast.LegID{noLeg}, len(w.hosts)), near: make([]mcast.Neighbor, len(w.hosts))}
	for i := range w.hosts {
		if absent>>i&1 != 0 {
			continue
		}
		f.leg[i] = mcast.LegID(len(f.at))
		m := w.memberSpec(i, f.leg[i])
		if w.hosts[i].gen == 1 {
			j := w.cfg.fresh(i)
			m.QPN, m.RQPSN = qpn(i)+freshQPN, j.RQ
		}
		f.at, f.host, f.legNear = append(f.at, i), append(f.host, i), append(f.legNear, 0)
		spec.Legs, spec.Members = append(spec.Legs, legSpec(0)), append(spec.Members, m)
	}
	if len(f.host) < 2 {
		return nil, spec, fmt.Errorf("a group of %d members is put again", len(f.host))
	}
	return f, spec, nil
}

// restartable reports whether switch sw can restart with a record: the group is put again.
func (n *record) restartable(hosts int) bool {
	members := hosts
	for i := range hosts {
		members -= int(n.absent >> i & 1)
	}
	return !n.failed && members >= 2
}

func (n *record) encode(b []byte) []byte {
	b = append(b, flag(n.hasSource, 2)|flag(n.failed, 4), n.source, n.absent, n.changed)
	for i := range n.at {
		at := &n.at[i]
		b = append(b, flag(at.Known, 1)|flag(at.Joining, 2))
		if at.Known {
			b = append(b, byte(at.Send), byte(at.Send>>8), byte(at.Send>>16), byte(at.Receive), byte(at.Receive>>8), byte(at.Receive>>16))
		}
	}
	return b
}

func (n *record) decode(b []byte) []byte {
	*n = record{hasSource: b[0]&2 != 0, failed: b[0]&4 != 0, source: b[1], absent: b[2], changed: b[3]}
	b = b[4:]
	for i := range n.at {
		n.at[i].Known, n.at[i].Joining = b[0]&1 != 0, b[0]&2 != 0
		b = b[1:]
		if n.at[i].Known {
			n.at[i].Send, n.at[i].Receive = psnAt(b), psnAt(b[3:])
			b = b[6:]
		}
	}
	return b
}

func (s *storage) encode(b []byte) []byte {
	b = s.durable.encode(append(b, flag(s.due, 1), byte(s.number), byte(s.number>>8)))
	if s.number != 0 {
		b = s.writing.encode(b)
	}
	return b
}

func (s *storage) decode(b []byte) []byte {
	*s = storage{due: b[0] != 0, number: uint32(b[1]) | uint32(b[2])<<8}
	b = s.durable.decode(b[3:])
	if s.number != 0 {
		b = s.writing.decode(b)
	}
	return b
}

// formKey tells the memberships of a switch apart: the changes made, and after a restart the
// members with which the group was put.
type formKey struct {
	changed   int // changes made
	since     int // changes of these before the restart
	absent    uint8
	restarted bool
}

func (k formKey) encode(b []byte) []byte {
	return append(b, byte(k.changed), byte(k.since), k.absent, flag(k.restarted, 1))
}

func (k *formKey) decode(b []byte) []byte {
	*k = formKey{int(b[0]), int(b[1]), b[2], b[3]&1 != 0}
	return b[4:]
}
