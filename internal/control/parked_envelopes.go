// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// Parked envelopes wait for a neighbour entry. Otherwise the first answer to a host would
// be lost, and the host would have to repeat its request.
const (
	maxParked        = 64                    // datagrams
	maxParkedPerPort = maxParked / 4         // datagrams that answer envelopes from one port
	parkTTL          = time.Second           // a datagram is dropped after this time
	parkPollInterval = 20 * time.Millisecond // the time between two attempts
)

// parkedEnvelopes holds datagrams whose receivers the kernel is resolving, in order of
// arrival. It does not read a clock.
type parkedEnvelopes struct {
	waiting  []parked
	nextPoll time.Duration // the time to try again
}

type parked struct {
	packet      envelope.Packet
	until       time.Duration
	answersPort int // the port, as in hasRoom
}

// hasRoom reports whether one more datagram may be parked: the answer to an envelope from
// port, or, if port is negative, a datagram that the switch originates.
func (k *parkedEnvelopes) hasRoom(port int) bool {
	n := 0
	for i := range k.waiting {
		if k.waiting[i].answersPort == port {
			n++
		}
	}
	return len(k.waiting) < maxParked && (port < 0 || n < maxParkedPerPort)
}

// add parks p. There must be room.
func (k *parkedEnvelopes) add(now time.Duration, p *envelope.Packet, port int) {
	if len(k.waiting) == 0 {
		k.nextPoll = now + parkPollInterval
	}
	k.waiting = append(k.waiting, parked{*p, now + parkTTL, port})
}

// next returns when retry has work.
func (k *parkedEnvelopes) next() (at time.Duration, ok bool) { return k.nextPoll, len(k.waiting) > 0 }

// retry calls send for each parked datagram; send reports whether the receiver is still
// being resolved. lost is called for a datagram that has waited for parkTTL.
func (k *parkedEnvelopes) retry(now time.Duration, send func(*envelope.Packet) (pending bool), lost func()) {
	if len(k.waiting) == 0 || now < k.nextPoll {
		return
	}
	keep := k.waiting[:0]
	for _, x := range k.waiting {
		switch {
		case !send(&x.packet):
		case now >= x.until:
			lost()
		default:
			keep = append(keep, x)
		}
	}
	clear(k.waiting[len(keep):]) // for the garbage collector
	k.waiting, k.nextPoll = keep, now+parkPollInterval
}

// transmit passes a datagram to the worker, now or when the kernel knows its receiver's
// location. Every message of the protocol is repeated until it is answered, so a datagram
// that cannot be sent is only counted. No lookup is made for a receiver whose datagram
// could not be parked: otherwise a host with a key could cause lookups of any addresses
// that it writes into envelopes.
func (c *control) transmit(m *message) {
	p := &m.Body.packet
	if at, ok := c.origin(m); ok {
		c.sendBy(at, p)
		return
	}
	h := c.dir.hosts.Of(p.Dst.Addr())
	if h != nil && m.Body.asker.ip == h.IP() && p.Key != 0 {
		c.dir.inquirer.RequestFrom(h, m.Body.asker.from)
	}
	switch {
	case (h == nil || c.plane.PortIndex(h.At().Ifindex) < 0) && !c.departures.parked.hasRoom(m.Port):
		c.countUnsent()
	case c.trySend(p):
		c.departures.parked.add(c.now(), p, m.Port)
	}
}

// countUnsent counts a datagram that is dropped.
func (c *control) countUnsent() { c.count.unsent++ }

// trySend is transmit without parking. It reports whether the receiver is being resolved.
func (c *control) trySend(p *envelope.Packet) (pending bool) {
	now := c.now()
	h := c.dir.hosts.Guest(p.Dst.Addr(), now)
	if h == nil {
		c.countUnsent()
		return false
	}
	at := locationIn(c.dir.groups[p.Src.Addr()], h)
	pi := c.plane.PortIndex(at.Ifindex)
	if pi < 0 {
		if h.Fresh(now) && !errors.Is(h.Err(), locate.ErrPending) {
			c.countUnsent()
			if x := (unsendable{p.Dst, h.Err()}); h.Err() != nil {
				if suppressed, report := c.refused.unsendable.add(now, 0, x); report {
					c.logUnsendable(x, suppressed)
				}
			}
			return false
		}
		c.dir.hosts.RequestOnce(h)
		return true
	}
	c.sendBy(c.dir.hosts.Origin(at), p)
	return false
}

// unsendable is a datagram whose receiver has no location.
type unsendable struct {
	to  netip.AddrPort
	err error
}

func (c *control) logUnsendable(x unsendable, suppressed uint64) {
	c.notify(true, "an envelope has not been sent: its receiver has no location", "to", x.to, "error", x.err, "suppressed", suppressed)
}
