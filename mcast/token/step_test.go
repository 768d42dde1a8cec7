// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"math"
	"slices"
)

// kind is the kind of an action. The fair schedule takes those that come first.
type kind uint8

const (
	notice  kind = iota // a is told that a neighbour is up or cut: link a, end b
	deliver             // link a, direction b, message c
	begin               // member a sends the first packet of its message
	spread              // the message of the source passes link a in direction b
	rest                // the message is complete
	rested              // switch a is told that its source is at rest
	knock               // member a's first packet is rejected at its switch
	remove              // the switch below link a is taken out of the tree
	resend              // end b of link a repeats its report
	restore             // link a works again
	want                // member a has something to send
	lose                // the first message of link a, direction b
	double
	restart // switch a
	cut     // link a
	leave   // member a
	miss    // switch a: the source does not come
	move    // the switch below link a is attached elsewhere
)

func (k kind) String() string {
	return [...]string{"notice", "deliver", "begin", "spread", "rest", "rested", "knock", "remove", "resend", "restore", "want", "lose", "double", "restart", "cut", "leave", "miss", "move"}[k]
}

type action struct {
	kind    kind
	a, b, c uint8
}

func (a action) String() string { return fmt.Sprintf("%v %d %d %d", a.kind, a.a, a.b, a.c) }

// actions returns all that can happen next, the fair step first if there is one.
func (w *world) actions() (all []action, fair int) {
	if w.lost {
		return nil, 0
	}
	add := func(k kind, a, b, c int) { all = append(all, action{k, uint8(a), uint8(b), uint8(c)}) }
	for c := 1; c < len(w.links); c++ {
		for end := range 2 {
			if l := &w.links[c]; l.up[end] || l.cut[end] {
				add(notice, c, end, 0)
			}
		}
	}
	for c := 1; c < len(w.links); c++ {
		for d, in := range w.links[c].in {
			if len(in) > 0 {
				add(deliver, c, d, 0)
			}
		}
	}
	for k := 1; k < len(w.hosts); k++ {
		if h := &w.hosts[k]; h.asking && w.mayBegin(Member(k)) {
			add(begin, k, 0, 0)
		}
	}
	for c := 1; c < len(w.links); c++ {
		for d := range 2 {
			if w.maySpread(c, d) {
				add(spread, c, d, 0)
			}
		}
	}
	if w.mayRest() {
		add(rest, 0, 0, 0)
	}
	for s, m := range w.m {
		if m.serving != NoMember && m.wanted && w.mid != m.serving && !w.hosts[m.serving].asking {
			add(rested, s, 0, 0)
		}
	}
	for k := 1; k < len(w.hosts); k++ {
		if w.mayKnock(Member(k)) {
			add(knock, k, 0, 0)
		}
	}
	for c := 1; c < len(w.links); c++ {
		if l := &w.links[c]; l.old != 0 || l.down && !l.removed && w.Remove > 0 {
			add(remove, c, 0, 0)
		}
	}
	for c := 1; c < len(w.links); c++ {
		for end, e := range w.ends(c) {
			if l := &w.links[c]; !l.down && e != nil && e.unacknowledged() && (w.Delay > 0 || len(l.in[0])+len(l.in[1]) == 0) {
				add(resend, c, end, 0)
			}
		}
	}
	for c := 1; c < len(w.links); c++ {
		if l := &w.links[c]; l.down && (!l.removed || w.tree.rejoin) {
			add(restore, c, 0, 0)
		}
	}
	for k := 1; k < len(w.hosts); k++ {
		if h := &w.hosts[k]; h.turns > 0 && !h.asking && !h.left {
			add(want, k, 0, 0)
		}
	}
	return w.faults(all), len(all)
}

// faults appends what may go wrong.
func (w *world) faults(all []action) []action {
	add := func(k kind, a, b, c int) { all = append(all, action{k, uint8(a), uint8(b), uint8(c)}) }
	for c := 1; c < len(w.links); c++ {
		l := &w.links[c]
		for d, in := range l.in {
			if len(in) > 1 && w.Reorder > 0 {
				add(deliver, c, d, 1)
			}
			if len(in) > 0 && w.Lose > 0 {
				add(lose, c, d, 0)
			}
			if len(in) > 0 && w.Duplicate > 0 {
				add(double, c, d, 0)
			}
		}
		if w.Cut > 0 && !l.down {
			add(cut, c, 0, 0)
		}
	}
	if c := w.tree.moves; w.Move > 0 && w.above[c] != w.tree.to {
		add(move, c, 0, 0)
	}
	for s, m := range w.m {
		if w.Restart > 0 {
			add(restart, s, 0, 0)
		}
		if w.Miss > 0 && m.serving != NoMember && m.wanted && w.mid != m.serving && w.hosts[m.serving].asking {
			add(miss, s, 0, 0)
		}
	}
	for k := 1; k < len(w.hosts); k++ {
		if h := &w.hosts[k]; w.Leave > 0 && !h.left && w.mid != Member(k) {
			add(leave, k, 0, 0)
		}
	}
	return all
}

