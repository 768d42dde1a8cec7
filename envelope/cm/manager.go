// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Config is what a Manager needs to know.
type Config struct {
	Seed [32]byte          // the seed of communication IDs, GUIDs and PSNs; secret
	Keys map[uint16][]byte // the keys of private data
}

// Listen is a group that members may connect to.
type Listen struct {
	Group  netip.Addr
	Port   uint16
	Expect int            // members
	QPN    rocev2.QPN     // the virtual queue pair
	MTU    int            // path MTU in bytes; 0: that of the first member
	Wait   time.Duration  // the time to wait for the other members, from a member's REQ on
	Key    uint16         // the key of the members' private data; 0: they need none
	From   []netip.Prefix // addresses of members; nil: any

	// Listeners are dialled in the group's name when a member connects, which is the dialler
	// then; nil: everybody connects.
	Listeners []netip.AddrPort
	Replies   Replies
	Sessions  int  // diallers at once; each beyond the first is registered under the next address
	Strip     bool // listeners do not get the dialler's private data

	Temporary bool // a REQ has made the group, which ends with its last connection
}

// Packet is a MAD to send.
type Packet struct {
	From, To netip.Addr
	MAD      []byte
	// Promises: a host that gets it may be connected, wait for an answer, or forget the
	// connection. It leaves when a file has Connections as they are now.
	Promises bool
	// Lasts: it waits for that however long it takes. It is a DREQ, for which nobody asks.
	Lasts bool
	// Unanswered: it is a REQ again that the host has not answered. It may be elsewhere than the REQ was
	// sent to: IsConnected has changed.
	Unanswered bool
}

// Event is a change of a connection.
type Event struct {
	Group, Member netip.Addr
	QPN           rocev2.QPN
	State         string // the new one
	Left          bool   // a member's host has disconnected it, by a DREQ
	Refused       bool   // a REQ was refused: there is no connection
	Refusal       Refusal
}

// Output is what a call of a Manager has brought about.
type Output struct {
	Packets []Packet
	Events  []Event
	Changed []netip.Addr // registrations whose records in Wanted differ from the registered ones, and for which no registration is under way
	Drop    Drop
	Left    *DREQ // the DREQ of a connection from before a restart
	// Creation is a group that the REQ passed to Input makes. The caller opens it and passes
	// the REQ to Input again, or to Refuse.
	Creation *Creation
	Vacant   []netip.Addr // groups with Listen.Temporary that have no connection left: the caller closes them
}

// Manager has the connections of all groups. Time is passed in; it must not go back.
type Manager struct {
	cfg       Config
	random    *rand.Rand
	listeners map[netip.Addr]*listener // listeners by the address of the registration
	fronts    map[netip.Addr]*front
	byID      map[CommID]*connection
	byPeer    map[peer]*connection
	byGroup   map[netip.Addr]map[CommID]*connection
	byHost    map[netip.Addr]int // the number of its connections, those that are dialled in vain excepted
	nonces    nonces
	resumed   map[peer]resumption // REQs under a key that waited before a restart
	timers    timers
	retries   []retry // retries in the order of their times
	now       time.Duration
	out       *Output
}

// NewManager returns a Manager without groups.
func NewManager(cfg Config) *Manager {
	return &Manager{
		cfg: cfg, random: rand.New(rand.NewChaCha8(cfg.Seed)), listeners: make(map[netip.Addr]*listener), fronts: make(map[netip.Addr]*front),
		byID: make(map[CommID]*connection), byPeer: make(map[peer]*connection), byGroup: make(map[netip.Addr]map[CommID]*connection), byHost: make(map[netip.Addr]int),
		nonces: newNonces(cfg.Seed), resumed: make(map[peer]resumption),
	}
}

// begin begins a call.
func (m *Manager) begin(now time.Duration, out *Output) {
	*out = Output{Packets: out.Packets[:0], Events: out.Events[:0], Changed: out.Changed[:0], Vacant: out.Vacant[:0]}
	m.now, m.out = now, out
}

// SetKeys replaces the keys of private data. Members that have connected stay.
func (m *Manager) SetKeys(keys map[uint16][]byte) { m.cfg.Keys = keys }

// Open lets members connect to a group.
func (m *Manager) Open(l Listen) error {
	switch {
	case m.listenOf(l.Group) != nil:
		return fmt.Errorf("members connect to group %s already, at port %d: delete it first", l.Group, m.listenOf(l.Group).Port)
	case m.listeners[l.Group] != nil && len(l.Listeners) == 0:
		return fmt.Errorf("group %s has connections that are about to end: try again in some seconds", l.Group)
	case l.Key != 0 && m.cfg.Keys[l.Key] == nil:
		return fmt.Errorf("key %d is not configured", l.Key)
	case l.Key == 0 && l.From == nil:
		return fmt.Errorf("group %s would take any host: name a key of members, or the addresses that they come from", l.Group)
	}
	if len(l.Listeners) > 0 {
		l.Expect = len(l.Listeners) + 1
		m.fronts[l.Group] = &front{Listen: l}
	} else {
		m.listeners[l.Group] = &listener{Listen: l, key: l.Group, members: make(map[netip.Addr]*connection)}
	}
	return nil
}

