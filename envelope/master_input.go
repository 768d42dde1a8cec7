// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"time"
)

// Input processes one UDP payload that arrived for the master.
func (m *Master) Input(now time.Duration, from netip.AddrPort, b []byte, out *Output) {
	out.reset()
	msg, _, perr := m.auth.Keys.open(b, m.auth.Insecure)
	if perr != nil {
		if perr.Drop == Unauthenticated {
			m.noteHint(b)
		}
		m.drop(perr.Drop, out)
		return
	}
	switch {
	case msg.Group != m.reg.Group:
		m.drop(UnknownGroupMsg, out)
		return
	case msg.Type.direction() == toSwitch:
		m.drop(WrongRole, out)
		return
	case !m.fromSwitch(from, &msg):
		m.drop(WrongSource, out)
		return
	case msg.KeyID != m.auth.Send: // whose holders may speak for the group
		m.drop(OtherKeyMsg, out)
		return
	}
	switch body := msg.Body.(type) {
	case *Accept:
		m.handleAccept(now, &msg, body, out)
	case *Reject:
		m.handleReject(now, &msg, body, out)
	case *Challenge:
		m.handleChallenge(now, &msg, body, out)
	case *Confirm:
		m.handleConfirm(now, &msg, body, out)
	case *Notice:
		m.handleNotice(&msg, body, out)
	case *Gone:
		m.memberOrGroupGone(now, &msg, body, out)
	default:
		m.drop(WrongRole, out)
	}
}

// fromSwitch reports whether msg came from the address that it speaks for: the GroupIP
// for the switch's messages, the member's address for a member's.
func (m *Master) fromSwitch(from netip.AddrPort, msg *Message) bool {
	if c, ok := msg.Body.(*Confirm); ok {
		return from.Addr().Unmap() == c.Member.IP
	}
	return fromTheSwitch(from, msg.Group, m.cfg.Port)
}

// noteHint records an unauthenticated Reject for BadAuthentication. Any host can send
// one, so it changes only the text of a later failure.
func (m *Master) noteHint(b []byte) {
	msg, _ := Parse(b) // has no body after an error
	j, ok := msg.Body.(*Reject)
	if ok && j.Reason == BadAuthentication && msg.Group == m.reg.Group && msg.Transaction == m.registerTx {
		m.authHint = true
	}
}

// matchRequest removes and returns the Leave or Delete with transaction tx.
func (m *Master) matchRequest(tx uint32, t Type) *request {
	for i, r := range m.requests {
		if r.tx == tx && r.body.kind() == t {
			m.requests = append(m.requests[:i], m.requests[i+1:]...)
			return r
		}
	}
	return nil
}

func (m *Master) handleAccept(now time.Duration, msg *Message, a *Accept, out *Output) {
	switch {
	case a.Request == TypeRegister && m.updates(msg):
		m.updated(now, msg, a, out)
	case msg.Epoch != m.reg.Epoch:
		m.drop(StaleMessage, out)
	case a.Request == TypeRegister && msg.Transaction == m.registerTx && m.phase == registering:
		m.phase = confirming
		m.instance = msg.Instance                 // the instance may have changed while the switch processed the registration
		m.leaseUntil = m.registerSentAt + a.Lease // counted from the sending: the switch's own lease ends later
		m.reg.Lease = a.Lease
		m.retry.start(now, m.cfg.RetryMin, &m.random)
		m.event(Event{Kind: SwitchAccepted, Lease: a.Lease}, out)
		m.checkConfirmed(now, out)
	case a.Request == TypeRenew && msg.Transaction == m.renewTx && m.renewing:
		m.renewing = false
		m.instance = msg.Instance // the newest: an old one would cost a Challenge
		m.leaseUntil = m.renewSentAt + a.Lease
		if m.phase == registered {
			m.scheduleRenew(now, a.Lease)
		}
	case a.Request == TypeLeave || a.Request == TypeDelete:
		r := m.matchRequest(msg.Transaction, a.Request)
		switch {
		case r == nil:
			m.drop(Unsolicited, out)
		case r.unreported:
		case a.Request == TypeDelete:
			m.event(Event{Kind: GroupGone, EndReason: Deleted}, out)
		default:
			m.handleMemberGone(now, r.member, &Gone{Member: r.member, EndReason: Removed}, out)
		}
	default:
		m.drop(DuplicateMsg, out)
	}
}

// scheduleRenew sets the next Renew to a third of the lease, so that two more may be
// lost, or to RenewWithin if that is earlier.
func (m *Master) scheduleRenew(now, lease time.Duration) {
	wait := lease / 3
	if m.cfg.RenewWithin > 0 {
		wait = min(wait, m.cfg.RenewWithin)
	}
	m.retry.wait = m.cfg.RetryMin
	m.retry.next = max(now, m.leaseUntil-lease+wait)
}

