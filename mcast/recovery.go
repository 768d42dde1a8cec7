// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Local repair: what a receiver lacks comes again from the group's store, to that
// receiver alone, and the source hears nothing of it (R42 to R51; RC.md §9).
//
// A receiver that has been sent everything up to hi-1 is in line and gets new
// data as it comes. One that has not is late: it has a cursor, gets what the
// store has from there on and nothing out of order, until it is in line again. A
// packet sent past a cursor would make it ask for every gap once more (R44).

// A question is a packet with AckReq that a receiver may have already. Who has it
// acknowledges all it has; who has not acknowledges that packet.
const (
	burstGrowth = 4
	maxBurst    = 64
)

// recovering is the bit of branch.bits that says so; mending.next is the cursor.
const recovering uint8 = 1 << 6

// recovery is what local repair knows of a leg.
type recovery struct {
	cursor           rocev2.PSN    // if late: the PSN to send next
	firstUnsent      rocev2.PSN    // if late: the first PSN that was never sent
	ackReqPSN        rocev2.PSN    // the highest PSN that was sent again with a request for an ACK
	resentPSN        rocev2.PSN    // the highest PSN that was sent again
	expectedACK      rocev2.PSN    // the PSN it has to acknowledge, counted from owed
	probeOutstanding bool          // if late: next-1 went out as a question, and nothing follows until there is an answer, or until hold
	unanswered       bool          // a question has had no answer
	escalated        bool          // local repair did not help: it gets what the source sends, in the source's time
	probeEvery       uint8         // if not 0: every so many packets there is a question
	untilProbe       uint8         // packets until then
	tries            uint8         // times that the same PSN was sent again from here
	resumeAt         time.Duration // nothing is sent before: it is not ready, or its port is not, or it may answer more (if probing); 0: it is
	rnrWaited        time.Duration // for it to become ready, since it last acknowledged something
	expectedSince    time.Duration
	rtt              time.Duration // smoothed, and its mean deviation: 0 if never measured
	rttVar           time.Duration
}

// RepairSpec is how a group repairs losses by itself. The zero value does not.
type RepairSpec struct {
	// Bytes is how much of the source's unacknowledged data is kept; 0 none.
	Bytes int64
	// Timeout is the shortest time after which a receiver that owes an ACK is
	// asked again. It grows with the round trips that are measured, to four mean
	// deviations above their mean, at most 64 times Timeout.
	Timeout time.Duration
	// Tries is how often the same PSN is sent again before that is left to the
	// source.
	Tries int // 1 to 255
}

// Defaults of RepairSpec, for drivers. A receiver that answers nothing is asked
// after 4, 20, 36 and 52 ms, and left to the source after 68: when a requester with
// the local ACK timeout that most use (14, 67 ms) sends again by itself.
const (
	DefaultRepairTimeout = 4 * time.Millisecond
	DefaultRepairTries   = 4
)

// freeUnneeded lets go of what no receiver can need any more, as A has moved.
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

// freeAfterEviction lets go of what only a receiver lacked that has been removed (R49).
func (g *group) freeAfterEviction(out *Output) {
	if g.store != nil && g.quorum > 0 {
		g.freeUnneeded(out)
	}
}

// clearStore lets go of everything: what is kept from now on begins at psn.
func (g *group) clearStore(psn rocev2.PSN, out *Output) {
	if g.store == nil {
		return
	}
	g.store.reset(psn, out)
	g.recoveryArmed, g.rttPending = false, false
	g.ackReqPSN = psn.Prev()
}

// startRecovery makes branch i late, from psn on.
func (g *group) startRecovery(i int, psn rocev2.PSN) {
	b := &g.acks[i]
	if b.flags&recovering == 0 {
		b.flags |= recovering
		g.numRecovering++
		g.activity[i].recovery.firstUnsent = g.nxt
	}
	g.activity[i].recovery.cursor = psn
}

// endRecovery ends that branch i is late.
func (g *group) endRecovery(i int) {
	b, m := &g.acks[i], &g.activity[i].recovery
	if b.flags&recovering != 0 {
		b.flags &^= recovering
		g.numRecovering--
		m.probeOutstanding, m.probeEvery, m.untilProbe, m.resumeAt = false, 0, 0, 0
	}
}

// takesFromSource says whether branch i, which is late or to which psn goes again, gets it
// now from the source: not if it has been sent it before and may be asked about
// it, nor if the store will send it when its turn comes. ask says that it goes as
// a question.
func (g *group) takesFromSource(now time.Duration, i int, psn rocev2.PSN) (take, ask bool) {
	b, m := &g.acks[i], &g.activity[i].recovery
	first := psn == b.acked.Next()
	if b.flags&recovering == 0 && b.acked.Less(g.acked) && psn == g.acked.Next() && g.store.find(b.acked.Next()) == nil {
		first = true // behind a quorum, and what it lacks is gone: this is the first that anybody can send it
	}
	retained := b.pending == sevNone && !m.escalated && g.store.find(psn) != nil
	switch {
	case b.flags&recovering == 0 && !first:
		return false, false
	case b.flags&recovering == 0:
		// The source goes back (R48). What is first for this receiver goes out, once
		// more and with a question; what follows, when the answer shows the need.
		g.startRecovery(i, psn.Next())
		if m.probeOutstanding = retained; retained {
			m.ackReqPSN, m.probeEvery = rocev2.MaxPSN(m.ackReqPSN, psn), 1
			g.armProbe(now, i)
		}
		return true, retained
	case first && psn.Less(m.cursor) && !m.escalated && (m.probeOutstanding || m.resumeAt == 0 && g.store.find(m.cursor) == nil):
		// The source repeats what this receiver lacks first, and has been sent: one
		// more probe, and the cursor stays where it is (R56).
		g.noteProbe(now, i, psn)
		return true, true
	case retained || !first && psn != m.cursor:
		return false, false
	}
	m.advanceCursor(psn)
	m.probeOutstanding = false
	return true, false
}

