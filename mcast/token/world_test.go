// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A world is a tree of switches with their machines, the hosts of the members, and the
// edges with the messages on them. Each of its steps is an action.

// tree is the arrangement of a scenario: of each switch the one above it, and of each
// member, from 1, its switch. Switch 0 is the root.
type tree struct {
	above   []int
	members []int
	rejoin  bool // a switch that was removed comes back
	eager   bool // data passes a link as soon as it may
	moves   int  // the switch that may be attached elsewhere, to the switch to
	to      int
}

// bounds limit what may go wrong, each in total.
type bounds struct{ Lose, Duplicate, Reorder, Delay, Restart, Cut, Remove, Leave, Miss, Move uint8 }

// link is the edge between a switch and the one above it. Of its pairs the first is
// the direction toward the child, or the parent's end.
type link struct {
	session uint64
	down    bool // nothing passes
	removed bool // the child is out of the tree
	old     int  // where the child was attached before, and has not been removed yet; 0: nowhere
	up, cut [2]bool
	in      [2][]Message
}

type host struct {
	turns  uint8 // messages still to be sent
	asking bool  // the first packet of a message has been sent, and the message is not complete
	left   bool
}

// Sizes of the largest tree.
const (
	maxSwitches = 7
	maxMembers  = 1 + 4
)

type world struct {
	tree  *tree
	above []int
	m     []*Machine // clones share machines that have not been touched since
	own   [maxSwitches]bool
	links []link // edges by child; 0 is of no use
	hosts []host // hosts by member
	mid   Member // the source of the message that has begun and is not complete
	got   []bool // the switches that have forwarded a part of it
	lost  bool   // the group has failed: nobody can complete the message
	bounds
	placed   []Term // the terms in which members' requests have come to be in every queue on their way
	overtook [][maxMembers]bool
	wrong    string

	memory struct {
		above    [maxSwitches]int
		m        [maxSwitches]*Machine
		links    [maxSwitches]link
		hosts    [maxMembers]host
		got      [maxSwitches]bool
		placed   [maxMembers]Term
		overtook [maxMembers][maxMembers]bool
	}
}

// slice makes the world's slices refer to its own memory.
func (w *world) slice() {
	n, k, x := len(w.tree.above), len(w.tree.members), &w.memory
	w.above = x.above[:n]
	w.m, w.links, w.got = x.m[:n], x.links[:n], x.got[:n]
	w.hosts, w.placed, w.overtook = x.hosts[:k], x.placed[:k], x.overtook[:k]
}

// place is a machine's switch.
type place struct {
	w *world
	s int
}

func (p place) Locate(k Member) Leg {
	if int(k) >= len(p.w.hosts) || p.w.hosts[k].left { // a fuzzed report names any member
		return Nowhere
	}
	for s, below := p.w.tree.members[k], Here; s >= 0; s = p.w.above[s] {
		if s == p.s {
			return below
		}
		below = Leg(s)
	}
	return Parent
}

func (p place) Unfinished() (k Member, certain bool) {
	if p.w.got[p.s] {
		return p.w.mid, true
	}
	return NoMember, false
}

func newWorld(t *tree, b bounds, turns uint8) *world {
	w := &world{tree: t, bounds: b}
	w.slice()
	copy(w.above, t.above)
	for i := range w.hosts[1:] {
		w.hosts[1+i].turns = turns
	}
	for s := range w.m {
		w.m[s] = w.fresh(s)
		if s > 0 {
			w.links[s] = link{session: 1, up: [2]bool{true, true}}
		}
	}
	return w
}

func (w *world) fresh(s int) *Machine {
	var children []Leg
	for c, above := range w.above {
		if above == s && !w.links[c].removed {
			children = append(children, Leg(c))
		}
	}
	w.own[s] = true
	return New(Config{Root: s == 0, Children: children, Switch: place{w, s}})
}

// clone copies the world.
func (w *world) clone() *world {
	c := *w
	c.slice()
	c.own = [maxSwitches]bool{}
	return &c
}

// touch returns a machine that may be changed.
func (w *world) touch(s int) *Machine {
	if !w.own[s] {
		x := *w.m[s]
		x.queue, x.children = slices.Clone(x.queue), slices.Clone(x.children)
		w.m[s], w.own[s] = &x, true
	}
	w.m[s].cfg.Switch = place{w, s}
	return w.m[s]
}

// encode is the world's state, without what influences nothing: sequence numbers count
// from what the other end has received, crossings from the parent's end.
func (w *world) encode(b []byte) []byte {
	flag := func(fs ...bool) {
		var v byte
		for i, f := range fs {
			if f {
				v |= 1 << i
			}
		}
		b = append(b, v)
	}
	b = append(b, byte(w.mid), w.Lose, w.Duplicate, w.Reorder, w.Delay, w.Restart, w.Cut, w.Remove, w.Leave, w.Miss, w.Move)
	flag(w.lost)
	flag(w.got...)
	for k := range w.overtook {
		flag(w.placed[k] != 0)
		flag(w.overtook[k][:]...)
	}
	for _, h := range w.hosts {
		b = append(b, h.turns)
		flag(h.asking, h.left)
	}
	for s, m := range w.m {
		b = binary.AppendUvarint(b, uint64(m.term))
		b = binary.AppendUvarint(b, uint64(m.outdated))
		flag(m.joined, m.suspended, m.wanted)
		b = append(b, byte(m.serving), byte(m.reserved), byte(m.claim), byte(len(m.queue)), byte(len(m.children)))
		for _, q := range m.queue {
			b = append(b, byte(q.member), byte(q.leg))
		}
		for c := range w.links {
			if w.above[c] == s {
				b = w.encodeLink(b, c)
			}
		}
	}
	return b
}

