// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/mcast"
)

// Replies is the policy of a group for what its listeners send.
type Replies uint8

// Policies of replies.
const (
	Refuse Replies = iota // data of a listener gets a NAK: listeners receive only
	Source                // any member may be the source, in turns
	Leader                // data of the first listener goes to the dialler, that of the others is acknowledged and discarded
)

// front is the address of a group whose listeners the switch dials. Each dialler has a
// session.
type front struct {
	Listen
	sessions []*listener // sessions in the order of their REQs
}

// assign gives l, a session without one, a key if one is free. The first is the front's own
// address, the others follow it.
func (m *Manager) assign(l *listener) {
	key := l.Group
	for range l.Sessions {
		if m.listeners[key] == nil {
			l.key, m.listeners[key] = key, l
			return
		}
		key = key.Next()
	}
}

// isBusy reports whether the dialler of a session is connected, or waits to be.
func (l *listener) isBusy() bool {
	return l.dialler != nil && (l.dialler.state == requested || l.dialler.state == replied || l.dialler.state == established)
}

// openSession makes a session for the sender of a REQ, or says why it cannot have one. A
// dialler that has as many as there may be has started again: its oldest one ends.
func (m *Manager) openSession(f *front, q *Request) (*listener, Refusal) {
	mtu := mtuOf(q)
	switch {
	case f.MTU != 0 && mtu != f.MTU:
		return nil, wrongMTU(f.MTU)
	case slices.ContainsFunc(f.Listeners, func(a netip.AddrPort) bool { return a.Addr() == q.Src }):
		return nil, Refusal{Reason: ConsumerReject, Code: NotAuthenticated, Text: "the address is one of the group's listeners"}
	}
	busy, oldest := 0, (*listener)(nil)
	for _, l := range f.sessions {
		own := l.isBusy() && l.dialler.peer.ip == q.Src
		switch {
		case !l.isBusy():
		case own && l.dialler.peer.guid == q.GUID && l.dialler.record.QPN == q.QPN:
			busy, oldest = f.Sessions, l
		default:
			busy++
		}
		if own && oldest == nil {
			oldest = l
		}
	}
	if busy >= f.Sessions {
		if oldest == nil {
			return nil, Refusal{Reason: NoResources}
		}
		m.end(oldest.dialler, replacement)
	}
	l := &listener{Listen: f.Listen, front: f, members: make(map[netip.Addr]*connection), ask: *q}
	l.MTU, l.QPN = mtu, m.newQPN(f)
	f.sessions = append(f.sessions, l)
	m.assign(l)
	return l, Refusal{}
}

// release forgets l, a session, if nothing of it is left. The first session that waits for
// its key gets it.
func (m *Manager) release(l *listener) {
	f := l.front
	if f == nil || l.registered != nil || l.pending || len(l.members) > 0 {
		return
	}
	i := slices.Index(f.sessions, l)
	if i < 0 {
		return
	}
	f.sessions = slices.Delete(f.sessions, i, i+1)
	if !l.key.IsValid() {
		return
	}
	delete(m.listeners, l.key)
	if f = m.fronts[f.Group]; f == nil {
		return
	}
	if i := slices.IndexFunc(f.sessions, func(x *listener) bool { return !x.key.IsValid() }); i >= 0 {
		m.assign(f.sessions[i])
		m.check(f.sessions[i])
	}
}

// dial dials all listeners of a session, whose dialler has connected with private data b.
func (m *Manager) dial(l *listener, b []byte) {
	if l.Key == 0 && !l.Strip { // data under a key is for the switch
		l.data = slices.Clone(b)
	}
	for i, to := range l.Listeners {
		c := &connection{listener: l, state: dialling, dialled: true, peer: peer{ip: to.Addr()}, port: to.Port(), id: m.newID(), guid: GUID(m.random.Uint64()), tid: m.random.Uint64(),
			record: mcast.MemberRecord{IP: to.Addr(), SQPSN: m.newPSN(), ReceiveOnly: l.Replies == Refuse},
		}
		switch {
		case l.Replies == Leader && i == 0:
			c.record.Reply = mcast.ReplyForwarded
		case l.Replies == Leader:
			c.record.Reply = mcast.ReplyDiscarded
		}
		m.enter(c)
		l.members[to.Addr()] = c
		m.report(c)
		m.handle(c, expired) // the first REQ goes as the others do
	}
}

// follow does what a change of c's state means for the others of its session: they are
// connected with the dialler, and end with it.
func (m *Manager) follow(l *listener, c *connection, was state) {
	isLeft := c.state > accepted
	switch {
	case c == l.dialler && c.state == established:
		for _, x := range l.ordered() {
			m.handle(x, connected)
		}
	case c == l.dialler && isLeft:
		for _, x := range l.ordered() {
			if x != c {
				m.end(x, Refusal{Reason: ConsumerReject, Code: GroupEnded, Text: "the dialler has left"})
			}
		}
	case c.record.Reply == mcast.ReplyForwarded && isLeft && l.dialler.state != requested && l.isBusy():
		m.end(l.dialler, Refusal{Reason: ConsumerReject, Code: GroupEnded, Text: "the listener that replies has left"})
	case c.dialled && isLeft && l.dialler.state == requested && (was == dialling || was == answered):
		m.end(l.dialler, Refusal{Reason: ConsumerReject, Code: ListenerRefused, Text: fmt.Sprintf("listener %s has refused: %s", c.address(), c.why.Reason)})
	}
}

// address returns where a listener is dialled.
func (c *connection) address() netip.AddrPort { return netip.AddrPortFrom(c.peer.ip, c.port) }

// request returns the REQ to a listener: the dialler's, in the name of the group.
func (c *connection) request() *Message {
	l := c.listener
	q := l.ask
	q.ServiceID, q.GUID, q.QPN, q.PSN = servicePrefix|uint64(c.port), c.guid, l.QPN, c.record.SQPSN
	q.LocalGID, q.Src, q.RemoteGID, q.Dst = l.Group, l.Group, c.peer.ip, c.peer.ip
	q.FlowLabel = 0
	return &Message{Attribute: ConnectRequest, Request: q, Data: l.data}
}

// abandonment returns the REJ that ends the exchange with a listener: of our own REQ, which
// the listener knows by our GUID, or of its REP.
func (c *connection) abandonment(was state) *Message {
	if was == answered {
		x := rejection(&c.why)
		x.Reject.Of = RejectedREP
		return x
	}
	guid := c.guid.bytes()
	return &Message{Attribute: ConnectReject, Reject: Reject{Of: RejectedOther, Reason: TimedOut, ARI: guid[:]}}
}

// status says how a session stands.
func (l *listener) status() (text string) {
	for i, c := range l.ordered() {
		text += fmt.Sprintf("%s%s (%s", map[bool]string{true: "", false: ", "}[i == 0], c.record.IP, c.state)
		if c.state == dialling && c.why.Reason == InvalidServiceID {
			text += noListener
		}
		text += ")"
	}
	return text
}