// checkConfirmed advances the phase once all members have confirmed.
func (m *Master) checkConfirmed(now time.Duration, out *Output) {
	if m.phase != confirming || len(m.Waiting()) > 0 {
		return
	}
	m.phase = registered
	m.renewing = false
	m.scheduleRenew(now, m.reg.Lease)
	if m.joiners {
		m.joiners = false
		m.event(Event{Kind: Updated, Done: len(m.confirmed), Total: len(m.confirmed), Lease: m.reg.Lease}, out)
		return
	}
	m.event(Event{Kind: Registered, Done: len(m.confirmed), Total: len(m.confirmed), Lease: m.reg.Lease}, out)
}

func (m *Master) handleReject(now time.Duration, msg *Message, j *Reject, out *Output) {
	p := j.Problem
	if j.Request == TypeLeave || j.Request == TypeDelete {
		r := m.matchRequest(msg.Transaction, j.Request)
		switch {
		case r == nil:
			m.drop(Unsolicited, out)
		case j.Request == TypeDelete && p.Reason == StaleEpoch && p.Value == m.usedEpoch && m.reg.Epoch < p.Value:
			m.reg.Epoch = p.Value // the switch accepted the update that the master had given up
			m.request(now, &Delete{}, MemberKey{}, r.unreported, out)
		case r.unreported:
		case j.Request == TypeLeave:
			m.event(Event{Kind: LeaveFailed, Member: r.member, Err: &Failure{Group: m.reg.Group, Action: "leave", Problem: &p}}, out)
		default:
			m.event(Event{Kind: GroupGone, EndReason: Deleted, Err: &Failure{Group: m.reg.Group, Action: "delete", Problem: &p}}, out)
		}
		return
	}
	switch {
	case j.Request == TypeRegister && m.updates(msg):
		m.updateRejected(now, p, out)
	case msg.Epoch != m.reg.Epoch:
		m.drop(StaleMessage, out)
	case j.Request == TypeRenew && m.update != nil && p.Reason == StaleEpoch:
		m.drop(StaleMessage, out) // the switch has this update already; its Accept will follow
	case j.Request == TypeRegister && msg.Transaction == m.registerTx && m.phase == registering && p.Reason == StaleTransaction:
		m.lastTransaction = uint32(p.Value)
		m.newRegister(now, out)
	case j.Request == TypeRenew && msg.Transaction == m.renewTx && m.renewing && p.Reason == StaleTransaction:
		m.lastTransaction = uint32(p.Value) // an earlier master had this group
		m.sendRenew(now, out)
	case j.Request == TypeRegister && msg.Transaction == m.registerTx && m.phase == registering:
		if (p.Reason == StaleEpoch || p.Reason == EpochConflict) && m.autoEpoch && p.Value >= m.reg.Epoch && p.Value+1 != 0 {
			m.reg.Epoch = p.Value + 1 // another master registered first
			m.confirmed = map[MemberKey]bool{}
			m.newRegister(now, out)
			return
		}
		m.fail(now, &Failure{Action: "register", Problem: &p}, false, out)
	case j.Request == TypeRenew && msg.Transaction == m.renewTx && m.renewing:
		m.stop()
		why := Expired
		if p.Reason == UnknownGroup {
			why = Forgotten
		}
		m.event(Event{Kind: GroupGone, EndReason: why, Err: &Failure{Group: m.reg.Group, Action: "renew", Problem: &p}}, out)
	default:
		m.drop(Unsolicited, out)
	}
}

// handleChallenge stores the registrar's instance and repeats the request that the
// Challenge answers. Only an answer to a transaction under way counts, so a replayed
// Challenge changes nothing. The epoch stays if the switch may know it from this request: it
// has installed that, and its Accept is lost or waits for the state file.
func (m *Master) handleChallenge(now time.Duration, msg *Message, c *Challenge, out *Output) {
	if msg.Instance == 0 || msg.Instance == m.instance && m.reg.Epoch != 0 {
		m.drop(DuplicateMsg, out)
		return
	}
	switch {
	case c.Request == TypeRegister && msg.Transaction == m.registerTx && m.phase == registering:
		m.instance = msg.Instance
		if m.autoEpoch && (m.reg.Epoch == 0 || c.EpochKnown > m.reg.Epoch) && c.EpochKnown+1 != 0 {
			m.reg.Epoch = c.EpochKnown + 1
			m.confirmed = map[MemberKey]bool{}
		}
		m.newRegister(now, out)
	case c.Request == TypeRegister && m.update != nil && msg.Transaction == m.update.tx:
		m.instance = msg.Instance
		m.newUpdate(now, out)
	case c.Request == TypeRenew && msg.Transaction == m.renewTx && m.renewing:
		m.instance = msg.Instance
		m.sendRenew(now, out)
	case c.Request == TypeLeave || c.Request == TypeDelete:
		for _, r := range m.requests {
			if r.tx == msg.Transaction && r.body.kind() == c.Request {
				m.instance = msg.Instance
				m.sendTo(r.tx, r.body, 0, 1, out)
				return
			}
		}
		m.drop(Unsolicited, out)
	default:
		m.drop(Unsolicited, out)
	}
}

