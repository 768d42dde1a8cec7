// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Local repair: packets that a receiver lacks are sent again from the group's store, to
// that receiver alone, and the source is not told (R42 to R51; RC.md §9).
//
// A leg that has been sent everything up to nxt-1 is in sync: it gets new data as it
// comes. Any other leg is recovering: it has a cursor, and gets the retained packets
// from the cursor on, in order, until it is in sync again. A packet sent past the
// cursor would make the receiver send a NAK for every gap once more (R44). RC.md §9.1
// has the states of a leg and the fields that make them.

// A probe is a packet with AckReq that the receiver may have already. A receiver that
// has the packet acknowledges all that it has; any other acknowledges that packet. An
// ACK of exactly the probe multiplies probeEvery by burstGrowth. Beyond maxBurst there
// are no more probes.
const (
	burstGrowth = 4
	maxBurst    = 64
)

// recovering is the bit of ackState.flags of a leg that has a cursor.
const recovering uint8 = 1 << 6

// recovery is the state of one leg's local repair.
type recovery struct {
	cursor           rocev2.PSN    // if recovering: the PSN to send next
	firstUnsent      rocev2.PSN    // if recovering: the first PSN that was never sent to the leg
	ackReqPSN        rocev2.PSN    // the highest PSN that was sent again with AckReq
	resentPSN        rocev2.PSN    // the highest PSN that was sent again
	expectedACK      rocev2.PSN    // the PSN that the receiver has to acknowledge within the PTO
	probeOutstanding bool          // if recovering: cursor-1 went out as a probe, and nothing follows before an answer, the PTO or resumeAt
	unanswered       bool          // the last probe was sent because the PTO had passed, and has had no answer
	escalated        bool          // local repair did not help: the leg gets what the source sends, when the source sends it
	probeEvery       uint8         // number of packets from one probe to the next; 0: no probes
	untilProbe       uint8         // number of packets up to and including the next probe
	tries            uint8         // times that packets were sent again without progress
	resumeAt         time.Duration // nothing is sent before: RNR timer, full port or, if probeOutstanding, a receiver that may be slow; 0: not set
	rnrWaited        time.Duration // sum of the RNR timers since the leg last acknowledged new data
	expectedSince    time.Duration // start of the PTO
	rtt              time.Duration // smoothed round trip; 0: never measured
	rttVar           time.Duration // mean deviation of the round trip
}

// RepairSpec sets the local repair of a group. The zero value means none.
type RepairSpec struct {
	// Bytes bounds the packet memory of the source's frames that are retained; 0: none
	// are.
	Bytes int64
	// Timeout is the shortest time after which a receiver that owes an ACK is
	// probed. It grows with the measured round trips, to four mean deviations
	// above their mean, at most 64 times Timeout.
	Timeout time.Duration
	// Tries is how often the same PSN is sent again before it is left to the
	// source.
	Tries int // 1 to 255
}

// Defaults of RepairSpec, for drivers. A receiver that answers nothing is probed after
// 4, 20, 36 and 52 ms, and left to the source after 68 ms: when a requester with the
// usual local ACK timeout (exponent 14, 67 ms) retransmits by itself.
const (
	DefaultRepairTimeout = 4 * time.Millisecond
	DefaultRepairTries   = 4
)

// freeUnneeded frees the frames that every receiver has acknowledged.
func (g *group) freeUnneeded(out *Output) {
	m := g.acked
	if g.quorum > 0 {
		for i := range g.acks {
			if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(m) {
				m = b.acked
			}
		}
	}
	g.store.freeBelow(m.Next(), out)
	if g.rttPending && g.rttPSN.LessEq(m) {
		g.rttPending = false
	}
}

// freeAfterEviction frees the frames that only an evicted receiver lacked (R49).
func (g *group) freeAfterEviction(out *Output) {
	if g.store != nil && g.quorum > 0 {
		g.freeUnneeded(out)
	}
}

