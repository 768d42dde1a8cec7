// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/binary"
	"time"
)

// The encoding of local repair, for groups that have it.

// Bits of the first byte of a leg's recovery, above its state.
const (
	recState      = 1<<3 - 1
	recEscalated  = 1 << 3
	recMeasured   = 1 << 4
	recUnanswered = 1 << 5
)

func (g *group) appendStore(b []byte, now time.Duration) []byte {
	s := g.repair.store
	b = appendCounts(b, int(g.repair.numRecovering))
	b = appendDeadline(b, now, g.due.at(repairTimer), g.due.armed(repairTimer))
	b = g.appendRTT(b, now)
	b = appendPSN(b, g.repair.ackReqPSN)
	b = appendPSN(b, s.first)
	b = appendPSN(b, s.contiguousFrom)
	n := min(max(int(g.fwd.nxt.Sub(s.first)), 0), s.size())
	b = appendCounts(b, n)
	for i := range n {
		e := s.find(s.first.Add(int32(i)))
		if e == nil {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(b, uint64(e.bytes))
			b = binary.AppendUvarint(b, uint64(e.frame))
			b = binary.AppendUvarint(b, e.va)
			psn := s.first.Add(int32(i))
			b = append(b, byte(e.rewrite)<<2|bit(e.passedAt != psn, 1)|bit(e.ackReq, 0))
			if e.passedAt != psn {
				b = appendPSN(b, e.passedAt)
			}
		}
	}
	for i := range g.acks {
		if g.acks[i].flags&isReceiver != 0 {
			b = g.appendRecovery(b, now, i)
		}
	}
	return g.appendOffload(b, now)
}

// appendRTT appends the packet whose round trip is being measured.
func (g *group) appendRTT(b []byte, now time.Duration) []byte {
	timing := g.isTiming()
	if b = appendDeadline(b, now, g.rtt.sentAt, timing); timing {
		b = appendPSN(b, g.rtt.psn)
	}
	return b
}

func (r *stateReader) rtt(g *group) {
	g.rtt.pending, g.rtt.sentAt = r.deadline()
	g.rtt.psn, g.rtt.pauses = 0, g.sw.ports.pauses
	if g.rtt.pending {
		g.rtt.psn = r.psn()
	}
}

// appendRoundTrips appends the round trips that are measured without local repair too.
func (g *group) appendRoundTrips(b []byte, now time.Duration) []byte {
	b = g.appendRTT(b, now)
	for i := range g.legs {
		m := &g.activityOf(i).recovery
		b = appendCounts(append(b, bit(g.rttVoid(i), 0)), int(m.rtt), int(m.rttVar))
	}
	return b
}

// lossAt reads whether the measurement under way is void for a leg, as recovery.lossAt.
func (r *stateReader) lossAt(g *group) time.Duration {
	if r.byte() == 0 {
		return 0
	}
	return g.rtt.sentAt + 1
}

func (r *stateReader) roundTrips(g *group) {
	r.rtt(g)
	for i := range g.legs {
		m := &g.activity[i].recovery
		*m = recovery{resentPSN: g.acks[i].acked, lossAt: r.lossAt(g)}
		m.rtt, m.rttVar = time.Duration(r.uvarint()), time.Duration(r.uvarint())
	}
}

