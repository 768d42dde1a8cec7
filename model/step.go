// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// action is one step: its kind above, what it happens to in the low four bits.
type action uint8

// Kinds of action. The argument is a link for the first four, a node for fire,
// a host for the rest.
const (
	deliver action = iota << 4
	lose
	double
	reorder
	fire
	post
	start
	die
)

func (a action) kind() action { return a &^ 15 }
func (a action) arg() int     { return int(a & 15) }

// actions appends every step that is possible in w.
func (w *World) actions(as []action) []action {
	idle := true
	for i := range w.links {
		n := len(w.links[i].q)
		if n == 0 {
			continue
		}
		idle = false
		as = append(as, deliver|action(i))
		if !w.faulty(i) {
			continue
		}
		if w.left.Lose > 0 {
			as = append(as, lose|action(i))
		}
		if w.left.Double > 0 {
			as = append(as, double|action(i))
		}
		if w.left.Reorder > 0 && n > 1 {
			as = append(as, reorder|action(i))
		}
	}
	if at, ok := w.earliest(); ok && (idle || at <= w.now || w.left.Delay > 0) {
		for n := range len(w.hosts) + len(w.relays) {
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
	if w.mortal {
		as = append(as, die|action(len(w.hosts)-1))
	}
	return as
}

// faulty says whether link i may do anything wrong.
func (w *World) faulty(i int) bool {
	return !w.cfg.OneBranch || w.links[i].from == 1 || w.links[i].to == 1
}

// idleSource says whether host i has a stream that it has not begun to send.
func (w *World) idleSource(i int) bool {
	return i < maxSources && !w.hosts[i].started && len(w.streams[i].wrs) > 0
}

// mustWait says whether host i takes its turn only when it has all of A's
// stream, and does not yet.
func (w *World) mustWait(i int) bool {
	return w.cfg.Turns && int(w.hosts[i].got[0]) < len(w.streams[0].frames)
}

// fair returns what a network without faults does next, in one of two
// schedules; false if nothing is left to do.
func (w *World) fair(schedule int) (action, bool) {
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
	if armed {
		return timer(), true
	}
	return 0, false
}

// finished says whether all that was to be sent has been completed at its
// source and is at every member that lives and was not evicted.
func (w *World) finished() bool {
	for s := range w.streams {
		if len(w.streams[s].wrs) == 0 {
			continue
		}
		if !w.hosts[s].evicted && int(w.hosts[s].done) < len(w.streams[s].wrs) {
			return false
		}
		for i := range w.hosts {
			h := &w.hosts[i]
			if i != s && !h.dead && !h.evicted && int(h.got[s]) < len(w.streams[s].frames) {
				return false
			}
		}
	}
	return true
}

func (w *World) deadline(n int) (time.Duration, bool) {
	if n < len(w.hosts) {
		if w.hosts[n].dead {
			return 0, false
		}
		return w.hosts[n].qp.NextDeadline()
	}
	return w.relays[n-len(w.hosts)].dev.NextDeadline()
}

func (w *World) earliest() (at time.Duration, ok bool) {
	for n := range len(w.hosts) + len(w.relays) {
		if t, armed := w.deadline(n); armed && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// do takes one step. What it breaks is in w.wrong.
func (w *World) do(a action) {
	i := a.arg()
	if w.rec != nil {
		w.rec.step(w, a)
	}
	switch a.kind() {
	case deliver:
		w.take(i, 0)
	case lose:
		w.left.Lose--
		w.remove(i, 0)
	case double:
		w.left.Double--
		w.arrive(i, w.links[i].q[0])
	case reorder:
		w.left.Reorder--
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
		w.hosts[i].dead = true
		for l := range w.links {
			if w.links[l].to == node(i) {
				w.links[l].q = w.links[l].q[:0]
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
		}
		w.now = at
	}
	if n < len(w.hosts) {
		w.hosts[n].qp.Advance(w.now, &w.qpOut)
		w.served(n)
		return
	}
	sw := n - len(w.hosts)
	r := &w.relays[sw]
	r.dev.Snapshot(0, &w.before)
	r.dev.Advance(w.now, &w.swOut)
	r.dev.Snapshot(0, &w.after)
	w.forwarded(sw, nil)
}

func (w *World) idle() bool {
	for i := range w.links {
		if len(w.links[i].q) > 0 {
			return false
		}
	}
	return true
}

// toSwitch is the driver of a switch: it verifies only when asked to.
func (w *World) toSwitch(sw, l int, p packet) {
	r := &w.relays[sw]
	in := mcast.Packet{
		Group: groupIP, DestQP: groupQPN, Src: hostIP(int(w.links[l].from)), Neighbor: w.links[l].nbr,
		Op: rocev2.Acknowledge, PSN: p.psn, Syndrome: p.syndrome, AckReq: p.ackReq,
	}
	if !p.feedback {
		f := &w.streams[p.source].frames[p.index]
		in.Src, in.Op, in.Payload = hostIP(int(p.source)), f.op, uint16(len(f.payload))
		in.Frame, in.Bytes = r.newHandle(&p), frameBytes
		if f.op.Is(rocev2.OpRETH) {
			in.VA, in.RKey, in.DMALen = w.streams[p.source].wrs[f.msg].VA, groupKey, f.dmaLen
		}
	} else if in.Neighbor != 0 {
		in.Src = hostIP(int(p.source)) // between switches feedback names the source it is for
	}
	r.dev.Snapshot(0, &w.before)
	r.dev.Input(w.now, &in, &w.swOut)
	if w.swOut.NeedVerify {
		if o := &w.swOut; len(o.Copies)+len(o.Feedback)+len(o.Events) > 0 {
			w.fault(sw, "NeedVerify together with effects")
		}
		in.Verified = true
		r.dev.Input(w.now, &in, &w.swOut)
	}
	r.dev.Snapshot(0, &w.after)
	w.forwarded(sw, &in)
}

// forwarded does what a switch says.
func (w *World) forwarded(sw int, in *mcast.Packet) {
	r, o := &w.relays[sw], &w.swOut
	if w.rec != nil {
		w.rec.served(w, sw, in, o)
	}
	if !w.hold(sw, in) {
		return
	}
	if !w.endToEnd {
		w.checkSwitch(sw, in)
	}
	for _, e := range o.Events {
		switch e.Kind {
		case mcast.MemberEvicted:
			w.hosts[e.Member].evicted = true
			w.checkEvicted(sw, int(e.Member))
		case mcast.SourceChanged:
		default:
			w.fault(sw, "event of kind %d for %s, syndrome %#x: no group here may fail", e.Kind, name(int(e.Member)), uint8(e.Syndrome))
		}
	}
	for i := range o.Copies {
		c := &o.Copies[i]
		p := frameOf(c.Frame)
		p.psn, p.ackReq = c.PSN, p.ackReq || c.Flags&mcast.SetAckReq != 0
		if !w.endToEnd {
			w.checkPSN(sw, c, &p)
		}
		if c.Flags&mcast.SetRETH != 0 {
			p.reth, p.va, p.rkey = true, c.VA, c.RKey
		}
		w.send(r.out[c.Leg], p)
	}
	w.release(sw)
	for i := range o.Feedback {
		f := &o.Feedback[i]
		w.send(r.out[r.leg[f.To]], packet{feedback: true, source: uint8(f.To), psn: f.PSN, syndrome: f.Syndrome})
	}
}
