// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"time"
)

// goneEvent is a Gone without its Ack.
type goneEvent struct {
	id    uint32
	to    netip.AddrPort
	group netip.Addr
	epoch uint64
	key   KeyID
	body  *Gone
	retry backoff
	tries int
}

// queueGone sends a Gone about g to dst, and repeats it until it is acknowledged or
// EventTries are spent. If too many are queued already, it is sent once only: otherwise
// the end of the lease, or a WRITE without an answer, reveals the removal.
func (r *Registrar) queueGone(now time.Duration, g *group, dst netip.AddrPort, body *Gone, out *Output) {
	r.eventID++
	e := &goneEvent{id: r.eventID, to: dst, group: g.reg.Group, epoch: g.reg.Epoch, key: g.key, body: body, tries: 1}
	e.retry.start(now, r.cfg.EventRetry, &r.random)
	if len(r.events) < r.cfg.MaxEvents && r.cfg.EventTries > 1 {
		r.events = append(r.events, e)
	}
	r.sendGone(e, out)
}

func (r *Registrar) sendGone(e *goneEvent, out *Output) {
	us := netip.AddrPortFrom(e.group, r.cfg.Port)
	r.sendUnder(e.key, us, e.to, &Message{Header: Header{
		Epoch: e.epoch, Instance: r.cookie(e.to, e.key), Transaction: e.id, Total: 1, Group: e.group, ReplyTo: us,
	}, Body: e.body}, out)
}

func (r *Registrar) ack(from netip.AddrPort, m *Message, out *Output) {
	if !r.checkCookie(&m.Header) {
		r.drop(WrongInstance, out) // of another run: the Gone is repeated
		return
	}
	for i, e := range r.events {
		if e.id == m.Transaction && e.group == m.Group && e.epoch == m.Epoch && e.to.Addr() == from.Addr() {
			r.events = append(r.events[:i], r.events[i+1:]...)
			return
		}
	}
	r.drop(Unsolicited, out)
}

// NextDeadline returns the time at which Advance must be called next.
func (r *Registrar) NextDeadline() (time.Duration, bool) {
	var d deadlines
	if len(r.leases) > 0 {
		d.add(r.leases[0].leaseUntil)
	}
	for _, g := range r.locating {
		d.add(g.nextTry)
		d.add(g.locateDeadline)
	}
	for _, a := range r.pending {
		d.add(a.deadline)
	}
	for _, e := range r.events {
		d.add(e.retry.next)
	}
	return d.at, d.ok
}

// Advance fires every deadline <= now, in the order of the GroupIPs.
func (r *Registrar) Advance(now time.Duration, out *Output) {
	out.reset()
	r.setTime(now)
	for k, a := range r.pending { // nothing is sent, so the order has no effect
		if now >= a.deadline {
			delete(r.pending, k) // the master begins again, or has given up
		}
	}
	for _, ip := range sortedKeys(r.locating) {
		g := r.locating[ip]
		last := now >= g.locateDeadline
		if last || now >= g.nextTry {
			r.tryInstall(now, g, out) // last attempt, with the locations known by now
		}
		if last && r.locating[ip] == g {
			r.located(ip)
			r.reject(g, g.missingMember, out)
		}
	}
	r.advanceEvents(now, out) // before new ones are made
	for _, g := range r.leases.ended(now) {
		r.removeGroup(now, g, Expired, true, out)
	}
	out.Drop, out.Detail = NoDrop, "" // rejections above answer no message of this call
}

func (r *Registrar) advanceEvents(now time.Duration, out *Output) {
	keep := r.events[:0]
	for _, e := range r.events {
		if now >= e.retry.next {
			if e.tries >= r.cfg.EventTries {
				continue
			}
			e.tries++
			e.retry.retry(now, 16*r.cfg.EventRetry, &r.random)
			r.sendGone(e, out)
		}
		keep = append(keep, e)
	}
	r.events = keep
}
