// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// evaluate is EVAL of RC.md §6.2: it raises acked and sends the source an ACK of it, then
// a NAK of the next PSN if one is due.
func (g *group) evaluate(out *Output) {
	if g.is(unplaced) {
		return // nothing of the source is known to be had by all
	}
	for {
		for g.agg.numAtAcked <= g.agg.allowedBehind && g.raiseAcked(out) {
		}
		if g.policy.quorum != 0 && g.agg.numPending != 0 && g.removeStranded(out) {
			if g.is(failed) {
				return
			}
			continue
		}
		if g.agg.numPending == 0 && !g.is(requests) {
			return
		}
		worst, who, code := g.worstPending()
		switch {
		case worst == sevNone:
			return
		case worst == sevFatal && who != none && g.canEvict(who):
			g.evict(who, code, out)
			continue
		}
		next := g.agg.acked.Next()
		if r := &g.agg.request; r.awaits(next) && worst <= r.severity {
			return // the source was sent this NAK, and has not sent its PSN since
		}
		g.agg.request = request{psn: next, severity: worst}
		g.sendNAK(out, code, next)
		if worst == sevFatal {
			g.fatalSent(who, code, out)
		}
		return
	}
}

// raiseAcked sets the group's acked to the lowest acked of the receiving legs; under
// Quorum, to the highest PSN that the quorum has. Without receivers it is all that was
// forwarded. If acked rises the source is sent an ACK, and raiseAcked returns true.
func (g *group) raiseAcked(out *Output) bool {
	var m rocev2.PSN
	if g.policy.quorum != 0 {
		m = g.quorumAcked()
	} else {
		m = g.lowestAcked()
	}
	if m.LessEq(g.agg.acked) {
		return false
	}
	g.src.ackedCount = addAckedCount(g.src.ackedCount, m.Sub(g.agg.acked))
	g.agg.acked, g.cost.aloneSince = m, 0
	if g.numbering.gap {
		g.numbering.closeGapBelow(g.lowestReceived().Next())
	}
	if g.policy.stored && m.Next().Sub(g.storage.reported) >= storeEvery {
		g.reportPositions(out)
	}
	if r := &g.agg.request; r.severity != sevNone && m.Sub(r.psn) >= maxSourceFlight {
		*r = request{} // the source went on and did not send that packet again (R62)
	}
	g.agg.messages.advance(m)
	if g.fwd.targets != nil {
		g.fwd.targets.fold(m)
	}
	if g.repair.store != nil {
		g.freeUnneeded(out)
	} else if g.rtt.psn.LessEq(m) {
		g.rtt.pending = false
	}
	g.sendACK(out)
	if g.recv.joinedInFlight != 0 && g.recv.inFlightUntil.LessEq(m) {
		g.promoteJoined()
	}
	return true
}

// lowestAcked returns the PSN up to which every receiver has all, and sets numAtAcked to
// the number of receivers that have no more.
func (g *group) lowestAcked() rocev2.PSN {
	m, n := g.fwd.nxt.Prev(), int32(0)
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		switch {
		case b.acked.Less(m):
			m, n = b.acked, 1
		case b.acked == m:
			n++
		}
	}
	g.agg.numAtAcked = n
	return m
}

// worstPending returns the highest severity that is pending at acked+1, the leg that it
// comes from (none: the switch itself) and the syndrome to send: of several RNR NAKs
// the one with the longest wait.
func (g *group) worstPending() (sev severity, from int, code rocev2.Syndrome) {
	for i := range g.acks {
		b := &g.acks[i]
		if b.pending == sevNone || b.acked != g.agg.acked {
			continue
		}
		if b.pending > sev || b.pending == sevRNR && sev == sevRNR && b.pendingSyndrome.RNRCode().Duration() > code.RNRCode().Duration() {
			sev, from, code = b.pending, i, b.pendingSyndrome
		}
	}
	una := g.agg.acked.Next()
	switch complete := g.fwd.nxt == una; { // all that was forwarded is acknowledged
	case g.is(refused) && g.refusal.psn == una && sev < sevFatal:
		return sevFatal, none, g.refusal.syndrome
	case g.is(messageRefused) && complete && (!g.is(frozen) || una.LessEq(g.src.lastPSN)):
		return sevRNR, none, turnSoon.RNR() // a frozen source (R86) may have nothing more to send, if una has not come
	case g.is(messageRefused) && !complete && g.is(frozen) && sev < sevRNR:
		return sevRNR, none, turnSoon.RNR()
	case g.is(asking|lostNxt) && complete: // the message at nxt waits no longer (R53, R83), or nxt was lost before the switch (R103)
		return sevSequence, none, rocev2.SyndromeNAKSequence
	}
	return sev, from, code
}