// in reports whether a switch is in the tree: no leg on its way to the root is removed.
func (w *world) in(s int) bool {
	for ; s > 0; s = w.above[s] {
		if w.links[s].removed {
			return false
		}
	}
	return true
}

func (w *world) machineOf(k Member) *Machine { return w.m[w.tree.members[k]] }

func (w *world) mayBegin(k Member) bool {
	return w.in(w.tree.members[k]) && w.machineOf(k).serving == k && !w.got[w.tree.members[k]]
}

// maySpread reports whether the source's data passes link c in direction d: it comes to
// one end, and the other one takes it.
func (w *world) maySpread(c, d int) bool {
	from, to := w.above[c], c
	if d == 1 {
		from, to = to, from
	}
	if l := &w.links[c]; w.mid == NoMember || l.down || !w.got[from] || w.got[to] || !w.m[to].Accepts(legAt(c, 1-d)) {
		return false
	}
	if w.m[from].serving == w.mid {
		return true
	}
	leg := place{w, from}.Locate(w.mid)
	return leg != legAt(c, d) && w.m[from].Accepts(leg)
}

func (w *world) mayRest() bool {
	if w.mid == NoMember || w.machineOf(w.mid).serving != w.mid {
		return false
	}
	for s, got := range w.got {
		if !got && w.in(s) {
			return false
		}
	}
	return true
}

// mayKnock reports whether member k repeats a first packet that its switch has not noted.
func (w *world) mayKnock(k Member) bool {
	m := w.machineOf(k)
	if !w.hosts[k].asking || m.serving == k {
		return false
	}
	for _, q := range m.queue {
		if q.member == k {
			return false
		}
	}
	return true
}

// do takes a step. out is the machines' answer.
func (w *world) do(a action) {
	var out Output
	c, k := int(a.a), Member(a.a)
	l := &w.links[min(c, len(w.links)-1)]
	switch a.kind {
	case deliver, double:
		msg := l.in[a.b][a.c]
		if a.kind == double {
			w.Duplicate--
		} else {
			w.Reorder -= a.c
			l.in[a.b] = slices.Concat(l.in[a.b][:a.c], l.in[a.b][a.c+1:])
		}
		end := 1 - int(a.b)
		to := w.above[c]
		if end == 1 {
			to = c
		}
		if w.touch(to).Receive(0, legAt(c, end), &msg, &out) == Contradictory {
			w.wrong = "a message contradicts where the token is"
		}
		w.send(to, &out)
	case lose:
		w.Lose--
		l.in[a.b] = l.in[a.b][1:]
	case resend:
		if len(l.in[0])+len(l.in[1]) > 0 {
			w.Delay--
		}
		s := w.above[c]
		if a.b == 1 {
			s = c
		}
		m := w.touch(s)
		m.eachEdge(func(e *edge) {
			if e.deadline = math.MaxInt64; e.leg == legAt(c, int(a.b)) {
				e.deadline = 0
			}
		})
		m.Advance(0, &out)
		w.send(s, &out)
	case notice:
		s := w.above[c]
		if a.b == 1 {
			s = c
		}
		if l.cut[a.b] {
			w.touch(s).Cut(0, legAt(c, int(a.b)), &out)
		} else {
			w.touch(s).Up(0, legAt(c, int(a.b)), l.session, &out)
		}
		l.cut[a.b], l.up[a.b] = false, false
		w.send(s, &out)
	case begin:
		if w.mid != NoMember && w.mid != k {
			w.wrong = fmt.Sprintf("member %d begins a message within that of member %d", k, w.mid)
		}
		w.mid, w.got[w.tree.members[k]] = k, true
	case spread:
		if a.b == 0 {
			w.got[c] = true
		} else {
			w.got[w.above[c]] = true
		}
	case rest:
		w.hosts[w.mid].turns--
		w.hosts[w.mid].asking, w.mid = false, NoMember
		clear(w.got)
	case rested, miss:
		if a.kind == miss {
			w.Miss--
		}
		w.touch(c).Rested(0, &out)
		w.send(c, &out)
	case knock, want:
		w.hosts[k].asking = true
		s := w.tree.members[k]
		w.touch(s).Request(0, k, &out)
		w.send(s, &out)
	case leave:
		w.Leave--
		w.leave(k)
	default:
		w.change(a)
	}
	for again := w.tree.eager; again; {
		again = false
		for c := 1; c < len(w.links); c++ {
			for d := range 2 {
				if w.maySpread(c, d) {
					w.got[c] = w.got[c] || d == 0
					w.got[w.above[c]] = w.got[w.above[c]] || d == 1
					again = true
				}
			}
		}
	}
	w.check()
}

