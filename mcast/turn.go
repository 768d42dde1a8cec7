// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// requestOfNonSource serves a request of a member that is not the current source.
func (g *group) requestOfNonSource(now time.Duration, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	k, ok := g.memberAt(p.Src)
	if !ok || !g.members[k].live {
		return NotMember
	}
	m := &g.members[k]
	if p.Neighbor != g.legs[m.leg].neighbor {
		return NotMember // not from the neighbour that it was registered behind
	}
	psn := p.PSN & rocev2.PSNMask
	d := psn.Sub(m.sqPSN)
	if d < -m.ackedCount {
		return g.quarantineMember(now, MemberID(k), p, out)
	}
	if now < g.historyOf(MemberID(k)).quarantinedUntil {
		return PSNOutOfRange
	}
	if d < 0 {
		return g.answerFormerSource(MemberID(k), p, out)
	}
	if m.receiveOnly {
		return g.rejectReceiveOnly(MemberID(k), p, out)
	}
	if g.failed {
		return g.rejectFailed(MemberID(k), p, out)
	}
	free := g.isQuiescent() && !g.kept(now, MemberID(k))
	if !free && psn != m.sqPSN {
		return NotSource
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	if !free && !g.sourceTimedOut(now, out) {
		if g.failed {
			return g.rejectFailed(MemberID(k), p, out)
		}
		if p.Neighbor == 0 && m.live {
			g.wait(now, MemberID(k), out)
		}
		return NotSource
	}
	if !m.live {
		return NotMember // evicted by sourceTimedOut: it lacked data of the last source
	}
	g.endTurn(out)
	g.startTurn(now, MemberID(k), out)
	g.taken(now, MemberID(k))
	g.emitCause(out, SourceChanged, MemberID(k), m.sqPSN, 0)
	if psn != m.sqPSN {
		g.noteMismatch(MemberID(k), SendPSN, psn, m.sqPSN, out)
	}
	return g.handleData(now, p, f, out)
}

// quarantineMember serves a packet of member k, not the source, with a PSN below all that
// was acknowledged to it: a queue pair with other PSNs (R63). An acknowledgement of later
// packets would complete this packet as well (R68).
func (g *group) quarantineMember(now time.Duration, k MemberID, p *Packet, out *Output) Reason {
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	m := &g.members[k]
	g.newHistory(k).quarantinedUntil = now + quarantine
	g.noteMismatch(k, SendPSN, p.PSN&rocev2.PSNMask, m.sqPSN, out)
	return PSNOutOfRange
}

// answerFormerSource answers a former source that has missed its last ACK: every receiver
// acknowledged all that it sent before sqPSN, or its turn would not have ended. Nothing
// is forwarded, and the current source goes on.
func (g *group) answerFormerSource(k MemberID, p *Packet, out *Output) Reason {
	m := &g.members[k]
	g.counters.DataIn++
	if p.AckReq || p.Op.Is(rocev2.OpEnd) {
		g.counters.FeedbackOut++
		out.Feedback = append(out.Feedback, Feedback{
			Group: g.id, To: k, Op: rocev2.Acknowledge,
			PSN: m.sqPSN.Prev(), Syndrome: rocev2.SyndromeACK, MSN: m.messages,
		})
	}
	return DuplicateData
}

// isQuiescent reports whether another member may become the source: everything
// forwarded is acknowledged, and the source is not in the middle of a message (a
// receiver that got the start of another message there would go into error).
func (g *group) isQuiescent() bool {
	return g.source == none || g.acked == g.nxt.Prev() && !g.midMessage && (g.quorum == 0 || g.allCaughtUp())
}

// allCaughtUp reports whether every receiver has all that was forwarded. Without a
// quorum the group's acked shows that.
func (g *group) allCaughtUp() bool {
	for i := range g.acks {
		if g.acks[i].flags&isReceiver != 0 && g.acks[i].acked.Less(g.nxt.Prev()) {
			return false
		}
	}
	return true
}

// endTurn ends the source's turn, and saves the positions of the source and of the
// receivers.
func (g *group) endTurn(out *Output) {
	if g.source == none {
		return
	}
	m := &g.members[g.source]
	m.sqPSN, m.messages, m.ackedCount = g.nxt, g.messages.completed, g.ackedCount
	for i := range g.acks {
		g.stopReceiving(i)
	}
	g.clearStore(g.nxt, out)
	g.source, g.sourceLeg = none, none
	g.turn.ends, g.turn.over, g.turn.held = 0, false, 0
}

// startTurn makes member k the source. Its first PSN is known from registration and from
// its earlier turns. It is never learnt from the packet, which may not be the first one
// that it sent (R16).
func (g *group) startTurn(now time.Duration, k MemberID, out *Output) {
	g.activate(now)
	m := &g.members[k]
	g.source, g.sourceLeg = int32(k), int32(m.leg)
	g.sourceAddr = m.ip
	g.sourceNeighbor = g.legs[m.leg].neighbor
	g.nxt, g.acked, g.ackedCount = m.sqPSN, m.sqPSN.Prev(), m.ackedCount
	g.nakSeverity, g.nakServed, g.hasLastPSN, g.midMessage = sevNone, false, false, false
	g.writeMessage = writeMessage{}
	g.refusal, g.refusalReported, g.becnDue, g.sourceRewound, g.livenessArmed, g.waitedSince = refusal{}, false, false, false, false, 0
	g.rttPending = false
	g.numAtAcked, g.numPending, g.numWithoutWindow, g.numJoinedInFlight = 0, 0, 0, 0
	g.setReceivers(0)
	g.lagFloor = g.acked
	g.clearStore(g.nxt, out)
	g.sourceQuarantined = false
	g.numbering.gap = false
	g.numbering.askSource = false // but a blocked message stays blocked, of whatever source
	g.messages.reset(m.messages)
	if g.targets != nil {
		g.targets.reset()
	}
	for i := range g.legs {
		l := &g.legs[i]
		join := int32(i) != g.sourceLeg && l.members > 0
		switch {
		case join && !g.unproven(i):
			g.startReceiving(i, m.sqPSN)
		case join != l.joining: // an unverified leg joins when it has shown its numbering
			g.setJoining(i, join)
		}
	}
}

// setJoining sets whether leg i waits for a message to begin.
func (g *group) setJoining(i int, yes bool) {
	if l := &g.legs[i]; l.joining != yes {
		l.joining = yes
		if yes {
			g.numJoining++
		} else {
			g.numJoining--
		}
	}
}

// admitJoining makes the joining legs receive from the message that begins at psn.
func (g *group) admitJoining(psn rocev2.PSN) {
	for i := range g.legs {
		if g.legs[i].joining && !g.unproven(i) {
			g.startReceiving(i, psn)
		}
	}
}
