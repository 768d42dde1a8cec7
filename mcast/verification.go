// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// verification is the state of a receiver's verification.
type verification struct {
	answeredPSN       rocev2.PSN `state:"encoded if x.wrongAnswer || x.positioned"` // the ePSN that its last answer shows, if wrongAnswer; in the member's space
	messagesBefore    rocev2.MSN `state:"encoded if x.acceptedNothing"`             // the source's messages before the receiver's first one, if acceptedNothing
	pending           bool       `state:"encoded"`                                  // the receiver has not shown the registered PSN yet, and gets no data
	acceptedNothing   bool       `state:"encoded"`                                  // true: it had accepted nothing, so that its answer did not show its ePSN: MSN has to prove it
	wrongAnswer       bool       `state:"encoded"`                                  // its last answer shows another PSN than the registered one
	probesSinceAnswer uint8      `state:"encoded if x.wrongAnswer"`                 // probes sent since the first answer with answeredPSN, at most wrongAnswerProbes
	isRXE             bool       `state:"encoded"`                                  // true: it is rdma_rxe, which answers with PSN ffffff before it has accepted anything
	probesSent        uint8      `state:"encoded"`                                  // probes in all, at most 255
	emptyAnswers      uint8      `state:"encoded if x.isRXE"`                       // answers with PSN ffffff and MSN 0 that came after its first data, if isRXE; at most 255

	returning    bool `state:"encoded"` // true: it was a member lately (R73), and is not probed before legActivity.probedFrom
	answeredOnce bool `state:"encoded"` // true: it has given the right answer once
	probedAgain  bool `state:"encoded"` // true: it was probed after that answer
	restored     bool `state:"encoded"` // true: it was a member before the switch restarted, and its number is that of the file (R83)
	positioned   bool `state:"encoded"` // true: it had data of the turn that goes on, so that the answer shows how much (R83)
}

// startVerification begins the verification of leg i, which leads to a new member.
func (g *group) startVerification(now time.Duration, i LegID) {
	l := &g.legs[i]
	if g.numbering.interval == 0 || !l.connected() || g.isRepliedTo(int(i)) {
		return
	}
	v := &g.numbering.checks[i]
	if !v.pending {
		g.numbering.numPending++
	}
	*v = verification{pending: true}
	if t := g.sw.departures.recentUntil(now, &g.sw.ports, g.ip, g.members[l.member].ip); t > 0 {
		g.activate(now)
		v.returning = true
		g.activity[i].probedFrom, g.activity[i].pausesApplied = t, g.sw.ports.port(l.port).paused
	}
	g.restartKeepalives(now)
}

// unproven reports whether leg i has to be verified, and is not yet.
func (g *group) unproven(i int) bool {
	return g.numbering.checks != nil && g.numbering.checks[i].pending
}

// endVerification ends the verification of leg i, which is verified or removed.
func (g *group) endVerification(i LegID) {
	if g.unproven(int(i)) {
		v := &g.numbering.checks[i]
		v.pending = false
		g.numbering.numPending--
	}
}

// unverifiedLeg returns the leg of the member that p is from, and whether that leg is
// unverified.
func (g *group) unverifiedLeg(p *Packet) (leg int, ok bool) {
	if g.numbering.numPending == 0 || p.Neighbor != 0 {
		return 0, false
	}
	m, ok := g.memberAt(p.Src)
	if !ok || !g.members[m].live {
		return 0, false
	}
	i := int(g.members[m].leg)
	return i, g.unproven(i)
}

