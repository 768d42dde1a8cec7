// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import "slices"

// here reports whether the token is at this switch.
func (m *Machine) here() bool {
	if !m.cfg.Root && !m.parent.below() {
		return false
	}
	for i := range m.children {
		if m.children[i].below() {
			return false
		}
	}
	return true
}

// toward returns the edge on whose other side the token is.
func (m *Machine) toward() *edge {
	for i := range m.children {
		if m.children[i].below() {
			return &m.children[i]
		}
	}
	return &m.parent
}

// enqueue appends w to the queue unless it is there.
func (m *Machine) enqueue(w waiter) {
	if !slices.Contains(m.queue, w) {
		m.queue = append(m.queue, w)
	}
}

// dequeue removes w from the queue.
func (m *Machine) dequeue(w waiter) {
	m.queue = slices.DeleteFunc(m.queue, func(o waiter) bool { return o == w })
}

// cross takes the neighbour's view of the edge in the same term: the token is there and
// has crossed, or it is here and requested. Where the next term is due the token of this
// one is void.
func (m *Machine) cross(e *edge, r *Report) Drop {
	switch {
	case m.suspended || m.needsTerm():
		return NoDrop
	case r.Crossings == e.crossings+1 && !e.onThisSide() && m.joined:
		e.crossings++
		e.requests, e.reserved = false, NoMember
		if e.leg == Parent {
			m.reserved = r.Member
		}
	case r.Crossings == e.crossings:
	case r.Crossings+1 == e.crossings:
		return NoDrop // the neighbour has not seen yet that the token is on its side
	default:
		return Contradictory
	}
	if r.Requests && e.onThisSide() {
		m.enqueue(waiter{leg: e.leg})
	}
	return NoDrop
}

// pass makes the token cross e, and requests it back if others wait.
func (m *Machine) pass(e *edge, k Member) {
	e.crossings++
	e.reserved, e.requests = k, len(m.queue) > 0
}

// serve makes a member of this switch the source. doubtful: this switch has reported in this term that it may be at rest.
func (m *Machine) serve(k Member, doubtful bool, out *Output) {
	if unfinished, certain := m.cfg.Switch.Unfinished(); k == unfinished {
		doubtful = !certain
	}
	m.serving, m.wanted, m.doubted = k, false, doubtful && len(m.queue) > 0
	out.act(Serve, k)
}

// endService notes that no member is served.
func (m *Machine) endService() { m.serving, m.doubted = NoMember, false }

// settle does all that can be done now: it begins and completes terms, requests the token,
// serves members and passes the token on.
func (m *Machine) settle(out *Output) {
	m.completeTerm(out)
	if m.serving == NoMember || len(m.queue) == 0 {
		m.wanted = false // also where another term is needed
	}
	if !m.joined || m.suspended || m.needsTerm() {
		return
	}
	if !m.here() {
		if len(m.queue) > 0 {
			m.toward().requests = true
		}
		return
	}
	if m.serving == NoMember {
		m.choose(out)
	}
	wanted := m.serving != NoMember && len(m.queue) > 0
	if wanted && !m.wanted {
		out.act(Wanted, m.serving)
	}
	m.wanted = wanted
}

// choose gives the free token to the member that it is for, or else to the first of the
// queue.
func (m *Machine) choose(out *Output) {
	if k := m.reserved; k != NoMember {
		leg := m.cfg.Switch.Locate(k)
		switch e := m.edge(leg); {
		case leg == Here:
			m.reserved = NoMember
			m.dequeue(waiter{member: k})
			m.serve(k, k == m.claim && m.doubtful, out)
			return
		case leg > Parent && e != nil:
			m.reserved = NoMember
			m.pass(e, k)
			return
		}
		m.reserved = NoMember // the member has left
	}
	if len(m.queue) == 0 {
		return
	}
	w := m.queue[0]
	m.queue = m.queue[1:]
	if w.member != NoMember {
		m.serve(w.member, false, out)
		return
	}
	m.pass(m.edge(w.leg), NoMember)
}
