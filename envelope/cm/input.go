// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Input takes a MAD that has come from a host to a group's address.
func (m *Manager) Input(now time.Duration, from, group netip.Addr, mad []byte, out *Output) {
	m.begin(now, out)
	var x Message
	if out.Drop = Decode(mad, &x); out.Drop != OK {
		return
	}
	if x.Attribute == ConnectRequest {
		m.request(from, group, &x)
		return
	}
	c := m.find(from, group, &x)
	if c == nil {
		m.unknown(from, group, &x)
		return
	}
	switch x.Attribute {
	case ConnectReply:
		m.reply(c, &x)
	case ReadyToUse:
		m.handle(c, gotRTU)
	case ConnectReject:
		e := gotREJ
		if c.dialled {
			c.why = Refusal{Reason: x.Reject.Reason}
			if c.why.Reason == InvalidServiceID {
				e = gotAbsence
			}
		}
		m.handle(c, e)
	case MsgReceived:
		c.patient = x.MRA.Timeout.Duration()
		if c.state == dialling {
			c.why = Refusal{}
		}
		m.handle(c, gotMRA)
	case DisconnectRequest:
		if x.DREQ.QPN != c.listener.QPN {
			out.Drop = BadField
			return
		}
		m.handle(c, gotDREQ)
	case DisconnectReply:
		m.handle(c, gotDREP)
	}
}

// reply serves a listener's REP.
func (m *Manager) reply(c *connection, x *Message) {
	if !x.Reply.QPN.Valid() {
		m.out.Drop = BadField
		return
	}
	if c.state == dialling {
		c.peer.id, c.record.QPN, c.record.RQPSN = x.LocalID, x.Reply.QPN, x.Reply.PSN
		if c.record.Reply == mcast.ReplyForwarded {
			c.listener.reply, c.listener.replyData = x.Reply, slices.Clone(x.Data)
		}
	}
	m.handle(c, gotREP)
}

// find returns the connection that a message, other than a REQ, is about. A host that has
// given up before it knew our ID names its own, with its GUID.
func (m *Manager) find(from, group netip.Addr, x *Message) *connection {
	c := m.byID[x.RemoteID]
	if x.Attribute == ConnectReject && x.RemoteID == 0 && x.Reject.Reason == TimedOut && len(x.Reject.ARI) >= 8 {
		var guid uint64
		for _, b := range x.Reject.ARI[:8] {
			guid = guid<<8 | uint64(b)
		}
		c = m.byPeer[peer{from, GUID(guid), x.LocalID}]
	}
	if c == nil || c.peer.ip != from || c.peer.id != x.LocalID && c.state != dialling || c.listener.Group != group {
		return nil // before its REP a listener has no ID that we know
	}
	return c
}

// unknown serves a message of no connection. A DREQ is answered, as Linux does: its sender
// would repeat it for 78 s.
func (m *Manager) unknown(from, group netip.Addr, x *Message) {
	m.out.Drop = UnknownConnection
	if x.Attribute != DisconnectRequest {
		return
	}
	d := x.DREQ
	m.out.Left = &d
	m.sendTo(group, from, &Message{Attribute: DisconnectReply, TID: x.TID, LocalID: x.RemoteID, RemoteID: x.LocalID})
}

// request serves a REQ.
func (m *Manager) request(from, group netip.Addr, x *Message) {
	q := &x.Request
	if q.Src != from || q.LocalGID != from || q.Dst != group || q.RemoteGID != group {
		m.out.Drop = WrongSource
		return
	}
	p := peer{from, q.GUID, x.LocalID}
	if c := m.byPeer[p]; c != nil {
		m.handle(c, gotREQ)
		return
	}
	on, made := m.listenOf(group), (*Creation)(nil)
	data, why := m.examine(on, q, x.Data)
	if on == nil {
		if made = m.creation(from, q, x.Data); made != nil {
			on, why = &made.Listen, Refusal{}
		}
	}
	proves := why == (Refusal{}) && (on.Key != 0 || data.key != 0)
	if proves && !m.isFresh(p, q, x.Data) {
		m.challenge(from, group, x)
		return
	}
	if m.out.Creation = made; made != nil {
		return
	}
	f, l := m.fronts[group], m.listeners[group]
	if why == (Refusal{}) && f != nil {
		l, why = m.openSession(f, q)
	} else if why == (Refusal{}) {
		why = l.admits(q)
	}
	if why != (Refusal{}) {
		m.refuse(from, group, x, why)
		return
	}
	if old := l.members[from]; old != nil {
		m.end(old, replacement)
	}
	c := &connection{listener: l, state: requested, peer: p, id: m.newID(), guid: GUID(m.random.Uint64()), tid: x.TID, flow: q.FlowControl, record: mcast.MemberRecord{
		IP: from, QPN: q.QPN, RQPSN: q.PSN, SQPSN: m.newPSN(), Window: data.window, ReceiveOnly: data.receiveOnly,
	}}
	m.enter(c)
	m.byPeer[p], l.members[from] = c, c
	if proves {
		m.nonces.spend(claimantOf(q), m.now)
		delete(m.resumed, p)
	}
	if l.MTU == 0 || l.count() == 1 && l.anyMTU {
		l.MTU, l.anyMTU = mtuOf(q), true
	}
	m.timers.set(c, m.now+l.Wait)
	m.report(c)
	if f != nil {
		l.dialler = c
		m.dial(l, x.Data)
	}
	m.check(l)
	m.handle(c, gotREQ) // the registrar may take its time
}

