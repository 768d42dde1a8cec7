// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// AppendState appends all of s that packets and time can change, in a
// canonical form: two switches with the same groups behave alike from here on
// if their encodings are equal. Times count from now; what cannot influence
// anything any more (an old source's address, the NAK before last) is left
// out, and so are counters. It is for model checking, not for storage: the
// form may change at any time.
func (s *Switch) AppendState(b []byte, now time.Duration) []byte {
	for _, g := range s.groups {
		if g != nil {
			at, armed := s.timers.at(g.id)
			b = g.appendState(appendDeadline(b, now, at, armed), now)
		}
	}
	if s.verifies() {
		b = s.departed.appendState(b, now, &s.hearing)
	}
	return b
}

func (g *group) appendState(b []byte, now time.Duration) []byte {
	if g.src != nobody {
		g.activate(now)
	}
	b = append(appendCounts(b, int(g.src)+1), g.flags())
	b = appendPSN(b, g.a)
	b = appendPSN(b, g.hi)
	b = binary.AppendUvarint(b, uint64(g.past))
	b = appendAhead(append(b, bit(g.muted, 0)), now, g.quietTill)
	if g.hasPrev {
		b = appendPSN(b, g.prev)
		b = appendTime(b, now, max(g.prevAt, now-certain-1)) // older is as good
	}
	b = appendPast(b, now, g.awaited, g.stallTime)
	b = g.appendTurn(b, now)
	b = append(b, byte(g.nsev))
	if g.nsev != noPend {
		b = append(b, bit(g.seen, 0))
		b = appendPSN(b, g.nout)
	}
	b = appendCounts(b, int(g.low), int(g.nrecv), int(g.npend), int(g.njoin), int(g.nowin), int(g.nfresh))
	if g.quorum > 0 {
		b = binary.AppendVarint(b, int64(g.slack))
	}
	if g.lagPSNs > 0 {
		b = appendPSN(b, g.least)
	}
	if g.nfresh > 0 {
		b = appendPSN(b, g.freshTo)
	}
	b = appendDeadline(b, now, g.deadline, g.armed)
	for i := range g.legs {
		b = g.appendLeg(b, now, i)
	}
	for i := range g.members {
		m := &g.members[i]
		h := g.historyOf(MemberID(i))
		b = append(b, bit(m.live, 0)|bit(h.refused, 1))
		b = binary.AppendUvarint(b, uint64(m.past))
		b = appendAhead(b, now, h.quietTill)
		b = appendPSN(b, m.p)
		b = appendPSN(b, m.r)
		b = binary.AppendUvarint(b, uint64(m.msgs))
	}
	b = binary.AppendUvarint(b, uint64(g.msgs.done))
	b = binary.AppendUvarint(b, uint64(g.msgs.n))
	for i := range g.msgs.n {
		e := g.msgs.at(i)
		b = appendPSN(b, e.psn)
		b = binary.AppendUvarint(b, uint64(e.count))
	}
	b = append(b, bit(g.write.known, 0))
	if g.write.known {
		b = appendPSN(b, g.write.first)
		b = binary.AppendUvarint(b, uint64(g.write.bytes))
	}
	if g.rare()&rareRefused != 0 {
		b = append(b, byte(g.refused.code), byte(g.refused.reason))
		b = appendPSN(b, g.refused.psn)
	}
	if g.dead {
		b = append(b, byte(g.failCode))
		b = appendPSN(b, g.failPSN)
	}
	if g.rare()&rareCNP != 0 {
		b = append(appendCounts(b, int(g.best)+1), bit(g.hasPass, 0))
		b = appendTime(b, now, g.bestSeen)
		b = appendTime(b, now, g.passed)
	}
	if g.targets != nil {
		b = g.targets.appendState(b)
	}
	if g.store != nil {
		b = g.appendRepair(b, now)
	} else if g.deadMost > 0 {
		b = g.appendRoundTrips(b, now)
	}
	if g.numbers.every > 0 {
		b = g.appendNumbering(b, now)
	}
	return b
}

// Bits 2 to 4 of a leg's first byte; the others are those of branch.bits, up to
// bit 6.
const (
	legJoining = 1 << 2
	legWeight  = 1 << 3
	legWatched = 1 << 4
)