// noteProbe notes that psn, which branch i was sent before, goes out with a request for an
// ACK.
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

// onProgress follows an acknowledgement of new data by branch i.
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
		// What was asked about is there now, and no more: what follows was lost
		// as well. Four times as much goes before the next question.
		if m.probeEvery *= burstGrowth; m.probeEvery > maxBurst {
			m.probeEvery = 0
		}
		m.untilProbe = m.probeEvery
		if e := g.store.find(b.acked); e != nil && e.ackReq {
			// Or it is slow, and answers what it was sent at first, which asked as
			// well: then more will come without being asked for.
			m.resumeAt = now + g.repairTimeout/4
			g.armRecovery(m.resumeAt)
			return
		}
	default:
		m.cursor = b.acked.Next()
		if m.probeOutstanding && m.cursor.Less(m.firstUnsent) {
			m.cursor = m.firstUnsent // it had more than it was asked for: the rest is on its way
		}
		m.probeEvery, m.untilProbe = 0, 0
	}
	m.firstUnsent = rocev2.MaxPSN(m.firstUnsent, m.cursor)
	m.probeOutstanding = false
}

// serveNAK decides whether a NAK of e, by branch i, is served from the store. If so
// the source is not told (R43).
func (g *group) serveNAK(now time.Duration, i int, sev severity, syn rocev2.Syndrome, e rocev2.PSN) bool {
	b, m := &g.acks[i], &g.activity[i].recovery
	if g.store == nil || sev == sevFatal || b.pending != sevNone || !g.canServe(e) {
		return false
	}
	if m.resumeAt > 0 && !m.probeOutstanding && sev == sevSequence && e == m.cursor {
		return true // it comes; rdma_rxe follows an RNR NAK with a sequence NAK of the same PSN
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
		g.activity[i].livenessSince = max(g.activity[i].livenessSince, m.expectedSince) // it has nothing to answer until then
	}
	g.counters.rare().NAKsServed++
	return true
}

// canServe says whether the store can answer a NAK of e: if all that follows is
// there. What is acknowledged (under Quorum) can come from nowhere else, so there
// that much is enough.
func (g *group) canServe(e rocev2.PSN) bool {
	return g.store.contiguousFrom.LessEq(e) && g.store.first.LessEq(e) || e.LessEq(g.acked) && g.store.find(e) != nil
}

// maxRNRWait times the timeout is how long a receiver that is not ready is
// waited for here, before its RNR NAK goes to the source (R46): the source's own timer
// runs meanwhile, and its retries are for other things.
const maxRNRWait = 8

// resend sends late branches what the store has for them, as far as the driver
// has room.
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
			g.armRecovery(now) // no more room in this call
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

// resendToLeg sends branch i what is its turn. It returns false if there is more
// than there is memory for. What the leg's own port does not take waits for that
// port alone (R70).
func (g *group) resendToLeg(now time.Duration, i int, out *Output) bool {
	b, m := &g.acks[i], &g.activity[i].recovery
	room, until := -1, time.Duration(0) // not asked yet
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
		// The last one, for now, must not be lost unnoticed.
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

// copyRetained makes a copy, for branch i, of the stored frame of psn.
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

// requestFromSource asks the source, in the name of late branch i, for a frame that is not in
// the store and that the source will not pass again by itself (R47). It must be what
// the branch lacks first: only then may a NAK for it be sent. It reports whether
// the branch has a NAK pending now.
func (g *group) requestFromSource(i int) bool {
	b, m := &g.acks[i], &g.activity[i].recovery
	if b.flags&recovering == 0 || b.pending != sevNone || m.cursor != b.acked.Next() || !m.cursor.Less(g.nxt) || m.escalated || m.probeOutstanding || m.resumeAt > 0 ||
		g.store.find(m.cursor) != nil || g.expectedFromSource(m.cursor) {
		return false
	}
	if m.cursor.LessEq(g.acked) {
		// Behind a quorum, with what it may lack gone: it may have had it all the
		// same. It gets what is new, and if it did not, its own NAK says so (R37).
		g.endRecovery(i)
		m.escalated = true
		return false
	}
	g.setPending(b, sevSequence, rocev2.SyndromeNAKSequence)
	return true
}

// resumeAfter sends a leg nothing from the store before its port may take more.
func (g *group) resumeAfter(m *recovery, until time.Duration) {
	m.resumeAt = max(m.resumeAt, until, 1) // 0 is none
	g.armRecovery(m.resumeAt)
}

// resendsExhausted says whether the caller has no memory for another copy from the store.
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
