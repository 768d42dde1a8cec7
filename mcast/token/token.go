// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"math"
	"net/netip"
	"slices"
	"time"
)

// Member is the number of a member in the group's registration, from 1.
type Member uint32

// NoMember is no member.
const NoMember Member = 0

// Leg is an edge of the tree at this switch: Parent, or the number, from 1, that the
// switch has given to a neighbour below it.
type Leg int32

// Legs that are not to a neighbour below. Here and Nowhere are answers of Switch.Locate.
const (
	Parent  Leg = 0
	Here    Leg = -1 // connected to this switch
	Nowhere Leg = -2 // no member of the group, or not any more
)

// Term numbers the tokens of a group: a term has one token or none, and a token of a
// lower term is void. The upper 32 bits are the epoch of a registration.
type Term uint64

// FirstTerm returns the first term of a registration.
func FirstTerm(epoch uint32) Term { return Term(epoch)<<32 | 1 }

// epoch returns the epoch of the registration in which the term began.
func (t Term) epoch() uint32 { return uint32(t >> 32) }

// Switch is what a machine has to know of the switch that it is in.
type Switch interface {
	// Locate returns the leg to a member: Here, a leg to a neighbour below, Parent for a
	// member behind none of these, or Nowhere.
	Locate(Member) Leg
	// Unfinished returns the source if it is not at rest as this switch sees it, or
	// NoMember. Without certain the source may be at rest: the switch has started again.
	Unfinished() (k Member, certain bool)
}

// Config is a machine's place in the tree.
type Config struct {
	Group netip.Addr
	Epoch uint32 // epoch of the registration
	Root  bool
	// Children are the legs to the neighbours below. A token is made when everybody behind
	// each of them has joined the term.
	Children []Leg
	// Retry is the time after which a message is sent again; it doubles up to 64 times.
	// 0 is DefaultRetry.
	Retry  time.Duration
	Switch Switch
}

// DefaultRetry replaces a Config.Retry of 0. Round trips between neighbours are below it,
// and a turn takes 20 of it.
const DefaultRetry = time.Millisecond

// maxBackoff is the number of times that the retry time is doubled.
const maxBackoff = 6

// ActionKind is the kind of an Action.
type ActionKind uint8

// Actions.
const (
	// Serve: the member is the source from now on.
	Serve ActionKind = iota + 1
	// Stop: the member is not the source any more, and nothing of it is forwarded. Its
	// turn has not ended: if it is unfinished it will be served first.
	Stop
	// Wanted: others wait, so Rested has to be called when the source is at rest.
	Wanted
)

// Action is an order to the switch.
type Action struct {
	Kind   ActionKind
	Member Member
}

// Output is what a call has brought about.
type Output struct {
	Messages []Outgoing
	Actions  []Action
}

// Outgoing is a message to the neighbour behind a leg.
type Outgoing struct {
	Leg     Leg
	Message Message
}

// Machine is one switch's part in the token of one group.
type Machine struct {
	cfg       Config   `state:"constant"`
	term      Term     `state:"encoded"`
	outdated  Term     `state:"encoded"` // a term above this one is needed, if this is not below term
	joined    bool     `state:"encoded"` // nobody at or below this switch serves in an older term
	suspended bool     `state:"encoded"` // cut off from the root: nobody is served before the next term
	serving   Member   `state:"encoded"`
	reserved  Member   `state:"encoded"` // the member that the token is for, before all that wait
	claim     Member   `state:"encoded"` // the unfinished source that this switch or one below it has reported
	doubtful  bool     `state:"encoded"` // the claim may be at rest
	wanted    bool     `state:"encoded"` // others wait for the end of the turn, and Wanted has been sent
	doubted   bool     `state:"encoded"` // the source that is served may be at rest, and one that waits unfinished
	queue     []waiter `state:"list"`
	parent    edge     `state:"encoded if !x.cfg.Root else edge{}"` // the edge to the parent; of no use at the root
	children  []edge   `state:"list"`
}

// waiter is an entry of the queue: a member of this switch, or else a leg.
type waiter struct {
	member Member `state:"encoded"`
	leg    Leg    `state:"encoded"`
}

// New makes the machine of a switch that knows the registration, and of the token nothing.
func New(cfg Config) *Machine {
	if cfg.Retry == 0 {
		cfg.Retry = DefaultRetry
	}
	m := &Machine{cfg: cfg}
	for _, leg := range cfg.Children {
		m.children = append(m.children, edge{leg: leg})
	}
	if cfg.Root {
		m.term = FirstTerm(cfg.Epoch)
		m.joined = len(m.children) == 0
	}
	return m
}

// SetEpoch raises the epoch of the registration. Messages of later epochs are not taken.
func (m *Machine) SetEpoch(epoch uint32) { m.cfg.Epoch = max(m.cfg.Epoch, epoch) }