// keepaliveAnswer serves an acknowledgement of the member behind leg i, which is
// unverified. No data has gone to it, so the acknowledgement answers a probe, or is late.
func (g *group) keepaliveAnswer(now time.Duration, p *Packet, i int, kind rocev2.AckKind, out *Output) Reason {
	if g.is(failed) {
		return FailedGroup
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.counters.FeedbackIn++
	l := &g.legs[i]
	v, r := &g.numbering.checks[i], g.members[l.member].ePSN
	if v.probesSent == 0 {
		return FeedbackStale // an ACK of data of an earlier registration; more of them may be on the way
	}
	if v.positioned {
		g.positionAnswer(now, p, i, kind, out)
		return None
	}
	expects := p.PSN & rocev2.PSNMask
	if kind == rocev2.KindACK {
		expects = expects.Next()
	}
	fresh := kind == rocev2.KindACK && isEmptyAnswer(p) && r != 0
	if expects == r && kind == rocev2.KindACK || fresh { // a probe is a duplicate to a receiver that expects r: no NAK answers it
		if v.returning && !v.probedAgain {
			if !v.answeredOnce {
				v.answeredOnce = true
				g.restartKeepalives(now)
			}
			return None
		}
		v.isRXE, v.acceptedNothing, v.wrongAnswer = fresh, fresh, false
		if m := g.mismatch(l.member, ReceivePSN); m != nil {
			m.Count = 0
		}
		g.endVerification(LegID(i))
		g.unblock(out)
		g.endProbes(now, out)
		return None
	}
	v.answeredOnce, v.probedAgain = false, false
	if !v.wrongAnswer || v.answeredPSN != expects {
		v.wrongAnswer, v.answeredPSN, v.probesSinceAnswer = true, expects, 0
	}
	return None
}

// isEmptyAnswer reports whether p is an ACK with PSN ffffff and MSN 0. By it rdma_rxe
// acknowledges a duplicate before it has accepted anything, whatever its ePSN is.
func isEmptyAnswer(p *Packet) bool { return p.PSN == rocev2.PSNMask && p.MSN == 0 }

// maxExtraAnswers is how many answers may exceed the number of probes: networks duplicate
// packets.
const maxExtraAnswers = 4

// mustNotCount reports whether acknowledgement p of receiver i must not count: it may be a
// late answer to a probe, or it covers a gap in the packets that have passed. When there
// are more such answers than probes, some of them answer data, which the receiver has
// taken for duplicates.
func (g *group) mustNotCount(p *Packet, i int, acks rocev2.PSN) bool {
	if g.numbering.checks == nil {
		return false
	}
	v, n := &g.numbering.checks[i], &g.numbering
	if had := g.acks[i].acked; v.acceptedNothing && n.gap && n.gapFrom.LessEq(acks) && had.Less(acks) && had.Next().Less(n.gapNext) {
		return true // messages that the switch has not counted may have ended in the gap
	}
	if !v.isRXE || p.Syndrome.Kind() != rocev2.KindACK || !isEmptyAnswer(p) {
		return false
	}
	v.emptyAnswers = min(v.emptyAnswers, 254) + 1
	return !v.acceptedNothing || int(v.emptyAnswers) <= int(v.probesSent)+maxExtraAnswers
}

// correctMessagesBefore corrects messagesBefore of the receivers that have joined behind psn, which the
// source has sent again: more messages end there than were counted when they joined (R109).
func (g *group) correctMessagesBefore(psn rocev2.PSN, more int32) {
	if more == 0 {
		return
	}
	for i := range g.numbering.checks {
		v, b := &g.numbering.checks[i], &g.acks[i]
		if v.acceptedNothing && b.flags&isReceiver != 0 && psn.LessEq(b.acked) {
			v.messagesBefore = v.messagesBefore.Add(more)
		}
	}
}

// acksUnread reports whether acknowledgement p of receiver i, which had accepted nothing
// when it answered the probe, covers messages that it did not execute: MSN counts the
// messages that it did execute.
func (g *group) acksUnread(p *Packet, i int, psn rocev2.PSN) bool {
	if g.numbering.checks == nil {
		return false
	}
	v := &g.numbering.checks[i]
	had := g.acks[i].acked
	acks := ackedBy(p.Syndrome.Kind(), psn)
	switch {
	case !v.acceptedNothing:
		return false
	case p.Syndrome.Kind() == rocev2.KindSequence && (p.PSN & rocev2.PSNMask).Less(g.members[g.legs[i].member].ePSN):
		return true // the receiver never had the PSNs before it
	case p.Syndrome.Kind() == rocev2.KindACK && isEmptyAnswer(p):
		if psn.Less(had) || g.fwd.nxt.LessEq(psn) {
			return true // an ACK of nothing that was sent to the receiver
		}
	case acks.LessEq(had):
		return false
	}
	due, exact := g.agg.messages.completedBy(acks)
	if !exact || acks.Less(g.agg.acked) { // behind a quorum the number of these messages is not known
		return false
	}
	v.acceptedNothing = due == v.messagesBefore // the end of the first message decides
	return p.MSN != (due-v.messagesBefore)&rocev2.PSNMask
}

// Receivers that were members of the same group shortly before (R73).
//
// An ACK of the last membership may be on its way to the switch, and data of that
// membership on its way to the receiver. The ACK looks like the answer to a keepalive
// probe, and is wrong as soon as that data has arrived. So a receiver that returns is not
// probed before these packets have arrived. Then it has to answer two probes, and the
// second is sent after the answer to the first.

// maxDepartures is how many departures are recorded. Beyond that any receiver may be one
// that returns.
const maxDepartures = 256

// departures are the receivers that have left groups within the last quarantine and the
// delay of their ports, the oldest first. All groups of a switch share the list: a group
// that is deleted may be put again.
type departures struct {
	ring          [maxDepartures]departure `state:"own(departureRing)"`
	first         uint32                   `state:"derived"` // the oldest; its slot is modulo maxDepartures
	count         uint32                   `state:"own(departureRing)"`
	overflowUntil time.Duration            `state:"ahead"` // time before which any receiver may be one of them
}

type departure struct {
	group, member rocev2.AddrKey `state:"own(keys)"`
	port          Port           `state:"encoded"`
	until         time.Duration  `state:"time = x.endsAt(&c.sw.ports)"`             // packets of its membership may be on their way
	pausesApplied time.Duration  `state:"derived = c.sw.ports.port(x.port).paused"` // pauses of the port that until includes
}

// endsAt returns until when packets of e's membership may be on their way. The switch's
// own pauses do not count (R58).
func (e *departure) endsAt(h *portTimes) time.Duration {
	return e.until + h.port(e.port).paused - e.pausesApplied
}

func (d *departures) at(i uint32) *departure { return &d.ring[(d.first+i)%maxDepartures] }

// add records that a receiver behind a port has left a group. Its packets are delayed by
// no more than quarantine and the delay of the port's queue.
func (d *departures) add(now time.Duration, h *portTimes, group, member rocev2.AddrKey, port Port) {
	if d.count == maxDepartures {
		d.overflowUntil = max(d.overflowUntil, d.at(0).endsAt(h))
		d.first, d.count = d.first+1, d.count-1
	}
	p := h.port(port)
	*d.at(d.count) = departure{group, member, port, now + quarantine + p.txDelay, p.paused}
	d.count++
}

// recentUntil returns until when packets of an earlier membership of member in group may
// be on their way; 0 if there are none.
func (d *departures) recentUntil(now time.Duration, h *portTimes, group, member rocev2.AddrKey) time.Duration {
	for d.count > 0 && d.at(0).endsAt(h) <= now {
		d.first, d.count = d.first+1, d.count-1
	}
	t := d.overflowUntil
	for i := range d.count {
		if e := d.at(i); e.group == group && e.member == member {
			t = max(t, e.endsAt(h))
		}
	}
	if t <= now {
		return 0
	}
	return t
}

// noteDeparture records that packets of member m, which leaves g, may be on their way.
func (g *group) noteDeparture(now time.Duration, m MemberID) {
	k := &g.members[m]
	g.sw.departures.add(now, &g.sw.ports, g.ip, k.ip, g.legs[k.leg].port)
}

// noteLeft notes that member m has left g, by an update or by a verdict: it waits for no turn.
func (g *group) noteLeft(now time.Duration, m MemberID) {
	g.noteDeparture(now, m)
	g.stopWaiting(now, m)
}

// noteAllDepartures records that all members leave g, which ends.
func (g *group) noteAllDepartures(now time.Duration) {
	for i := range g.members {
		if g.members[i].live {
			g.noteDeparture(now, MemberID(i))
		}
	}
}

// noteEvictions lets the members leave that events report as evicted.
func (g *group) noteEvictions(now time.Duration, events []Event, out *Output) {
	for i := range events {
		if e := &events[i]; e.Kind == MemberEvicted {
			g.noteLeft(now, e.Member)
		}
	}
	t := g.tree()
	if t == nil {
		return
	}
	for i := range events {
		if e := &events[i]; e.Kind == MemberEvicted {
			t.leave(now, e.Member, out)
		}
	}
}

// probeNotBefore returns until when leg i is not probed; 0: it may be probed now.
func (g *group) probeNotBefore(now time.Duration, i int) time.Duration {
	if v := &g.numbering.checks[i]; !v.returning || v.probesSent > 0 || g.activity == nil {
		return 0
	}
	g.applyPauses(i)
	if t := g.activity[i].probedFrom; now < t {
		return t
	}
	return 0
}
