// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Local repair: packets that a receiver lacks are sent again from the group's store, to
// that receiver alone, and the source is not told (R42 to R51; RC.md §9).
//
// A leg that has been sent everything up to nxt-1 is in sync: it gets new data as it
// comes. Any other leg is recovering: it has a cursor, and gets the retained packets
// from the cursor on, in order, until it is in sync again. A packet sent past the
// cursor would make the receiver send a NAK for every gap once more (R44). The states of
// a leg and its transitions are in recovery_machine.go.

// A probe is a packet with AckReq that the receiver may have already. A receiver that
// has the packet acknowledges all that it has; any other acknowledges that packet. An
// ACK of exactly the probe multiplies probeEvery by burstGrowth. Beyond maxBurst there
// are no more probes.
const (
	burstGrowth = 4
	maxBurst    = 64
)

// recovering is the bit of ackState.flags of a leg that has a cursor: its state is not
// inSync. Only deliver writes it.
const recovering uint8 = 1 << 6

// recovery is the state of one leg's local repair, and what counts within the state. The
// first fields are of a leg that is not inSync: an ACK of the usual leg touches the rest.
type recovery struct {
	cursor      rocev2.PSN    `state:"encoded if x.state != inSync"` // unless inSync: the PSN to send next
	firstUnsent rocev2.PSN    `state:"encoded if x.state != inSync"` // unless inSync: the first PSN that was never sent to the leg
	resumeAt    time.Duration `state:"time if x.state != inSync"`    // settling, waiting: nothing is sent before; else 0
	probeEvery  uint8         `state:"encoded if x.state != inSync"` // number of packets from one probe to the next; 0: no probes
	untilProbe  uint8         `state:"encoded if x.state != inSync"` // number of packets up to and including the next probe

	state         recoveryState `state:"encoded"`                                            // only deliver writes it
	burst         uint8         `state:"encoded"`                                            // number of packets that were sent again together, below burstEnd, to another switch
	escalated     bool          `state:"encoded"`                                            // the store sends nothing in any state: the leg gets what the source sends, when the source sends it
	unanswered    bool          `state:"encoded"`                                            // the last probe was sent because the PTO had passed, and has had no answer
	tries         uint8         `state:"encoded"`                                            // times that packets were sent again without progress
	fault         Fault         `state:"ignored"`                                            // what the leg has shown last
	faultUntil    rocev2.PSN    `state:"ignored"`                                            // the newest packet when fault was found: fault ends when the leg has that
	ackReqPSN     rocev2.PSN    `state:"encoded"`                                            // the highest PSN that was sent again with AckReq
	resentPSN     rocev2.PSN    `state:"encoded"`                                            // the highest PSN that was sent again
	burstEnd      rocev2.PSN    `state:"encoded if x.burst != 0"`                            // the PSN behind the last one of those, if burst is not 0
	expectedACK   rocev2.PSN    `state:"encoded = c.expectedACK(x)"`                         // the PSN that the receiver has to acknowledge within the PTO
	rnrWaited     time.Duration `state:"duration"`                                           // sum of the RNR timers since the leg last acknowledged new data
	expectedSince time.Duration `state:"past(c.g.probeTimeout(c.Index)) if c.timesProbe(x)"` // start of the PTO
	lossAt        time.Duration `state:"time = c.lossAt()"`                                  // time at which the leg last sent a NAK, or got what it had sent one for
	rttFrom       time.Duration `state:"time = c.rttFrom(x)"`                                // time at which the store last sent the leg, for the first time, a packet whose round trip was measured
	rtt           time.Duration `state:"duration"`                                           // smoothed round trip; 0: never measured
	rttVar        time.Duration `state:"duration"`                                           // mean deviation of the round trip

	gateOpen   bool          `state:"encoded if c.g.hasFastPath()"` // true, in an offloaded group: the driver was told to open the leg's gate (R98)
	shutNow    bool          `state:"encoded if c.g.hasFastPath()"` // the leg has left the fast path, and nothing was sent from the store since
	drainUntil time.Duration `state:"ahead if c.g.hasFastPath()"`   // nothing goes out from the store before: copies of the fast path are on their way
}

