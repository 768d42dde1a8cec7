// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Input processes one UDP payload that arrived for the member.
func (m *Member) Input(now time.Duration, from netip.AddrPort, b []byte, out *Output) {
	out.reset()
	msg, _, perr := m.auth.Keys.open(b, m.auth.Insecure)
	if perr != nil {
		m.drop(perr.Drop, out)
		return
	}
	switch {
	case msg.Type.direction() != fromSwitch:
		m.drop(WrongRole, out)
		return
	case !fromTheSwitch(from, msg.Group, m.cfg.Port):
		m.drop(WrongSource, out)
		return
	}
	m.handle(now, &msg, out)
	if g := m.groups[msg.Group]; g != nil {
		m.schedule(g)
	}
}

// handle processes an authentic message of the switch.
func (m *Member) handle(now time.Duration, msg *Message, out *Output) {
	switch body := msg.Body.(type) {
	case *Notify:
		m.handleNotify(now, msg, body, out)
	case *Gone:
		m.handleGone(msg, body, out)
	case *Notice:
		m.handleNotice(msg, body, out)
	case *Where:
		m.handleWhere(msg, body, out)
	case *Accept:
		if body.Request == TypeRenew {
			m.questionAnswered(now, msg, nil, out)
			return
		}
		m.left(msg, body.Request, nil, out)
	case *Reject:
		if body.Request == TypeRenew {
			m.questionAnswered(now, msg, &body.Problem, out)
			return
		}
		m.left(msg, body.Request, &body.Problem, out)
	case *Challenge:
		if body.Request == TypeRenew {
			m.questionChallenged(msg, out)
			return
		}
		m.handleChallenge(msg, body, out)
	default:
		m.drop(WrongRole, out)
	}
}

// handleNotify compares the notification with the member's queue pair, and answers the
// master in either case, so that the master learns of every disagreement. A notification
// of an ended epoch, or of one older than the newest, is not answered.
func (m *Member) handleNotify(now time.Duration, msg *Message, n *Notify, out *Output) {
	var rec *MemberRecord
	for i := range n.Members {
		if n.Members[i].IP == m.cfg.Local.Addr() {
			rec = &n.Members[i]
		}
	}
	if rec == nil || msg.ReplyTo.Addr().IsUnspecified() || msg.ReplyTo.Port() == 0 {
		m.drop(NotForUs, out)
		return
	}
	g := m.groups[msg.Group]
	if g == nil {
		m.sendConfirm(msg, &Confirm{Member: rec.Key(), Status: NotJoined}, out)
		return
	}
	switch {
	case msg.Epoch < g.epoch || msg.Epoch == g.epoch && g.ended || g.leaving:
		m.drop(StaleMessage, out)
		return
	case !m.acceptsFrom(g, msg.KeyID):
		m.drop(OtherKeyMsg, out)
		return
	}
	status := compare(&g.Membership, &n.GroupBody, rec)
	m.sendConfirm(msg, &Confirm{Member: rec.Key(), Status: status, QPN: g.QPN, SQPSN: g.SQPSN, RQPSN: g.RQPSN}, out)
	e := Event{Group: msg.Group, Epoch: msg.Epoch, Member: g.Key(), Status: status}
	switch {
	case status != Confirmed && g.refused != msg.Epoch:
		g.refused, g.status = msg.Epoch, status
		e.Kind = RegistrationFailed
		out.Events = append(out.Events, e)
	case status == Confirmed && g.epoch != msg.Epoch:
		g.epoch, g.ended = msg.Epoch, false
		g.question = question{}
		if msg.ReplyTo.Addr() != m.cfg.Local.Addr() { // else the master is here, and renews
			m.startAsking(now, g, n.TotalMembers)
		}
		e.Kind = Registered
		out.Events = append(out.Events, e)
	}
	if status == Confirmed {
		g.instance, g.key, g.status = msg.Instance, msg.KeyID, Confirmed
	}
}

// acceptsFrom reports whether messages under key may change g: key is that of the known
// registration, or the member's own sending key, whose holders speak for the member in
// any case. While no registration is known, any configured key will do.
func (m *Member) acceptsFrom(g *membership, key KeyID) bool {
	return g.epoch == 0 || g.ended || key == g.key || key == m.auth.Send
}