// clearStore frees all frames. Those that are retained from now on begin at psn.
func (g *group) clearStore(psn rocev2.PSN, out *Output) {
	if g.store == nil {
		return
	}
	g.store.reset(psn, out)
	g.recoveryArmed, g.rttPending = false, false
	g.ackReqPSN = psn.Prev()
}

// startRecovery makes leg i recovering, with its cursor at psn.
func (g *group) startRecovery(i int, psn rocev2.PSN) {
	b := &g.acks[i]
	if b.flags&recovering == 0 {
		b.flags |= recovering
		g.numRecovering++
		g.activity[i].recovery.firstUnsent = g.nxt
	}
	g.activity[i].recovery.cursor = psn
}

// endRecovery ends the recovery of leg i, if it is recovering.
func (g *group) endRecovery(i int) {
	b, m := &g.acks[i], &g.activity[i].recovery
	if b.flags&recovering != 0 {
		b.flags &^= recovering
		g.numRecovering--
		m.probeOutstanding, m.probeEvery, m.untilProbe, m.resumeAt = false, 0, 0, 0
	}
}

// takesFromSource reports whether leg i gets psn now, from the source's packet. The leg
// is recovering, or the source repeats psn. It does not get psn if it was sent psn
// before and a probe can show whether it lacks psn, nor if the store will send psn when
// the cursor comes to it. ask means that the copy goes out as a probe.
func (g *group) takesFromSource(now time.Duration, i int, psn rocev2.PSN) (take, ask bool) {
	b, m := &g.acks[i], &g.activity[i].recovery
	first := psn == b.acked.Next()
	if b.flags&recovering == 0 && b.acked.Less(g.acked) && psn == g.acked.Next() && g.store.find(b.acked.Next()) == nil {
		first = true // behind a quorum, and the first frame that it lacks was freed: psn is the first that anybody can send
	}
	retained := b.pending == sevNone && !m.escalated && g.store.find(psn) != nil
	switch {
	case b.flags&recovering == 0 && !first:
		return false, false
	case b.flags&recovering == 0:
		// The source goes back (R48). The first packet that this receiver lacks goes
		// out once more, as a probe. What follows goes out if the answer shows the need.
		g.startRecovery(i, psn.Next())
		if m.probeOutstanding = retained; retained {
			m.ackReqPSN, m.probeEvery = rocev2.MaxPSN(m.ackReqPSN, psn), 1
			g.armProbe(now, i)
		}
		return true, retained
	case first && psn.Less(m.cursor) && !m.escalated && (m.probeOutstanding || m.resumeAt == 0 && g.store.find(m.cursor) == nil):
		// The source repeats the first packet that this receiver lacks, and was sent
		// before: it is one more probe, and the cursor stays (R56).
		g.noteProbe(now, i, psn)
		return true, true
	case retained || !first && psn != m.cursor:
		return false, false
	}
	m.advanceCursor(psn)
	m.probeOutstanding = false
	return true, false
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
	if b.acked.Less(g.ackReqPSN) || b.acked.Less(m.ackReqPSN) {
		g.armRecovery(now + g.probeTimeout(i))
	}
	if b.flags&recovering == 0 {
		return
	}
	if b.acked.Next().Less(m.cursor) {
		return
	}
	m.resumeAt = 0
	switch {
	case m.probeOutstanding && b.acked.Next() == m.cursor:
		// The receiver has the probe and nothing beyond it: what follows was lost as
		// well. burstGrowth times as many packets go out up to the next probe.
		if m.probeEvery *= burstGrowth; m.probeEvery > maxBurst {
			m.probeEvery = 0
		}
		m.untilProbe = m.probeEvery
		if e := g.store.find(b.acked); e != nil && e.ackReq {
			// Or the receiver is slow, and this is its answer to the original, which
			// had AckReq too: then more ACKs come without a probe.
			m.resumeAt = now + g.repairTimeout/4
			g.armRecovery(m.resumeAt)
			return
		}
	default:
		m.cursor = b.acked.Next()
		if m.probeOutstanding && m.cursor.Less(m.firstUnsent) {
			m.cursor = m.firstUnsent // the receiver had more than the probe: the rest of what was sent is on its way
		}
		m.probeEvery, m.untilProbe = 0, 0
	}
	m.firstUnsent = rocev2.MaxPSN(m.firstUnsent, m.cursor)
	m.probeOutstanding = false
}

