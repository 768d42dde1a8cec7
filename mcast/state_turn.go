// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"
)

// The encoding of a group's turn.

// appendTurn appends the turn, and the members that wait with the times of their waits.
// The wait of the next member has no effect, and is left out. The waits of the others
// decide which of them is next after it.
func (g *group) appendTurn(b []byte, now time.Duration) []byte {
	t := &g.turn
	n := 0
	for i := range g.members {
		if g.historyOf(MemberID(i)).waits != 0 {
			n++
		}
	}
	b = appendCounts(b, int(t.next)+1, n)
	b = append(b, bit(g.is(messageRefused), 0)|t.misses<<1)
	for i := range g.members {
		switch w := g.historyOf(MemberID(i)).waits; {
		case w == 0:
		case int32(i) == t.next:
			b = appendTime(appendCounts(b, i), now, 0)
		case g.tree() != nil: // the order of those that wait is in the token's machine
			b = appendPast(appendCounts(b, i), now, w, turnReserved)
		default:
			b = appendTime(appendCounts(b, i), now, w)
		}
	}
	if t.next != none {
		b = appendTime(b, now, max(t.requestedAt, now-turnReserved))
	}
	longest := g.turn.time << t.misses
	if g.tree() != nil {
		longest = max(longest, turnReserved, t.sourceTimeout)
	}
	b = appendPast(b, now, t.contendedSince, longest)
	b = appendPast(b, now, t.endingSince, turnReserved)
	b = appendPast(b, now, t.drainedSince, turnReserved)
	if x := g.tree(); x != nil {
		b = x.appendPositions(x.machine.AppendState(b, now), now)
	}
	return b
}

// oldestLastPSN returns the age from which on the time of the source's last packet has the
// same effect.
func (g *group) oldestLastPSN() time.Duration {
	if g.tree() != nil {
		return max(MaxInOrderGap+1, g.turn.sourceTimeout)
	}
	return MaxInOrderGap + 1
}

func (r *stateReader) turn(g *group) {
	t := &g.turn
	t.next = int32(r.count()) - 1
	n, f := r.count(), r.byte()
	t.misses = min(f>>1, maxMisses)
	g.set(messageRefused, f&1 != 0)
	for i := range g.members {
		if g.historyOf(MemberID(i)).waits != 0 {
			g.newHistory(MemberID(i)).waits = 0
		}
	}
	if int(t.next) >= len(g.members) {
		r.malformed, t.next = true, none
		return
	}
	for range n {
		i, w := r.count(), r.time()
		if i >= len(g.members) {
			r.malformed = true
			return
		}
		g.newHistory(MemberID(i)).waits = max(w, 1)
	}
	t.requestedAt = 0
	if t.next != none {
		t.requestedAt = r.time()
	}
	t.contendedSince, t.endingSince, t.drainedSince = r.time(), r.time(), r.time()
	g.set(ending, t.endingSince != 0)
	if x := g.tree(); x != nil {
		b, err := x.machine.SetState(r.b, r.now)
		if err != nil {
			r.malformed = true
			return
		}
		r.b = b
		r.positions(x)
		g.set(wanted, x.machine.Wanted())
		g.set(frozen, g.src.member != none && !x.mayPass())
	}
}
