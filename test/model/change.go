// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// Change is an update of the members by the control plane: first removals, then joins.
type Change struct {
	Leave []int // hosts
	Join  []Join
	// Again registers the whole group again, with the first numbers.
	Again bool
	// Rebuilt makes the group's tree into To, with the same members but for Leave and Join.
	Rebuilt bool
	To      Tree
}

// Join is the join of a host.
type Join struct {
	Host    int
	Numbers NumbersKind
	RQ      rocev2.PSN // Fresh: the first PSN that the new queue pair expects
	Slot    int        // the host, which has left, whose leg this host takes over; 0: none
}

// NumbersKind is the origin of the numbers that a joining host is registered with.
type NumbersKind uint8

// Numbers of a joining host.
const (
	// FreshNumbers is a new queue pair.
	FreshNumbers NumbersKind = iota
	// QueriedNumbers is a queue pair that continues, with its current numbers: no packet
	// is on the way to it, and it is not in the middle of a message.
	QueriedNumbers
	// EarlyNumbers is QueriedNumbers without these two conditions.
	EarlyNumbers
	// OldNumbers is a queue pair that continues, registered with the numbers of its first
	// registration.
	OldNumbers
)

// joins reports whether host i joins.
func (c *Change) joins(i int) bool {
	return slices.ContainsFunc(c.Join, func(j Join) bool { return j.Host == i })
}

// String describes a change.
func (c *Change) String() string {
	var s []string
	if c.Again {
		s = append(s, "the group is put again")
	}
	if c.Rebuilt {
		s = append(s, fmt.Sprintf("the tree becomes %v", c.To))
	}
	for _, h := range c.Leave {
		s = append(s, name(h)+" is removed")
	}
	for _, j := range c.Join {
		t := fmt.Sprintf("%s joins with %s", name(j.Host), [...]string{"a fresh queue pair rq=" + notation.PSN(j.RQ), "its numbers", "numbers read in haste", "old numbers"}[j.Numbers])
		if j.Slot > 0 {
			t += " on the leg of " + name(j.Slot)
		}
		s = append(s, t)
	}
	return strings.Join(s, " and ")
}

// none stands for an unknown index.
const none = 0xFF

// progress is the set of packets of one source that a host has executed: those below
// before, in an earlier membership, and those from first to got-1. The packets from since
// on are promised to it.
type progress struct{ before, first, got, since uint8 }

// has reports whether packet n was executed.
func (p *progress) has(n int) bool {
	return n < int(p.before) || p.first != none && int(p.first) <= n && n < int(p.got)
}

// lacks reports whether one of the packets below n is promised and not executed.
func (p *progress) lacks(n int) bool {
	return n > int(p.since) && (p.first == none || p.first > p.since || int(p.got) < n)
}

// next reports whether packet n, of stream st, is the next to execute.
func (p *progress) next(st *stream, n int) bool {
	return n == int(p.got) || p.first == none && n > int(p.got) && slices.Contains(st.starts, n)
}

// accept records that packet n, the next one, was executed. A packet sent before the host
// was removed may arrive when the host is a member again.
func (p *progress) accept(n int) {
	switch {
	case p.first == none && n < int(p.since):
		p.before = uint8(n) + 1
	case p.first == none:
		p.first = uint8(n)
	}
	p.got = uint8(n) + 1
}

// membership is the group at a switch after a number of changes.
type membership struct {
	dev  Device
	host []int         // hosts by MemberID
	leg  []mcast.LegID // legs by host
	at   []int         // a host, by leg: of a connected one, the host there
	// near is the neighbour by host, as Tree.near returns it, and legNear that by leg.
	near, legNear []mcast.Neighbor
}

// changeable reports whether the next change can be made at switch sw.
func (w *World) changeable(sw int) bool {
	r := &w.switches[sw]
	if r.form.changed == len(w.cfg.Changes) || r.failed || !w.commits(sw) {
		return false
	}
	if w.cfg.earlyAnswers && w.restarted() {
		return false // nobody repeats a request that has an answer
	}
	for _, j := range w.cfg.Changes[r.form.changed].Join {
		h := &w.hosts[j.Host]
		if h.dead || w.home[j.Host] != sw { // the conditions hold at the host's own switch
			continue
		}
		switch j.Numbers {
		case FreshNumbers: // all packets of its old queue pair have arrived before its registration
			if len(w.links[h.up].q) > 0 {
				return false
			}
		case QueriedNumbers:
			if len(w.links[h.up].q)+len(w.links[r.down[j.Host]].q) > 0 || w.midMessage(j.Host) {
				return false
			}
		}
	}
	return true
}

// midMessage reports whether host i has executed a part of a message only.
func (w *World) midMessage(i int) bool {
	for s := range w.streams {
		p := &w.hosts[i].progress[s]
		if n := int(p.got); n > 0 && !w.streams[s].frames[n-1].end {
			return true
		}
	}
	return false
}

