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

// AppendState appends the state of s that packets and time can change, in a canonical
// form: two switches with the same groups behave alike from now on if their encodings are
// equal. Times are relative to now. State without further influence (a former source's
// address, the NAK before last) is left out, and so are counters. AppendState is for model
// checking, not for storage: the form may change at any time.
func (s *Switch) AppendState(b []byte, now time.Duration) []byte {
	for _, g := range s.groups {
		if g != nil {
			at, armed := s.timers.deadline(g.id)
			b = g.appendState(appendDeadline(b, now, at, armed), now)
		}
	}
	if s.anyVerifies() {
		b = s.departures.appendState(b, now, &s.ports)
	}
	return b
}

func (g *group) appendState(b []byte, now time.Duration) []byte {
	if g.src.member != none {
		g.activate(now)
	}
	b = append(appendCounts(b, int(g.src.member)+1), g.flags())
	b = appendPSN(b, g.agg.acked)
	b = appendPSN(b, g.fwd.nxt)
	b = binary.AppendUvarint(b, uint64(g.src.ackedCount))
	b = appendAhead(append(b, bit(g.is(quarantined), 0)), now, g.src.quarantinedUntil)
	if g.src.hasLastPSN {
		b = appendPSN(b, g.src.lastPSN)
		b = appendTime(b, now, max(g.src.lastPSNAt, now-g.oldestLastPSN()))
	}
	b = appendPast(b, now, g.turn.silentSince, g.turn.sourceTimeout)
	b = g.appendTurn(b, now)
	b = append(b, byte(g.agg.request.severity))
	if r := &g.agg.request; r.severity != sevNone {
		b = append(b, bit(r.served, 0))
		b = appendPSN(b, r.psn)
	}
	b = appendCounts(b, int(g.agg.numAtAcked), int(g.recv.count), int(g.agg.numPending), int(g.recv.joining), int(g.fwd.numWithoutWindow), int(g.recv.joinedInFlight))
	if g.policy.quorum > 0 {
		b = binary.AppendVarint(b, int64(g.agg.allowedBehind))
	}
	if g.lag.psns > 0 {
		b = appendPSN(b, g.lag.floor)
	}
	if g.recv.joinedInFlight > 0 {
		b = appendPSN(b, g.recv.inFlightUntil)
	}
	b = appendDeadline(b, now, g.due.at(livenessCheck), g.due.armed(livenessCheck))
	for i := range g.legs {
		b = g.appendLeg(b, now, i)
	}
	for i := range g.members {
		m := &g.members[i]
		h := g.historyOf(MemberID(i))
		b = append(b, bit(m.live, 0)|bit(h.refusalReported, 1))
		b = binary.AppendUvarint(b, uint64(m.ackedCount))
		b = appendAhead(b, now, h.quarantinedUntil)
		b = appendPSN(b, m.sqPSN)
		b = appendPSN(b, m.ePSN)
		b = binary.AppendUvarint(b, uint64(m.messages))
	}
	b = binary.AppendUvarint(b, uint64(g.agg.messages.completed))
	b = binary.AppendUvarint(b, uint64(g.agg.messages.count))
	for i := range g.agg.messages.count {
		e := g.agg.messages.at(i)
		b = appendPSN(b, e.psn)
		b = binary.AppendUvarint(b, uint64(e.count))
	}
	b = append(b, bit(g.fwd.writeMessage.known, 0))
	if g.fwd.writeMessage.known {
		b = appendPSN(b, g.fwd.writeMessage.first)
		b = binary.AppendUvarint(b, uint64(g.fwd.writeMessage.length))
	}
	if g.seldom()&seldomRefused != 0 {
		b = append(b, byte(g.refusal.syndrome), byte(g.refusal.reason))
		b = appendPSN(b, g.refusal.psn)
	}
	if g.is(failed) {
		b = append(b, byte(g.failure.syndrome))
		b = appendPSN(b, g.failure.psn)
	}
	if g.seldom()&seldomCNP != 0 {
		b = append(appendCounts(b, int(g.cnp.leg)+1), bit(g.cnp.passed, 0))
		b = appendTime(b, now, g.cnp.legAt)
		b = appendTime(b, now, g.cnp.passedAt)
	}
	if g.fwd.targets != nil {
		b = g.fwd.targets.appendState(b)
	}
	if g.repair.store != nil {
		b = g.appendStore(b, now)
	} else if g.live.deadAfterMax > 0 {
		b = g.appendRoundTrips(b, now)
	}
	if g.notesGaps() {
		b = g.appendNumbering(b, now)
	} else {
		b = append(b, bit(g.is(asking), 0))
	}
	if g.mayResume() {
		b = g.appendResume(b)
	}
	return b
}