func (g *group) appendRecovery(b []byte, now time.Duration, i int) []byte {
	g.applyPauses(i)
	m := &g.activity[i].recovery
	b = append(b, byte(m.state)|bit(m.escalated, 3)|bit(m.rtt|m.rttVar != 0, 4)|bit(m.unanswered, 5), m.tries)
	b = appendPSN(b, m.ackReqPSN)
	b = appendPSN(b, m.resentPSN)
	late := g.isTiming() && g.rtt.sentAt < m.rttFrom && !g.rttVoid(i)
	if b = append(b, bit(g.rttVoid(i), 0)|bit(late, 1)); late {
		b = appendTime(b, now, m.rttFrom)
	}
	if b = append(b, m.burst); m.burst != 0 {
		b = appendPSN(b, m.burstEnd)
	}
	if m.state != inSync {
		b = appendPSN(b, m.cursor)
		b = appendPSN(b, m.firstUnsent)
		b = append(b, m.probeEvery, m.untilProbe)
		b = appendTime(b, now, m.resumeAt)
	}
	b = binary.AppendUvarint(b, uint64(m.rnrWaited))
	if owes := g.acks[i].acked.Less(m.expectedACK); owes {
		b = appendPSN(append(b, 1), m.expectedACK)
		if !m.escalated || g.live.deadAfter > 0 { // an escalated leg without DeadAfter is not probed before its next feedback
			b = appendTime(b, now, max(m.expectedSince, now-g.probeTimeout(i)))
		}
	} else {
		b = append(b, 0)
	}
	if m.rtt|m.rttVar != 0 {
		b = appendCounts(b, int(m.rtt), int(m.rttVar))
	}
	return b
}

func (r *stateReader) store(g *group) {
	s := g.repair.store
	clear(s.ring)
	s.bytes, s.held = 0, held{}
	g.repair.numRecovering = r.count32()
	r.due(g, repairTimer)
	r.rtt(g)
	g.repair.ackReqPSN, s.first, s.contiguousFrom = r.psn(), r.psn(), r.psn()
	n := r.uvarint()
	if n > uint64(s.size()) {
		r.malformed, n = true, 0
	}
	s.reach(int(n))
	for i := range int32(n) {
		e := s.at(s.first.Add(i))
		if e.bytes = uint32(r.uvarint()); e.bytes > 0 {
			e.frame, e.va = Handle(r.uvarint()), r.uvarint()
			f := r.byte()
			e.rewrite, e.ackReq, e.passedAt = rewriteKind(f>>2), f&1 != 0, s.first.Add(i)
			if f&2 != 0 {
				e.passedAt = r.psn()
			}
			s.bytes += int64(e.bytes)
			s.sw.repair.used += int64(e.bytes)
		}
	}
	for i := range g.legs {
		g.activity[i].recovery = recovery{}
		if g.acks[i].flags&isReceiver != 0 {
			r.recovery(g, i)
		}
	}
	r.offload(g)
}

func (r *stateReader) recovery(g *group, i int) {
	m := &g.activity[i].recovery
	f := r.byte()
	m.state, m.escalated, m.unanswered = recoveryState(f&recState), f&recEscalated != 0, f&recUnanswered != 0
	if m.state >= numRecoveryStates || (m.state == inSync) != (g.acks[i].flags&recovering == 0) {
		r.malformed, m.state = true, inSync
	}
	m.tries, m.ackReqPSN, m.resentPSN = r.byte(), r.psn(), r.psn()
	void := r.byte()
	if void&1 != 0 {
		m.lossAt = g.rtt.sentAt + 1
	}
	if void&2 != 0 {
		m.rttFrom = r.time()
	}
	if m.burst = r.byte(); m.burst != 0 {
		m.burstEnd = r.psn()
	}
	if m.state != inSync {
		m.cursor, m.firstUnsent, m.probeEvery, m.untilProbe, m.resumeAt = r.psn(), r.psn(), r.byte(), r.byte(), r.time()
	}
	m.rnrWaited = time.Duration(r.uvarint())
	m.expectedACK = g.acks[i].acked
	if r.byte() != 0 {
		if m.expectedACK = r.psn(); !m.escalated || g.live.deadAfter > 0 {
			m.expectedSince = r.time()
		}
	}
	if f&recMeasured != 0 {
		m.rtt, m.rttVar = time.Duration(r.uvarint()), time.Duration(r.uvarint())
	}
}

// due reads one of the deadlines of a group.
func (r *stateReader) due(g *group, k int) {
	if g.due.stop(k); r.byte() != 0 {
		g.due.arm(k, r.now+r.varint())
	}
}