// storeServes reports whether the store may send to a leg at all: no NAK of the leg waits
// for the source, and the leg is not left to the source.
func (m *recovery) storeServes(b *ackState) bool { return b.pending == sevNone && !m.escalated }

// takesFromSource reports whether leg i gets psn now, from the source's packet. The leg
// is recovering, or the source repeats psn. It does not get psn if it was sent psn
// before and a probe can show whether it lacks psn, nor if the store will send psn when
// the cursor comes to it. ask means that the copy goes out as a probe.
func (g *group) takesFromSource(now time.Duration, i int, psn rocev2.PSN) (take, ask bool) {
	b, m := &g.acks[i], &g.activity[i].recovery
	first := psn == b.acked.Next()
	if m.state == inSync && b.acked.Less(g.agg.acked) && psn == g.agg.acked.Next() && g.repair.store.find(b.acked.Next()) == nil {
		first = true // behind a quorum, and the first frame that it lacks was freed: psn is the first that anybody can send
	}
	retained := m.storeServes(b) && g.repair.store.find(psn) != nil
	var e recoveryEvent
	switch {
	case m.state == inSync && !first, m.state != inSync && !first && psn != m.cursor:
		return false, false
	case first && !m.escalated && (m.state == inSync || psn.Less(m.cursor)):
		e = g.unaRepeated(m, retained, b.pending != sevNone)
	case retained:
		return false, false // the store sends it
	default:
		e = sourceAtCursor
	}
	switch g.deliver(i, e) {
	case copyPacket:
		m.advanceCursor(psn)
		return true, false
	case probe:
		// The source goes back (R48). The first packet that this receiver lacks goes
		// out once more. What follows goes out if the answer shows the need.
		m.advanceCursor(psn)
		m.ackReqPSN, m.probeEvery = rocev2.MaxPSN(m.ackReqPSN, psn), 1
		g.armProbe(now, i)
		return true, true
	case probeAgain:
		// The source repeats the first packet that this receiver lacks, and was sent
		// before: one more probe (R56).
		g.noteProbe(now, i, psn)
		return true, true
	}
	return false, false
}

// unaRepeated returns the event that the source repeats una of a leg, below the leg's
// cursor. asked: a NAK of the leg was for una, so the leg lacks all from there on.
func (g *group) unaRepeated(m *recovery, retained, asked bool) recoveryEvent {
	hole := !asked && g.repair.store.find(m.cursor) == nil
	switch {
	case retained && hole:
		return unaRetainedAtHole
	case retained:
		return unaRetained
	case hole:
		return unaMissingAtHole
	}
	return unaMissing
}

// noteProbe records that psn, which leg i was sent before, goes out with AckReq.
func (g *group) noteProbe(now time.Duration, i int, psn rocev2.PSN) {
	m := &g.activity[i].recovery
	m.ackReqPSN, m.resentPSN = rocev2.MaxPSN(m.ackReqPSN, psn), rocev2.MaxPSN(m.resentPSN, psn)
	g.armRecovery(now + g.probeTimeout(i))
}

// advanceCursor moves the cursor past psn, which is sent now.
func (m *recovery) advanceCursor(psn rocev2.PSN) {
	m.cursor = psn.Next()
	if m.firstUnsent.Less(m.cursor) {
		m.firstUnsent = m.cursor
	}
}

