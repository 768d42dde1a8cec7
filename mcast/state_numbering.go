// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/binary"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The encoding of a group's numbering and its legs' verification.

func (g *group) appendNumbering(b []byte, now time.Duration) []byte {
	n := &g.numbers
	b = append(b, bit(n.held, 0)|bit(n.resume, 1)|bit(n.gap, 2), n.rounds)
	if n.gap {
		b = appendPSN(appendPSN(b, n.gapFrom), n.gapNext)
	}
	b = appendCounts(b, n.pending, int(n.next))
	b = binary.AppendVarint(b, int64(n.wait))
	b = appendDeadline(b, now, n.at, n.armed)
	if n.held {
		b = binary.AppendVarint(b, int64(max(n.since-now, -g.deadAfter))) // longer ago is as good
	}
	for i := range g.legs {
		v := &g.legs[i].verify
		b = append(b, bit(v.pending, 0)|bit(v.fresh, 1)|bit(v.wrong, 2)|bit(v.rxe, 3), v.sent)
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
	n.pending, n.next = r.count(), LegID(r.count())
	n.wait = r.varint()
	n.armed, n.at = r.deadline()
	if n.held {
		n.since = r.now + r.varint()
	}
	for i := range g.legs {
		f := r.byte()
		v := verification{pending: f&1 != 0, fresh: f&2 != 0, wrong: f&4 != 0, rxe: f&8 != 0, sent: r.byte()}
		if v.rxe {
			v.empty = r.byte()
		}
		if v.fresh {
			v.before = rocev2.MSN(r.uvarint())
		}
		if v.wrong {
			v.expects, v.probes = r.psn(), r.byte()
		}
		g.legs[i].verify = v
	}
}
