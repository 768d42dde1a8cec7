// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// Changes come in bursts, so they are handled some time after the first of them: after
// settleTime, doubled up to maxSettleTime while they go on. Changes of links are delayed
// by settleTime at most.
const (
	settleTime    = 20 * time.Millisecond
	maxSettleTime = 640 * time.Millisecond
)

// changePacer decides when changes are handled.
type changePacer struct {
	pending bool
	at      time.Duration // the time when they are handled, if pending
	last    time.Duration // the time when changes were handled last, if gap > 0
	gap     time.Duration
}

// noteChange records that there are changes; urgent says whether urgent ones are among
// them.
func (p *changePacer) noteChange(now time.Duration, urgent bool) {
	if !p.pending {
		if p.gap > 0 && now-p.last < 2*p.gap {
			p.gap = min(2*p.gap, maxSettleTime)
		} else {
			p.gap = settleTime
		}
		p.pending, p.at = true, now+p.gap
	}
	if urgent {
		p.at = min(p.at, now+settleTime)
	}
}

func (p *changePacer) next() (at time.Duration, ok bool) { return p.at, p.pending }

// due reports whether to handle the changes now.
func (p *changePacer) due(now time.Duration) bool {
	if !p.pending || now < p.at {
		return false
	}
	p.pending, p.last = false, now
	return true
}

// followChanges handles the changes that netlink has reported, queues the lookups that
// are due, and sends the announcements that are due.
func (c *control) followChanges() {
	now := c.now()
	c.dir.expirePending(now)
	if c.kernel.pacer.due(now) {
		s := c.kernel.changes.Take()
		if s.All || len(s.Links) > 0 {
			c.kernel.linksDue = true
		}
		c.dir.hosts.applyChanges(&s, now)
	}
	c.dir.hosts.enqueueRetries(now)
	c.dir.refreshTables()
	if at, ok := c.departures.announcer.next(); ok && at <= now {
		c.sendAnnouncements()
	}
}

// newLocation handles an answer of the kernel whose location for h differs from
// h.location; the zero Location, with err, if the kernel has none. Changes of routes are
// accepted: they come from the operator, or from a routing daemon. Changes that a
// stranger's frame can cause, of a neighbour entry or a forwarding database, are only a
// reason for an inquiry. What the kernel has lost of its pinned host says nothing of places
// elsewhere, which other keys' holders have confirmed.
func (d *directory) newLocation(h *host, at locate.Location, err error) {
	switch {
	case d.kernelDecides:
		d.setLocation(h, at, err, func(*group) bool { return true })
		return
	case !at.Known():
		here := func(g *group) bool { return sameLocation(h.placeIn(g.key).at, h.pinned) }
		d.setHostLocation(h, at)
		d.setGroupLocations(h, at, err, here)
		return
	}
	admitted := make(map[envelope.KeyID]bool, len(h.places))
	for key, p := range h.places {
		if d.hosts.admits(p, &at) {
			admitted[key] = true
		}
	}
	home := len(admitted) > 0 || !h.isMember() // a host with connections alone is where the kernel has it first
	if h.pinned.Known() {
		home = sameLocation(at, h.pinned) || !sameRoute(at, h.pinned)
	}
	if home {
		d.setHostLocation(h, at)
	}
	d.setGroupLocations(h, at, err, func(g *group) bool { return admitted[g.key] })
	if !home || h.hasUnknownPlace() {
		d.hosts.scheduleRetry(h, at, d.now())
		d.onSuspect(h, at)
	}
}

// sameRoute reports whether two locations have the same next hop and outgoing interface
// in the routing table.
func sameRoute(a, b locate.Location) bool {
	return a.Hop == b.Hop && len(a.Links) > 0 && len(b.Links) > 0 && a.Links[0] == b.Links[0]
}

// setLocation sets the location of h in those of its groups that match; the zero Location
// if h has none, because of err. If all groups match, or h is pinned nowhere, it is pinned there. The
// workers' tables follow with the next refreshTables.
func (d *directory) setLocation(h *host, at locate.Location, err error, match func(*group) bool) {
	all := true
	for g := range h.groups {
		all = all && match(g)
	}
	if all || !h.pinned.Known() {
		d.setHostLocation(h, at)
	}
	d.setGroupLocations(h, at, err, match)
}

// setHostLocation sets where the kernel has h, and holds it.
func (d *directory) setHostLocation(h *host, at locate.Location) {
	d.hosts.setLocation(h, at)
	if at.Known() {
		moved := !sameLocation(h.pinned, at)
		if h.pinned, h.seenElsewhere = at, nil; moved {
			d.onPlaced(h)
		}
	}
	d.hosts.onPinChange(h)
}

// setGroupLocations sets the location of h in those of its groups that match, and its place in those
// of their keys. A host that the kernel has lost keeps its places.
func (d *directory) setGroupLocations(h *host, at locate.Location, err error, match func(*group) bool) {
	moved := false
	for g := range h.groups {
		if p := h.placeIn(g.key); at.Known() && match(g) && !sameLocation(p.at, at) {
			d.hosts.setPlace(h, p, at)
			moved = true
		}
		i, ok := g.hosts[h.ip]
		if !ok || g.slots[i].gone || sameLocation(g.slots[i].location, at) || !match(g) {
			continue // evicted, or registered with this location
		}
		d.notify(false, "a member's location has changed", "group", g.reg.Group, "member", h.ip, "location", d.locationText(at), "error", err)
		g.slots[i].location = at
		d.noteStaleTable(g)
		d.onMoved(g, h)
	}
	if moved {
		d.onPlaced(h)
	}
}

// wayChanged records the way to h that an answer has which finds h where it was: a port may be in
// a bridge now.
func (x *hosts) wayChanged(h *host, at locate.Location) {
	if at.Known() && sameLocation(at, h.pinned) {
		h.pinned = at
	}
	for _, p := range h.places {
		if at.Known() && sameLocation(at, p.at) {
			x.setPlace(h, p, at)
		}
	}
}

// noteStaleTable has the worker get the table of g anew.
func (d *directory) noteStaleTable(g *group) {
	if !g.tableStale {
		g.tableStale = true
		d.staleTables = append(d.staleTables, g)
	}
}

// tableBatch bounds the groups whose tables are rebuilt in one iteration of the control
// loop: a group's table has an entry for each member, and one host may be in all groups.
const tableBatch = 16

// nextTable returns when refreshTables has work.
func (d *directory) nextTable() (at time.Duration, ok bool) { return 0, len(d.staleTables) > 0 }

// refreshTables gives the workers new tables of up to tableBatch groups whose members'
// locations have changed.
func (d *directory) refreshTables() {
	n := min(tableBatch, len(d.staleTables))
	for _, g := range d.staleTables[:n] {
		g.tableStale = false
		if d.groups[g.reg.Group] != g {
			continue // deleted since
		}
		t := d.makeTable(&g.reg, g.slots, g.legs)
		g.handle.SetTable(&t)
		d.onNewTable(g)
	}
	d.staleTables = slices.Delete(d.staleTables, 0, n)
}
