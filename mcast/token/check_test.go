// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"slices"
)

// The invariants of each state, and of each step.

// check judges the state.
func (w *world) check() {
	for s, m := range w.m {
		if m.wanted && (m.serving == NoMember || len(m.queue) == 0) {
			w.wrong = fmt.Sprintf("at switch %d the end of member %d's turn is wanted, and nobody waits", s, m.serving)
		}
		if !active(m) {
			continue
		}
		for o, n := range w.m {
			switch {
			case o == s || !active(n) || n.term < m.term:
			case n.term == m.term:
				w.wrong = fmt.Sprintf("switches %d and %d have the token of term %d", s, o, m.term)
			case m.serving != NoMember && !w.fenced(s):
				w.wrong = fmt.Sprintf("switch %d serves in term %d while switch %d has the token of term %d", s, m.term, o, n.term)
			}
		}
		if m.serving != NoMember && m.suspended {
			w.wrong = fmt.Sprintf("switch %d is cut off and serves", s)
		}
	}
	if w.mid != NoMember && !slices.Contains(w.got, true) {
		w.lost = true // every switch that had a part of the message has restarted
	}
	for k := 1; k < len(w.hosts); k++ {
		if m := w.machineOf(Member(k)); w.placed[k] != 0 && (w.placed[k] != m.term || !slices.Contains(m.queue, waiter{member: Member(k)})) {
			w.placed[k] = 0
			w.overtook[k] = [maxMembers]bool{}
		}
		if w.placed[k] == 0 && w.isPlaced(Member(k)) {
			w.placed[k] = w.machineOf(Member(k)).term
		}
	}
}

// active reports whether a machine has the token, or serves a member.
func active(m *Machine) bool {
	return m.serving != NoMember || m.joined && !m.suspended && !m.needsTerm() && m.here()
}

// fenced reports whether nothing comes out of a switch's part of the tree: on its way to
// the root a switch has removed the leg, or has not accepted it again.
func (w *world) fenced(s int) bool {
	for ; s > 0; s = w.above[s] {
		e := w.m[w.above[s]].edge(Leg(s))
		if e == nil || w.tree.rejoin && !e.joined {
			return true
		}
	}
	return false
}

// isPlaced reports whether the request of member k is in the queues of all switches from
// its own to the token.
func (w *world) isPlaced(k Member) bool {
	s, from := w.tree.members[k], waiter{member: k}
	for range w.m {
		m := w.m[s]
		if !m.joined || m.suspended || m.needsTerm() || !slices.Contains(m.queue, from) {
			return false
		}
		if m.here() {
			return true
		}
		e := m.toward()
		if !e.requests {
			return false
		}
		if e.leg == Parent {
			from, s = waiter{leg: Leg(s)}, w.above[s]
		} else {
			from, s = waiter{leg: Parent}, int(e.leg)
		}
		if w.m[s].term != m.term {
			return false
		}
	}
	return false
}

// serves judges that member k is served.
func (w *world) serves(k Member) {
	if !w.in(w.tree.members[k]) {
		return
	}
	if w.mid != NoMember && w.mid != k {
		w.wrong = fmt.Sprintf("member %d is served within the message of member %d", k, w.mid)
	}
	for y := 1; y < len(w.hosts); y++ {
		if w.placed[y] == 0 || Member(y) == k {
			continue
		}
		if w.overtook[y][k] {
			w.wrong = fmt.Sprintf("member %d is served a second time while member %d waits", k, y)
		}
		w.overtook[y][k] = true
	}
}

// finished reports whether everybody has sent all messages.
func (w *world) finished() bool {
	if w.lost {
		return true
	}
	for k := 1; k < len(w.hosts); k++ {
		if w.hosts[k].turns > 0 && w.in(w.tree.members[k]) {
			return false
		}
	}
	return true
}
