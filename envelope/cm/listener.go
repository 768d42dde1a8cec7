// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// listener is a group that members may connect to. It states which records it wants to be
// registered (wanted), and control tells it which are (registered).
type listener struct {
	Listen
	key        netip.Addr // the address of the registration: Group, or another address of a session
	front      *front     // the front of a session; nil: everybody connects
	dialler    *connection
	ask        Request // the dialler's REQ
	data       []byte  // private data for listeners
	reply      Reply   // the leader's REP
	replyData  []byte
	members    map[netip.Addr]*connection // those that are members, or are to be
	registered []mcast.MemberRecord       // the records in force, in the order of wanted; nil: the group is not registered
	pending    bool                       // a registration of requested is under way
	requested  []mcast.MemberRecord
	closing    bool // Close has ended it
	anyMTU     bool // MTU is the first member's
	ending     int  // connections that linger, or leave
}

// leave takes c out of l's members.
func (l *listener) leave(c *connection) {
	if l.members[c.record.IP] == c {
		delete(l.members, c.record.IP)
	}
}

// ordered returns the members by their addresses.
func (l *listener) ordered() []*connection {
	list := make([]*connection, 0, len(l.members))
	for _, c := range l.members {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *connection) int { return a.record.IP.Compare(b.record.IP) })
	return list
}

// count returns the number of members that stay, without those that have not answered.
func (l *listener) count() (n int) {
	for _, c := range l.members {
		if c.state != lingering && c.state != dialling {
			n++
		}
	}
	return n
}

// incomplete returns the refusal for a group whose members were not complete in time: the number of
// those that have connected, or answered, and the first listener without an answer.
func (l *listener) incomplete() Refusal {
	r := Refusal{Reason: ConsumerReject, Code: Incomplete, Text: fmt.Sprintf("%d of %d members have connected", l.count(), l.Expect)}
	if l.dialler == nil {
		return r
	}
	r.Text = fmt.Sprintf("%d of %d listeners have answered", l.count()-1, l.Expect-1)
	for _, c := range l.ordered() {
		if c.state == dialling {
			r.Text += fmt.Sprintf(", %s has not", c.address())
			if c.why.Reason == InvalidServiceID {
				r.Text += noListener
			}
			break
		}
	}
	return r
}

// noListener says that a host has answered, but no program there.
const noListener = ": no program listens there"

// minMembers is the least that a group can have: a source and a receiver.
const minMembers = 2

// wanted returns the records that are to be registered: none before all expected members
// have connected, and none once too few are left.
func (l *listener) wanted() (records []mcast.MemberRecord) {
	if l.closing || l.registered == nil && l.count() < l.Expect {
		return nil
	}
	if l.dialler != nil && l.dialler.state == lingering || l.drains() {
		return l.registered // its listeners are leaving
	}
	for _, c := range l.ordered() {
		records = append(records, c.record)
	}
	if len(records) < minMembers {
		return nil
	}
	return records
}

// check lists l's group if it needs another registration.
func (m *Manager) check(l *listener) {
	m.release(l)
	if l.isVacant() && !slices.Contains(m.out.Vacant, l.Group) {
		m.out.Vacant = append(m.out.Vacant, l.Group)
	}
	if !l.key.IsValid() || l.pending || l.closing || slices.Equal(l.wanted(), l.registered) || slices.Contains(m.out.Changed, l.key) {
		return
	}
	m.out.Changed = append(m.out.Changed, l.key)
}

// Wanted returns what a group of Output.Changed is to be registered with: its records, none
// if its registration is to end. The caller answers by Registered. ok is false if nothing is
// to be registered any more.
func (m *Manager) Wanted(group netip.Addr) (l Listen, records []mcast.MemberRecord, ok bool) {
	x := m.listeners[group]
	if x == nil || x.pending || slices.Equal(x.wanted(), x.registered) {
		return Listen{}, nil, false
	}
	x.pending, x.requested = true, x.wanted()
	return x.Listen, x.requested, true
}

// retry is when a registration that was refused is wanted again.
type retry struct {
	at time.Duration
	of *listener
}

const retryInterval = time.Second

// Registered takes notice of the outcome of the registration that Wanted has begun: refused
// is nil, or says why the registrar has rejected it.
func (m *Manager) Registered(now time.Duration, group netip.Addr, refused error, out *Output) {
	m.begin(now, out)
	l := m.listeners[group]
	if l == nil || !l.pending {
		return
	}
	l.pending = false
	was := l.registered
	if refused == nil {
		l.registered = l.requested
	}
	for _, c := range l.ordered() {
		isIn := slices.Contains(l.requested, c.record)
		switch {
		case refused == nil && isIn:
			m.handle(c, installed)
		case refused == nil && len(l.registered) == 0 && c.state != requested:
			m.end(c, Refusal{Reason: ConsumerReject, Code: GroupEnded, Text: "too few members are left"})
		case refused != nil && isIn && !slices.Contains(was, c.record):
			m.end(c, Refusal{Reason: ConsumerReject, Code: NotRegistered, Text: refused.Error()})
		}
	}
	if refused != nil && slices.Equal(l.wanted(), l.requested) { // nobody could be refused: a member has left
		m.retries = append(m.retries, retry{m.now + retryInterval, l})
		return
	}
	m.check(l)
}
