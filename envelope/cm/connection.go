// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Times and tries. Linux repeats a REQ and a DREQ every 4.6 s; an MRA
// stops that for mraTimeout. The REP is repeated often, since a host that lacks it cannot
// take data yet.
const (
	repeatInterval = time.Second
	replyTries     = 15
	redialInterval = 200 * time.Millisecond // the time for a program between two calls of rdma_listen, or about to make the first
	rtuInterval    = 100 * time.Millisecond
	rtuTries       = 3
	leaveTries     = 5
	lingerTime     = time.Second
	mraTimeout     = Timeout(21) // 8.2 s
	replyAckDelay  = Timeout(18) // Linux makes it an ACK timeout of 19, 2.1 s
)

// peer names a connection by what its host has chosen.
type peer struct {
	ip   netip.Addr
	guid GUID
	id   CommID
}

// connection is a member's, from its REQ on.
type connection struct {
	dialled  bool   // true: the switch has dialled the listener, and is the active side
	port     uint16 // the port that the switch has dialled
	listener *listener
	state    state
	peer     peer
	id       CommID // ours
	guid     GUID   // ours: another one for each connection, since a kernel has one of a GUID and a QPN
	tid      uint64
	record   mcast.MemberRecord
	found    bool          // Manager.byHost has it: the host is not dialled in vain
	flow     bool          // flow control, as in the REQ
	why      Refusal       // the reason for sendREJ; for a dialled listener: its last REJ
	due      time.Duration // the time when the timer fires
	queued   int           // the index in timers, plus one; 0: the timer is not set
	tries    int           // times that REP or DREQ was sent; of REQ, since the host has answered
	patient  time.Duration // the time of an MRA
}

// handle gives an event to c and does what follows from it.
func (m *Manager) handle(c *connection, e event) {
	t := c.state.next(e)
	was, tries := c.state, c.tries
	c.state = t.to
	if t.to != was {
		m.timers.stop(c)
		c.tries = 0
	}
	switch t.do {
	case refuse:
		m.out.Drop = Unexpected
	case sendMRA:
		of := RejectedREQ
		if c.dialled {
			of = RejectedREP
		}
		m.send(c, &Message{Attribute: MsgReceived, MRA: MRA{Of: of, Timeout: mraTimeout}})
	case sendREQ:
		m.send(c, c.request())
		if c.tries++; c.tries > 1 {
			m.setFound(c, false)
			m.out.Packets[len(m.out.Packets)-1].Unanswered = true
		}
		m.timers.set(c, m.now+repeatInterval)
	case sendRTU:
		m.send(c, &Message{Attribute: ReadyToUse})
		if c.tries++; c.tries < rtuTries {
			m.timers.set(c, m.now+rtuInterval)
		}
	case sendREP:
		m.sendReply(c)
		if c.state == replied {
			c.tries++
			m.timers.set(c, m.now+repeatInterval)
		}
	case sendREJ:
		if c.dialled {
			m.send(c, c.abandonment(was))
		} else {
			m.send(c, rejection(&c.why))
		}
	case sendDREP:
		m.send(c, &Message{Attribute: DisconnectReply})
	case sendDREQ:
		if was == accepted && tries == 1 { // the RTU may be on its way: a program whose DREQ is there before its RTU never sees the connection begin
			m.send(c, &Message{Attribute: ReadyToUse})
			m.timers.set(c, m.now+rtuInterval)
			break
		}
		m.send(c, &Message{Attribute: DisconnectRequest, DREQ: DREQ{QPN: c.record.QPN}})
		c.tries++
		m.timers.set(c, m.now+repeatInterval)
	case postpone:
		m.timers.set(c, m.now+repeatInterval+c.patient)
		m.answersREQ(c)
	case redial:
		m.timers.set(c, m.now+redialInterval)
		m.answersREQ(c)
	}
	if c.state == lingering && was != lingering {
		m.timers.set(c, m.now+lingerTime)
	}
	if c.state == was {
		return
	}
	if c.state == answered {
		m.answersREQ(c)
	}
	m.report(c)
	m.out.Events[len(m.out.Events)-1].Left = e == gotDREQ && c.state == lingering
	c.listener.ending += c.state.ending() - was.ending()
	if !c.state.active() {
		c.listener.leave(c)
	}
	if c.state == closed {
		m.remove(c)
	}
	if c.listener.dialler != nil {
		m.follow(c.listener, c, was)
	}
	m.dismiss(c.listener)
	m.check(c.listener)
}

// report reports the state of c.
func (m *Manager) report(c *connection) {
	m.out.Events = append(m.out.Events, Event{Group: c.listener.Group, Member: c.record.IP, QPN: c.record.QPN, State: c.state.String(), Refusal: c.refusal()})
}

// refusal returns why c is no member, if that has been its end.
func (c *connection) refusal() Refusal {
	if c.state == closed || c.state == leaving {
		return c.why
	}
	return Refusal{}
}

func (m *Manager) sendReply(c *connection) {
	l := c.listener
	m.send(c, &Message{Attribute: ConnectReply, Data: l.replyData, Reply: Reply{
		QPN: l.QPN, PSN: c.record.SQPSN, AckDelay: replyAckDelay, FlowControl: c.flow, RNRRetry: 7, GUID: c.guid,
		ResponderResources: l.reply.ResponderResources, InitiatorDepth: l.reply.InitiatorDepth, // for what the leader READs
	}})
}

// send sends a message of c.
func (m *Manager) send(c *connection, x *Message) {
	x.TID, x.LocalID, x.RemoteID = c.tid, c.id, c.peer.id
	m.sendTo(c.listener.Group, c.peer.ip, x)
}

func (m *Manager) sendTo(group, to netip.Addr, x *Message) {
	m.out.Packets = append(m.out.Packets, Packet{From: group, To: to, MAD: x.Append(make([]byte, 0, rocev2.MADLen)), Promises: x.Attribute != MsgReceived && x.Attribute != ConnectReject, Lasts: x.Attribute == DisconnectRequest})
}