// serveNAK serves a NAK of e, by leg i, from the store if that is possible. It reports
// whether it does: the source is not told then (R43).
func (g *group) serveNAK(now time.Duration, i int, sev severity, syn rocev2.Syndrome, e rocev2.PSN) bool {
	b, m := &g.acks[i], &g.activity[i].recovery
	if g.store == nil || sev == sevFatal || b.pending != sevNone || !g.canServe(e) {
		return false
	}
	if m.resumeAt > 0 && !m.probeOutstanding && sev == sevSequence && e == m.cursor {
		return true // e goes out at resumeAt; rdma_rxe follows an RNR NAK with a sequence NAK of the same PSN
	}
	wait := time.Duration(0)
	if sev == sevRNR {
		wait = syn.RNRCode().Duration()
	}
	if m.escalated = m.escalated || m.tries >= g.tries || m.rnrWaited+wait > maxRNRWait*g.repairTimeout; m.escalated {
		return false
	}
	m.tries++
	m.rnrWaited += wait
	g.startRecovery(i, e)
	m.probeOutstanding, m.unanswered, m.probeEvery, m.untilProbe, m.resumeAt = false, false, 0, 0, 0
	if wait > 0 {
		m.resumeAt = now + wait
		g.armRecovery(m.resumeAt)
	}
	m.expectedACK, m.expectedSince = g.nxt.Prev(), max(now, m.resumeAt)
	g.armRecovery(m.expectedSince + g.probeTimeout(i))
	if g.deadAfter > 0 {
		g.activity[i].livenessSince = max(g.activity[i].livenessSince, m.expectedSince) // the receiver has nothing to answer before
	}
	g.counters.rare().NAKsServed++
	return true
}

// canServe reports whether the store can serve a NAK of e: everything from e to nxt-1 is
// retained. If e is acknowledged (under Quorum) the frame of e alone is enough: nobody
// else can send it.
func (g *group) canServe(e rocev2.PSN) bool {
	return g.store.contiguousFrom.LessEq(e) && g.store.first.LessEq(e) || e.LessEq(g.acked) && g.store.find(e) != nil
}

// maxRNRWait times RepairSpec.Timeout is how long local repair waits for a receiver that
// is not ready. After that its RNR NAK goes to the source (R46): the source's own timer
// runs meanwhile, and its retries are for other faults.
const maxRNRWait = 8

// resend sends the recovering legs what the store has for them, as far as the caller
// has memory.
func (g *group) resend(now time.Duration, out *Output) {
	if g.numRecovering == 0 || g.failed {
		return
	}
	asked := false
	for i := range g.acks {
		if g.acks[i].flags&recovering == 0 {
			continue
		}
		if !g.resendToLeg(now, i, out) {
			g.armRecovery(now) // no more memory in this call
			break
		}
		if g.requestFromSource(i) {
			asked = true
		}
	}
	if asked {
		g.evaluate(out)
	}
}

