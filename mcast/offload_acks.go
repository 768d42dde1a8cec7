// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Acknowledgements that the fast path counts (R113). While nothing is to be decided about a group's
// feedback either, the program takes the ACKs of its receivers, each of which raises one word, its
// leg's, and sends the source an ACK of the lowest of these words. It leaves everything else to the
// core, which hears of the words before it is asked anything.
//
// A word is raised by an ACK of its leg alone, verified, and only to a PSN that has been claimed. Words
// grow, so the lowest of them, read one after the other, is no more than every receiver has.

// MaxACKLegs is the most legs of a group whose ACKs the fast path counts: it looks at all of them.
const MaxACKLegs = 32

// LegACK is what the fast path has counted of the acknowledgements of a leg.
type LegACK struct {
	Leg    LegID
	Acked  rocev2.PSN    // the leg has acknowledged everything up to here; in the source's space
	Count  uint32        // ACKs since the last report
	At     time.Duration // time of the last of them
	SentAt time.Duration // time at which Acked went out, with AckReq; 0: not known, or without
}

// SentACK is what the fast path has acknowledged to the source.
type SentACK struct {
	PSN   rocev2.PSN // the last one
	Count uint32     // ACKs since the last report
}

// InputAcked tells the switch what the fast path has counted of a group's ACKs, once for each leg. What they
// acknowledge has been reported (InputForwarded): the driver reads the words of the legs first, then that of
// the group. Everything is as if these ACKs had come by Input, but for round trips, which are measured
// only where LegACK.SentAt is set. An ACK that the source was sent is not sent again.
func (s *Switch) InputAcked(now time.Duration, id GroupID, legs []LegACK, sent SentACK, out *Output) {
	out.reset()
	g := s.group(id)
	switch {
	case g == nil:
		out.Drop = UnknownGroup
		return
	case g.is(failed):
		out.Drop = FailedGroup
	case g.repair.path != fastPath:
		out.Drop = FeedbackStale
	default:
		g.countACKs(now, legs, sent, out)
	}
	s.endACKs(now, g, out)
}

// countACKs serves the ACKs that the fast path has counted.
func (g *group) countACKs(now time.Duration, legs []LegACK, sent SentACK, out *Output) {
	kept := g.cost.keepsRoundTrip(now)
	for i := range legs {
		if r := g.legAcked(&legs[i], kept, out); r != None {
			out.Drop = r
		}
	}
	g.omitSent(sent, out)
	g.resend(now, out)
}

// endACKs ends a call about the ACKs of g.
func (s *Switch) endACKs(now time.Duration, g *group, out *Output) {
	if out.Drop != None {
		g.counters.rare().Drops[out.Drop]++
	}
	if len(out.Events) != 0 {
		g.noteEvictions(now, out.Events, out)
	}
	g.giveOrders(now, out)
	s.rearm(g)
}

// legAcked is handleFeedback for the ACKs of a leg that the fast path has counted.
func (g *group) legAcked(a *LegACK, keptRTT bool, out *Output) Reason {
	i := int(a.Leg)
	switch {
	case i >= len(g.acks) || g.acks[i].flags&isReceiver == 0:
		return NotMember
	case g.fwd.nxt.LessEq(a.Acked):
		return FeedbackAhead
	}
	g.counters.FeedbackIn += uint64(a.Count)
	m := &g.activity[i].recovery
	if a.Acked.LessEq(g.acks[i].acked) {
		return None
	}
	g.applyPauses(i)
	if g.live.deadAfter != 0 {
		g.activity[i].lastHeard = max(g.activity[i].lastHeard, a.At)
	}
	if g.rtt.pending && g.rtt.psn.LessEq(a.Acked) {
		g.rtt.pending = false // an ACK between has passed unseen
	}
	once := m.resentPSN.Less(a.Acked) && m.lossAt <= a.SentAt
	g.ackReceived(a.At, i, a.Acked, out)
	if a.SentAt != 0 && once {
		g.noteRTT(i, max(a.At-a.SentAt, 0), keptRTT, false)
	}
	m.expectedSince = max(m.expectedSince, a.At)
	if g.agg.numAtAcked <= g.agg.allowedBehind {
		g.evaluate(out)
		g.costLast(a.At)
	}
	return None
}

// omitSent takes the ACKs that the fast path has sent out of those to be sent.
func (g *group) omitSent(sent SentACK, out *Output) {
	n := len(out.Feedback)
	out.Feedback = slices.DeleteFunc(out.Feedback, func(f Feedback) bool {
		omit := f.Op == rocev2.Acknowledge && f.Syndrome.Kind() == rocev2.KindACK && f.PSN.LessEq(sent.PSN)
		g.src.becnDue = g.src.becnDue || omit && f.BECN // the next one has it
		return omit
	})
	g.counters.FeedbackOut += uint64(sent.Count) - uint64(n-len(out.Feedback))
}

// Acked appends to to what some legs have acknowledged, and returns that and what the source was sent an ACK of.
func (v Group) Acked(legs []LegID, to []rocev2.PSN) ([]rocev2.PSN, rocev2.PSN) {
	if v.g == nil {
		return to, 0
	}
	for _, l := range legs {
		to = append(to, v.g.acks[l].acked)
	}
	return to, v.g.agg.acked
}

// OffloadACKs returns why the fast path, which has that many legs of a group, must leave the group's ACKs to
// the core, in a word; "": it may count them. A group without fast path has none.
func (v Group) OffloadACKs(legs int) string {
	g := v.g
	switch {
	case g == nil || g.repair.path != fastPath || !g.mayStayOffloaded():
		return "decision"
	case g.src.becnDue:
		if why := g.leavesACKs(legs); why != "" {
			return why
		}
		return "congestion"
	}
	return g.leavesACKs(legs)
}

// leavesACKs is OffloadACKs for what lies in the group and its legs.
func (g *group) leavesACKs(legs int) string {
	switch {
	case g.policy.quorum != 0:
		return "quorum"
	case len(g.forwardedLegs()) != 0 || g.src.neighbor != 0:
		return "tree"
	case g.lag.psns != 0:
		return "lag"
	case g.policy.replies:
		return "replies"
	case legs > MaxACKLegs:
		return "legs"
	case int(g.recv.count) != legs || g.recv.joinedInFlight != 0:
		return "members"
	case g.numbering.gap || g.is(lostNxt):
		return "gap"
	case g.repair.numRecovering != 0 || g.agg.numPending != 0 || g.agg.request.isOpen():
		return "loss"
	}
	for i := range g.numbering.checks {
		if g.numbering.checks[i].acceptedNothing && g.acks[i].flags&isReceiver != 0 {
			return "members" // the MSN of an ACK has to show its numbering
		}
	}
	return ""
}
