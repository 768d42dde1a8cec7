// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/binary"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
)

// The encoding of what a switch has of the positions at its edges.

func (t *tree) appendPositions(b []byte, now time.Duration) []byte {
	e := &t.edges
	b = append(b, bit(e.rejoined, 0)|bit(e.asked != none, 2)|bit(e.relay.member != none, 3))
	for _, l := range t.g.forwardedLegs() {
		n := token.NoMember
		if int(l) < len(e.needed) {
			n = e.needed[l]
		}
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = appendCounts(b, len(e.unknown))
	for k := range e.unknown {
		b = append(b, bit(e.unknown[k], 0)|bit(e.learnt[k], 1))
	}
	if e.asked != none {
		b = appendPSN(appendCounts(b, int(e.asked)), e.askedPSN)
	}
	if e.relay.member != none {
		b = t.appendRelay(b)
	}
	return appendSince(b, now, e.polledAt, t.retry())
}

func (r *stateReader) positions(t *tree) {
	e, f := &t.edges, r.byte()
	e.needed = append(e.needed[:0], make([]token.Member, len(t.g.legs))...)
	for _, l := range t.g.forwardedLegs() {
		e.needed[l] = token.Member(r.uvarint())
	}
	n := r.count()
	if n > len(t.g.members) {
		r.malformed = true
		return
	}
	e.unknown, e.learnt = append(e.unknown[:0], make([]bool, n)...), append(e.learnt[:0], make([]bool, n)...)
	for k := range e.unknown {
		v := r.byte()
		e.unknown[k], e.learnt[k] = v&1 != 0, v&2 != 0
	}
	e.rejoined, e.asked, e.askedPSN = f&1 != 0, none, 0
	if f&4 != 0 {
		e.asked, e.askedPSN = int32(r.count()), r.psn()
		if int(e.asked) >= len(t.g.members) {
			r.malformed, e.asked = true, none
		}
	}
	if t.endRelay(); f&8 != 0 {
		r.relay(t)
	}
	e.polledAt = r.time()
}

func (t *tree) appendRelay(b []byte) []byte {
	y := &t.edges.relay
	b = appendCounts(b, int(y.member))
	for _, l := range t.g.forwardedLegs() {
		var at edgeBound
		if int(l) < len(y.said) {
			at = y.said[l]
		}
		b = appendPSN(append(b, bit(at.known, 0)), at.psn)
	}
	return b
}

func (r *stateReader) relay(t *tree) {
	y := relay{member: int32(r.count()), said: make([]edgeBound, len(t.g.legs))}
	for _, l := range t.g.forwardedLegs() {
		known := r.byte()&1 != 0
		y.said[l] = edgeBound{known, r.psn()}
	}
	if int(y.member) >= len(t.g.members) {
		r.malformed = true
		return
	}
	t.edges.relay = y
}