// change takes a step that changes the tree.
func (w *world) change(a action) {
	var out Output
	c := int(a.a)
	l := &w.links[c]
	switch a.kind {
	case cut:
		w.Cut--
		l.down, l.up, l.cut, l.in = true, [2]bool{}, [2]bool{true, true}, [2][]Message{}
	case restore:
		if l.removed { // it comes back as a switch that has just started
			l.removed = false
			w.renew(c)
		}
		l.down, l.cut, l.up = false, [2]bool{}, [2]bool{true, true}
		l.session++
	case move: // the new parent takes the switch in before the old one removes it
		w.Move--
		l.old, w.above[c] = w.above[c], w.tree.to
		l.down, l.cut, l.up, l.in = false, [2]bool{}, [2]bool{false, true}, [2][]Message{}
		l.session++
		w.touch(w.tree.to).Up(0, Leg(c), l.session, &out)
		w.send(w.tree.to, &out)
	case remove:
		if old := l.old; old != 0 {
			l.old = 0
			w.touch(old).Remove(0, Leg(c), &out)
			w.send(old, &out)
			return
		}
		w.Remove--
		l.removed, l.cut[0], l.up[0] = true, false, false
		if w.mid != NoMember && !w.in(w.tree.members[w.mid]) {
			for s, got := range w.got {
				w.lost = w.lost || got && w.in(s) // the source is removed with data in flight
			}
			w.mid = NoMember
			clear(w.got)
		}
		w.touch(w.above[c]).Remove(0, Leg(c), &out)
		w.send(w.above[c], &out)
	case restart:
		w.Restart--
		w.restart(c)
	}
}

func (w *world) restart(s int) {
	w.got[s] = false
	w.m[s] = w.fresh(s)
	for c := 1; c < len(w.links); c++ {
		if l := &w.links[c]; (c == s || w.above[c] == s) && !l.down {
			l.session++
			l.up, l.cut = [2]bool{true, true}, [2]bool{}
		}
	}
}

// renew makes all new behind link c: the switches, and the hosts' queue pairs.
func (w *world) renew(c int) {
	for s := range w.m {
		for up := s; up > 0; up = w.above[up] {
			if up == c {
				w.restart(s)
				for k, at := range w.tree.members {
					w.hosts[k].asking = w.hosts[k].asking && at != s
				}
				break
			}
		}
	}
}

func (w *world) leave(k Member) {
	w.hosts[k] = host{left: true}
	for s := range w.m {
		var out Output
		w.touch(s).Leave(0, k, &out)
		w.send(s, &out)
	}
}

// put appends a message to a link. Of the same report only the newest message is on the
// way, and an acknowledgement without news arrives at once.
func (w *world) put(c, d int, msg Message) {
	in := &w.links[c].in[d]
	to := w.ends(c)[1-d]
	if to != nil && to.session == msg.Session && msg.Seq <= to.received && !msg.Poll {
		s := c
		if d == 1 {
			s = w.above[c]
		}
		var out Output
		w.touch(s).Receive(0, legAt(c, 1-d), &msg, &out)
		w.send(s, &out)
		return
	}
	if n := len(*in); n > 0 && (*in)[n-1].Session == msg.Session && (*in)[n-1].Seq == msg.Seq {
		*in = slices.Clone(*in)
		msg.Poll = msg.Poll || (*in)[n-1].Poll
		(*in)[n-1] = msg
		return
	}
	*in = append((*in)[:len(*in):len(*in)], msg)
}

// send puts a machine's messages on their links, and notes whom it serves.
func (w *world) send(s int, out *Output) {
	for _, o := range out.Messages {
		c, d := int(o.Leg), 0
		if o.Leg == Parent {
			c, d = s, 1
		}
		if !w.links[c].down {
			w.put(c, d, o.Message)
		}
	}
	for _, a := range out.Actions {
		if a.Kind == Serve {
			w.serves(a.Member)
		}
	}
}
