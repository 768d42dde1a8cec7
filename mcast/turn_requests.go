// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Requests of members that are not the source: they wait for their turn, or are refused.

// DefaultSourceTimeout replaces a GroupSpec.SourceTimeout of 0. The usual requester
// (exponent 14, 7 retries) has given up by itself after 0.5 s.
const DefaultSourceTimeout = 2 * time.Second

// sourceTimedOut abandons the source if it has sent nothing for sourceTimeout. It is
// called when another member has sent its first packet and cannot be the source yet. It
// reports whether that member can be the source after all.
func (g *group) sourceTimedOut(now time.Duration, out *Output) bool {
	if g.turn.sourceTimeout == 0 {
		return false
	}
	if g.turn.silentSince == 0 {
		g.turn.silentSince = max(now, 1)
	}
	if now-g.turn.silentSince < g.turn.sourceTimeout {
		return false
	}
	g.abandonSource(out)
	return !g.is(failed) && g.isQuiescent()
}

// deferSource answers the first packet of member k, whose turn it is not, by an RNR NAK:
// the member's queue pair sends again after the timer of that code, and does not count
// that as one of the retries after which it fails (R66).
func (g *group) deferSource(k MemberID, code rocev2.RNRCode, out *Output) {
	m := &g.members[k]
	g.counters.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{
		Group: g.id, To: k, Op: rocev2.Acknowledge,
		PSN: m.sqPSN, Syndrome: code.RNR(), MSN: g.msnTo(k, m.messages),
	})
}

// rejectReceiveOnly answers the first packet of member k, which may not send, by a fatal
// NAK (R76). No packet of the member has a lower PSN, so the NAK acknowledges nothing.
func (g *group) rejectReceiveOnly(k MemberID, p *Packet, out *Output) Reason {
	m := &g.members[k]
	if p.PSN&rocev2.PSNMask != m.sqPSN {
		return NotSender
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.nakFirstPacket(k, rocev2.SyndromeNAKAccess, out)
	if !g.historyOf(k).refusalReported {
		g.newHistory(k).refusalReported = true
		g.emitEvent(out, Event{Kind: SourceRefused, Group: g.id, Member: k, PSN: m.sqPSN, Syndrome: rocev2.SyndromeNAKAccess, Cause: ReceivesOnly})
	}
	return NotSender
}

// rejectFailed answers the first packet of member k, not the source, to a group that has
// failed, by a fatal NAK (R80): the member's queue pair may retry without end, and would
// wait for a turn that never comes.
func (g *group) rejectFailed(k MemberID, p *Packet, out *Output) Reason {
	if p.PSN&rocev2.PSNMask != g.members[k].sqPSN || p.Neighbor != 0 {
		return FailedGroup
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.nakFirstPacket(k, rocev2.SyndromeNAKOpErr, out)
	return FailedGroup
}

// nakFirstPacket sends member k, not the source, a NAK of its first packet. The NAK
// acknowledges nothing.
func (g *group) nakFirstPacket(k MemberID, s rocev2.Syndrome, out *Output) {
	g.counters.FeedbackOut++
	m := &g.members[k]
	out.Feedback = append(out.Feedback, Feedback{
		Group: g.id, To: k, Op: rocev2.Acknowledge, PSN: m.sqPSN, Syndrome: s, MSN: g.msnTo(k, m.messages),
	})
}

// abandonSource goes on without the source, or fails the group. Inside a message it fails
// the group: a receiver that has the first half of a message accepts only the rest of it,
// and only the source has that. At the end of a message it evicts the receivers that lack
// data, because nobody can send it to them; it fails the group if too few would remain.
func (g *group) abandonSource(out *Output) {
	if g.waitsForFile() && g.forgetAwaited() {
		return
	}
	if g.endUnknown() {
		g.extra.resume.unknownEnd, g.fwd.midMessage = false, false // every receiver has the same, and nothing of a message is on its way
		return
	}
	last := g.fwd.nxt.Prev()
	complete := int32(0) // receivers that lack nothing
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&(isReceiver|joinedInFlight) == isReceiver && !b.acked.Less(last) {
			complete++
		}
	}
	if g.fwd.midMessage || complete < g.policy.minReceivers {
		g.fail(MemberID(g.src.member), g.agg.acked.Next(), rocev2.SyndromeNAKOpErr, SourceStalled, out)
		return
	}
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(last) {
			g.evict(i, Stranded, out)
		}
	}
	g.evaluate(out)
}
