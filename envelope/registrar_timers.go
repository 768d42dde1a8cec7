// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// goneEvent is a Gone without its Ack.
type goneEvent struct {
	repeat timer[*goneEvent] // the timer in goneEvents.repeats, at retry.next
	id     uint32
	to     netip.AddrPort
	group  netip.Addr
	epoch  uint64
	key    KeyID
	body   Body // *Gone or *Notice
	retry  backoff
	tries  int
}

// queueGone sends a Gone or Notice about g to dst, and repeats it until it is acknowledged or
// EventTries are spent. If too many are queued already, it is sent once only: otherwise
// the end of the lease, or a WRITE without an answer, reveals the removal.
func (r *Registrar) queueGone(now time.Duration, g *group, dst netip.AddrPort, body Body, out *Output) {
	r.eventID++
	e := &goneEvent{id: r.eventID, to: dst, group: g.reg.Group, epoch: g.reg.Epoch, key: g.key, body: body, tries: 1}
	e.retry.start(now, r.cfg.EventRetry, &r.random)
	if len(r.events.byID) < r.cfg.MaxEvents && r.cfg.EventTries > 1 {
		r.events.put(e)
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
	if e := r.events.byID[m.Transaction]; e != nil && e.group == m.Group && e.epoch == m.Epoch && e.key == m.KeyID && e.to.Addr() == from.Addr() {
		r.events.remove(e)
		return
	}
	r.drop(Unsolicited, out)
}

// NextDeadline returns the time at which Advance must be called next.
func (r *Registrar) NextDeadline() (time.Duration, bool) {
	var d deadlines
	for _, next := range [...]func() (time.Duration, bool){r.leases.next, r.tries.next, r.expiries.next, r.events.repeats.next, r.requestTimers.next, r.prepareExpiries.next, r.changeTimers.next,
		r.refusalExpiries.next, r.graces.next, r.rebuilds.next, r.routeChecks.next} {
		if at, ok := next(); ok {
			d.add(at)
		}
	}
	return d.at, d.ok
}

// Advance fires every deadline <= now, in the order of the GroupIPs.
func (r *Registrar) Advance(now time.Duration, out *Output) {
	out.reset()
	r.setTime(now)
	for _, k := range r.expiries.fired(now) { // nothing is sent, so the order has no effect
		r.forgetAssembly(k) // the master begins again, or has given up
	}
	for _, k := range r.prepareExpiries.fired(now) {
		r.forgetPrepare(k)
	}
	for _, k := range r.refusalExpiries.fired(now) {
		r.forgetRefused(k)
	}
	r.advanceNeighbours(now, out)
	r.advanceGraces(now, out)
	r.advanceRoutes(now, out)
	r.advanceRebuilds(now, out)
	r.advanceRequests(now, out)
	for _, g := range inOrder(r.tries.fired(now)) {
		ip := g.reg.Group
		if g.branch != nil && g.branch.state != branchPlanning {
			r.advanceBranch(now, g, out)
			continue
		}
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
	for _, g := range inOrder(r.leases.fired(now)) {
		r.removeGroup(now, g, Expired, true, out)
	}
	out.Drop, out.Detail = NoDrop, "" // rejections above answer no message of this call
}

// inOrder sorts groups by their addresses.
func inOrder(gs []*group) []*group {
	slices.SortFunc(gs, func(a, b *group) int { return a.reg.Group.Compare(b.reg.Group) })
	return gs
}

func (r *Registrar) advanceEvents(now time.Duration, out *Output) {
	es := r.events.repeats.fired(now)
	slices.SortFunc(es, func(a, b *goneEvent) int { return cmp.Compare(a.id, b.id) })
	for _, e := range es {
		if e.tries >= r.cfg.EventTries {
			r.events.remove(e)
			continue
		}
		e.tries++
		e.retry.retry(now, 16*r.cfg.EventRetry, &r.random)
		r.events.put(e)
		r.sendGone(e, out)
	}
}

// goneEvents are the Gones and Notices that wait for their Acks.
type goneEvents struct {
	byID    map[uint32]*goneEvent
	notices map[noticeTo]*goneEvent
	about   map[goneAbout]*goneEvent
	repeats timers[*goneEvent]
}

// goneAbout is what a Gone says, and to which address.
type goneAbout struct {
	body Body
	to   netip.AddrPort
}

func newGoneEvents() goneEvents {
	return goneEvents{byID: map[uint32]*goneEvent{}, notices: map[noticeTo]*goneEvent{}, about: map[goneAbout]*goneEvent{}}
}

// put adds e, and has it repeated at e.retry.next.
func (x *goneEvents) put(e *goneEvent) {
	e.repeat.owner = e
	x.byID[e.id], x.about[goneAbout{e.body, e.to}] = e, e
	if _, is := e.body.(*Notice); is {
		x.notices[noticeTo{e.group, e.to}] = e
	}
	x.repeats.set(&e.repeat, e.retry.next)
}

func (x *goneEvents) remove(e *goneEvent) {
	delete(x.byID, e.id)
	delete(x.about, goneAbout{e.body, e.to})
	if k := (noticeTo{e.group, e.to}); x.notices[k] == e {
		delete(x.notices, k)
	}
	x.repeats.stop(&e.repeat)
}

// underWay reports whether a Gone with that body waits for an Ack from that address.
func (x *goneEvents) underWay(body *Gone, to netip.AddrPort) bool {
	return x.about[goneAbout{body, to}] != nil
}