// appendLeg appends what is current of a leg: the queue positions of one that
// does not receive are with its member.
func (g *group) appendLeg(b []byte, now time.Duration, i int) []byte {
	r, l, t := g.branchAt(i), &g.legs[i], g.trackOf(i)
	watched := g.period > 0 && g.armed && r.bits&receiving != 0
	b = append(b, r.bits|bit(l.joining, 2)|bit(t.weight != 0, 3)|bit(watched, 4))
	b = appendCounts(b, int(l.members), int(l.member))
	if r.bits&receiving != 0 {
		b = appendPSN(b, r.a)
		b = binary.AppendUvarint(b, uint64(r.delta))
		b = append(b, byte(r.pend), byte(r.info))
	}
	if t.weight != 0 {
		b = binary.AppendUvarint(b, uint64(t.weight))
		b = appendTime(b, now, t.weighed)
	}
	if g.quorum > 0 {
		b = append(b, bit(t.repeated, 0))
		if t.repeated {
			b = appendPSN(appendPSN(b, t.first), t.last)
		}
	}
	if watched {
		g.catchUp(i)
		b = appendPSN(b, t.watch)
		b = appendSince(b, now, t.watched, g.deadAfter)
		b = appendSince(b, now, t.heard, g.deadAfter)
		b = appendPSN(b, t.mark)
		b = appendSince(b, now, t.marked, g.lagTime)
	}
	return b
}

// Bits of rare: parts of a group's state that are seldom there.
const (
	rareRefused = 1 << 6
	rareCNP     = 1 << 7
)

func (g *group) rare() byte {
	return bit(g.refused != refusal{}, 6) | bit(g.best != nobody || g.hasPass, 7)
}

func (g *group) flags() byte {
	return bit(g.hasPrev, 0) | bit(g.open, 1) | bit(g.dead, 2) | bit(g.becn, 3) | bit(g.told, 4) | bit(g.rewound, 5) | g.rare()
}

func bit(v bool, n uint) byte {
	if v {
		return 1 << n
	}
	return 0
}

