// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/binary"
	"time"
)

// What AppendState says of local repair, for groups that have it.

// Bits of a leg's byte.
const (
	mendProbing = 1 << iota
	mendLed
	mendMeasured
	mendQuiet
)

func (g *group) appendRepair(b []byte, now time.Duration) []byte {
	s := g.store
	b = appendCounts(b, int(g.nlate))
	b = appendDeadline(b, now, g.tendAt, g.tending)
	b = g.appendTimed(b, now)
	b = appendPSN(b, g.asked)
	b = appendPSN(b, s.low)
	b = appendPSN(b, s.whole)
	n := min(max(int(g.hi.Sub(s.low)), 0), s.size())
	b = appendCounts(b, n)
	for i := range n {
		e := s.find(s.low.Add(int32(i)))
		if e == nil {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(b, uint64(e.bytes))
			b = binary.AppendUvarint(b, uint64(e.frame))
			b = binary.AppendUvarint(b, e.va)
			b = append(b, byte(e.how)<<1|bit(e.ackReq, 0))
		}
	}
	for i := range g.branches {
		if g.branches[i].bits&receiving != 0 {
			b = g.appendMending(b, now, i)
		}
	}
	return b
}

// appendTimed appends the packet whose round trip is being measured.
func (g *group) appendTimed(b []byte, now time.Duration) []byte {
	timing := g.timing && g.timedIn == g.sw.hearing.pauses
	if b = appendDeadline(b, now, g.timedAt, timing); timing {
		b = appendPSN(b, g.timed)
	}
	return b
}

func (r *stateReader) timed(g *group) {
	g.timing, g.timedAt = r.deadline()
	g.timed, g.timedIn = 0, g.sw.hearing.pauses
	if g.timing {
		g.timed = r.psn()
	}
}

// appendRoundTrips appends what is measured without local repair.
func (g *group) appendRoundTrips(b []byte, now time.Duration) []byte {
	b = g.appendTimed(b, now)
	for i := range g.legs {
		m := &g.trackOf(i).mend
		b = appendCounts(b, int(m.rtt), int(m.rttVar))
	}
	return b
}

func (r *stateReader) roundTrips(g *group) {
	r.timed(g)
	for i := range g.legs {
		m := &g.tracks[i].mend
		*m = mending{again: g.branches[i].a}
		m.rtt, m.rttVar = time.Duration(r.uvarint()), time.Duration(r.uvarint())
	}
}

func (g *group) appendMending(b []byte, now time.Duration, i int) []byte {
	g.catchUp(i)
	m := &g.tracks[i].mend
	b = append(b, bit(m.probing, 0)|bit(m.led, 1)|bit(m.rtt|m.rttVar != 0, 2)|bit(m.quiet, 3), m.tries)
	b = appendPSN(b, m.asked)
	b = appendPSN(b, m.again)
	if g.branches[i].bits&late != 0 {
		b = appendPSN(b, m.next)
		b = appendPSN(b, m.sent)
		b = append(b, m.burst, m.left)
		b = appendTime(b, now, m.hold)
	}
	b = binary.AppendUvarint(b, uint64(m.waited))
	if owes := g.branches[i].a.Less(m.watch); owes {
		b = appendPSN(append(b, 1), m.watch)
		if !m.led || g.deadAfter > 0 { // else it is not asked before it is heard again
			b = appendTime(b, now, max(m.owed, now-g.patience(i)))
		}
	} else {
		b = append(b, 0)
	}
	if m.rtt|m.rttVar != 0 {
		b = appendCounts(b, int(m.rtt), int(m.rttVar))
	}
	return b
}

func (r *stateReader) repair(g *group) {
	s := g.store
	clear(s.ring)
	s.bytes = 0
	g.nlate = r.count32()
	g.tending, g.tendAt = r.deadline()
	r.timed(g)
	g.asked, s.low, s.whole = r.psn(), r.psn(), r.psn()
	n := r.uvarint()
	if n > uint64(s.size()) {
		r.bad, n = true, 0
	}
	s.reach(int(n))
	for i := range int32(n) {
		e := s.at(s.low.Add(i))
		if e.bytes = uint32(r.uvarint()); e.bytes > 0 {
			e.frame, e.va = Handle(r.uvarint()), r.uvarint()
			f := r.byte()
			e.how, e.ackReq = rewriting(f>>1), f&1 != 0
			s.bytes += int64(e.bytes)
			s.sw.repair.used += int64(e.bytes)
		}
	}
	for i := range g.legs {
		g.tracks[i].mend = mending{}
		if g.branches[i].bits&receiving != 0 {
			r.mending(g, i)
		}
	}
}

func (r *stateReader) mending(g *group, i int) {
	m := &g.tracks[i].mend
	f := r.byte()
	m.probing, m.led, m.quiet = f&mendProbing != 0, f&mendLed != 0, f&mendQuiet != 0
	m.tries, m.asked, m.again = r.byte(), r.psn(), r.psn()
	if g.branches[i].bits&late != 0 {
		m.next, m.sent, m.burst, m.left, m.hold = r.psn(), r.psn(), r.byte(), r.byte(), r.time()
	}
	m.waited = time.Duration(r.uvarint())
	m.watch = g.branches[i].a
	if r.byte() != 0 {
		if m.watch = r.psn(); !m.led || g.deadAfter > 0 {
			m.owed = r.time()
		}
	}
	if f&mendMeasured != 0 {
		m.rtt, m.rttVar = time.Duration(r.uvarint()), time.Duration(r.uvarint())
	}
}
