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
	burstMax    = 64
)

// late is the bit of branch.bits that says so; mending.next is the cursor.
const late uint8 = 1 << 6

// mending is what local repair knows of a leg.
type mending struct {
	next    rocev2.PSN    // if late: the PSN to send next
	sent    rocev2.PSN    // if late: the first PSN that was never sent
	asked   rocev2.PSN    // the highest PSN that was sent again with a request for an ACK
	again   rocev2.PSN    // the highest PSN that was sent again
	watch   rocev2.PSN    // the PSN it has to acknowledge, counted from owed
	probing bool          // if late: next-1 went out as a question, and nothing follows until there is an answer, or until hold
	quiet   bool          // a question has had no answer
	led     bool          // local repair did not help: it gets what the source sends, in the source's time
	burst   uint8         // if not 0: every so many packets there is a question
	left    uint8         // packets until then
	tries   uint8         // times that the same PSN was sent again from here
	hold    time.Duration // nothing is sent before: it is not ready, or its port is not, or it may answer more (if probing); 0: it is
	waited  time.Duration // for it to become ready, since it last acknowledged something
	owed    time.Duration
	rtt     time.Duration // smoothed, and its mean deviation: 0 if never measured
	rttVar  time.Duration
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

// release lets go of what no receiver can need any more, as A has moved.
func (g *group) release(out *Output) {
	m := g.a
	if g.quorum > 0 {
		for i := range g.branches {
			if b := &g.branches[i]; b.bits&receiving != 0 && b.a.Less(m) {
				m = b.a
			}
		}
	}
	g.store.free(m.Next(), out)
	if g.timing && g.timed.LessEq(m) {
		g.timing = false
	}
}

// unneeded lets go of what only a receiver lacked that has been removed (R49).
func (g *group) unneeded(out *Output) {
	if g.store != nil && g.quorum > 0 {
		g.release(out)
	}
}

// forget lets go of everything: what is kept from now on begins at psn.
func (g *group) forget(psn rocev2.PSN, out *Output) {
	if g.store == nil {
		return
	}
	g.store.clear(psn, out)
	g.tending, g.timing = false, false
	g.asked = psn.Prev()
}

// setLate makes branch i late, from psn on.
func (g *group) setLate(i int, psn rocev2.PSN) {
	b := &g.branches[i]
	if b.bits&late == 0 {
		b.bits |= late
		g.nlate++
		g.tracks[i].mend.sent = g.hi
	}
	g.tracks[i].mend.next = psn
}

// setInLine ends that branch i is late.
func (g *group) setInLine(i int) {
	b, m := &g.branches[i], &g.tracks[i].mend
	if b.bits&late != 0 {
		b.bits &^= late
		g.nlate--
		m.probing, m.burst, m.left, m.hold = false, 0, 0, 0
	}
}

// inTurn says whether branch i, which is late or to which psn goes again, gets it
// now from the source: not if it has been sent it before and may be asked about
// it, nor if the store will send it when its turn comes. ask says that it goes as
// a question.
func (g *group) inTurn(now time.Duration, i int, psn rocev2.PSN) (yes, ask bool) {
	b, m := &g.branches[i], &g.tracks[i].mend
	first := psn == b.a.Next()
	if b.bits&late == 0 && b.a.Less(g.a) && psn == g.a.Next() && g.store.find(b.a.Next()) == nil {
		first = true // behind a quorum, and what it lacks is gone: this is the first that anybody can send it
	}
	here := b.pend == noPend && !m.led && g.store.find(psn) != nil
	switch {
	case b.bits&late == 0 && !first:
		return false, false
	case b.bits&late == 0:
		// The source goes back (R48). What is first for this receiver goes out, once
		// more and with a question; what follows, when the answer shows the need.
		g.setLate(i, psn.Next())
		if m.probing = here; here {
			m.asked, m.burst = rocev2.MaxPSN(m.asked, psn), 1
			g.expect(now, i)
		}
		return true, here
	case first && psn.Less(m.next) && !m.led && (m.probing || m.hold == 0 && g.store.find(m.next) == nil):
		// The source repeats what this receiver lacks first, and has been sent: one
		// more probe, and the cursor stays where it is (R56).
		g.probed(now, i, psn)
		return true, true
	case here || !first && psn != m.next:
		return false, false
	}
	m.step(psn)
	m.probing = false
	return true, false
}

// probed notes that psn, which branch i was sent before, goes out with a request for an
// ACK.
func (g *group) probed(now time.Duration, i int, psn rocev2.PSN) {
	m := &g.tracks[i].mend
	m.asked, m.again = rocev2.MaxPSN(m.asked, psn), rocev2.MaxPSN(m.again, psn)
	g.tendBy(now + g.patience(i))
}

// step moves the cursor past psn, which is sent now.
func (m *mending) step(psn rocev2.PSN) {
	m.next = psn.Next()
	if m.sent.Less(m.next) {
		m.sent = m.next
	}
}

// progressed follows an acknowledgement of new data by branch i.
func (g *group) progressed(now time.Duration, i int) {
	b, m := &g.branches[i], &g.tracks[i].mend
	m.tries, m.waited, m.led, m.quiet = 0, 0, false, false
	if m.asked.Less(b.a) {
		m.asked = b.a
	}
	if m.again.Less(b.a) {
		m.again = b.a
	}
	if b.a.Less(g.asked) || b.a.Less(m.asked) {
		g.tendBy(now + g.patience(i))
	}
	if b.bits&late == 0 {
		return
	}
	if b.a.Next().Less(m.next) {
		return
	}
	m.hold = 0
	switch {
	case m.probing && b.a.Next() == m.next:
		// What was asked about is there now, and no more: what follows was lost
		// as well. Four times as much goes before the next question.
		if m.burst *= burstGrowth; m.burst > burstMax {
			m.burst = 0
		}
		m.left = m.burst
		if e := g.store.find(b.a); e != nil && e.ackReq {
			// Or it is slow, and answers what it was sent at first, which asked as
			// well: then more will come without being asked for.
			m.hold = now + g.repairTimeout/4
			g.tendBy(m.hold)
			return
		}
	default:
		m.next = b.a.Next()
		if m.probing && m.next.Less(m.sent) {
			m.next = m.sent // it had more than it was asked for: the rest is on its way
		}
		m.burst, m.left = 0, 0
	}
	m.sent = rocev2.MaxPSN(m.sent, m.next)
	m.probing = false
}

// mend decides whether a NAK of e, by branch i, is served from the store. If so
// the source is not told (R43).
func (g *group) mend(now time.Duration, i int, sev severity, syn rocev2.Syndrome, e rocev2.PSN) bool {
	b, m := &g.branches[i], &g.tracks[i].mend
	if g.store == nil || sev == sevFatal || b.pend != noPend || !g.serves(e) {
		return false
	}
	if m.hold > 0 && !m.probing && sev == sevSequence && e == m.next {
		return true // it comes; rdma_rxe follows an RNR NAK with a sequence NAK of the same PSN
	}
	wait := time.Duration(0)
	if sev == sevRNR {
		wait = syn.RNRCode().Duration()
	}
	if m.led = m.led || m.tries >= g.tries || m.waited+wait > rnrPatience*g.repairTimeout; m.led {
		return false
	}
	m.tries++
	m.waited += wait
	g.setLate(i, e)
	m.probing, m.quiet, m.burst, m.left, m.hold = false, false, 0, 0, 0
	if wait > 0 {
		m.hold = now + wait
		g.tendBy(m.hold)
	}
	m.watch, m.owed = g.hi.Prev(), max(now, m.hold)
	g.tendBy(m.owed + g.patience(i))
	if g.deadAfter > 0 {
		g.tracks[i].watched = max(g.tracks[i].watched, m.owed) // it has nothing to answer until then
	}
	g.count.rare().NAKsServed++
	return true
}

// serves says whether the store can answer a NAK of e: if all that follows is
// there. What is acknowledged (under Quorum) can come from nowhere else, so there
// that much is enough.
func (g *group) serves(e rocev2.PSN) bool {
	return g.store.whole.LessEq(e) && g.store.low.LessEq(e) || e.LessEq(g.a) && g.store.find(e) != nil
}

// rnrPatience times the timeout is how long a receiver that is not ready is
// waited for here, before its RNR NAK goes to the source (R46): the source's own timer
// runs meanwhile, and its retries are for other things.
const rnrPatience = 8

// resend sends late branches what the store has for them, as far as the driver
// has room.
func (g *group) resend(now time.Duration, out *Output) {
	if g.nlate == 0 || g.dead {
		return
	}
	asked := false
	for i := range g.branches {
		if g.branches[i].bits&late == 0 {
			continue
		}
		if !g.resendTo(now, i, out) {
			g.tendBy(now) // no more room in this call
			break
		}
		if g.want(i) {
			asked = true
		}
	}
	if asked {
		g.eval(out)
	}
}

// resendTo sends branch i what is its turn. It returns false if there is more
// than there is memory for. What the leg's own port does not take waits for that
// port alone (R70).
func (g *group) resendTo(now time.Duration, i int, out *Output) bool {
	b, m := &g.branches[i], &g.tracks[i].mend
	room, until := -1, time.Duration(0) // not asked yet
	for m.next.Less(g.hi) {
		if b.pend != noPend || m.probing || m.hold > 0 || m.led {
			return true
		}
		e := g.store.find(m.next)
		if e == nil {
			return true
		}
		if out.full() {
			return false
		}
		if room < 0 {
			room, until = out.room(g.id, LegID(i))
		}
		if room == 0 {
			g.holdFor(m, until)
			return true
		}
		room--
		m.probing = m.left == 1
		// The last one, for now, must not be lost unnoticed.
		ask := m.probing || m.next.Next() == g.hi || g.store.find(m.next.Next()) == nil
		if ask || e.ackReq {
			m.asked = rocev2.MaxPSN(m.asked, m.next)
			g.tendBy(now + g.patience(i))
		}
		if m.next.Less(m.sent) {
			m.again = rocev2.MaxPSN(m.again, m.next)
		}
		g.copyStored(i, e, m.next, ask, out)
		m.step(m.next)
		if m.left > 0 {
			m.left--
		}
	}
	g.setInLine(i)
	return true
}

// copyStored makes a copy, for branch i, of the stored frame of psn.
func (g *group) copyStored(i int, e *stored, psn rocev2.PSN, ask bool, out *Output) {
	b := &g.branches[i]
	c := Copy{Group: g.id, Leg: LegID(i), Frame: e.frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}
	if b.bits&rewrites != 0 && !g.translate(&c, e.how, e.va, psn) {
		return
	}
	if ask && !e.ackReq {
		c.Flags |= SetAckReq
	}
	out.repairs++
	out.Copies = append(out.Copies, c)
	g.count.Copies++
	g.count.rare().Repairs++
}

// want asks the source, in the name of late branch i, for a frame that is not in
// the store and that the source will not pass again by itself (R47). It must be what
// the branch lacks first: only then may a NAK for it be sent. It reports whether
// the branch has a NAK pending now.
func (g *group) want(i int) bool {
	b, m := &g.branches[i], &g.tracks[i].mend
	if b.bits&late == 0 || b.pend != noPend || m.next != b.a.Next() || !m.next.Less(g.hi) || m.led || m.probing || m.hold > 0 ||
		g.store.find(m.next) != nil || g.coming(m.next) {
		return false
	}
	if m.next.LessEq(g.a) {
		// Behind a quorum, with what it may lack gone: it may have had it all the
		// same. It gets what is new, and if it did not, its own NAK says so (R37).
		g.setInLine(i)
		m.led = true
		return false
	}
	g.setPend(b, sevSequence, rocev2.SyndromeNAKSequence)
	return true
}

// holdFor sends a leg nothing from the store before its port may take more.
func (g *group) holdFor(m *mending, until time.Duration) {
	m.hold = max(m.hold, until, 1) // 0 is none
	g.tendBy(m.hold)
}

// full says whether the caller has no memory for another copy from the store.
func (o *Output) full() bool { return o.MaxRepairs != 0 && o.repairs >= o.MaxRepairs }

// room returns how many copies from the store the port of a leg takes, and when it
// may take more.
func (o *Output) room(id GroupID, leg LegID) (copies int, until time.Duration) {
	if o.Room == nil {
		return math.MaxInt, 0
	}
	copies, until = o.Room(id, leg)
	return max(copies, 0), until
}