// addAckedCount adds n PSNs to past, an ackedCount: how far back a duplicate may be.
func addAckedCount(past, n int32) int32 { return min(past+n, maxBehind) }

// aggregation is what the group acknowledges to the source. acked never falls within a
// turn; it is the lowest acked of the receivers or, under Quorum, the highest PSN that the
// quorum has.
type aggregation struct {
	acked         rocev2.PSN `state:"encoded"`                          // all up to here is acknowledged, by every receiver or the quorum
	numAtAcked    int32      `state:"encoded"`                          // receivers that are not above acked; more than allowedBehind while acked cannot move
	allowedBehind int32      `state:"encoded if c.g.policy.quorum > 0"` // receivers that acked does not wait for: 0, except under Quorum
	numPending    int32      `state:"encoded"`                          // legs with a pending NAK
	request       request    `state:"encoded"`                          // what the source was asked for
	messages      messages   `state:"encoded"`                          // the MSN of the group's ACK
}

// setPending replaces the pending NAK of b.
func (g *group) setPending(b *ackState, sev severity, info rocev2.Syndrome) {
	if b.pending != sevNone {
		g.agg.numPending--
	}
	if sev != sevNone {
		g.agg.numPending++
	}
	b.pending, b.pendingSyndrome = sev, info
}

// noteAcked records that b acknowledged everything up to psn. It reports whether that
// is news.
func (g *group) noteAcked(b *ackState, psn rocev2.PSN) bool {
	if psn.LessEq(b.acked) {
		return false
	}
	if b.acked.LessEq(g.agg.acked) && g.agg.acked.Less(psn) && (b.flags&joinedInFlight == 0 || g.policy.quorum == 0) {
		g.agg.numAtAcked--
	}
	b.acked = psn
	g.setPending(b, sevNone, 0)
	return true
}

// sendACK sends the source an ACK of acked. The syndrome is always 0x1F: the credits of
// several receivers cannot be merged safely (R20).
func (g *group) sendACK(out *Output) {
	g.sendFeedback(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.agg.acked)
	g.src.becnDue = false
}

func (g *group) sendNAK(out *Output, code rocev2.Syndrome, psn rocev2.PSN) {
	g.sendFeedback(out, rocev2.Acknowledge, code, psn)
	g.src.becnDue = false
}

func (g *group) sendFeedback(out *Output, op rocev2.Opcode, syn rocev2.Syndrome, psn rocev2.PSN) {
	if g.is(quarantined|unplaced) && op == rocev2.Acknowledge {
		return
	}
	g.counters.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{
		Group: g.id, To: MemberID(g.src.member), Op: op, BECN: g.src.becnDue,
		PSN: psn, Syndrome: syn, MSN: g.msnTo(MemberID(g.src.member), g.agg.messages.completed),
	})
}

// request is the NAK that the source was sent last: it is asked for a packet, to wait, or told that it is in error.
type request struct {
	psn      rocev2.PSN `state:"encoded if x.severity != sevNone"`
	severity severity   `state:"encoded"`                          // sevNone: no NAK counts
	served   bool       `state:"encoded if x.severity != sevNone"` // the source has sent psn since
}

// isOpen reports whether the source has not sent what it was asked for. It waits out an RNR timer, or the NAK was lost.
func (r *request) isOpen() bool { return r.severity != sevNone && !r.served }

// awaits reports whether the source has been asked for psn, and has not sent it since.
func (r *request) awaits(psn rocev2.PSN) bool { return r.isOpen() && r.psn == psn }

// serve notes that psn has come.
func (r *request) serve(psn rocev2.PSN) {
	if r.severity != sevNone && psn == r.psn {
		r.served = true
	}
}

// refusal is a request of the source that is forwarded to nobody: the switch itself
// answers it by a fatal NAK, as if it were one more receiver (R27, R28).
type refusal struct {
	psn      rocev2.PSN      `state:"encoded"`
	syndrome rocev2.Syndrome `state:"encoded"` // 0: nothing is refused
	reason   Reason          `state:"encoded"`
}

func (g *group) setRefusal(r refusal) {
	g.refusal = r
	g.set(refused, r.syndrome != 0)
}