func (w *world) encodeLink(b []byte, c int) []byte {
	l := &w.links[c]
	ends := w.ends(c)
	sameTerm := ends[0] != nil && w.m[w.above[c]].term == w.m[c].term
	clamp := func(v uint64) byte { return byte(min(max(int64(v), -3), 3)) }
	b = append(b, byte(l.old), 0)
	for i, f := range []bool{l.down, l.removed, l.up[0], l.up[1], l.cut[0], l.cut[1], ends[0] == nil} {
		if f {
			b[len(b)-1] |= 1 << i
		}
	}
	if old := w.m[l.old].edge(Leg(c)); l.old != 0 && old != nil {
		b = append(b, byte(old.crossings), byte(old.reserved), 0)
		for i, f := range []bool{old.requests, old.joined} {
			if f {
				b[len(b)-1] |= 1 << i
			}
		}
	}
	for i, e := range ends {
		if e == nil {
			continue
		}
		v := byte(e.crossings)
		if sameTerm {
			v = byte(e.crossings & 1)
			if i == 1 {
				v = clamp(e.crossings - ends[0].crossings)
			}
		}
		b = append(b, v, byte(e.reserved), 0)
		if e.requests {
			b[len(b)-1] |= 1
		}
		if e.joined {
			b[len(b)-1] |= 2
		}
		if !e.up() {
			b = append(b, 255)
			continue
		}
		b = append(b, byte(l.session-e.session), 0)
		if o := ends[1-i]; o != nil && o.session == e.session {
			b[len(b)-1] = clamp(e.sent-o.received) << 4
		}
		if e.unacknowledged() {
			b[len(b)-1] |= 1
		}
	}
	for d := range l.in {
		to, from := ends[1-d], ends[d]
		b = append(b, byte(len(l.in[d])))
		for _, msg := range l.in[d] {
			b = append(b, byte(l.session-msg.Session))
			if to == nil {
				continue
			}
			// Of a message that is not newer than the last one received, only the
			// acknowledgement counts.
			seq := uint64(0)
			if to.session != msg.Session || msg.Seq > to.received {
				seq = msg.Seq
				if to.session == msg.Session {
					seq -= to.received
				}
			}
			acks := byte(0)
			if to.session != msg.Session || msg.Ack > to.acked {
				if acks = 1; msg.Ack == to.sent {
					acks = 2
				} else if from != nil && from.session == to.session && to.session == msg.Session {
					acks = 3 + byte(to.sent-msg.Ack)
				}
			}
			b = append(b, byte(seq), acks)
			if msg.Poll {
				b[len(b)-1] |= 128
			}
			if seq == 0 {
				continue
			}
			n := byte(msg.Crossings)
			if msg.Term == w.machineAt(c, 1-d).term {
				n = clamp(msg.Crossings - to.crossings)
			}
			b = binary.AppendUvarint(b, uint64(msg.Term))
			b = binary.AppendUvarint(b, uint64(msg.Outdated))
			b = append(b, n, byte(msg.Member), 0)
			for i, f := range []bool{msg.Joined, msg.Suspended, msg.Requests} {
				if f {
					b[len(b)-1] |= 1 << i
				}
			}
		}
	}
	return b
}

// ends returns the edges at both ends of a link. The parent's is nil if it has none.
func (w *world) ends(c int) [2]*edge {
	return [2]*edge{w.m[w.above[c]].edge(Leg(c)), &w.m[c].parent}
}

// machineAt returns the machine at an end of a link.
func (w *world) machineAt(c, end int) *Machine {
	if end == 0 {
		return w.m[w.above[c]]
	}
	return w.m[c]
}

// legAt returns the leg of a link at one of its ends.
func legAt(c, end int) Leg {
	if end == 0 {
		return Leg(c)
	}
	return Parent
}

// String describes the world, for traces.
func (w *world) String() string {
	s := fmt.Sprintf("  message of %d, forwarded by %v\n", w.mid, w.got)
	for i, m := range w.m {
		s += fmt.Sprintf("  %d: %v term %d outdated %d serving %d reserved %d claim %d queue %v\n", i, m.State(), m.term, m.outdated, m.serving, m.reserved, m.claim, m.queue)
		m.eachEdge(func(e *edge) {
			s += fmt.Sprintf("     leg %d: session %d crossings %d requests %v joined %v sent %d acked %d received %d\n", e.leg, e.session, e.crossings, e.requests, e.joined, e.sent, e.acked, e.received)
		})
	}
	for c := range w.links {
		for d, in := range w.links[c].in {
			for _, msg := range in {
				s += fmt.Sprintf("  link %d %s: session %d seq %d ack %d poll %v %+v\n", c, [...]string{"down", "up"}[d], msg.Session, msg.Seq, msg.Ack, msg.Poll, msg.Report)
			}
		}
	}
	return s
}