// Status says how a group's members stand, for an operator; ok is false if none may connect.
func (m *Manager) Status(group netip.Addr) (text string, ok bool) {
	if f := m.fronts[group]; f != nil {
		text = fmt.Sprintf("a program may connect to port %d, and %d listeners are dialled then; connected: %d of %d", f.Port, len(f.Listeners), len(f.sessions), f.Sessions)
		for _, l := range f.sessions {
			text += "; " + l.status()
		}
		return text, true
	}
	l := m.listeners[group]
	if l == nil || l.front != nil {
		return "", false
	}
	text = fmt.Sprintf("members connect to port %d, %d of %d have", l.Port, l.count(), l.Expect)
	for i, c := range l.ordered() {
		text += fmt.Sprintf("%s%s (%s)", map[bool]string{true: ": ", false: ", "}[i == 0], c.record.IP, c.state)
	}
	return text, true
}

// Close ends a group: its connections, its sessions and what is known of its registrations,
// which the caller ends. No more connections are made. It returns false if there is no such group.
func (m *Manager) Close(now time.Duration, group netip.Addr, out *Output) bool {
	m.begin(now, out)
	if m.listenOf(group) == nil {
		return false
	}
	all := []*listener{m.listeners[group]}
	if f := m.fronts[group]; f != nil {
		all, f.sessions = f.sessions, nil
		delete(m.fronts, group)
	}
	maps.DeleteFunc(m.resumed, func(_ peer, r resumption) bool { return r.of.group == group })
	for _, l := range all {
		l.closing, l.registered, l.pending = true, nil, false
		m.endAll(l)
		delete(m.listeners, l.key)
	}
	return true
}

// Ended takes notice that the registration of a group has ended. Its connections end, and
// new members may connect.
func (m *Manager) Ended(now time.Duration, group netip.Addr, out *Output) {
	m.begin(now, out)
	if l := m.listeners[group]; l != nil && (l.registered != nil || l.pending) {
		l.registered, l.pending = nil, false
		m.endAll(l)
		m.release(l)
		m.check(l)
	}
}

// endAll ends all connections of l, those of its members that wait included.
func (m *Manager) endAll(l *listener) {
	for _, c := range l.ordered() {
		m.end(c, Refusal{Reason: ConsumerReject, Code: GroupEnded, Text: "the group has ended"})
	}
}

// Gone takes notice that a member is none any more: it was evicted or removed.
func (m *Manager) Gone(now time.Duration, group, member netip.Addr, qpn rocev2.QPN, out *Output) {
	m.begin(now, out)
	l := m.listeners[group]
	if l == nil {
		return
	}
	l.registered = slices.DeleteFunc(l.registered, func(r mcast.MemberRecord) bool { return r.IP == member && r.QPN == qpn })
	if c := l.members[member]; c != nil && c.record.QPN == qpn {
		m.end(c, Refusal{Reason: ConsumerReject, Code: GroupEnded, Text: "removed from the group"})
	}
	m.check(l)
}

// end ends the membership of c.
func (m *Manager) end(c *connection, why Refusal) {
	c.why = why
	m.handle(c, ended)
}

// Advance lets the timers expire whose time is up to now.
func (m *Manager) Advance(now time.Duration, out *Output) {
	m.begin(now, out)
	for len(m.retries) > 0 && m.retries[0].at <= now {
		l := m.retries[0].of
		m.retries = m.retries[1:]
		m.check(l)
	}
	for len(m.timers) > 0 && m.timers[0].due <= now {
		c := m.timers[0]
		m.timers.stop(c)
		c.patient = 0
		switch {
		case c.state == requested:
			c.why = c.listener.incomplete()
			m.handle(c, expired)
		case c.state == replied && c.tries == replyTries, c.state == leaving && c.tries >= c.dreqTries(), c.state == accepted && c.tries == rtuTries:
			m.handle(c, exhausted)
		default:
			m.handle(c, expired)
			if c.state == leaving {
				m.check(c.listener) // another session may wait for its address
			}
		}
	}
}

// NextDeadline returns when Advance has something to do.
func (m *Manager) NextDeadline() (at time.Duration, ok bool) {
	if len(m.retries) > 0 {
		at, ok = m.retries[0].at, true
	}
	if len(m.timers) > 0 && (!ok || m.timers[0].due < at) {
		at, ok = m.timers[0].due, true
	}
	return at, ok
}