func appendCounts(b []byte, counts ...int) []byte {
	for _, n := range counts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

func appendPSN(b []byte, p rocev2.PSN) []byte { return append(b, byte(p), byte(p>>8), byte(p>>16)) }

// appendTime appends a time as its distance from now; 0, which means never, as
// itself.
func appendTime(b []byte, now, t time.Duration) []byte {
	if t == 0 {
		return append(b, 0)
	}
	return binary.AppendVarint(append(b, 1), int64(t-now))
}

// appendSince is appendTime for a time of which no more is asked than whether it was
// limit ago, when it is as good as never.
func appendSince(b []byte, now, t, limit time.Duration) []byte {
	if now-t >= limit {
		t = 0
	}
	return appendTime(b, now, t)
}

// appendPast is appendTime for a time of which no more is asked than whether there is
// one, and whether it was limit ago.
func appendPast(b []byte, now, t, limit time.Duration) []byte {
	if t != 0 {
		t = max(t, now-limit, 1)
	}
	return appendTime(b, now, t)
}

// appendAhead is appendTime for a time that means nothing once it has come.
func appendAhead(b []byte, now, t time.Duration) []byte {
	if t <= now {
		t = 0
	}
	return appendTime(b, now, t)
}

func appendDeadline(b []byte, now, t time.Duration, armed bool) []byte {
	if !armed {
		return append(b, 0)
	}
	return binary.AppendVarint(append(b, 1), int64(t-now))
}

// errState says that an encoding is not one of AppendState for these groups.
var errState = errors.New("mcast: not the state of a switch with these groups")

// SetState makes s what AppendState encoded in b, as if it were that at now, and
// returns what follows the encoding. s must have been given the same groups
// by the same operations. After an error s is in no defined state.
func (s *Switch) SetState(b []byte, now time.Duration) ([]byte, error) {
	r := stateReader{b: b, now: now}
	s.repair.used = 0
	s.timers.reset()
	for _, g := range s.groups {
		if g != nil {
			if armed, at := r.deadline(); armed {
				s.timers.by(g.id, at)
			}
			r.group(g)
		}
	}
	if s.verifies() {
		r.departed(&s.departed, &s.hearing)
	}
	if r.bad {
		return nil, fmt.Errorf("%w (%d bytes)", errState, len(b))
	}
	return r.b, nil
}

// stateReader reads what the append functions wrote.
type stateReader struct {
	b   []byte
	now time.Duration
	bad bool
}

func (r *stateReader) group(g *group) {
	g.activate(r.now)
	g.src = int32(r.count()) - 1
	f := r.byte()
	g.hasPrev, g.open, g.dead, g.becn, g.told, g.rewound = f&1 != 0, f&2 != 0, f&4 != 0, f&8 != 0, f&16 != 0, f&32 != 0
	g.srcLeg, g.srcKey, g.srcNbr = nobody, addrKey{}, 0
	if int(g.src) >= len(g.members) {
		r.bad = true
		return
	}
	if g.src != nobody {
		m := &g.members[g.src]
		g.srcLeg, g.srcKey, g.srcNbr = int32(m.leg), m.ip, g.legs[m.leg].neighbor
	}
	g.a, g.hi, g.past, g.prev, g.prevAt = r.psn(), r.psn(), int32(r.uvarint()), 0, 0
	g.muted, g.quietTill = r.byte() != 0, r.time()
	if g.hasPrev {
		g.prev, g.prevAt = r.psn(), r.time()
	}
	g.awaited = r.time()
	r.turn(g)
	g.nsev, g.seen, g.nout = severity(r.byte()), false, 0
	if g.nsev != noPend {
		g.seen, g.nout = r.byte() != 0, r.psn()
	}
	g.low, g.nrecv, g.npend, g.njoin, g.nowin, g.nfresh = r.count32(), r.count32(), r.count32(), r.count32(), r.count32(), r.count32()
	g.slack, g.least, g.freshTo = 0, 0, 0
	if g.quorum > 0 {
		g.slack = int32(r.varint())
	}
	if g.lagPSNs > 0 {
		g.least = r.psn()
	}
	if g.nfresh > 0 {
		g.freshTo = r.psn()
	}
	g.armed, g.deadline = r.deadline()
	for i := range g.legs {
		r.leg(g, i)
	}
	for i := range g.members {
		m, v := &g.members[i], r.byte()
		m.live, m.past = v&1 != 0, int32(r.uvarint())
		h := g.historyOf(MemberID(i))
		if h.quietTill, h.refused = r.time(), v&2 != 0; h != g.historyOf(MemberID(i)) {
			*g.newHistory(MemberID(i)) = h
		}
		m.p, m.r, m.msgs = r.psn(), r.psn(), rocev2.MSN(r.uvarint())
	}
	r.messages(&g.msgs)
	g.write = writing{known: r.byte() != 0}
	if g.write.known {
		g.write.first, g.write.bytes = r.psn(), uint32(r.uvarint())
	}
	g.refused, g.failCode, g.failPSN = refusal{}, 0, 0
	if f&rareRefused != 0 {
		g.refused.code, g.refused.reason = rocev2.Syndrome(r.byte()), Reason(r.byte())
		g.refused.psn = r.psn()
	}
	if g.dead {
		g.failCode, g.failPSN = rocev2.Syndrome(r.byte()), r.psn()
	}
	g.best, g.hasPass, g.bestSeen, g.passed = nobody, false, 0, 0
	if f&rareCNP != 0 {
		g.best, g.hasPass = int32(r.count())-1, r.byte() != 0
		g.bestSeen, g.passed = r.time(), r.time()
	}
	if g.targets != nil {
		r.targets(g.targets)
	}
	if g.store != nil {
		r.repair(g)
	} else if g.deadMost > 0 {
		r.roundTrips(g)
	}
	if g.numbers.every > 0 {
		r.numbering(g)
	}
}

func (r *stateReader) leg(g *group, i int) {
	b, l, t := &g.branches[i], &g.legs[i], &g.tracks[i]
	f := r.byte()
	*b = branch{bits: f & (receiving | rewrites | fresh | late)}
	*t = track{unheard: g.sw.hearing.at(l.port).unheard}
	l.joining, l.members, l.member = f&legJoining != 0, uint16(r.count()), MemberID(r.count())
	if b.bits&receiving != 0 {
		b.a, b.delta = r.psn(), uint32(r.uvarint())
		b.pend, b.info = severity(r.byte()), rocev2.Syndrome(r.byte())
	}
	if f&legWeight != 0 {
		t.weight, t.weighed = uint32(r.uvarint()), r.time()
	}
	if g.quorum > 0 {
		if t.repeated = r.byte() != 0; t.repeated {
			t.first, t.last = r.psn(), r.psn()
		}
	}
	if f&legWatched != 0 {
		t.watch, t.watched, t.heard = r.psn(), r.time(), r.time()
		t.mark, t.marked = r.psn(), r.time()
	}
}

func (r *stateReader) messages(m *messages) {
	m.done, m.first, m.n = rocev2.MSN(r.uvarint()), 0, 0
	n := uint32(r.uvarint())
	if n > maxEnds {
		r.bad, n = true, 0
	}
	for i := range n {
		m.grow()
		m.n++
		*m.at(i) = messageEnd{psn: r.psn(), count: uint32(r.uvarint())}
	}
}

func (r *stateReader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *stateReader) psn() rocev2.PSN {
	if len(r.b) < 3 {
		r.bad, r.b = true, nil
		return 0
	}
	v := rocev2.PSN(r.b[0]) | rocev2.PSN(r.b[1])<<8 | rocev2.PSN(r.b[2])<<16
	r.b = r.b[3:]
	return v
}

func (r *stateReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of legs or members, or an index among them.
func (r *stateReader) count() int {
	v := r.uvarint()
	if v > maxIndex+1 {
		r.bad = true
		return 0
	}
	return int(v)
}

func (r *stateReader) count32() int32 { return int32(r.count()) }

func (r *stateReader) varint() time.Duration {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return time.Duration(v)
}

func (r *stateReader) time() time.Duration {
	if r.byte() == 0 {
		return 0
	}
	return r.now + r.varint()
}

func (r *stateReader) deadline() (bool, time.Duration) {
	if r.byte() == 0 {
		return false, 0
	}
	return true, r.now + r.varint()
}
