// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Replies (R107): what receivers send back to the only source, while it sends.

// ReplyKind is what becomes of the data of a member.
type ReplyKind uint8

// Kinds of replies.
const (
	NoReply        ReplyKind = iota // the member becomes the source when it sends
	ReplyForwarded                  // the data goes to the member GroupSpec.RepliesTo, whose acknowledgements go back
	ReplyDiscarded                  // the data is acknowledged, and goes to nobody
)

// role is what becomes of a member's data.
type role uint8

const (
	maySend      role = iota // the member becomes the source
	receivesOnly             // the data is refused (R76)
	leads                    // ReplyForwarded
	follows                  // ReplyDiscarded
)

func roleOf(m *MemberSpec) role {
	switch {
	case m.Reply == ReplyForwarded:
		return leads
	case m.Reply == ReplyDiscarded:
		return follows
	case m.ReceiveOnly:
		return receivesOnly
	}
	return maySend
}

// replies are the two ends of the stream of replies.
type replies struct {
	to, leader MemberID
	delta      uint32 // added to a PSN of the leader's, modulo 2^24
}

// checkReplies checks the kinds of replies of a group.
func checkReplies(spec *GroupSpec) error {
	replying, leaders := 0, 0
	for i := range spec.Members {
		switch m := &spec.Members[i]; {
		case m.Reply > ReplyDiscarded:
			return fmt.Errorf("member %d (%v): unknown kind of reply %d", i, m.IP, m.Reply)
		case m.Reply != NoReply:
			replying++
			if m.Reply == ReplyForwarded {
				leaders++
			}
		}
	}
	if replying == 0 {
		return nil
	}
	switch {
	case leaders != 1 || replying != len(spec.Members)-1 || int(spec.RepliesTo) >= len(spec.Members) || spec.Members[spec.RepliesTo].Reply != NoReply:
		return fmt.Errorf("replies: %d members reply, %d of them to member %d: want all but that one, and one whose replies are forwarded", replying, leaders, spec.RepliesTo)
	case spec.Stored || spec.Resume != nil:
		return fmt.Errorf("replies: the group has positions, and replies have none")
	}
	for i, l := range spec.Legs {
		if l.Kind == Forwarded {
			return fmt.Errorf("replies: leg %d goes to another switch, and all members have to be here", i)
		}
	}
	return nil
}

// setReplies notes the ends of the stream of replies of a group that has one.
func (g *group) setReplies(spec *GroupSpec) {
	for i := range spec.Members {
		if m := &spec.Members[i]; m.Reply == ReplyForwarded {
			g.policy.replies = true
			g.newExtra().replies = replies{to: spec.RepliesTo, leader: MemberID(i), delta: uint32(spec.Members[spec.RepliesTo].RQPSN-m.SQPSN) & rocev2.PSNMask}
		}
	}
}

// isRepliedTo reports whether replies go to the member behind leg i.
func (g *group) isRepliedTo(i int) bool {
	return g.policy.replies && int(g.members[g.extra.replies.to].leg) == i
}

// serveReply serves a request of member k, which replies to the source. What goes to the
// source is not judged here: its queue pair does that.
func (g *group) serveReply(k MemberID, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	m := &g.members[k]
	psn := p.PSN & rocev2.PSNMask
	if m.role == leads {
		r := &g.extra.replies
		if !g.members[r.to].live {
			return NotMember
		}
		g.counters.DataIn++
		g.relay(r.to, p, psn.Add(int32(r.delta)), out)
		return None
	}
	d := psn.Sub(m.sqPSN)
	if d < -maxBehind || d > maxAhead {
		return PSNOutOfRange
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.counters.DataIn++
	if f&(rocev2.OpSend|rocev2.OpWrite) == 0 {
		g.answerReply(k, psn, rocev2.SyndromeNAKInvalid, out)
		return NotMulticastable
	}
	if d >= 0 { // a gap makes no difference to what is discarded
		m.sqPSN = psn.Next()
		if f&rocev2.OpEnd != 0 {
			m.messages = (m.messages + 1) & rocev2.PSNMask
		}
	}
	if p.AckReq || d < 0 {
		g.answerReply(k, m.sqPSN.Prev(), rocev2.SyndromeACK, out)
	}
	return DiscardedReply
}

func (g *group) answerReply(k MemberID, psn rocev2.PSN, s rocev2.Syndrome, out *Output) {
	g.counters.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{Group: g.id, To: k, Op: rocev2.Acknowledge, PSN: psn, Syndrome: s, MSN: g.members[k].messages})
}

// relay sends p on to member k with another PSN.
func (g *group) relay(k MemberID, p *Packet, psn rocev2.PSN, out *Output) {
	g.counters.Copies++
	out.Copies = append(out.Copies, Copy{Group: g.id, Leg: g.members[k].leg, Frame: p.Frame, PSN: psn})
}

// isAnswerToReply reports whether p is of the member that replies go to: what it answers is
// the leader's.
func (g *group) isAnswerToReply(p *Packet) bool {
	return g.policy.replies && p.Neighbor == 0 && g.members[g.extra.replies.to].ip == rocev2.KeyOf(p.Src)
}

// relayAnswer passes an acknowledgement, a response or a CNP of the source to the leader.
func (g *group) relayAnswer(p *Packet, out *Output) Reason {
	r := &g.extra.replies
	switch {
	case !g.members[r.to].live || !g.members[r.leader].live:
		return NotMember
	case p.Op == rocev2.Acknowledge && p.Syndrome.Kind() == rocev2.KindReserved:
		return ReservedSyndrome
	case !p.Verified:
		out.NeedVerify = true
		return None
	}
	g.counters.FeedbackIn++
	psn := p.PSN.Add(-int32(r.delta))
	if p.Op != rocev2.Acknowledge && p.Op != rocev2.CNP {
		g.relay(r.leader, p, psn, out)
		return None
	}
	g.counters.FeedbackOut++
	x := Feedback{Group: g.id, To: r.leader, Op: p.Op, BECN: p.BECN}
	if p.Op == rocev2.Acknowledge {
		x.PSN, x.Syndrome, x.MSN = psn, p.Syndrome, p.MSN
	}
	out.Feedback = append(out.Feedback, x)
	return None
}