// change makes the next change at switch sw.
func (w *World) change(sw int) {
	r := &w.switches[sw]
	c := &w.cfg.Changes[r.form.changed]
	w.recall(sw)
	for w.switches[sw].fast.unsent() != nil {
		w.fastStep(sw, sendStep) // before the tables of the legs change, the driver waits for the hold
	}
	w.snapshot(sw, &w.before)
	w.leave(c)
	for i := range w.hosts {
		if h := &w.hosts[i]; c.Again {
			h.misnumbered = h.qp.ExpectedPSN() != w.cfg.host(i).RQ || len(w.links[r.down[i]].q) > 0
		}
	}
	for _, j := range c.Join {
		w.renumber(sw, j)
	}
	op, f := w.operation(sw, r.membership, r.form.changed, &w.before)
	delete(r.memberships, r.form) // the membership differs from here on
	r.form.changed++
	r.membership, r.memberships[r.form] = f, f
	if op == nil {
		return
	}
	if err := f.dev.Apply(w.now, op, &w.swOut); err != nil {
		w.fault(sw, "%v: %v", c, err)
		return
	}
	w.registered(sw, c)
	w.snapshot(sw, &w.after)
	if c.Again {
		clear(r.legs)
		r.nakRank, r.nakPSN = 0, 0
	}
	w.noteTop(sw)
	if !w.cfg.StoredChanges {
		w.promise(c, r.form.changed)
	} else if w.cfg.earlyAnswers {
		w.answered(sw, r.form.changed-1, r.form.changed)
	}
	w.checkLeft(sw, c)
	w.op = op
	w.forwarded(sw, nil)
	w.op = nil
	if c.Rebuilt {
		w.meetAll(sw)
	}
}

// leave ends the membership of the hosts that c removes, when the change reaches the
// first switch.
func (w *World) leave(c *Change) {
	for _, i := range c.Leave {
		h := &w.hosts[i]
		h.excluded = true
		if len(w.cfg.stream(i)) > 0 {
			w.kill(i) // a source that is removed sends no more
		}
	}
}

// renumber gives a joining host, at its own switch, the queue pair that it registers.
func (w *World) renumber(sw int, j Join) {
	h := &w.hosts[j.Host]
	if w.home[j.Host] != sw {
		return
	}
	for s := range h.progress {
		p := &h.progress[s]
		if p.first != none {
			p.before, p.first = p.got, none
		}
		p.since = uint8(len(w.streams[s].frames)) // until promise, or until a packet is sent to it
	}
	h.misnumbered = false
	switch j.Numbers {
	case FreshNumbers:
		if w.cfg.StoredChanges && h.gen == 1 { // its registration is repeated after a restart
			h.misnumbered = h.qp.ExpectedPSN() != j.RQ || len(w.links[w.switches[sw].down[j.Host]].q) > 0
			return
		}
		for s := range h.progress { // the unfinished message of its old queue pair is void
			h.progress[s].got = uint8(w.streams[s].startFrom(int(h.progress[s].got)))
		}
		h.gen = 1
		h.qp = h.qps[1]
		if _, err := h.qp.SetState(h.fresh, w.now, h.posted); err != nil {
			w.fault(-1, "host %s: %v", name(j.Host), err)
		}
		for id := w.receives(j.Host); id < len(h.bufs)-int(h.withheld); id++ {
			if err := h.qp.PostRecv(h.posted.Recv(uint64(id))); err != nil {
				w.fault(-1, "host %s: %v", name(j.Host), err)
			}
		}
	case EarlyNumbers:
		h.misnumbered = len(w.links[w.switches[sw].down[j.Host]].q) > 0 || w.midMessage(j.Host)
	case OldNumbers:
		h.misnumbered = h.qp.ExpectedPSN() != w.cfg.host(j.Host).RQ || len(w.links[w.switches[sw].down[j.Host]].q) > 0 || w.midMessage(j.Host)
	}
}

// operation returns the core's operation for change k at switch sw with membership f, nil for
// none, and the membership after it.
func (w *World) operation(sw int, f *membership, k int, st *mcast.GroupStatus) (mcast.Op, *membership) {
	r, c := &w.switches[sw], &w.cfg.Changes[k]
	if c.Again {
		return mcast.PutGroup{Spec: r.spec}, f
	}
	if t := w.treeAfter(k + 1); f.near == nil || !t.has(sw) {
		return w.comeOrGo(sw, f, t, k+1)
	}
	n := &membership{
		dev: f.dev, host: slices.Clone(f.host), leg: slices.Clone(f.leg), at: slices.Clone(f.at),
		near: w.treeAfter(k+1).near(sw, w.home), legNear: slices.Clone(f.legNear),
	}
	op := mcast.UpdateMembers{}
	if c.Rebuilt {
		op.Tree = w.place(sw, k+1)
		op.Move = n.move(c)
	}
	for _, i := range c.Leave {
		if st.Members[i].Live { // the switch may have removed the member already
			op.Remove = append(op.Remove, f.member(i))
		}
	}
	for _, j := range c.Join {
		op.Add = append(op.Add, w.add(n, j))
	}
	return op, n
}