func (m *Master) handleConfirm(now time.Duration, msg *Message, c *Confirm, out *Output) {
	i := m.reg.Find(c.Member)
	switch {
	case msg.Epoch != m.reg.Epoch:
		m.drop(StaleMessage, out)
	case m.phase != registering && m.phase != confirming || m.gone[c.Member] || m.confirmed[c.Member]:
		m.drop(DuplicateMsg, out)
	case i < 0:
		m.drop(NotForUs, out)
	case c.Status != Confirmed && m.joiners:
		m.dropMember(now, []MemberKey{c.Member}, &Failure{Refusal: c, Registered: m.reg.Members[i]}, out)
	case c.Status != Confirmed:
		m.fail(now, &Failure{Action: "register", Refusal: c, Registered: m.reg.Members[i]}, true, out)
	default:
		m.confirmed[c.Member] = true
		m.event(Event{Kind: MemberConfirmed, Member: c.Member, Done: len(m.confirmed), Total: len(m.reg.Members) - len(m.gone)}, out)
		m.checkConfirmed(now, out)
	}
}

// memberOrGroupGone applies a removal by the switch once, and acknowledges every copy of
// the message.
func (m *Master) memberOrGroupGone(now time.Duration, msg *Message, g *Gone, out *Output) {
	if m.hasAsked(msg.Epoch) && (g.Member == MemberKey{} || g.EndReason == Failed) {
		m.reg.Epoch = msg.Epoch // the switch has installed the update, and the group has ended before all of its tree had
	}
	if msg.Epoch > m.reg.Epoch || m.phase == created {
		m.drop(StaleMessage, out)
		return
	}
	m.sendUnder(msg.KeyID, m.cfg.Local, m.switchAddr, &Message{Header: Header{
		Epoch: msg.Epoch, Instance: msg.Instance, Transaction: msg.Transaction, Total: 1, Group: m.reg.Group, ReplyTo: m.cfg.Local,
	}, Body: &Ack{}}, out)
	switch {
	case msg.Epoch < m.reg.Epoch:
		m.drop(StaleMessage, out)
	case m.phase == ended:
		m.drop(DuplicateMsg, out)
	case g.EndReason == Failed:
		m.event(Event{Kind: GroupGone, EndReason: Failed, Member: g.Member, Code: g.Code, PSN: g.PSN}, out)
		m.end(now, true, out) // a failed group serves no member: delete it at the switch
	case g.Member == MemberKey{}:
		m.stop()
		m.event(Event{Kind: GroupGone, EndReason: g.EndReason, Err: g.Lost.err()}, out)
	default:
		m.handleMemberGone(now, g.Member, g, out)
	}
}

// hasAsked reports whether an epoch is that of the update under way, or of one that has failed.
func (m *Master) hasAsked(epoch uint64) bool {
	return epoch > m.reg.Epoch && (epoch == m.usedEpoch || m.update != nil && epoch == m.update.reg.Epoch)
}

// handleMemberGone removes a member, once.
func (m *Master) handleMemberGone(now time.Duration, k MemberKey, g *Gone, out *Output) {
	if m.gone[k] || m.reg.Find(k) < 0 {
		m.drop(DuplicateMsg, out)
		return
	}
	m.gone[k] = true
	delete(m.confirmed, k)
	m.event(Event{Kind: MemberGone, Member: k, EndReason: g.EndReason, Code: g.Code, PSN: g.PSN}, out)
	m.checkConfirmed(now, out)
}

// event reports e about the master's group.
func (m *Master) event(e Event, out *Output) {
	e.Group, e.Epoch = m.reg.Group, m.reg.Epoch
	out.Events = append(out.Events, e)
}

// fail ends the registration. With cleanUp the switch is asked to delete what it may have
// of it.
func (m *Master) fail(now time.Duration, f *Failure, cleanUp bool, out *Output) {
	f.Group = m.reg.Group
	m.event(Event{Kind: RegistrationFailed, Err: f}, out)
	if cleanUp && m.instance != 0 {
		m.end(now, true, out)
		return
	}
	m.stop()
}