// onProgress updates the recovery of leg i after an acknowledgement of new data.
func (g *group) onProgress(now time.Duration, i int) {
	b, m := &g.acks[i], &g.activity[i].recovery
	m.tries, m.rnrWaited, m.escalated, m.unanswered = 0, 0, false, false
	if m.ackReqPSN.Less(b.acked) {
		m.ackReqPSN = b.acked
	}
	if m.resentPSN.Less(b.acked) {
		m.resentPSN = b.acked
	}
	if b.acked == g.fwd.nxt.Prev() {
		m.burst = 0
	}
	if b.acked.Less(g.repair.ackReqPSN) || b.acked.Less(m.ackReqPSN) {
		g.armRecovery(now + g.probeTimeout(i))
	}
	if m.state == inSync {
		return
	}
	do := g.deliver(i, g.ackEvent(b.acked.Next(), m.cursor))
	if b.flags&isConnected == 0 {
		if do != nothing {
			m.skipTo(b.acked.Next())
		}
		return
	}
	switch do {
	case settle:
		// The receiver has the probe and nothing beyond it. Or it is slow, and this is
		// its answer to the original, which had AckReq too: then more ACKs come without
		// a probe.
		m.growBurst()
		m.resumeAt = now + g.repair.timeout/4
		g.armRecovery(m.resumeAt)
	case growBurst:
		m.growBurst() // what follows the probe was lost as well
	case resendRest: // the receiver had more than the probe: the rest of what was sent is on its way
		m.resendFrom(rocev2.MaxPSN(b.acked.Next(), m.firstUnsent))
	case resendUna:
		m.resendFrom(b.acked.Next())
	}
}

// ackEvent returns the event that a leg has acknowledged everything below una.
func (g *group) ackEvent(una, cursor rocev2.PSN) recoveryEvent {
	switch {
	case una.Less(cursor):
		return ackBelowCursor
	case una != cursor:
		return ackPastCursor
	}
	if e := g.repair.store.find(una.Prev()); e != nil && (e.ackReq || g.repair.asks(una.Prev())) {
		return ackAtCursorAsked
	}
	return ackAtCursor
}

// growBurst lets burstGrowth times as many packets go out up to the next probe.
func (m *recovery) growBurst() {
	if m.probeEvery *= burstGrowth; m.probeEvery > maxBurst {
		m.probeEvery = 0
	}
	m.untilProbe = m.probeEvery
}

// resendFrom moves the cursor to psn. What goes out from there has no probes.
func (m *recovery) resendFrom(psn rocev2.PSN) {
	m.cursor, m.firstUnsent = psn, rocev2.MaxPSN(m.firstUnsent, psn)
	m.probeEvery, m.untilProbe = 0, 0
}

// serveNAK serves a NAK of e, by leg i, from the store if that is possible. It reports
// whether it does: the source is not told then (R43).
func (g *group) serveNAK(now time.Duration, i int, sev severity, syn rocev2.Syndrome, e rocev2.PSN) bool {
	if g.repair.store == nil {
		return false
	}
	m := &g.activity[i].recovery
	wait := time.Duration(0)
	if sev == sevRNR {
		wait = syn.RNRCode().Duration()
	}
	switch g.deliver(i, g.nakEvent(i, sev, wait, e)) {
	case nothing:
		return true // e goes out at resumeAt; rdma_rxe follows an RNR NAK with a sequence NAK of the same PSN
	case tellSource, escalate:
		return false
	case hold:
		m.resumeAt = now + wait
		g.armRecovery(m.resumeAt)
	}
	g.startDrain(now, m)
	m.tries++
	m.rnrWaited += wait
	m.cursor = e
	m.unanswered, m.probeEvery, m.untilProbe = false, 0, 0
	m.expectedACK, m.expectedSince = g.fwd.nxt.Prev(), max(now, m.resumeAt)
	if g.acks[i].flags&isConnected == 0 {
		g.serveSwitch(i, e)
		m.expectedACK = e
	}
	g.armRecovery(m.expectedSince + g.probeTimeout(i))
	if g.live.deadAfter != 0 {
		g.activity[i].livenessSince = max(g.activity[i].livenessSince, m.expectedSince) // the receiver has nothing to answer before
	}
	g.counters.rare().NAKsServed++
	return true
}

// nakEvent returns the event of a NAK of e by leg i, which has to wait before e is sent.
func (g *group) nakEvent(i int, sev severity, wait time.Duration, e rocev2.PSN) recoveryEvent {
	b, m := &g.acks[i], &g.activity[i].recovery
	switch {
	case sev == sevFatal || b.pending != sevNone || !g.canServe(i, e):
		return nakNotServed
	case sev == sevSequence && m.state == waiting && e == m.cursor:
		return nakOfCursor
	case m.escalated || m.tries >= g.repair.tries || m.rnrWaited+wait > maxRNRWait*g.repair.timeout:
		return triesExhausted
	case sev == sevRNR:
		return rnrServed
	}
	return nakServed
}

