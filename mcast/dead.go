// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// watchAll begins to watch for silence: every receiver has to acknowledge what
// has been forwarded by now, or to say something, within deadAfter.
func (g *group) watchAll(now time.Duration) {
	g.catchUpAll()
	for i := range g.branches {
		l := &g.tracks[i]
		l.watch, l.watched = g.hi.Prev(), now
		l.mark, l.marked = g.branches[i].a, now
	}
	g.armed, g.deadline, g.rewound = true, now+g.period, false
}

// look gives up receivers that have been silent for deadAfter while they lag
// and others are ahead of them, or the source is retransmitting: they are
// removed, or the group fails (giveUp). It gives up nobody while no receiver at
// all shows a sign of life: then the fault is more likely on this side, and the
// source's own timeout speaks. It removes, too, who lags for longer than lagTime.
func (g *group) look(now time.Duration, out *Output) {
	g.armed = false
	if g.a == g.hi.Prev() && (g.quorum == 0 || g.level()) {
		return // nothing in flight; the next packet begins the watch anew
	}
	g.catchUpAll()
	if g.owed() {
		g.rewatch(now)
	}
	alive := false
	best := g.a
	for i := range g.branches {
		b := &g.branches[i]
		if b.bits&receiving == 0 {
			continue
		}
		if !g.silent(i, now) {
			alive = true
		}
		if best.Less(b.a) {
			best = b.a
		}
	}
	g.deadline = now + g.period
	evicted := false
	for i := range g.branches {
		b, l := &g.branches[i], &g.tracks[i]
		if b.bits&receiving == 0 {
			continue
		}
		switch {
		case g.lagging(i, now, best):
			g.evict(i, Lagging, out)
			evicted = true
		case g.stuck(i, now):
			g.giveUp(i, Stranded, out)
			evicted = true
		case !g.silent(i, now):
			if !b.a.Less(l.watch) { // did what it had to; from here it has more to do
				l.watch, l.watched = g.hi.Prev(), now
			}
			if t := max(l.watched, l.heard) + g.deadAfterOf(i); g.deadAfter > 0 && t < g.deadline {
				g.deadline = t
			}
		case alive && (g.rewound || g.behind(i)):
			g.giveUp(i, Silent, out)
			evicted = true
		}
		if g.dead {
			return
		}
	}
	g.armed, g.rewound = true, false
	if evicted {
		g.eval(out)
	}
}

// owed says whether the source has been asked for something and has not come
// back to it: it waits out an RNR timer, or the NAK was lost. Receivers have
// nothing to answer then, so nobody's silence counts.
func (g *group) owed() bool {
	return g.nsev != noPend && !g.seen && g.nout == g.a.Next()
}

// rewatch lets everybody's time for an answer begin now.
func (g *group) rewatch(now time.Duration) {
	g.catchUpAll()
	for i := range g.tracks {
		g.tracks[i].watched = now
	}
}

// silent says whether leg i owes an acknowledgement and has said nothing for
// deadAfter.
func (g *group) silent(i int, now time.Duration) bool {
	l := &g.tracks[i]
	return g.deadAfter > 0 && g.branches[i].a.Less(l.watch) && now-max(l.watched, l.heard) >= g.deadAfterOf(i)
}

// stuck says whether leg i, behind a quorum, has asked for deadAfter for what
// does not come. It may ask again and again, so it need not be silent.
func (g *group) stuck(i int, now time.Duration) bool {
	b, l := &g.branches[i], &g.tracks[i]
	return g.deadAfter > 0 && b.pend != noPend && b.a.Less(g.a) && b.a.Less(l.watch) && now-l.watched >= g.deadAfterOf(i)
}

// lagging says whether leg i still lacks what another receiver had lagTime ago,
// and can be spared. best is what the first one has now.
func (g *group) lagging(i int, now time.Duration, best rocev2.PSN) bool {
	l := &g.tracks[i]
	if g.lagTime == 0 {
		return false
	}
	if !g.branches[i].a.Less(l.mark) {
		l.mark, l.marked = best, now
	}
	return g.branches[i].a.Less(l.mark) && now-l.marked >= g.lagTime && g.spare(i)
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
