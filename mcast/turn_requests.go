// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Several members that want to be the source: one is, the others wait.

// DefaultSourceTimeout is GroupSpec.SourceTimeout if that is 0. The usual requester
// (exponent 14, 7 retries) has given up by itself after 0.5 s.
const DefaultSourceTimeout = 2 * time.Second

// sourceTimedOut is asked when another member has sent its first packet while the source has
// something to finish. It reports whether that member is the next source after all:
// the source has sent nothing for sourceTimeout, and what it leaves behind is settled.
func (g *group) sourceTimedOut(now time.Duration, out *Output) bool {
	if g.sourceTimeout == 0 {
		return false
	}
	if g.waitedSince == 0 {
		g.waitedSince = max(now, 1)
	}
	if now-g.waitedSince < g.sourceTimeout {
		return false
	}
	g.abandonSource(out)
	return !g.failed && g.isQuiescent()
}

// deferSource answers the first packet of member k, whose turn it is not, by an RNR NAK:
// its queue pair sends again after the timer of that code, and does not count that as
// one of the retries after which it fails (R66).
func (g *group) deferSource(k MemberID, code rocev2.RNRCode, out *Output) {
	m := &g.members[k]
	g.counters.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{
		Group: g.id, To: k, Op: rocev2.Acknowledge,
		PSN: m.sqPSN, Syndrome: code.RNR(), MSN: m.messages,
	})
}

// rejectReceiveOnly answers the first packet of member k, which may not send, by a fatal NAK
// (R76). All that the member sends has a PSN from there on, so the NAK acknowledges
// nothing.
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
// failed, by a fatal NAK (R80): its queue pair may have retries without end, and would
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

// nakFirstPacket tells member k, not the source, that its first packet is not served. The NAK
// acknowledges nothing.
func (g *group) nakFirstPacket(k MemberID, s rocev2.Syndrome, out *Output) {
	g.counters.FeedbackOut++
	m := &g.members[k]
	out.Feedback = append(out.Feedback, Feedback{
		Group: g.id, To: k, Op: rocev2.Acknowledge, PSN: m.sqPSN, Syndrome: s, MSN: m.messages,
	})
}

// abandonSource goes on without the source, if there is a way. Inside a message there
// is none: a receiver that has the first half of one takes nothing but the rest of
// it, and only the source has that. At the end of a message those are removed that
// lack something, because nobody can send it to them, if the policy spares as many.
func (g *group) abandonSource(out *Output) {
	last := g.nxt.Prev()
	complete := int32(0) // receivers that lack nothing
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&(isReceiver|joinedInFlight) == isReceiver && !b.acked.Less(last) {
			complete++
		}
	}
	if g.midMessage || complete < g.minReceivers {
		g.fail(MemberID(g.source), g.acked.Next(), rocev2.SyndromeNAKOpErr, SourceStalled, out)
		return
	}
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(last) {
			g.evict(i, Stranded, out)
		}
	}
	g.evaluate(out)
}
