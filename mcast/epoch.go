// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// newSource serves a request of a member that is not the current source.
func (g *group) newSource(now time.Duration, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	k, ok := g.memberAt(p.Src)
	if !ok || !g.members[k].live {
		return NotMember
	}
	m := &g.members[k]
	if p.Neighbor != g.legs[m.leg].neighbor {
		return NotMember // not where it was registered
	}
	psn := p.PSN & rocev2.PSNMask
	d := psn.Sub(m.p)
	if d < -m.past {
		return g.below(now, MemberID(k), p, out)
	}
	if now < g.historyOf(MemberID(k)).quietTill {
		return OutOfWindow
	}
	if d < 0 {
		return g.lateDuplicate(MemberID(k), p, out)
	}
	if m.receiveOnly {
		return g.refuseSource(MemberID(k), p, out)
	}
	if g.dead {
		return g.refuseDead(MemberID(k), p, out)
	}
	free := g.quiescent() && !g.kept(now, MemberID(k))
	if !free && psn != m.p {
		return NotSource
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	if !free && !g.stalled(now, out) {
		if g.dead {
			return g.refuseDead(MemberID(k), p, out)
		}
		if p.Neighbor == 0 && m.live {
			g.wait(now, MemberID(k), out)
		}
		return NotSource
	}
	if !m.live {
		return NotMember // it lacked what the last source has left
	}
	g.endEpoch(out)
	g.startEpoch(now, MemberID(k), out)
	g.taken(now, MemberID(k))
	g.event(out, SourceChanged, MemberID(k), m.p, 0)
	if psn != m.p {
		g.differs(MemberID(k), SendPSN, psn, m.p, out)
	}
	return g.data(now, p, f, out)
}

// below serves a packet of member k, not the source, with a PSN below all that was
// acknowledged to it: a queue pair with other numbers (R63). An acknowledgement of what
// it sends beyond would complete this packet as well (R68).
func (g *group) below(now time.Duration, k MemberID, p *Packet, out *Output) Reason {
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	m := &g.members[k]
	g.newHistory(k).quietTill = now + quarantine
	g.differs(k, SendPSN, p.PSN&rocev2.PSNMask, m.p, out)
	return OutOfWindow
}

// lateDuplicate answers a former source that has missed its last ACK: all it
// sent before m.p was acknowledged by everybody, or its epoch would not have
// ended. Nothing is forwarded, and the current source stays what it is.
func (g *group) lateDuplicate(k MemberID, p *Packet, out *Output) Reason {
	m := &g.members[k]
	g.count.DataIn++
	if p.AckReq || p.Op.Is(rocev2.OpEnd) {
		g.count.FeedbackOut++
		out.Feedback = append(out.Feedback, Feedback{
			Group: g.id, To: k, Op: rocev2.Acknowledge,
			PSN: m.p.Prev(), Syndrome: rocev2.SyndromeACK, MSN: m.msgs,
		})
	}
	return DuplicateData
}

// quiescent says whether another member may become the source: everything
// forwarded is acknowledged, and the source is not in the middle of a message
// (a receiver that got the start of another one there would go into error).
func (g *group) quiescent() bool {
	return g.src == nobody || g.a == g.hi.Prev() && !g.open && (g.quorum == 0 || g.level())
}

// level says whether every receiver has all that was forwarded. Without a
// quorum that is what A says.
func (g *group) level() bool {
	for i := range g.branches {
		if g.branches[i].bits&receiving != 0 && g.branches[i].a.Less(g.hi.Prev()) {
			return false
		}
	}
	return true
}

// endEpoch saves what the source and the receivers have come to.
func (g *group) endEpoch(out *Output) {
	if g.src == nobody {
		return
	}
	m := &g.members[g.src]
	m.p, m.msgs, m.past = g.hi, g.msgs.done, g.past
	for i := range g.branches {
		g.retire(i)
	}
	g.forget(g.hi, out)
	g.src, g.srcLeg = nobody, nobody
	g.turn.ends, g.turn.over, g.turn.held = 0, false, 0
}

// startEpoch makes k the source. Its first PSN is known from registration and
// from its earlier epochs; it is never learnt from the packet, which may not be
// the first one it sent (R16).
func (g *group) startEpoch(now time.Duration, k MemberID, out *Output) {
	g.activate(now)
	m := &g.members[k]
	g.src, g.srcLeg = int32(k), int32(m.leg)
	g.srcKey = m.ip
	g.srcNbr = g.legs[m.leg].neighbor
	g.hi, g.a, g.past = m.p, m.p.Prev(), m.past
	g.nsev, g.seen, g.hasPrev, g.open = noPend, false, false, false
	g.write = writing{}
	g.refused, g.told, g.becn, g.rewound, g.armed, g.awaited = refusal{}, false, false, false, false, 0
	g.timing = false
	g.low, g.npend, g.nowin, g.nfresh = 0, 0, 0, 0
	g.receivers(0)
	g.least = g.a
	g.forget(g.hi, out)
	g.muted = false
	g.numbers.gap = false
	g.numbers.resume = false // but what waits goes on waiting, whatever source it is of
	g.msgs.start(m.msgs)
	if g.targets != nil {
		g.targets.reset()
	}
	for i := range g.legs {
		l := &g.legs[i]
		join := int32(i) != g.srcLeg && l.members > 0
		switch {
		case join && !g.unproven(i):
			g.admit(i, m.p)
		case join != l.joining: // one that is unverified joins when it has shown its numbering
			g.setJoining(i, join)
		}
	}
}

// setJoining notes whether leg i waits for a message to begin.
func (g *group) setJoining(i int, yes bool) {
	if l := &g.legs[i]; l.joining != yes {
		l.joining = yes
		if yes {
			g.njoin++
		} else {
			g.njoin--
		}
	}
}

// join lets those that wait for a message to begin have the one at psn.
func (g *group) join(psn rocev2.PSN) {
	for i := range g.legs {
		if g.legs[i].joining && !g.unproven(i) {
			g.admit(i, psn)
		}
	}
}