// Bits 2 to 4 of a leg's first byte. Its other bits are those of ackState.flags.
const (
	legJoining  = 1 << 2
	legWeight   = 1 << 3
	legLiveness = 1 << 4
)

// appendLeg appends the state of leg i that is current. The PSNs of a leg that does not
// receive are those of its member.
func (g *group) appendLeg(b []byte, now time.Duration, i int) []byte {
	r, l, t := g.ackStateOf(i), &g.legs[i], g.activityOf(i)
	watched := g.due.armed(livenessCheck) && r.flags&isReceiver != 0
	b = append(b, r.flags|bit(l.joining, 2)|bit(t.cnpWeight != 0, 3)|bit(watched, 4))
	b = appendCounts(b, int(l.members), int(l.member))
	if r.flags&isReceiver != 0 {
		b = appendPSN(b, r.acked)
		b = binary.AppendUvarint(b, uint64(r.delta))
		b = append(b, byte(r.pending), byte(r.pendingSyndrome))
	}
	if t.cnpWeight != 0 {
		b = binary.AppendUvarint(b, uint64(t.cnpWeight))
		b = appendTime(b, now, t.cnpWeightAt)
	}
	if g.policy.quorum > 0 {
		b = append(b, bit(t.repeatedSinceNAK, 0))
		if t.repeatedSinceNAK {
			b = appendPSN(appendPSN(b, t.repeatFirst), t.repeatLast)
		}
	}
	if watched {
		g.applyPauses(i)
		b = appendPSN(b, t.livenessPSN)
		most := max(g.deadAfterOf(i), g.live.deadAfterMax, g.live.allDeadAfter()) + 2*g.sw.ports.port(l.port).txDelay // of livenessTimeout
		b = appendSince(b, now, t.livenessSince, most)
		b = appendSince(b, now, t.lastHeard, most)
		b = appendPSN(b, t.lagPSN)
		b = appendSince(b, now, t.lagSince, g.lagTimeOf(i))
	}
	return b
}

// Bits of seldom: parts of a group's state that most groups do not have.
const (
	seldomRefused = 1 << 6
	seldomCNP     = 1 << 7
)

func (g *group) seldom() byte {
	return bit(g.refusal != refusal{}, 6) | bit(g.cnp.leg != none || g.cnp.passed, 7)
}