// add adds the member of a join to a membership.
func (w *World) add(f *membership, j Join) mcast.AddMember {
	at := f.join(j)
	m := w.memberSpec(j.Host, at)
	if len(w.switches) > 1 { // no number is used twice
		m.Number = uint32((1+slices.IndexFunc(w.cfg.Changes, func(x Change) bool { return slices.Contains(x.Join, j) }))*len(w.hosts) + j.Host + 1)
	}
	switch j.Numbers {
	case FreshNumbers:
		m.QPN, m.RQPSN = qpn(j.Host)+freshQPN, j.RQ
	case QueriedNumbers, EarlyNumbers:
		m.RQPSN = w.hosts[j.Host].qp.ExpectedPSN()
	}
	return mcast.AddMember{Member: m, Leg: legSpec(f.near[j.Host])}
}

// join adds a member, and returns its leg: that of j.Slot, or the host's former leg, or a
// new one.
func (f *membership) join(j Join) mcast.LegID {
	nbr := f.near[j.Host]
	switch {
	case nbr != 0: // one more member behind the leg to its switch
		f.leg[j.Host] = f.legTo(nbr)
		f.host = append(f.host, j.Host)
		return f.leg[j.Host]
	case j.Slot > 0 || slices.Contains(f.host, j.Host):
		old := max(j.Slot, 0)
		if j.Slot == 0 {
			old = j.Host
		}
		f.host[f.member(old)] = j.Host
		f.leg[j.Host] = f.leg[old]
	default:
		f.leg[j.Host] = mcast.LegID(len(f.at))
		f.at, f.legNear = append(f.at, 0), append(f.legNear, 0)
		f.host = append(f.host, j.Host)
	}
	f.at[f.leg[j.Host]] = j.Host
	return f.leg[j.Host]
}

// member returns the latest MemberID of host i.
func (f *membership) member(i int) mcast.MemberID {
	for m := len(f.host) - 1; m >= 0; m-- {
		if f.host[m] == i {
			return mcast.MemberID(m)
		}
	}
	panic("model: no member")
}

// formAt returns the membership at switch sw of a form, with a device for it in an
// unspecified state.
func (w *World) formAt(sw int, key formKey) (*membership, error) {
	r := &w.switches[sw]
	if f := r.memberships[key]; f != nil {
		return f, nil
	}
	f, spec := w.firstForm(sw), r.spec
	if key.restarted {
		var err error
		if f, spec, err = w.restartForm(sw, key.since, key.absent); err != nil {
			return nil, err
		}
		if w.cfg.Stored {
			spec.Resume = f.positions(&record{})
		}
	}
	s := mcast.New(mcast.Limits{Groups: 1, Members: 8})
	var out mcast.Output
	if f.near != nil {
		if err := s.Apply(w.now, mcast.PutGroup{Spec: spec}, &out); err != nil {
			return nil, err
		}
	}
	f.dev = s
	if w.wrap != nil {
		f.dev = w.wrap(s, spec)
	}
	var st mcast.GroupStatus
	for k := key.since; k < key.changed; k++ {
		f.look(&st, len(w.hosts))
		op, next := w.operation(sw, f, k, &st)
		if op != nil {
			if err := f.dev.Apply(w.now, op, &out); err != nil {
				return nil, err
			}
		}
		f = next
	}
	r.memberships[key] = f
	return f, nil
}

// snapshot takes a snapshot of switch sw, with members in the order of the hosts.
func (w *World) snapshot(sw int, st *mcast.GroupStatus) { w.switches[sw].look(st, len(w.hosts)) }

func (f *membership) look(st *mcast.GroupStatus, hosts int) {
	if !f.dev.Group(0).Snapshot(st) {
		*st = mcast.GroupStatus{Members: slices.Grow(st.Members[:0], hosts)[:hosts]}
		clear(st.Members)
		return
	}
	n := len(st.Members)
	if slices.IsSorted(f.host) && n == hosts {
		return
	}
	var buf [2 * maxHosts]mcast.MemberStatus
	ms := append(buf[:0], st.Members...)
	if st.HasSource {
		st.Source = mcast.MemberID(f.host[st.Source])
	}
	st.Members = st.Members[:0]
	for i := range hosts {
		var m mcast.MemberStatus
		for k := n - 1; k >= 0; k-- {
			if f.host[k] == i {
				m = ms[k]
				break
			}
		}
		st.Members = append(st.Members, m)
	}
}

// promise records the packets promised to the hosts that c adds, once every switch has
// made the change: the first message that begins after all data that a switch has
// forwarded, and all later ones.
func (w *World) promise(c *Change, number int) {
	var top [maxSources]uint8
	for sw := range w.switches {
		r := &w.switches[sw]
		if r.form.changed < number {
			return
		}
		for s := range top {
			top[s] = max(top[s], r.top[s])
		}
	}
	for _, j := range c.Join {
		h := &w.hosts[j.Host]
		h.excluded, h.evicted, h.corrupted = false, false, false
		for s := range h.progress {
			if !w.cfg.Probe || w.cfg.Policy != mcast.Quorum { // otherwise it counts from the first packet that is sent to it
				h.progress[s].since = min(h.progress[s].since, uint8(w.streams[s].startFrom(int(top[s]))))
			}
		}
	}
}
