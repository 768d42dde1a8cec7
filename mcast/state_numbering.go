// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The encoding of a group's numbering, of its legs' verification, and of departures.

// anyVerifies reports whether some group verifies the numberings of its receivers.
func (s *Switch) anyVerifies() bool {
	return slices.ContainsFunc(s.groups, func(g *group) bool { return g != nil && g.numbering.interval > 0 })
}

// appendState appends the departures that still have an effect.
func (d *departures) appendState(b []byte, now time.Duration, h *portTimes) []byte {
	b = appendAhead(b, now, d.overflowUntil)
	for i := range d.count {
		if e := d.at(i); e.endsAt(h) > now {
			b = appendTime(b, now, e.endsAt(h))
			b = binary.AppendUvarint(b, uint64(e.port))
			for _, k := range []rocev2.AddrKey{e.group, e.member} {
				b = k.Append(b)
			}
		}
	}
	return append(b, 0)
}

func (r *stateReader) departed(d *departures, h *portTimes) {
	d.overflowUntil, d.first, d.count = r.time(), 0, 0
	for t := r.time(); t != 0; t = r.time() {
		e := departure{until: t, port: Port(r.uvarint())}
		e.pausesApplied = h.port(e.port).paused
		e.group = rocev2.AddrKey{Hi: r.word(), Lo: r.word()}
		e.member = rocev2.AddrKey{Hi: r.word(), Lo: r.word()}
		if d.count == maxDepartures {
			r.malformed = true
			return
		}
		*d.at(d.count) = e
		d.count++
	}
}

func (r *stateReader) word() uint64 {
	if len(r.b) < 8 {
		r.malformed, r.b = true, nil
		return 0
	}
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// notesGaps reports whether gaps in the source's packets have an influence: receivers are
// verified (R53), or losses repaired (R92).
func (g *group) notesGaps() bool { return g.numbering.interval > 0 || g.repair.store != nil }

func (g *group) appendNumbering(b []byte, now time.Duration) []byte {
	n := &g.numbering
	b = append(b, bit(g.is(blocked), 0)|bit(g.is(asking), 1)|bit(n.gap, 2), n.rounds)
	if n.gap {
		b = appendPSN(appendPSN(b, n.gapFrom), n.gapNext)
	}
	b = appendCounts(b, int(n.numPending), int(n.nextLeg))
	b = binary.AppendVarint(b, int64(n.backoff))
	b = appendDeadline(b, now, g.due.at(probeRound), g.due.armed(probeRound))
	b = appendTime(b, now, n.deferredUntil)
	for i := range g.numbering.checks {
		v := &g.numbering.checks[i]
		b = append(b, bit(v.pending, 0)|bit(v.acceptedNothing, 1)|bit(v.wrongAnswer, 2)|bit(v.isRXE, 3)|bit(v.returning, 4)|bit(v.answeredOnce, 5)|bit(v.probedAgain, 6)|bit(v.positioned, 7), bit(v.restored, 0), v.probesSent)
		if g.usesProbedFrom(i) {
			g.applyPauses(i)
			b = appendSince(b, now, g.activity[i].probedFrom, max(g.probePatience(i), g.live.allDeadAfter()))
		}
		if v.isRXE {
			b = append(b, v.emptyAnswers)
		}
		if v.acceptedNothing {
			b = binary.AppendUvarint(b, uint64(v.messagesBefore))
		}
		if v.wrongAnswer {
			b = append(b, v.probesSinceAnswer)
		}
		if v.wrongAnswer || v.positioned {
			b = appendPSN(b, v.answeredPSN)
		}
	}
	if g.mayHold() {
		b = g.appendHeld(b, now)
	}
	return b
}

// usesProbedFrom reports whether legActivity.probedFrom of leg i has an influence.
func (g *group) usesProbedFrom(i int) bool {
	v := &g.numbering.checks[i]
	return v.pending && (v.probesSent == 0 && v.returning || v.probesSent > 0 && g.is(blocked))
}

func (r *stateReader) numbering(g *group) {
	n := &g.numbering
	f := r.byte()
	*n = numbering{checks: n.checks, interval: n.interval, gap: f&4 != 0, rounds: r.byte()}
	g.set(blocked, f&1 != 0)
	g.set(asking, f&2 != 0)
	if n.gap {
		n.gapFrom, n.gapNext = r.psn(), r.psn()
	}
	n.numPending, n.nextLeg = r.count32(), LegID(r.count())
	n.backoff = r.varint()
	r.due(g, probeRound)
	n.deferredUntil = r.time()
	for i := range n.checks {
		f, more := r.byte(), r.byte()
		v := verification{pending: f&1 != 0, acceptedNothing: f&2 != 0, wrongAnswer: f&4 != 0, isRXE: f&8 != 0, returning: f&16 != 0, answeredOnce: f&32 != 0, probedAgain: f&64 != 0, positioned: f&128 != 0, restored: more&1 != 0, probesSent: r.byte()}
		if n.checks[i] = v; g.usesProbedFrom(i) {
			g.activity[i].probedFrom = r.time()
		}
		if v.isRXE {
			v.emptyAnswers = r.byte()
		}
		if v.acceptedNothing {
			v.messagesBefore = rocev2.MSN(r.uvarint())
		}
		if v.wrongAnswer {
			v.probesSinceAnswer = r.byte()
		}
		if v.wrongAnswer || v.positioned {
			v.answeredPSN = r.psn()
		}
		n.checks[i] = v
	}
	if g.mayHold() {
		r.held(g)
	}
}