func (g *group) flags() byte {
	return bit(g.src.hasLastPSN, 0) | bit(g.fwd.midMessage, 1) | bit(g.is(failed), 2) | bit(g.src.becnDue, 3) | bit(g.turn.refusalReported, 4) | bit(g.live.sourceRewound, 5) | g.seldom()
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

// appendTime appends a time as its distance from now, and 0, which means never, as 0.
func appendTime(b []byte, now, t time.Duration) []byte {
	if t == 0 {
		return append(b, 0)
	}
	return binary.AppendVarint(append(b, 1), int64(t-now))
}

// appendSince is appendTime for a time that is used for one test only: whether at least
// limit has passed since. If so, the time has the same effect as never.
func appendSince(b []byte, now, t, limit time.Duration) []byte {
	if now-t >= limit {
		t = 0
	}
	return appendTime(b, now, t)
}

// appendPast is appendTime for a time that is used for two tests only: whether it is set,
// and whether at least limit has passed since.
func appendPast(b []byte, now, t, limit time.Duration) []byte {
	if t != 0 {
		t = max(t, now-limit, 1)
	}
	return appendTime(b, now, t)
}

// appendAhead is appendTime for a time that has no effect once it has come.
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

// errForeignState reports an encoding that AppendState did not make for these groups.
var errForeignState = errors.New("mcast: not the state of a switch with these groups")

// SetState sets the state of s to the one that AppendState encoded in b, with times
// relative to now, and returns the bytes after the encoding. s must have been given the
// same groups by the same operations. After an error the state of s is undefined.
func (s *Switch) SetState(b []byte, now time.Duration) ([]byte, error) {
	r := stateReader{b: b, now: now}
	s.repair.used = 0
	s.timers.reset()
	for _, g := range s.groups {
		if g != nil {
			if armed, at := r.deadline(); armed {
				s.timers.arm(g.id, at)
			}
			r.group(g)
		}
	}
	if s.anyVerifies() {
		r.departed(&s.departures, &s.ports)
	}
	if r.malformed {
		return nil, fmt.Errorf("%w (%d bytes)", errForeignState, len(b))
	}
	return r.b, nil
}

// stateReader reads the encoding of the append functions.
type stateReader struct {
	b         []byte
	now       time.Duration
	malformed bool
}

func (r *stateReader) group(g *group) {
	g.activate(r.now)
	g.src.member = int32(r.count()) - 1
	f := r.byte()
	g.src.hasLastPSN, g.fwd.midMessage, g.src.becnDue, g.turn.refusalReported, g.live.sourceRewound = f&1 != 0, f&2 != 0, f&8 != 0, f&16 != 0, f&32 != 0
	g.gates = 0
	g.set(failed, f&4 != 0)
	g.src.leg, g.src.addr, g.src.neighbor = none, rocev2.AddrKey{}, 0
	if int(g.src.member) >= len(g.members) {
		r.malformed = true
		return
	}
	if g.src.member != none {
		m := &g.members[g.src.member]
		g.src.leg, g.src.addr, g.src.neighbor = int32(m.leg), m.ip, g.legs[m.leg].neighbor
	}
	g.agg.acked, g.fwd.nxt, g.src.ackedCount, g.src.lastPSN, g.src.lastPSNAt = r.psn(), r.psn(), int32(r.uvarint()), 0, 0
	g.set(quarantined, r.byte() != 0)
	g.src.quarantinedUntil = r.time()
	if g.src.hasLastPSN {
		g.src.lastPSN, g.src.lastPSNAt = r.psn(), r.time()
	}
	g.turn.silentSince = r.time()
	r.turn(g)
	g.agg.request = request{severity: severity(r.byte())}
	if g.agg.request.severity != sevNone {
		g.agg.request.served, g.agg.request.psn = r.byte() != 0, r.psn()
	}
	g.agg.numAtAcked, g.recv.count, g.agg.numPending, g.recv.joining, g.fwd.numWithoutWindow, g.recv.joinedInFlight = r.count32(), r.count32(), r.count32(), r.count32(), r.count32(), r.count32()
	g.agg.allowedBehind, g.lag.floor, g.recv.inFlightUntil = 0, 0, 0
	if g.policy.quorum > 0 {
		g.agg.allowedBehind = int32(r.varint())
	}
	g.set(noReceivers, g.recv.count == 0)
	g.set(joiners, g.recv.joining != 0)
	g.set(tooFew, g.agg.allowedBehind < 0)
	if g.lag.psns > 0 {
		g.lag.floor = r.psn()
	}
	if g.recv.joinedInFlight > 0 {
		g.recv.inFlightUntil = r.psn()
	}
	r.due(g, livenessCheck)
	for i := range g.legs {
		r.leg(g, i)
	}
	for i := range g.members {
		m, v := &g.members[i], r.byte()
		m.live, m.ackedCount = v&1 != 0, int32(r.uvarint())
		h := g.historyOf(MemberID(i))
		if h.quarantinedUntil, h.refusalReported = r.time(), v&2 != 0; h != g.historyOf(MemberID(i)) {
			*g.newHistory(MemberID(i)) = h
		}
		m.sqPSN, m.ePSN, m.messages = r.psn(), r.psn(), rocev2.MSN(r.uvarint())
	}
	r.messages(&g.agg.messages)
	g.fwd.writeMessage = writeMessage{known: r.byte() != 0}
	if g.fwd.writeMessage.known {
		g.fwd.writeMessage.first, g.fwd.writeMessage.length = r.psn(), uint32(r.uvarint())
	}
	g.refusal, g.failure.syndrome, g.failure.psn = refusal{}, 0, 0
	if f&seldomRefused != 0 {
		x := refusal{syndrome: rocev2.Syndrome(r.byte()), reason: Reason(r.byte())}
		x.psn = r.psn()
		g.setRefusal(x)
	}
	if g.is(failed) {
		g.failure.syndrome, g.failure.psn = rocev2.Syndrome(r.byte()), r.psn()
	}
	g.cnp.leg, g.cnp.passed, g.cnp.legAt, g.cnp.passedAt = none, false, 0, 0
	if f&seldomCNP != 0 {
		g.cnp.leg, g.cnp.passed = int32(r.count())-1, r.byte() != 0
		g.cnp.legAt, g.cnp.passedAt = r.time(), r.time()
	}
	if g.fwd.targets != nil {
		r.targets(g.fwd.targets)
	}
	if g.repair.store != nil {
		r.store(g)
	} else if g.live.deadAfterMax > 0 {
		r.roundTrips(g)
	}
	if g.notesGaps() {
		r.numbering(g)
	} else {
		g.set(asking, r.byte() != 0)
	}
	r.resume(g)
}

func (r *stateReader) leg(g *group, i int) {
	b, l, t := &g.acks[i], &g.legs[i], &g.activity[i]
	f := r.byte()
	*b = ackState{flags: f & (isReceiver | isConnected | joinedInFlight | recovering | isUnplaced)}
	if f&isUnplaced != 0 {
		g.set(unplaced, true)
	}
	*t = legActivity{pausesApplied: g.sw.ports.port(l.port).paused}
	l.joining, l.members, l.member = f&legJoining != 0, uint16(r.count()), MemberID(r.count())
	if b.flags&isReceiver != 0 {
		b.acked, b.delta = r.psn(), uint32(r.uvarint())
		b.pending, b.pendingSyndrome = severity(r.byte()), rocev2.Syndrome(r.byte())
	}
	if f&legWeight != 0 {
		t.cnpWeight, t.cnpWeightAt = uint32(r.uvarint()), r.time()
	}
	if g.policy.quorum > 0 {
		if t.repeatedSinceNAK = r.byte() != 0; t.repeatedSinceNAK {
			t.repeatFirst, t.repeatLast = r.psn(), r.psn()
		}
	}
	if f&legLiveness != 0 {
		t.livenessPSN, t.livenessSince, t.lastHeard = r.psn(), r.time(), r.time()
		t.lagPSN, t.lagSince = r.psn(), r.time()
	}
}

func (r *stateReader) byte() byte {
	if len(r.b) == 0 {
		r.malformed = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *stateReader) psn() rocev2.PSN {
	if len(r.b) < 3 {
		r.malformed, r.b = true, nil
		return 0
	}
	v := rocev2.PSN(r.b[0]) | rocev2.PSN(r.b[1])<<8 | rocev2.PSN(r.b[2])<<16
	r.b = r.b[3:]
	return v
}

func (r *stateReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.malformed, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of legs or members, or an index among them.
func (r *stateReader) count() int {
	v := r.uvarint()
	if v > maxIndex+1 {
		r.malformed = true
		return 0
	}
	return int(v)
}

func (r *stateReader) count32() int32 { return int32(r.count()) }

func (r *stateReader) varint() time.Duration {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.malformed, r.b = true, nil
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
