// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import "time"

// edge is this switch's end of an edge of the tree.
type edge struct {
	leg     Leg    `state:"encoded"`
	session uint64 `state:"encoded"` // 0: not up
	// crossings is how often the token has crossed the edge in this term. It is on the
	// child's side if that is odd.
	crossings uint64 `state:"encoded"`
	requests  bool   `state:"encoded"` // the token is on the neighbour's side, and is waited for here
	joined    bool   `state:"encoded"` // true, of an edge to a child: everybody behind it has joined this term
	reserved  Member `state:"encoded"` // the member for which the token last crossed, toward the child

	reported              Report        `state:"derived = Report{}"` // the newest one that was sent
	sent, acked, received uint64        `state:"encoded if x.up()"`  // sequence numbers: of that, of the last one acknowledged, of the neighbour's
	reply, repeat         bool          `state:"derived = false"`
	deadline              time.Duration `state:"time if x.unacknowledged()"`
	tries                 uint8         `state:"encoded if x.unacknowledged()"`
}

func (e *edge) up() bool             { return e.session != 0 }
func (e *edge) below() bool          { return e.crossings&1 != 0 }
func (e *edge) unacknowledged() bool { return e.up() && e.acked < e.sent }

// onThisSide reports whether the token is at this end of the edge, or behind it.
func (e *edge) onThisSide() bool { return e.below() == (e.leg == Parent) }

// begin starts a session with the neighbour.
func (e *edge) begin(session uint64) {
	*e = edge{leg: e.leg, session: session, crossings: e.crossings}
}

// edge returns the edge of a leg, or nil.
func (m *Machine) edge(leg Leg) *edge {
	if leg == Parent && !m.cfg.Root {
		return &m.parent
	}
	for i := range m.children {
		if m.children[i].leg == leg {
			return &m.children[i]
		}
	}
	return nil
}

func (m *Machine) eachEdge(visit func(*edge)) {
	if !m.cfg.Root {
		visit(&m.parent)
	}
	for i := range m.children {
		visit(&m.children[i])
	}
}

// Drop is why a message was not taken.
type Drop uint8

// Drops.
const (
	NoDrop        Drop = iota
	NoSession          // the leg is not up, or has another session
	LaterEpoch         // a term of a later registration, in a session of this one
	Contradictory      // the token cannot have crossed as the message says
)

// Receive takes an authentic message that came from the neighbour behind leg.
func (m *Machine) Receive(now time.Duration, leg Leg, msg *Message, out *Output) Drop {
	out.reset()
	e := m.edge(leg)
	switch {
	case e == nil || !e.up() || msg.Session != e.session:
		return NoSession
	case max(msg.Term, msg.Outdated).epoch() > m.cfg.Epoch:
		return LaterEpoch
	}
	if msg.Ack > e.acked && msg.Ack <= e.sent {
		e.acked, e.tries = msg.Ack, 0
	}
	e.reply = msg.Poll
	drop := NoDrop
	if msg.Seq > e.received {
		e.received = msg.Seq
		if leg == Parent {
			drop = m.receiveFromParent(&msg.Report, out)
		} else {
			drop = m.receiveFromChild(e, &msg.Report)
		}
	}
	m.settle(out)
	m.flush(now, out)
	return drop
}

// Advance sends again what is not acknowledged in time.
func (m *Machine) Advance(now time.Duration, out *Output) {
	out.reset()
	m.eachEdge(func(e *edge) {
		if e.unacknowledged() && now >= e.deadline {
			e.repeat, e.tries = true, min(e.tries+1, maxBackoff)
		}
	})
	m.flush(now, out)
}

// Poll sends the neighbour behind leg a message that it answers at once, again until it does.
func (m *Machine) Poll(now time.Duration, leg Leg, out *Output) {
	out.reset()
	if e := m.edge(leg); e != nil && e.up() {
		if !e.unacknowledged() {
			e.sent, e.reported = e.sent+1, m.report(e)
		}
		e.repeat, e.tries = true, 0
	}
	m.flush(now, out)
}

// report returns what this switch has to say to the neighbour. A child that has started
// again does not join a term that may have had a token already.
func (m *Machine) report(e *edge) Report {
	r := Report{Term: m.term, Crossings: e.crossings, Requests: e.requests}
	if e.leg != Parent {
		r.Suspended, r.Member = m.suspended, e.reserved
		if !e.joined && m.needsTerm() {
			r.Term = 0
		}
		return r
	}
	r.Outdated, r.Joined = m.outdated, m.joined
	if m.joined {
		r.Member, r.Doubtful = m.claim, m.doubtful
	}
	return r
}

// flush sends each neighbour its report if that has changed, has to be repeated, or has
// been polled.
func (m *Machine) flush(now time.Duration, out *Output) {
	m.eachEdge(func(e *edge) {
		if !e.up() {
			return
		}
		if r := m.report(e); e.sent == 0 || r != e.reported {
			e.sent++
			e.reported, e.repeat, e.tries = r, true, 0
		}
		if e.repeat {
			e.deadline = now + m.cfg.Retry<<e.tries
		}
		if e.repeat || e.reply {
			out.Messages = append(out.Messages, Outgoing{e.leg, Message{
				Group: m.cfg.Group, Session: e.session, Seq: e.sent, Ack: e.received,
				Poll: e.unacknowledged(), Report: e.reported,
			}})
		}
		e.repeat, e.reply = false, false
	})
}
