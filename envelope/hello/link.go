// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Multiplier is the detect multiplier (RFC 5880, section 6.8.4). The hold time of a neighbour is
// Multiplier times the interval of its hellos. An adjacency ends when no hello has come for the
// hold time.
const Multiplier = 3

// DefaultInterval is the interval between two hellos.
const DefaultInterval = 100 * time.Millisecond

// Config describes this switch's end of a link.
type Config struct {
	Speaker
	Address
	Capabilities uint32
	MaxVersion   uint8
	Interval     time.Duration  // 0: DefaultInterval
	API          netip.AddrPort // where this switch's API over TCP is; not valid: it has none
	// Keys are the secrets of switches alone: a holder of one is a switch to its neighbours.
	Keys envelope.Keys
	Send envelope.KeyID // the key for hellos sent
	// Seed is random, and another one for each link and start.
	Seed [32]byte
}

// Neighbour is the switch at the other end of a link.
type Neighbour struct {
	Speaker
	Address
	Capabilities uint32
	Version      uint8 // the highest that both speak
	Interval     time.Duration
	API          netip.AddrPort // the API's address, as the neighbour says; not valid: none
	// Session is the number of the adjacency, the same at both ends once both have heard
	// of it. Neither end has two adjacencies of one number: it is a new one when either
	// starts anew, and when either end has lost the adjacency. 0: not proved.
	Session uint64
}

// Hold is the time after which a neighbour is gone that is silent.
func (n *Neighbour) Hold() time.Duration { return Multiplier * n.Interval }

// Event is a change of the adjacency.
type Event struct {
	State     State // the state after the event
	Reason    Reason
	Neighbour Neighbour // the neighbour that is up, or was
}

// Output is what a call has the driver do. The driver passes it in again.
type Output struct {
	Packets [][]byte // packets to Destination, from the link's MAC, with EtherType
	Events  []Event
	Drop    Drop
}

func (o *Output) clear() { o.Packets, o.Events, o.Drop = o.Packets[:0], o.Events[:0], NoDrop }

// Link is the adjacency on one link of this switch.
type Link struct {
	config Config
	random *rand.ChaCha8
	up     bool // the link itself

	peers  []*peer // the switches heard on the link, in the order in which they were first heard
	state  State
	reason Reason
	best   Neighbour // the neighbour that is up

	seq   uint64
	paced time.Duration // the time when the hellos so far would end, a gap after each
	next  time.Duration // the time when the next hello is due
}

// peer is a switch that is heard on the link.
type peer struct {
	Neighbour
	seq       uint64
	challenge uint64 // ours for it
	echo      uint64 // its for us, which we repeat; 0: not known
	proved    bool   // true: the switch has repeated the challenge, and still hears us
	oneWay    bool   // true: the switch was proved, and has ceased to hear us
	former    bool   // another life of the same switch was proved after it
	spent     bool   // an adjacency under the challenge has ended
	deadline  time.Duration
}

// NewLink makes a link that is up. The first hello is due at once.
func NewLink(now time.Duration, c Config) (*Link, error) {
	if c.Interval == 0 {
		c.Interval = DefaultInterval
	}
	if own := c.message(1); !own.possible() {
		return nil, fmt.Errorf("hello on port %d: want an ID and an incarnation other than 0, a unicast MAC address, a version, and an interval of %v to %v", c.Port, MinInterval, MaxInterval)
	}
	l := &Link{config: c, random: rand.NewChaCha8(c.Seed), up: true, reason: Silent, next: now}
	if err := l.SetKeys(c.Keys, c.Send); err != nil {
		return nil, err
	}
	return l, nil
}

// SetAddress changes what hellos say of this end of the link.
func (l *Link) SetAddress(now time.Duration, a Address) error {
	if a == l.config.Address {
		return nil
	}
	c := l.config
	c.Address = a
	if own := c.message(1); !own.possible() {
		return fmt.Errorf("hello on port %d: %v is no unicast MAC address", a.Port, a.MAC)
	}
	l.config.Address = a
	l.hurry(now)
	return nil
}

// message is a hello without neighbours.
func (c *Config) message(seq uint64) Message {
	return Message{
		KeyID: c.Send, MaxVersion: c.MaxVersion, Interval: c.Interval, Capabilities: c.Capabilities,
		Speaker: c.Speaker, Address: c.Address, Seq: seq, API: c.API,
	}
}

