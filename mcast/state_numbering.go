// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The encoding of a group's numbering, its legs' verification, and of who left lately.

// verifies says whether some group verifies numbers.
func (s *Switch) verifies() bool {
	return slices.ContainsFunc(s.groups, func(g *group) bool { return g != nil && g.numbers.every > 0 })
}

// appendState leaves out departures that concern nobody any more.
func (d *departed) appendState(b []byte, now time.Duration, h *hearing) []byte {
	b = appendAhead(b, now, d.lost)
	for i := range d.n {
		if e := d.at(i); e.ends(h) > now {
			b = appendTime(b, now, e.ends(h))
			b = binary.AppendUvarint(b, uint64(e.port))
			for _, k := range []addrKey{e.group, e.member} {
				b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, k.hi), k.lo)
			}
		}
	}
	return append(b, 0)
}

func (r *stateReader) departed(d *departed, h *hearing) {
	d.lost, d.first, d.n = r.time(), 0, 0
	for t := r.time(); t != 0 && !r.bad; t = r.time() {
		e := departure{until: t, port: Port(r.uvarint())}
		e.unheard = h.at(e.port).unheard
		e.group, e.member = addrKey{r.word(), r.word()}, addrKey{r.word(), r.word()}
		if d.n == maxDeparted {
			r.bad = true
			return
		}
		*d.at(d.n) = e
		d.n++
	}
}

func (r *stateReader) word() uint64 {
	if len(r.b) < 8 {
		r.bad, r.b = true, nil
		return 0
	}
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

func (g *group) appendNumbering(b []byte, now time.Duration) []byte {
	n := &g.numbers
	b = append(b, bit(n.held, 0)|bit(n.resume, 1)|bit(n.gap, 2), n.rounds)
	if n.gap {
		b = appendPSN(appendPSN(b, n.gapFrom), n.gapNext)
	}
	b = appendCounts(b, int(n.pending), int(n.next))
	b = binary.AppendVarint(b, int64(n.wait))
	b = appendDeadline(b, now, n.at, n.armed)
	b = appendTime(b, now, n.later)
	if n.held {
		b = binary.AppendVarint(b, int64(max(n.since-now, -g.deadAfter))) // longer ago is as good
	}
	for i := range g.checks {
		v := &g.checks[i]
		b = append(b, bit(v.pending, 0)|bit(v.fresh, 1)|bit(v.wrong, 2)|bit(v.rxe, 3)|bit(v.back, 4)|bit(v.once, 5)|bit(v.twice, 6), v.sent)
		if v.pending && v.back {
			g.catchUp(i)
			b = appendSince(b, now, g.tracks[i].from, g.deadAfter)
		}
		if v.rxe {
			b = append(b, v.empty)
		}
		if v.fresh {
			b = binary.AppendUvarint(b, uint64(v.before))
		}
		if v.wrong {
			b = append(appendPSN(b, v.expects), v.probes)
		}
	}
	return b
}

func (r *stateReader) numbering(g *group) {
	n := &g.numbers
	f := r.byte()
	*n = numbering{every: n.every, held: f&1 != 0, resume: f&2 != 0, gap: f&4 != 0, rounds: r.byte()}
	if n.gap {
		n.gapFrom, n.gapNext = r.psn(), r.psn()
	}
	n.pending, n.next = r.count32(), LegID(r.count())
	n.wait = r.varint()
	n.armed, n.at = r.deadline()
	n.later = r.time()
	if n.held {
		n.since = r.now + r.varint()
	}
	for i := range g.legs {
		f := r.byte()
		v := verification{pending: f&1 != 0, fresh: f&2 != 0, wrong: f&4 != 0, rxe: f&8 != 0, back: f&16 != 0, once: f&32 != 0, twice: f&64 != 0, sent: r.byte()}
		if v.pending && v.back {
			g.tracks[i].from = r.time()
		}
		if v.rxe {
			v.empty = r.byte()
		}
		if v.fresh {
			v.before = rocev2.MSN(r.uvarint())
		}
		if v.wrong {
			v.expects, v.probes = r.psn(), r.byte()
		}
		g.checks[i] = v
	}
}
