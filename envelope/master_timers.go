// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "time"

// Advance fires every deadline <= now.
func (m *Master) Advance(now time.Duration, out *Output) {
	out.reset()
	m.advanceRequests(now, out)
	if m.update != nil && now >= m.update.retry.next {
		m.update.retry.retry(now, m.cfg.RetryMax, &m.random)
		m.sendUpdate(out)
	}
	switch m.phase {
	case registering:
		if now >= m.deadline {
			m.fail(now, m.Unfinished(m.deadline), true, out)
		} else if now >= m.retry.next {
			m.retry.retry(now, m.cfg.RetryMax, &m.random)
			m.sendRegister(out)
		}
	case confirming:
		switch {
		case now >= m.deadline && m.joiners:
			m.dropMember(now, m.Waiting(), m.Unfinished(m.deadline), out)
		case now >= m.deadline:
			m.fail(now, m.Unfinished(m.deadline), true, out)
		case now >= m.leaseUntil:
			m.leaseLost(out)
		case now >= m.retry.next:
			m.retry.retry(now, m.cfg.RetryMax, &m.random)
			m.sendRenew(now, out)
		}
	case registered:
		switch {
		case now >= m.leaseUntil:
			m.leaseLost(out)
		case now >= m.retry.next:
			if m.renewing {
				m.retry.retry(now, m.cfg.RetryMax, &m.random)
			} else {
				m.retry.start(now, m.cfg.RetryMin, &m.random)
			}
			m.sendRenew(now, out)
		}
	}
}

// leaseLost ends the group: by the master's clock the switch has removed it, or soon
// will.
func (m *Master) leaseLost(out *Output) {
	m.stop()
	m.event(Event{Kind: GroupGone, EndReason: Expired, Err: &Failure{
		Group: m.reg.Group, Action: "renew", SwitchSilent: true, After: m.reg.Lease,
	}}, out)
}

// sendRenew sends a Renew, each under a transaction of its own: the registrar accepts
// every transaction once, so that a captured Renew cannot keep a group alive. It lists
// members that have not confirmed, beginning where the list of the last Renew stopped.
func (m *Master) sendRenew(now time.Duration, out *Output) {
	m.renewTx, m.renewSentAt, m.renewing = m.newTransaction(), now, true
	body := &Renew{Lease: m.segments[0].Lease}
	if m.phase == confirming {
		w := m.Waiting()
		ms := make([]MemberRecord, len(w))
		for i := range w {
			k := w[(m.nextSegment+i)%len(w)]
			ms[i] = MemberRecord{IP: k.IP, QPN: k.QPN}
		}
		v6 := m.reg.Group.Is6()
		n := segmentFit(ms, v6, payloadRoom(m.cfg.MTU, v6)-8)
		m.nextSegment = (m.nextSegment + n) % len(w)
		body.ListUnconfirmed = ms[:n]
	}
	m.sendTo(m.renewTx, body, 0, 1, out)
}

func (m *Master) advanceRequests(now time.Duration, out *Output) {
	keep := m.requests[:0]
	for _, r := range m.requests {
		switch {
		case now >= r.deadline:
			if !r.unreported {
				m.requestTimedOut(r, out)
			}
			continue
		case now >= r.retry.next:
			r.retry.retry(now, m.cfg.RetryMax, &m.random)
			m.sendTo(r.tx, r.body, 0, 1, out)
		}
		keep = append(keep, r)
	}
	m.requests = keep
}

func (m *Master) requestTimedOut(r *request, out *Output) {
	f := &Failure{Group: m.reg.Group, Action: r.doing(), SwitchSilent: true, After: m.cfg.Deadline}
	if r.body.kind() == TypeDelete {
		m.event(Event{Kind: GroupGone, EndReason: Deleted, Err: f}, out)
		return
	}
	m.event(Event{Kind: LeaveFailed, Member: r.member, Err: f}, out)
}