// SetKeys replaces the keys. Adjacencies stay: hellos are accepted under every key.
func (l *Link) SetKeys(keys envelope.Keys, send envelope.KeyID) error {
	for id, k := range keys {
		if id == 0 || len(k) < envelope.MinKeyLen {
			return fmt.Errorf("hello on port %d: key %d has %d bytes; want an id other than 0, and at least %d random bytes", l.config.Port, id, len(k), envelope.MinKeyLen)
		}
	}
	if _, ok := keys[send]; !ok {
		return fmt.Errorf("hello on port %d: key %d to authenticate with is not configured", l.config.Port, send)
	}
	l.config.Keys, l.config.Send = keys, send
	return nil
}

// State returns the state of the adjacency, and why it is not up.
func (l *Link) State() (State, Reason) { return l.state, l.reason }

// Neighbour returns the neighbour; false if the adjacency is not up.
func (l *Link) Neighbour() (Neighbour, bool) { return l.best, l.state == Up }

// SetLink tells that the link has lost its carrier, or has it again; then a hello is due at
// once.
func (l *Link) SetLink(now time.Duration, up bool, out *Output) {
	out.clear()
	if up == l.up {
		return
	}
	l.up, l.peers, l.next = up, nil, now
	l.decide(now, out)
}

// NextDeadline returns when Advance has something to do.
func (l *Link) NextDeadline() (at time.Duration, ok bool) {
	if !l.up {
		return 0, false
	}
	at = l.next
	for _, p := range l.peers {
		at = min(at, p.deadline)
	}
	return at, true
}

// Advance sends what is due, and ends what has expired.
func (l *Link) Advance(now time.Duration, out *Output) {
	out.clear()
	l.peers = slices.DeleteFunc(l.peers, func(p *peer) bool { return p.deadline <= now })
	l.decide(now, out)
	if l.up && now >= l.next {
		l.send(now, out)
	}
}

// send sends a hello.
func (l *Link) send(now time.Duration, out *Output) {
	c := &l.config
	l.seq++
	m := c.message(l.seq)
	for _, p := range l.peers {
		m.Neighbour = append(m.Neighbour, Heard{p.Speaker, p.challenge, p.echo})
	}
	b, err := m.Append(nil, c.Keys)
	if err != nil {
		panic(errors.New("hello: a checked configuration cannot be encoded: " + err.Error()))
	}
	out.Packets = append(out.Packets, b)
	// Jitter keeps switches that started together from sending together (RFC 5880,
	// section 6.8.7).
	l.paced, l.next = max(l.paced, now)+l.gap(), now+c.Interval*3/4+time.Duration(l.random.Uint64()%uint64(c.Interval/4))
}

// gap is the mean least time between two hellos. It bounds what hellos of others can cause.
func (l *Link) gap() time.Duration { return l.config.Interval / 10 }

// hurry has the next hello sent soon: the neighbour waits for what it will say. Three may follow
// each other without a gap: a usual one, and the two by which a neighbour that has just started
// learns its challenge, and that it is believed.
func (l *Link) hurry(now time.Duration) {
	l.next = min(l.next, max(now, l.paced-2*l.gap()))
}

// draw returns a challenge.
func (l *Link) draw() uint64 {
	for {
		if c := l.random.Uint64(); c != 0 {
			return c
		}
	}
}

// Input takes a frame of EtherType that was received on the link, without its Ethernet
// header. NextDeadline may be an earlier one after it.
func (l *Link) Input(now time.Duration, from rocev2.MAC, b []byte, out *Output) {
	out.clear()
	if !l.up {
		out.Drop = LinkIsDown
		return
	}
	m, drop := Open(b, l.config.Keys)
	switch {
	case drop != NoDrop:
	case m.Speaker == l.config.Speaker:
		drop = Reflected
	case m.ID == l.config.ID:
		drop = OwnID
	case m.MAC != from:
		drop = WrongMAC
	}
	if drop != NoDrop {
		out.Drop = drop
		return
	}
	p, drop := l.peer(now, &m)
	if drop != NoDrop {
		out.Drop = drop
		return
	}
	p.seq, p.deadline = m.Seq, now+Multiplier*m.Interval
	p.Neighbour = Neighbour{m.Speaker, m.Address, m.Capabilities, min(m.MaxVersion, l.config.MaxVersion), m.Interval, m.API, p.Session}
	l.believe(now, p, &m)
	l.decide(now, out)
}
