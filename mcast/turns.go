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

// stalled is asked when another member has sent its first packet while the source has
// something to finish. It reports whether that member is the next source after all:
// the source has sent nothing for stallTime, and what it leaves behind is settled.
func (g *group) stalled(now time.Duration, out *Output) bool {
	if g.stallTime == 0 {
		return false
	}
	if g.awaited == 0 {
		g.awaited = max(now, 1)
	}
	if now-g.awaited < g.stallTime {
		return false
	}
	g.giveUpSource(out)
	return !g.dead && g.quiescent()
}

// askToWait answers the first packet of member k, whose turn it is not, by an RNR NAK:
// its queue pair sends again after the timer of that code, and does not count that as
// one of the retries after which it fails (R66).
func (g *group) askToWait(k MemberID, code rocev2.RNRCode, out *Output) {
	m := &g.members[k]
	g.count.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{
		Group: g.id, To: k, Op: rocev2.Acknowledge,
		PSN: m.p, Syndrome: code.RNR(), MSN: m.msgs,
	})
}

// refuseSource answers the first packet of member k, which may not send, by a fatal NAK
// (R76). All that the member sends has a PSN from there on, so the NAK acknowledges
// nothing.
func (g *group) refuseSource(k MemberID, p *Packet, out *Output) Reason {
	m := &g.members[k]
	if p.PSN&rocev2.PSNMask != m.p {
		return NotSender
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.nakFirst(k, rocev2.SyndromeNAKAccess, out)
	if !g.historyOf(k).refused {
		g.newHistory(k).refused = true
		g.tell(out, Event{Kind: SourceRefused, Group: g.id, Member: k, PSN: m.p, Syndrome: rocev2.SyndromeNAKAccess, Cause: ReceivesOnly})
	}
	return NotSender
}

// refuseDead answers the first packet of member k, not the source, to a group that has
// failed, by a fatal NAK (R80): its queue pair may have retries without end, and would
// wait for a turn that never comes.
func (g *group) refuseDead(k MemberID, p *Packet, out *Output) Reason {
	if p.PSN&rocev2.PSNMask != g.members[k].p || p.Neighbor != 0 {
		return GroupDead
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.nakFirst(k, rocev2.SyndromeNAKOpErr, out)
	return GroupDead
}

// nakFirst tells member k, not the source, that its first packet is not served. The NAK
// acknowledges nothing.
func (g *group) nakFirst(k MemberID, s rocev2.Syndrome, out *Output) {
	g.count.FeedbackOut++
	m := &g.members[k]
	out.Feedback = append(out.Feedback, Feedback{
		Group: g.id, To: k, Op: rocev2.Acknowledge, PSN: m.p, Syndrome: s, MSN: m.msgs,
	})
}

// giveUpSource goes on without the source, if there is a way. Inside a message there
// is none: a receiver that has the first half of one takes nothing but the rest of
// it, and only the source has that. At the end of a message those are removed that
// lack something, because nobody can send it to them, if the policy spares as many.
func (g *group) giveUpSource(out *Output) {
	last := g.hi.Prev()
	whole := int32(0) // receivers that lack nothing
	for i := range g.branches {
		if b := &g.branches[i]; b.bits&(receiving|fresh) == receiving && !b.a.Less(last) {
			whole++
		}
	}
	if g.open || whole < g.keep {
		g.fail(MemberID(g.src), g.a.Next(), rocev2.SyndromeNAKOpErr, Stalled, out)
		return
	}
	for i := range g.branches {
		if b := &g.branches[i]; b.bits&receiving != 0 && b.a.Less(last) {
			g.evict(i, Stranded, out)
		}
	}
	g.eval(out)
}
