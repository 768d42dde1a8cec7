// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// What waits for a neighbour entry: the first answer to a host would otherwise
// be lost, and its sender repeat itself for it.
const (
	parkRoom  = 64                    // datagrams
	parkShare = parkRoom / portShare  // of them, answers to envelopes of one port
	parkTime  = time.Second           // then the entry is given up
	parkPoll  = 20 * time.Millisecond // between two looks
)

// parking holds datagrams whose receivers the kernel is resolving, in the order
// in which they came. It has no clock.
type parking struct {
	waiting []parked
	look    time.Duration // when to look again
}

type parked struct {
	packet envelope.Packet
	until  time.Duration
	port   int // as in room
}

// room reports whether one more datagram may wait: the answer to an envelope that came by
// port, or, if that is negative, one of the switch's own accord.
func (k *parking) room(port int) bool {
	n := 0
	for i := range k.waiting {
		if k.waiting[i].port == port {
			n++
		}
	}
	return len(k.waiting) < parkRoom && (port < 0 || n < parkShare)
}

// add takes p, for which there is room.
func (k *parking) add(now time.Duration, p *envelope.Packet, port int) {
	if len(k.waiting) == 0 {
		k.look = now + parkPoll
	}
	k.waiting = append(k.waiting, parked{*p, now + parkTime, port})
}

// next returns when retry has something to do.
func (k *parking) next() (at time.Duration, ok bool) { return k.look, len(k.waiting) > 0 }

// retry offers what waits to send, which reports whether the receiver is still
// being resolved. lost is called for what has waited too long.
func (k *parking) retry(now time.Duration, send func(*envelope.Packet) (pending bool), lost func()) {
	if len(k.waiting) == 0 || now < k.look {
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
	clear(k.waiting[len(keep):]) // their bytes
	k.waiting, k.look = keep, now+parkPoll
}

// send hands a datagram to the worker, now or when the kernel knows its
// receiver. Everything in the protocol is sent again until it is answered, so
// what cannot be sent is only counted. The kernel is not asked for a receiver whose
// datagram could not wait for the answer: else a host with a key would have it asked for
// as many addresses as it writes into envelopes.
func (c *control) send(p *envelope.Packet) {
	switch h := c.dir.hosts.byIP[p.Dst.Addr()]; {
	case (h == nil || c.w.portOf(h.at.Ifindex) < 0) && !c.parking.room(c.from):
		c.unsent()
	case c.trySend(p):
		c.parking.add(c.now(), p, c.from)
	}
}

// unsent counts a datagram that is given up.
func (c *control) unsent() { c.count.drop[DropNoLocation]++ }

// trySend is send for now. It reports whether the receiver is being resolved.
func (c *control) trySend(p *envelope.Packet) (pending bool) {
	now := c.now()
	h := c.dir.hosts.guest(p.Dst.Addr(), guestRoom, now)
	if h == nil {
		c.unsent()
		return false
	}
	at := h.at
	pi := c.w.portOf(at.Ifindex)
	if pi < 0 {
		if h.heard && now-h.since <= freshTime && !errors.Is(h.err, locate.ErrPending) {
			c.unsent()
			if x := (unsendable{p.Dst, h.err}); h.err != nil {
				if suppressed, report := c.unsendable.add(now, 0, x); report {
					c.tellUnsendable(x, suppressed)
				}
			}
			return false
		}
		if h.index < 0 {
			c.dir.hosts.urge(h)
		}
		return true
	}
	c.sendBy(c.spotOf(&at), p)
	return false
}

// sendBy sends a datagram by a port to a MAC address.
func (c *control) sendBy(s spot, p *envelope.Packet) {
	path := rocev2.Path{
		SrcMAC: c.w.ports[s.port].mac, DstMAC: s.mac, Tagged: s.vlan != 0, TCI: s.vlan,
		Src: p.Src.Addr(), Dst: p.Dst.Addr(), SrcPort: p.Src.Port(),
	}
	w := c.crew.workers[c.crew.sender(s.port)]
	w.do(func() {
		if buf, ok := w.begin(s.port); ok {
			w.end(s.port, rocev2.BuildUDP(buf, &path, p.Dst.Port(), p.Data))
			w.count.envelopeOut++
		}
	})
}

// unsendable is a datagram whose receiver has no place.
type unsendable struct {
	to  netip.AddrPort
	err error
}

func (c *control) tellUnsendable(x unsendable, suppressed uint64) {
	c.notify(true, "cannot send an envelope", "to", x.to, "error", x.err, "suppressed", suppressed)
}
