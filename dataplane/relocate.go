// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
)

// Changes are looked at a while after the first of them, since they come in bursts:
// settle, doubled up to longestSettle while they go on. Those of links are not put
// off any longer than settle.
const (
	settle        = 20 * time.Millisecond
	longestSettle = 640 * time.Millisecond
)

// pace says when changes are looked at.
type pace struct {
	pending bool
	at      time.Duration // if pending
	last    time.Duration // the last time, if gap > 0
	gap     time.Duration
}

// ring notes that there are changes, urgent ones among them or not.
func (p *pace) ring(now time.Duration, urgent bool) {
	if !p.pending {
		if p.gap > 0 && now-p.last < 2*p.gap {
			p.gap = min(2*p.gap, longestSettle)
		} else {
			p.gap = settle
		}
		p.pending, p.at = true, now+p.gap
	}
	if urgent {
		p.at = min(p.at, now+settle)
	}
}

func (p *pace) next() (at time.Duration, ok bool) { return p.at, p.pending }

// due reports whether it is time to look.
func (p *pace) due(now time.Duration) bool {
	if !p.pending || now < p.at {
		return false
	}
	p.pending, p.last = false, now
	return true
}

// lookAround takes in what netlink has said, has those asked for that are due, and sends
// the announcements whose time has come.
func (c *control) lookAround() {
	now := c.now()
	c.dir.sweep(now)
	if c.pace.due(now) {
		s := c.changes.Take()
		if s.All || len(s.Links) > 0 {
			c.linksDue = true
		}
		c.dir.hosts.concern(&s, now)
	}
	c.dir.hosts.retry(now)
	c.dir.retable()
	if at, ok := c.announcer.next(); ok && at <= now {
		c.sendAnnouncements()
	}
}

// candidate takes in that the kernel has another place for h than h.at; the zero
// Location, with the reason, if it has none. Routes count: they are the operator's, or his
// routing daemon's. What a frame of a stranger can change, a neighbour entry or a
// forwarding database, is only a reason to ask the member.
func (d *directory) candidate(h *host, at locate.Location, err error) {
	switch {
	case d.follows, at.Ifindex == 0, h.pin.Ifindex == 0, samePlace(at, h.pin), !sameWay(at, h.pin):
		d.moveIn(h, at, err, func(*group) bool { return true })
	default:
		d.hosts.wait(h, at, d.now())
		d.suspect(h, at)
	}
}

// sameWay reports whether the routing table has one and the same way for two places.
func sameWay(a, b locate.Location) bool {
	return a.Hop == b.Hop && len(a.Links) > 0 && len(b.Links) > 0 && a.Links[0] == b.Links[0]
}

// moveIn makes at the place of h in those of its groups that match; the zero Location if
// it has none, because of err. It is where h is pinned once all groups have it. The
// workers follow with the next retable.
func (d *directory) moveIn(h *host, at locate.Location, err error, match func(*group) bool) {
	all := true
	for g := range h.groups {
		all = all && match(g)
	}
	if all {
		d.hosts.place(h, at)
		if at.Ifindex != 0 {
			h.pin, h.seen = at, nil
		}
		d.hosts.pinned(h)
	}
	for g := range h.groups {
		i := slices.IndexFunc(g.slots, func(s slot) bool { return !s.gone && s.rec.IP == h.ip })
		if i < 0 || samePlace(g.slots[i].place, at) || !match(g) {
			continue // evicted, or registered a moment ago
		}
		d.notify(false, "a member's place has changed", "group", g.reg.Group, "member", h.ip, "place", d.placeString(at), "error", err)
		g.slots[i].place = at
		if !g.stale {
			g.stale = true
			d.stale = append(d.stale, g)
		}
		d.moved(g, h)
	}
}

// retableBatch bounds the groups whose tables are made anew before the control loop
// looks for other work: a group's table has an entry for each member, and one host may
// be in all groups.
const retableBatch = 16

// retable tells the workers of the places that have changed, for up to retableBatch
// groups.
func (d *directory) retable() {
	n := min(retableBatch, len(d.stale))
	for _, g := range d.stale[:n] {
		g.stale = false
		if d.groups[g.reg.Group] != g {
			continue // deleted meanwhile
		}
		t := d.tableOf(&g.reg, g.slots)
		g.w.do(func() { g.w.setTable(g.id, t) })
	}
	d.stale = slices.Delete(d.stale, 0, n)
}