// maxEnds is how many message ends of the source are recorded between acked and nxt.
// rdma_rxe has at most 128 PSNs in flight (RXE_MAX_UNACKED_PSNS), so for it the count is
// exact.
const maxEnds = 128

// minEnds is the least size of a ring of message ends: one cache line.
const minEnds = 8

// messages counts the source's messages whose last PSN is acknowledged: the
// MSN of the group's ACK (R20). When more than maxEnds messages are in flight
// the youngest ones share an entry and are counted together, with the last of
// them: the MSN is then too low for a while. That is harmless with syndrome
// 0x1F, which makes the requester ignore credits, the only use of a MSN.
type messages struct {
	completed rocev2.MSN        `state:"encoded"`          // messages that end at or before acked
	first     uint16            `state:"derived"`          // index in ends of the oldest entry
	count     uint16            `state:"own(messageRing)"` // number of entries
	ends      []messageEnd      `state:"own(messageRing)"` // ring in PSN order; its length grows with the messages in flight, from minEnds to maxEnds
	spare     *pool[messageEnd] `state:"constant"`
}

type messageEnd struct {
	psn   rocev2.PSN `state:"encoded"`
	count uint32     `state:"encoded"` // messages that are complete when psn is acknowledged, at least 1
}

func (m *messages) at(i uint16) *messageEnd { return &m.ends[m.place(i)] }

func (m *messages) place(i uint16) uint16 { return (m.first + i) & uint16(len(m.ends)-1) }

// grow makes room for one more entry. There are fewer than maxEnds.
func (m *messages) grow() {
	if int(m.count) < len(m.ends) {
		return
	}
	ends := m.spare.get(max(minEnds, 2*len(m.ends)))
	for i := range m.count {
		ends[i] = *m.at(i)
	}
	m.spare.put(m.ends)
	m.ends, m.first = ends, 0
}

// reset begins a turn of a source that has completed done messages before.
func (m *messages) reset(done rocev2.MSN) { m.completed, m.first, m.count = done, 0, 0 }

// addEnd records that psn, the highest so far, ends a message.
func (m *messages) addEnd(psn rocev2.PSN) { m.addMany(psn, 1) }

// addMany records that n messages, at least 1, end behind all so far, and by psn.
func (m *messages) addMany(psn rocev2.PSN, n uint32) {
	if m.count < maxEnds {
		m.grow()
		*m.at(m.count) = messageEnd{psn, n}
		m.count++
		return
	}
	e := m.at(m.count - 1)
	e.psn = psn
	e.count += n
}

// correctEnd corrects the entry of a retransmitted psn: its first passage may have been
// lost before the switch, or have been a corrupted frame, which is forwarded unverified. It returns how
// many more messages it counts.
func (m *messages) correctEnd(psn rocev2.PSN, ends bool) (more int32) {
	i := uint16(0)
	for i < m.count && m.at(i).psn.Less(psn) {
		i++
	}
	found := i < m.count && m.at(i).psn == psn
	switch {
	case found && !ends && m.at(i).count == 1:
		for ; i+1 < m.count; i++ {
			*m.at(i) = *m.at(i + 1)
		}
		m.count--
		return -1
	case !found && ends && m.count < maxEnds && (i == m.count || m.at(i).count == 1):
		m.grow()
		for j := m.count; j > i; j-- {
			*m.at(j) = *m.at(j - 1)
		}
		*m.at(i) = messageEnd{psn, 1}
		m.count++
		return 1
	}
	return 0
}

// completedBy returns how many of the source's messages end at or before psn, which is
// not below acked. exact is false if some of them are counted together with later ones.
func (m *messages) completedBy(psn rocev2.PSN) (count rocev2.MSN, exact bool) {
	count, exact = m.completed, true
	for i := uint16(0); i < m.count; i++ {
		switch e := m.at(i); {
		case e.psn.LessEq(psn):
			count = count.Add(int32(e.count))
		case e.count > 1:
			return count, false
		}
	}
	return count, exact
}

// advance counts the messages that end at or before a.
func (m *messages) advance(a rocev2.PSN) {
	for m.count > 0 && m.at(0).psn.LessEq(a) {
		m.completed = m.completed.Add(int32(m.at(0).count))
		m.first = m.place(1)
		m.count--
	}
}

// last returns the MSN when all messages in flight are complete.
func (m *messages) last() rocev2.MSN {
	n := m.completed
	for i := range m.count {
		n = n.Add(int32(m.at(i).count))
	}
	return n
}