// Request is called for the first packet of a member at this switch that is not the
// source.
func (m *Machine) Request(now time.Duration, k Member, out *Output) {
	out.reset()
	if k != m.serving {
		m.enqueue(waiter{member: k})
	}
	m.settle(out)
	m.flush(now, out)
}

// Leave is called at every switch when a member, wherever it was, is a member no more and
// has no data in flight.
func (m *Machine) Leave(now time.Duration, k Member, out *Output) {
	out.reset()
	m.dequeue(waiter{member: k})
	if k == m.reserved {
		m.reserved = NoMember
	}
	if k == m.serving {
		m.endService()
	}
	m.settle(out)
	m.flush(now, out)
}

// Rested is called when the source is at rest and others wait. It has no effect if nobody
// does.
func (m *Machine) Rested(now time.Duration, out *Output) {
	out.reset()
	if len(m.queue) > 0 {
		if m.doubted {
			m.outdate(m.term) // the first token of the next one is for another source that may be unfinished
		}
		m.endService()
	}
	m.settle(out)
	m.flush(now, out)
}

// Serving returns the member of this switch that may send, or NoMember.
func (m *Machine) Serving() Member { return m.serving }

// Accepts reports whether data of the source may come from leg. Other data is dropped: its
// sender has not heard yet of what has changed.
func (m *Machine) Accepts(leg Leg) bool {
	e := m.edge(leg)
	if e == nil || !m.joined || m.suspended || !e.up() {
		return false
	}
	if leg == Parent {
		return !e.below()
	}
	return e.joined && e.below()
}

// State is a summary of a machine.
type State uint8

// States.
const (
	Outside   State = iota // no term is known yet
	Suspended              // cut off from the root
	Joining                // a term has begun, and a neighbour below has not given up the last one
	Outdated               // the root has to begin another term; the token stays where it is
	Idle                   // the token is elsewhere, and nobody waits
	Waiting                // the token is elsewhere, and has been requested
	Holding                // the token is here, and nobody waits
	Sending                // a member of this switch is the source
)

// String returns the name that docs/TREES.md has for the state.
func (s State) String() string {
	return [...]string{"Outside", "Suspended", "Joining", "Outdated", "Idle", "Waiting", "Holding", "Sending"}[s]
}

// State returns the machine's state. In Outdated, too, a member may be the source.
func (m *Machine) State() State {
	switch {
	case m.term == 0:
		return Outside
	case m.suspended:
		return Suspended
	case !m.joined:
		return Joining
	case m.needsTerm():
		return Outdated
	case m.serving != NoMember:
		return Sending
	case m.here():
		return Holding
	case m.toward().requests:
		return Waiting
	}
	return Idle
}

// Term returns the machine's term, 0 if it knows none.
func (m *Machine) Term() Term { return m.term }

// NextDeadline returns when Advance is due.
func (m *Machine) NextDeadline() (time.Duration, bool) {
	at := time.Duration(math.MaxInt64)
	m.eachEdge(func(e *edge) {
		if e.unacknowledged() {
			at = min(at, e.deadline)
		}
	})
	return at, at != math.MaxInt64
}

func (o *Output) reset() { o.Messages, o.Actions = o.Messages[:0], o.Actions[:0] }

func (o *Output) act(kind ActionKind, k Member) { o.Actions = append(o.Actions, Action{kind, k}) }

// SessionOf returns the number of a session of one group: that of its two neighbours, and
// the epoch of the registration. A switch that puts the group again counts its reports
// anew, so it needs another session too.
func SessionOf(session uint64, epoch uint32) uint64 {
	return max(session^uint64(epoch)*0x9E3779B97F4A7C15, 1)
}

// Session returns the session of a leg; 0: it is not up.
func (m *Machine) Session(leg Leg) uint64 {
	if e := m.edge(leg); e != nil {
		return e.session
	}
	return 0
}

// Toward returns the leg behind which the token is; Here, if it is at this switch or on its
// way to it.
func (m *Machine) Toward() Leg {
	if m.here() {
		return Here
	}
	return m.toward().leg
}

// Waiting returns how many members of this switch and neighbours wait for the token here,
// and how many neighbours are below.
func (m *Machine) Waiting() (waiting, children int) { return len(m.queue), len(m.children) }

// Wanted reports whether others wait for the end of the turn of the member that is served.
func (m *Machine) Wanted() bool { return m.wanted }

// Doubted reports whether the member that is served may begin no message: it may have been at rest when
// it was served, and one of those that waited then unfinished.
func (m *Machine) Doubted() bool { return m.doubted }

// Clone returns a copy of m that shares no memory with it, in a copy of its switch.
func (m *Machine) Clone(sw Switch) *Machine {
	n := *m
	n.cfg.Switch, n.cfg.Children = sw, slices.Clone(m.cfg.Children)
	n.queue, n.children = slices.Clone(m.queue), slices.Clone(m.children)
	return &n
}
