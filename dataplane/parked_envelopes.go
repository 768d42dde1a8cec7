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
	maxParked        = 64                    // datagrams
	maxParkedPerPort = maxParked / portShare // of them, answers to envelopes of one port
	parkTTL          = time.Second           // then the entry is given up
	parkPollInterval = 20 * time.Millisecond // between two looks
)

// parkedEnvelopes holds datagrams whose receivers the kernel is resolving, in the order
// in which they came. It has no clock.
type parkedEnvelopes struct {
	waiting  []parked
	nextPoll time.Duration // when to look again
}

type parked struct {
	packet      envelope.Packet
	until       time.Duration
	answersPort int // as in room
}

// hasRoom reports whether one more datagram may wait: the answer to an envelope that came by
// port, or, if that is negative, one of the switch's own accord.
func (k *parkedEnvelopes) hasRoom(port int) bool {
	n := 0
	for i := range k.waiting {
		if k.waiting[i].answersPort == port {
			n++
		}
	}
	return len(k.waiting) < maxParked && (port < 0 || n < maxParkedPerPort)
}

// add takes p, for which there is room.
func (k *parkedEnvelopes) add(now time.Duration, p *envelope.Packet, port int) {
	if len(k.waiting) == 0 {
		k.nextPoll = now + parkPollInterval
	}
	k.waiting = append(k.waiting, parked{*p, now + parkTTL, port})
}

// next returns when retry has something to do.
func (k *parkedEnvelopes) next() (at time.Duration, ok bool) { return k.nextPoll, len(k.waiting) > 0 }

// retry offers what waits to send, which reports whether the receiver is still
// being resolved. lost is called for what has waited too long.
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
	clear(k.waiting[len(keep):]) // their bytes
	k.waiting, k.nextPoll = keep, now+parkPollInterval
}

// send hands a datagram to the worker, now or when the kernel knows its
// receiver. Everything in the protocol is sent again until it is answered, so
// what cannot be sent is only counted. The kernel is not asked for a receiver whose
// datagram could not wait for the answer: else a host with a key would have it asked for
// as many addresses as it writes into envelopes.
func (c *control) send(p *envelope.Packet) {
	switch h := c.dir.hosts.byIP[p.Dst.Addr()]; {
	case (h == nil || c.firstWorker.portIndex(h.location.Ifindex) < 0) && !c.parked.hasRoom(c.answersPort):
		c.countUnsent()
	case c.trySend(p):
		c.parked.add(c.now(), p, c.answersPort)
	}
}

// countUnsent counts a datagram that is given up.
func (c *control) countUnsent() { c.count.drop[dropNoLocation]++ }

// trySend is send for now. It reports whether the receiver is being resolved.
func (c *control) trySend(p *envelope.Packet) (pending bool) {
	now := c.now()
	h := c.dir.hosts.guest(p.Dst.Addr(), maxGuests, now)
	if h == nil {
		c.countUnsent()
		return false
	}
	at := h.location
	pi := c.firstWorker.portIndex(at.Ifindex)
	if pi < 0 {
		if h.answered && now-h.answeredAt <= maxAnswerAge && !errors.Is(h.lookupErr, locate.ErrPending) {
			c.countUnsent()
			if x := (unsendable{p.Dst, h.lookupErr}); h.lookupErr != nil {
				if suppressed, report := c.unsendable.add(now, 0, x); report {
					c.logUnsendable(x, suppressed)
				}
			}
			return false
		}
		if h.retryIndex < 0 {
			c.dir.hosts.enqueueUrgent(h)
		}
		return true
	}
	c.sendBy(c.originOf(&at), p)
	return false
}

// sendBy sends a datagram by a port to a MAC address.
func (c *control) sendBy(s origin, p *envelope.Packet) {
	path := rocev2.Path{
		SrcMAC: c.firstWorker.ports[s.port].mac, DstMAC: s.mac, Tagged: s.vlan != 0, TCI: s.vlan,
		Src: p.Src.Addr(), Dst: p.Dst.Addr(), SrcPort: p.Src.Port(),
	}
	w := c.workers.all[c.workers.txWorker(s.port)]
	w.do(func() {
		if buf, ok := w.beginFrame(s.port); ok {
			w.endFrame(s.port, rocev2.BuildUDP(buf, &path, p.Dst.Port(), p.Data))
			w.count.envelopeOut++
		}
	})
}

// unsendable is a datagram whose receiver has no place.
type unsendable struct {
	to  netip.AddrPort
	err error
}

func (c *control) logUnsendable(x unsendable, suppressed uint64) {
	c.notify(true, "cannot send an envelope", "to", x.to, "error", x.err, "suppressed", suppressed)
}