// maxRNRWait times RepairSpec.Timeout is how long local repair waits for a receiver that
// is not ready. After that its RNR NAK goes to the source (R46): the source's own timer
// runs meanwhile, and its retries are for other faults.
const maxRNRWait = 8

// resendToLeg sends leg i the retained frames from its cursor on. It returns false if
// there are more than the caller has memory for. Frames that the leg's own port does not
// take wait for that port alone (R70).
func (g *group) resendToLeg(now time.Duration, i int, out *Output) bool {
	b, m := &g.acks[i], &g.activity[i].recovery
	room, until := -1, time.Duration(0) // -1: portRoom was not called yet
	for m.cursor.Less(g.fwd.nxt) {
		if m.state != resending || !m.storeServes(b) {
			return true
		}
		again := b.flags&isConnected == 0 && m.cursor.Less(m.firstUnsent)
		if again && g.repair.store.find(m.cursor) == nil {
			m.skipTo(m.firstUnsent) // it was freed meanwhile
			continue
		}
		e := g.repair.store.find(m.cursor)
		if e == nil {
			return true
		}
		if out.resendsExhausted() {
			return false
		}
		if room < 0 {
			room, until = g.roomFor(now, i, out)
		}
		if room == 0 {
			g.deliver(i, portFull)
			g.noteFault(i, PortFull)
			g.resumeAfter(m, until)
			return true
		}
		last := again && g.endOfBurst(m)
		room--
		// The last frame, for now, has AckReq: its loss must not go unnoticed.
		ask := m.untilProbe == 1 && b.flags&isConnected != 0 && g.deliver(i, burstEnds) == await || m.cursor.Next() == g.fwd.nxt || g.repair.store.find(m.cursor.Next()) == nil || last
		if ask || e.ackReq || g.repair.asks(m.cursor) {
			m.ackReqPSN = rocev2.MaxPSN(m.ackReqPSN, m.cursor)
			g.armRecovery(now + g.probeTimeout(i))
		}
		if m.cursor.Less(m.firstUnsent) {
			m.resentPSN = rocev2.MaxPSN(m.resentPSN, m.cursor)
			g.cost.legs[i].repaired++
		} else if m.cursor == g.rtt.psn {
			m.rttFrom = now
		}
		g.copyRetained(i, e, m.cursor, ask, out)
		m.advanceCursor(m.cursor)
		if last {
			g.endBurst(m, m.cursor.Prev())
		}
		if m.untilProbe != 0 {
			m.untilProbe--
		}
	}
	g.deliver(i, cursorAtNxt)
	return true
}

// requestFromSource gives recovering leg i a pending NAK, to have the source send a frame
// that is not in the store and that the source will not send again by itself (R47). The
// frame must be the first that the leg lacks: only then may a NAK be sent for it. It
// reports whether the leg has got a pending NAK.
func (g *group) requestFromSource(i int) bool {
	b, m := &g.acks[i], &g.activity[i].recovery
	if !m.storeServes(b) || m.cursor != b.acked.Next() ||
		g.repair.store.find(m.cursor) != nil || g.expectedFromSource(m.cursor) {
		return false
	}
	e := holeAtUna
	if m.cursor.LessEq(g.agg.acked) {
		// The leg is behind a quorum, and the frame that it may lack was freed. The
		// receiver may have it all the same. It gets new data, and if it lacks the
		// frame, its own NAK shows that (R37).
		e = holeBehind
	}
	if g.deliver(i, e) != tellSource {
		return false
	}
	g.setPending(b, sevSequence, rocev2.SyndromeNAKSequence)
	return true
}

// resumeAfter lets a leg, which is waiting, get nothing from the store before until, when
// its port may take more.
func (g *group) resumeAfter(m *recovery, until time.Duration) {
	m.resumeAt = max(m.resumeAt, until, 1) // 0: not set
	g.armRecovery(m.resumeAt)
}
