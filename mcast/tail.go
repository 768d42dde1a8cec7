// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// What local repair does by the clock: it lets those that were not ready have
// another try, goes on where a driver had no room, and asks those that owe an
// acknowledgement and say nothing, because the last thing they were sent, or what
// was sent to them again, may have been lost (R45).

// maxPatience times RepairSpec.Timeout is the longest time after which a silent
// receiver is asked.
const maxPatience = 64

// patience is how long a branch may say nothing that owes an acknowledgement:
// longer after a question that it has not answered, as who pauses for long should
// not find many of them.
func (g *group) patience(i int) time.Duration {
	m := &g.tracks[i].mend
	d := min(max(g.repairTimeout, m.rtt+4*m.rttVar), maxPatience*g.repairTimeout)
	if m.quiet {
		d *= 4
	}
	return g.inTime(i, d)
}

// livenessProbes is how many probes at least fit into dead_after: a receiver that
// is given up for silence has not answered any of them (R57).
const livenessProbes = 8

// inTime is d, or less where dead_after leaves no room for it.
func (g *group) inTime(i int, d time.Duration) time.Duration {
	if g.deadAfter > 0 {
		d = min(d, g.deadAfterOf(i)/livenessProbes)
	}
	return d
}

// tendBy sees to it that tend is called at t, or earlier.
func (g *group) tendBy(t time.Duration) {
	if !g.tending || t < g.tendAt {
		g.tending, g.tendAt = true, t
	}
}

// expect gives branch i its time, from now, for what it is being sent.
func (g *group) expect(now time.Duration, i int) {
	g.catchUp(i)
	g.tracks[i].mend.owed = now
	g.tendBy(now + g.patience(i))
}

// asks notes that psn was sent to the receivers with a request for an ACK.
func (g *group) asks(now time.Duration, psn rocev2.PSN) {
	if g.asked.Less(psn) {
		g.asked = psn
	}
	g.clock(now, psn)
	if !g.tending {
		first := g.repairTimeout
		for i := range g.tracks {
			g.catchUp(i)
			g.tracks[i].mend.watch, g.tracks[i].mend.owed = psn, now
			first = g.inTime(i, first)
		}
		g.tendBy(now + first)
	}
}

// clock measures the round trip of psn, which goes out with a request for an ACK,
// unless there is one under way; one over a pause of the switch says nothing.
func (g *group) clock(now time.Duration, psn rocev2.PSN) {
	if !g.timing || g.timedIn != g.sw.hearing.pauses {
		g.timing, g.timed, g.timedAt, g.timedIn = true, psn, now, g.sw.hearing.pauses
	}
}

// measure takes the round trip of the packet that is being timed, which branch i
// acknowledges now: it has gone from had to b.a.
func (g *group) measure(now time.Duration, i int, had rocev2.PSN) {
	b, m := &g.branches[i], &g.tracks[i].mend
	if !g.timing || g.timedIn != g.sw.hearing.pauses || !had.Less(g.timed) || b.a.Less(g.timed) || g.timed.LessEq(m.again) {
		return // not that packet, or it was sent again to this branch, or the switch has paused
	}
	switch d := now - g.timedAt; {
	case m.rtt == 0:
		m.rtt, m.rttVar = d, d/2
	case d > m.rtt:
		m.rttVar += (d - m.rtt - m.rttVar) / 4
		m.rtt += (d - m.rtt) / 8
	default:
		m.rttVar += (m.rtt - d - m.rttVar) / 4
		m.rtt -= (m.rtt - d) / 8
	}
}

// tend does what is due.
func (g *group) tend(now time.Duration, out *Output) {
	g.tending = false
	if g.dead {
		return
	}
	for i := range g.branches {
		b, m := &g.branches[i], &g.tracks[i].mend
		if b.bits&receiving == 0 || b.pend != noPend {
			continue
		}
		g.catchUp(i)
		if m.hold > 0 {
			if now < m.hold {
				g.tendBy(m.hold)
				continue
			}
			m.hold, m.owed, m.probing = 0, now, false
		}
		if m.led && g.deadAfter == 0 {
			continue
		}
		if b.a.Less(m.watch) {
			if t := m.owed + g.patience(i); now < t {
				g.tendBy(t)
				continue
			}
			if !m.led {
				g.question(i)
			}
			if m.led && !g.probeLiveness(now, i, out) {
				g.tendBy(now) // no more room in this call
				continue
			}
		}
		// From here on it has so long for what it has been asked by now.
		m.watch, m.owed = g.asked, now
		if m.watch.Less(m.asked) {
			m.watch = m.asked
		}
		if b.a.Less(m.watch) {
			g.tendBy(now + g.patience(i))
		}
	}
	g.resend(now, out)
}

// probeLiveness sends branch i, which is left to the source, what it lacks first,
// if its silence counts: the cursor stays where it is (R57). It returns false if
// there is no room.
func (g *group) probeLiveness(now time.Duration, i int, out *Output) bool {
	b := &g.branches[i]
	e := g.store.find(b.a.Next())
	if e == nil || g.deadAfter == 0 {
		return true
	}
	if out.full() {
		return false
	}
	g.probed(now, i, b.a.Next())
	g.copyStored(i, e, b.a.Next(), true, out)
	return true
}

// questionMax is the most packets that a question has.
const questionMax = 16

// question has the first packet that branch i may lack sent once more, with a
// request for an ACK; if the store has it, and not for ever.
func (g *group) question(i int) {
	b, m := &g.branches[i], &g.tracks[i].mend
	if g.store.find(b.a.Next()) == nil {
		if m.probing || b.bits&late != 0 && b.a.Less(g.a) {
			// What it was asked with is gone, or was given up behind a quorum where its
			// cursor was still to come: for want to ask for.
			m.next, m.probing = b.a.Next(), false
		}
		return
	}
	if m.tries >= g.tries {
		m.led = true
		return
	}
	m.tries++
	// Another one, because there was no answer, is longer: what makes a path lose
	// several packets in a row is then over sooner, and what arrives of it behind a
	// gap has the receiver answer at once.
	n := uint8(1)
	if m.quiet {
		n = min(max(m.burst, 1)*burstGrowth, questionMax)
	}
	g.setLate(i, b.a.Next())
	m.probing, m.quiet, m.burst, m.left = false, true, n, n
	g.count.rare().Questions++
}
