// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "encoding/binary"

// The encoding of what a group stores, and of how far it has resumed.

// mayResume reports whether g can be in a turn that has begun without this switch.
func (g *group) mayResume() bool { return g.numbering.interval > 0 || g.tree() != nil }

func (g *group) appendResume(b []byte) []byte {
	s, r := &g.storage, resume{}
	if g.is(resumes) {
		r = g.extra.resume
	}
	b = append(b, bit(g.is(awaitsFile), 0)|bit(g.fwd.limit != unlimited, 1)|bit(r.unknownEnd, 2)|bit(r.lacking, 3)|bit(r.unconfirmed, 4), bit(g.is(learning), 0)|bit(g.gates&(resumes|learning) == resumes, 1), r.goneBack)
	if g.fwd.limit != unlimited {
		b = appendPSN(b, g.fwd.limit)
	}
	b = binary.AppendUvarint(appendPSN(b, s.reported), uint64(s.number))
	if r.goneBack != 0 {
		b = appendPSN(b, r.lowest)
	}
	return binary.AppendUvarint(b, uint64(r.source))
}

func (r *stateReader) resume(g *group) {
	g.fwd.limit, g.storage = unlimited, storage{}
	if g.extra != nil {
		g.extra.resume = resume{}
	}
	if !g.mayResume() {
		return
	}
	f := r.byte()
	g.set(awaitsFile, f&1 != 0)
	phase := r.byte()
	x := resume{unknownEnd: f&4 != 0, lacking: f&8 != 0, unconfirmed: f&16 != 0, goneBack: r.byte()}
	if f&2 != 0 {
		g.setNxt(g.fwd.nxt, r.psn())
	}
	g.storage.reported, g.storage.number = r.psn(), uint32(r.uvarint())
	if x.goneBack != 0 {
		x.lowest = r.psn()
	}
	if x.source = MemberID(r.count()); int(x.source) >= len(g.members) {
		r.malformed = true
		return
	}
	if phase != 0 {
		g.newExtra().resume = x
		g.set(resumes, true)
		g.set(learning, phase == 1)
	}
}
