// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"slices"
	"time"
)

// memberUpdate is an update that the switch has not accepted yet; the group is registered
// meanwhile. The master repeats it
// until it is answered or the lease ends: an update given up earlier would leave the
// group's members unknown. The lease is renewed meanwhile.
type memberUpdate struct {
	reg       Registration
	segments  []*Register
	tx        uint32
	startedAt time.Duration
	sentAt    time.Duration
	retry     backoff
}

// Update asks the switch to replace the members of the group by members, while data
// flows. A member with an unchanged record keeps its state, a new one joins at the next
// message, and a missing one is removed (R35). A member that restarted its queue pair has
// another record. The outcome is an event, Updated or UpdateFailed. Update fails at once
// if the group is not registered, another update is under way, or there is a *Problem
// with the members.
func (m *Master) Update(now time.Duration, members []MemberRecord, out *Output) error {
	out.reset()
	switch {
	case m.joiners || m.update != nil:
		return fmt.Errorf("update group %s: another update is under way", m.reg.Group)
	case m.phase != registered:
		return fmt.Errorf("update group %s: it is not registered", m.reg.Group)
	}
	reg := m.reg
	reg.Members = slices.Clone(members)
	reg.Exclusive = false
	reg.Base, reg.Lease = m.reg.Epoch, m.segments[0].Lease
	reg.Epoch = max(m.reg.Epoch, m.usedEpoch) + 1
	if p := reg.Validate(); p != nil {
		return fmt.Errorf("update group %s: %w", reg.Group, p)
	}
	segs, err := reg.Segments(m.cfg.MTU)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	m.update = &memberUpdate{reg: reg, segments: segs, startedAt: now}
	m.newUpdate(now, out)
	return nil
}

// Members returns the records of the members that are still in the group.
func (m *Master) Members() []MemberRecord {
	var live []MemberRecord
	for i := range m.reg.Members {
		if !m.gone[m.reg.Members[i].Key()] {
			live = append(live, m.reg.Members[i])
		}
	}
	return live
}

func (m *Master) newUpdate(now time.Duration, out *Output) {
	u := m.update
	u.tx, u.sentAt = m.newTransaction(), now
	u.retry.start(now, m.cfg.RetryMin, &m.random)
	m.sendUpdate(out)
}

func (m *Master) sendUpdate(out *Output) {
	u := m.update
	for i, s := range u.segments {
		m.sendAs(u.reg.Epoch, u.tx, s, i, len(u.segments), out)
	}
}

// updates reports whether msg answers the update.
func (m *Master) updates(msg *Message) bool {
	return m.update != nil && msg.Epoch == m.update.reg.Epoch && msg.Transaction == m.update.tx
}

// updated adopts the updated group, and waits for the confirmations of its new members.
func (m *Master) updated(now time.Duration, msg *Message, a *Accept, out *Output) {
	u, old := m.update, m.Members()
	m.update = nil
	m.reg, m.segments = u.reg, u.segments
	m.reg.Base, m.reg.Lease = 0, a.Lease
	m.instance = msg.Instance
	m.leaseUntil = max(m.leaseUntil, u.sentAt+a.Lease) // renewed while the switch located the new members
	confirmed := map[MemberKey]bool{}
	for i := range old {
		k := old[i].Key()
		if j := m.reg.Find(k); j >= 0 && m.reg.Members[j] == old[i] {
			confirmed[k] = true
		} else {
			m.event(Event{Kind: MemberGone, Member: k, EndReason: Removed}, out)
		}
	}
	m.confirmed, m.gone = confirmed, map[MemberKey]bool{}
	m.phase, m.joiners, m.renewing = confirming, true, false
	m.deadline = now + m.cfg.Deadline
	m.retry.start(now, m.cfg.RetryMin, &m.random)
	m.checkConfirmed(now, out)
}

// updateRejected tries again under a newer epoch, if the epoch was the only fault.
func (m *Master) updateRejected(now time.Duration, p Problem, out *Output) {
	u := m.update
	if p.Reason == StaleTransaction {
		m.lastTransaction = uint32(p.Value)
		m.newUpdate(now, out)
		return
	}
	m.usedEpoch = u.reg.Epoch
	if (p.Reason == StaleEpoch || p.Reason == EpochConflict) && p.Value >= u.reg.Epoch && p.Value+1 != 0 {
		u.reg.Epoch = p.Value + 1
		m.newUpdate(now, out)
		return
	}
	m.update = nil
	m.event(Event{Kind: UpdateFailed, Err: &Failure{Group: m.reg.Group, Action: "update", Problem: &p}}, out)
}

// dropMember removes from the switch the joining members that did not confirm. The group
// goes on as if the update had not named them.
func (m *Master) dropMember(now time.Duration, ks []MemberKey, f *Failure, out *Output) {
	f.Group, f.Action = m.reg.Group, "update"
	for _, k := range ks {
		m.gone[k] = true
		m.request(now, &Leave{Member: k}, k, true, out)
	}
	if len(m.Waiting()) == 0 {
		m.phase, m.joiners, m.renewing = registered, false, false
		m.scheduleRenew(now, m.reg.Lease)
	}
	m.event(Event{Kind: UpdateFailed, Err: f}, out)
}
