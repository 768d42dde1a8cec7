// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"slices"
	"time"
)

// Up is called when the neighbour behind leg has become reachable, with a number that both
// have agreed upon and never used before. A leg that is not known is a new child.
func (m *Machine) Up(now time.Duration, leg Leg, session uint64, out *Output) {
	out.reset()
	e := m.edge(leg)
	switch {
	case e == nil && leg <= Parent:
		return
	case e == nil:
		m.children = append(m.children, edge{leg: leg})
		e = &m.children[len(m.children)-1]
	case leg != Parent:
		m.dequeue(waiter{leg: leg})
	}
	e.begin(session)
	if leg == Parent || m.joined {
		m.outdate(m.term)
	}
	m.settle(out)
	m.flush(now, out)
}

// Cut is called when the neighbour behind leg is not reachable. A child keeps its part in
// the term, and the token if that is there. A switch whose parent is not reachable serves
// nobody: it may have been removed from the tree.
func (m *Machine) Cut(now time.Duration, leg Leg, out *Output) {
	out.reset()
	if e := m.edge(leg); e != nil {
		e.session = 0
		if leg == Parent {
			m.suspend(out)
		}
	}
	m.flush(now, out)
}

// Remove is called when no member is behind the leg of a child any more: they have been
// evicted, have left, or have been taken in by another switch. Nothing of the group passes
// the leg from then on.
func (m *Machine) Remove(now time.Duration, leg Leg, out *Output) {
	out.reset()
	n := len(m.children)
	m.children = slices.DeleteFunc(m.children, func(e edge) bool { return e.leg == leg })
	if len(m.children) < n {
		m.dequeue(waiter{leg: leg})
		if m.joined {
			m.outdate(m.term)
		}
	}
	m.settle(out)
	m.flush(now, out)
}

// Add is called when members are behind a new leg to a neighbour below. The next term needs
// that neighbour too.
func (m *Machine) Add(now time.Duration, leg Leg, out *Output) {
	out.reset()
	if m.edge(leg) == nil && leg > Parent {
		m.children = append(m.children, edge{leg: leg})
		if m.joined {
			m.outdate(m.term)
		}
	}
	m.settle(out)
	m.flush(now, out)
}

// SetRoot is called when the parent is another neighbour than before, or when there is none
// any more: the switch is the root then. It serves nobody before the next term.
func (m *Machine) SetRoot(now time.Duration, root bool, out *Output) {
	out.reset()
	m.cfg.Root, m.parent = root, edge{leg: Parent}
	if root {
		m.outdate(m.term)
	} else {
		m.suspend(out)
	}
	m.settle(out)
	m.flush(now, out)
}

// receiveFromParent takes the parent's report.
func (m *Machine) receiveFromParent(r *Report, out *Output) Drop {
	if r.Term > m.term {
		m.join(r.Term, out)
	}
	if r.Term < m.term {
		return NoDrop // Up has asked for a term above this one
	}
	if r.Suspended {
		m.suspend(out)
		return NoDrop
	}
	return m.cross(&m.parent, r)
}

// receiveFromChild takes a child's report.
func (m *Machine) receiveFromChild(e *edge, r *Report) Drop {
	m.outdate(r.Outdated)
	if r.Term > m.term {
		m.outdate(r.Term)
	}
	if r.Term != m.term {
		return NoDrop
	}
	if r.Joined && !m.joined && r.Outdated < m.term {
		e.joined = true
		m.take(r.Member, r.Doubtful)
	}
	if !e.joined {
		return NoDrop
	}
	return m.cross(e, r)
}

// take notes that a source is reported to be unfinished. One that may be at rest yields.
func (m *Machine) take(k Member, doubtful bool) {
	if m.claim == NoMember || m.doubtful && k != NoMember && !doubtful {
		m.claim, m.doubtful = k, doubtful
	}
}

// outdate notes that a term above t is needed.
func (m *Machine) outdate(t Term) { m.outdated = max(m.outdated, t) }

// needsTerm reports whether the root has to begin another term.
func (m *Machine) needsTerm() bool { return m.outdated >= m.term }

// join leaves the present term, and begins term t. Members that wait here go on waiting.
func (m *Machine) join(t Term, out *Output) {
	m.stop(out)
	m.term, m.joined, m.suspended = t, false, false
	m.reserved, m.claim, m.doubtful = NoMember, NoMember, false
	m.eachEdge(func(e *edge) {
		e.crossings, e.requests, e.joined, e.reserved = 0, false, false, NoMember
	})
	m.queue = slices.DeleteFunc(m.queue, func(w waiter) bool { return w.member == NoMember })
}

// suspend gives up the token, wherever it is, until the next term.
func (m *Machine) suspend(out *Output) {
	m.stop(out)
	m.suspended = true
}

// stop ends the service of the source.
func (m *Machine) stop(out *Output) {
	if m.serving != NoMember {
		out.act(Stop, m.serving)
	}
	m.endService()
	m.wanted = false
}

// completeTerm makes the root begin a term that is needed, and completes the present one
// when everybody below has joined it.
func (m *Machine) completeTerm(out *Output) {
	if m.cfg.Root && m.needsTerm() {
		m.join(max(m.outdated+1, FirstTerm(m.cfg.Epoch)), out)
	}
	if m.term == 0 || m.joined {
		return
	}
	for i := range m.children {
		if !m.children[i].joined {
			return
		}
	}
	m.joined = true
	if k, certain := m.cfg.Switch.Unfinished(); k != NoMember {
		if certain || m.claim == NoMember || m.doubtful {
			m.claim, m.doubtful = k, !certain
		}
		if !certain {
			m.enqueue(waiter{member: k}) // also if another one is served first
		}
	}
	if m.cfg.Root {
		m.reserved = m.claim
	}
}
