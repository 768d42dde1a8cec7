// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "time"

// watchAll begins to watch for silence: every receiver has to acknowledge what
// has been forwarded by now, or to say something, within deadAfter.
func (g *group) watchAll(now time.Duration) {
	for i := range g.branches {
		l := &g.legs[i]
		l.watch, l.watched = g.hi.Prev(), now
	}
	g.armed, g.deadline, g.rewound = true, now+g.deadAfter, false
}

// look evicts receivers that have been silent for deadAfter while they lag
// and others are ahead of them, or the source is retransmitting. It evicts
// nobody while no receiver at all shows a sign of life: then the fault is more
// likely on this side, and the source's own timeout speaks.
func (g *group) look(now time.Duration, out *Output) {
	g.armed = false
	if g.a == g.hi.Prev() {
		return // nothing in flight; the next packet begins the watch anew
	}
	alive := false
	for i := range g.branches {
		if g.branches[i].bits&receiving != 0 && !g.silent(i, now) {
			alive = true
		}
	}
	g.deadline = now + g.deadAfter
	evicted := false
	for i := range g.branches {
		b, l := &g.branches[i], &g.legs[i]
		if b.bits&receiving == 0 {
			continue
		}
		if !g.silent(i, now) {
			if !b.a.Less(l.watch) { // did what it had to; from here it has more to do
				l.watch, l.watched = g.hi.Prev(), now
			}
			if t := max(l.watched, l.heard) + g.deadAfter; t < g.deadline {
				g.deadline = t
			}
			continue
		}
		if alive && (g.rewound || g.behind(i)) {
			g.evict(i, 0, out)
			evicted = true
		}
	}
	g.armed, g.rewound = true, false
	if evicted {
		g.eval(out)
	}
}

// silent says whether leg i owes an acknowledgement and has said nothing for
// deadAfter.
func (g *group) silent(i int, now time.Duration) bool {
	l := &g.legs[i]
	return g.branches[i].a.Less(l.watch) && now-max(l.watched, l.heard) >= g.deadAfter
}

// behind says whether some receiver is ahead of leg i.
func (g *group) behind(i int) bool {
	for j := range g.branches {
		if g.branches[j].bits&receiving != 0 && g.branches[i].a.Less(g.branches[j].a) {
			return true
		}
	}
	return false
}