// resendToLeg sends leg i the retained frames from its cursor on. It returns false if
// there are more than the caller has memory for. Frames that the leg's own port does not
// take wait for that port alone (R70).
func (g *group) resendToLeg(now time.Duration, i int, out *Output) bool {
	b, m := &g.acks[i], &g.activity[i].recovery
	room, until := -1, time.Duration(0) // -1: portRoom was not called yet
	for m.cursor.Less(g.nxt) {
		if b.pending != sevNone || m.probeOutstanding || m.resumeAt > 0 || m.escalated {
			return true
		}
		e := g.store.find(m.cursor)
		if e == nil {
			return true
		}
		if out.resendsExhausted() {
			return false
		}
		if room < 0 {
			room, until = out.portRoom(g.id, LegID(i))
		}
		if room == 0 {
			g.resumeAfter(m, until)
			return true
		}
		room--
		m.probeOutstanding = m.untilProbe == 1
		// The last frame, for now, has AckReq: its loss must not go unnoticed.
		ask := m.probeOutstanding || m.cursor.Next() == g.nxt || g.store.find(m.cursor.Next()) == nil
		if ask || e.ackReq {
			m.ackReqPSN = rocev2.MaxPSN(m.ackReqPSN, m.cursor)
			g.armRecovery(now + g.probeTimeout(i))
		}
		if m.cursor.Less(m.firstUnsent) {
			m.resentPSN = rocev2.MaxPSN(m.resentPSN, m.cursor)
		}
		g.copyRetained(i, e, m.cursor, ask, out)
		m.advanceCursor(m.cursor)
		if m.untilProbe > 0 {
			m.untilProbe--
		}
	}
	g.endRecovery(i)
	return true
}

// copyRetained makes a copy, for leg i, of the retained frame of psn. ask sets AckReq.
func (g *group) copyRetained(i int, e *retained, psn rocev2.PSN, ask bool, out *Output) {
	b := &g.acks[i]
	c := Copy{Group: g.id, Leg: LegID(i), Frame: e.frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}
	if b.flags&isConnected != 0 && !g.rewriteCopy(&c, e.rewrite, e.va, psn) {
		return
	}
	if ask && !e.ackReq {
		c.Flags |= SetAckReq
	}
	out.resends++
	out.Copies = append(out.Copies, c)
	g.counters.Copies++
	g.counters.rare().Resent++
}

// requestFromSource gives recovering leg i a pending NAK, to have the source send a frame
// that is not in the store and that the source will not send again by itself (R47). The
// frame must be the first that the leg lacks: only then may a NAK be sent for it. It
// reports whether the leg has got a pending NAK.
func (g *group) requestFromSource(i int) bool {
	b, m := &g.acks[i], &g.activity[i].recovery
	if b.flags&recovering == 0 || b.pending != sevNone || m.cursor != b.acked.Next() || !m.cursor.Less(g.nxt) || m.escalated || m.probeOutstanding || m.resumeAt > 0 ||
		g.store.find(m.cursor) != nil || g.expectedFromSource(m.cursor) {
		return false
	}
	if m.cursor.LessEq(g.acked) {
		// The leg is behind a quorum, and the frame that it may lack was freed. The
		// receiver may have it all the same. It gets new data, and if it lacks the
		// frame, its own NAK shows that (R37).
		g.endRecovery(i)
		m.escalated = true
		return false
	}
	g.setPending(b, sevSequence, rocev2.SyndromeNAKSequence)
	return true
}

// resumeAfter lets a leg get nothing from the store before until, when its port may take
// more.
func (g *group) resumeAfter(m *recovery, until time.Duration) {
	m.resumeAt = max(m.resumeAt, until, 1) // 0: not set
	g.armRecovery(m.resumeAt)
}

// resendsExhausted reports whether the caller has no memory for another copy from the
// store.
func (o *Output) resendsExhausted() bool { return o.MaxResends != 0 && o.resends >= o.MaxResends }

// portRoom returns how many copies from the store the port of a leg takes, and when it
// may take more.
func (o *Output) portRoom(id GroupID, leg LegID) (copies int, until time.Duration) {
	if o.PortRoom == nil {
		return math.MaxInt, 0
	}
	copies, until = o.PortRoom(id, leg)
	return max(copies, 0), until
}