// compare returns Confirmed, or the status of the first difference between the
// registration and the queue pair.
func compare(g *Membership, n *GroupBody, rec *MemberRecord) Status {
	switch {
	case rec.QPN != g.QPN:
		return QPNMismatch
	case n.QPN != g.VirtualQPN:
		return VirtualQPNMismatch
	case n.PathMTU != g.PathMTU:
		return PMTUMismatch
	case rec.SQPSN != g.SQPSN:
		return SQPSNMismatch
	case rec.RQPSN != g.RQPSN:
		return RQPSNMismatch
	case rec.Window != g.Window && (rec.Window != mcast.Window{} || n.Window != mcast.Window{}):
		// A member may have a window that a group without one does not use.
		return WindowMismatch
	}
	return Confirmed
}

// sendConfirm sends the master the answer to a Notify.
func (m *Member) sendConfirm(msg *Message, c *Confirm, out *Output) {
	m.sendUnder(msg.KeyID, m.cfg.Local, msg.ReplyTo, &Message{Header: Header{
		Epoch: msg.Epoch, Instance: msg.Instance, Transaction: msg.Transaction, Total: 1, Group: msg.Group, ReplyTo: m.cfg.Local,
	}, Body: c}, out)
}

// handleGone acknowledges every Gone for this member, known or not, so that the switch
// can stop its retransmissions.
func (m *Member) handleGone(msg *Message, body *Gone, out *Output) {
	if body.Member.IP != m.cfg.Local.Addr() {
		m.drop(NotForUs, out)
		return
	}
	m.toSwitch(msg.KeyID, msg.Group, msg.Epoch, msg.Instance, msg.Transaction, &Ack{}, out)
	g := m.groups[msg.Group]
	switch {
	case g == nil:
		m.drop(UnknownGroupMsg, out)
	case msg.Epoch < g.epoch || body.Member.QPN != g.QPN:
		m.drop(StaleMessage, out)
	case !m.acceptsFrom(g, msg.KeyID):
		m.drop(OtherKeyMsg, out)
	case msg.Epoch == g.epoch && g.ended:
		m.drop(DuplicateMsg, out)
	case g.epoch == 0: // nothing depends on this epoch here; but a delayed Notify of it is void
		g.epoch, g.ended = msg.Epoch, true
		m.drop(StaleMessage, out)
	default: // also for an epoch whose Notify was lost
		m.end(g, msg.Epoch, body.EndReason, out)
		e := &out.Events[len(out.Events)-1]
		e.PSN, e.Code, e.Err = body.PSN, body.Code, body.Lost.err()
	}
}

// end ends an epoch of g.
func (m *Member) end(g *membership, epoch uint64, why EndReason, out *Output) {
	g.epoch, g.ended, g.leaving = epoch, true, false
	out.Events = append(out.Events, Event{Kind: GroupGone, Group: g.Group, Epoch: epoch, Member: g.Key(), EndReason: why})
}

// leaving returns the membership whose Leave msg answers, or nil.
func (m *Member) leaving(msg *Message, t Type, out *Output) *membership {
	g := m.groups[msg.Group]
	if g == nil || !g.leaving || t != TypeLeave || msg.Transaction != g.tx || msg.Epoch != g.epoch || msg.KeyID != g.key {
		m.drop(Unsolicited, out)
		return nil
	}
	return g
}

// left processes the answer to Leave. A switch that does not know the group, or knows
// only a newer epoch of it, has removed this member as well.
func (m *Member) left(msg *Message, t Type, p *Problem, out *Output) {
	g := m.leaving(msg, t, out)
	switch {
	case g == nil:
	case p == nil || p.Reason == UnknownGroup || p.Reason == StaleEpoch:
		m.end(g, g.epoch, Left, out)
	default:
		g.leaving = false
		out.Events = append(out.Events, Event{Kind: LeaveFailed, Group: g.Group, Epoch: g.epoch, Member: g.Key(),
			Err: &Failure{Group: g.Group, Action: "leave", Problem: p}})
	}
}

// handleChallenge repeats the Leave for the registrar's new instance.
func (m *Member) handleChallenge(msg *Message, c *Challenge, out *Output) {
	g := m.leaving(msg, c.Request, out)
	switch {
	case g == nil:
	case msg.Instance == 0 || msg.Instance == g.instance:
		m.drop(DuplicateMsg, out)
	default:
		g.instance = msg.Instance
		m.sendLeave(g, out)
	}
}