// refuse answers a REQ, of no connection, by a REJ, and reports that.
func (m *Manager) refuse(from, group netip.Addr, x *Message, why Refusal) {
	m.reject(from, group, x, why)
	m.out.Events = append(m.out.Events, Event{Group: group, Member: from, QPN: x.Request.QPN, State: closed.String(), Refusal: why, Refused: true})
}

// reject answers a REQ, of no connection, by a REJ.
func (m *Manager) reject(from, group netip.Addr, x *Message, why Refusal) {
	r := rejection(&why)
	r.TID, r.RemoteID = x.TID, x.LocalID
	m.sendTo(group, from, r)
}

// The PSNs that members send with are small: rxe takes a duplicate for new data where
// nothing has come, and the PSN is high.
const minPSN, maxPSN = 0x1000, 0x100000

func (m *Manager) newPSN() rocev2.PSN { return rocev2.PSN(minPSN + m.random.Uint32N(maxPSN-minPSN)) }

// newQPN returns a virtual queue pair that no session of f has: by it the dialler's packets
// are told apart.
func (m *Manager) newQPN(f *front) rocev2.QPN {
	for {
		n := rocev2.QPN(m.random.Uint32N(1 << 24))
		if n.Valid() && !slices.ContainsFunc(f.sessions, func(l *listener) bool { return l.QPN == n }) {
			return n
		}
	}
}

// newID returns a communication ID that no connection has.
func (m *Manager) newID() CommID {
	for {
		if id := CommID(m.random.Uint32()); id != 0 && m.byID[id] == nil {
			return id
		}
	}
}

// listenOf returns what programs may connect to at a group's address; nil: nothing.
func (m *Manager) listenOf(group netip.Addr) *Listen {
	if f := m.fronts[group]; f != nil {
		return &f.Listen
	}
	if l := m.listeners[group]; l != nil && l.front == nil {
		return &l.Listen
	}
	return nil
}

// examine returns what a new member says of itself, or why it cannot be one.
func (m *Manager) examine(l *Listen, q *Request, b []byte) (data private, why Refusal) {
	port, ok := q.Port()
	if l == nil || !ok || port != l.Port {
		return data, Refusal{Reason: InvalidServiceID, Text: fmt.Sprintf("no group of %s waits at service ID %#x of this switch", q.Dst, q.ServiceID)}
	}
	if q.Service != rc {
		return data, Refusal{Reason: InvalidService}
	}
	refused := Refusal{Reason: ConsumerReject, Code: NotAuthenticated}
	if l.From != nil && !slices.ContainsFunc(l.From, func(p netip.Prefix) bool { return p.Contains(q.Src) }) {
		refused.Text = "the group is not open for this address"
		return data, refused
	}
	data, ours := readPrivate(b)
	if l.Key != 0 {
		key := m.cfg.Keys[l.Key]
		if !ours || data.key != l.Key || key == nil || !q.authentic(key, port, b) {
			refused.Text = fmt.Sprintf("the private data is not authentic under key %d", l.Key)
			if n := versionOf(b); n != 0 && n != privateVersion {
				refused.Text = fmt.Sprintf("the private data has version %d, not %d: the program needs libgleam of the switch's release", n, privateVersion)
			}
			return data, refused
		}
	}
	if !ours {
		data = private{}
	}
	if data.expect > 0 && data.expect != l.Expect {
		return data, Refusal{Reason: ConsumerReject, Code: NotCreated, Text: fmt.Sprintf("the group expects %d members, not %d", l.Expect, data.expect)}
	}
	return data, Refusal{}
}

// admits says why a group that everybody connects to cannot have one more member; the zero
// Refusal: it can.
func (l *listener) admits(q *Request) Refusal {
	switch others := l.others(q.Src); {
	case l.MTU != 0 && mtuOf(q) != l.MTU && !(l.anyMTU && others == 0):
		return wrongMTU(l.MTU)
	case others >= l.Expect:
		return Refusal{Reason: NoResources}
	}
	return Refusal{}
}

// mtuOf returns the path MTU of a REQ in bytes.
func mtuOf(q *Request) int { return rocev2.PathMTUOfCode(uint32(q.MTU)) }

// others returns the number of members that stay, beside that of an address.
func (l *listener) others(ip netip.Addr) int {
	n := l.count()
	if c := l.members[ip]; c != nil && c.state != lingering {
		n--
	}
	return n
}
