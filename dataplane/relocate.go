// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
)

// Changes are looked at a while after the first of them, since they come in bursts:
// settle, doubled up to maxSettleTime while they go on. Those of links are not put
// off any longer than settle.
const (
	settleTime    = 20 * time.Millisecond
	maxSettleTime = 640 * time.Millisecond
)

// changePacer says when changes are looked at.
type changePacer struct {
	pending bool
	at      time.Duration // if pending
	last    time.Duration // the last time, if gap > 0
	gap     time.Duration
}

// noteChange notes that there are changes, urgent ones among them or not.
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

// due reports whether it is time to look.
func (p *changePacer) due(now time.Duration) bool {
	if !p.pending || now < p.at {
		return false
	}
	p.pending, p.last = false, now
	return true
}

// followChanges takes in what netlink has said, has those asked for that are due, and sends
// the announcements whose time has come.
func (c *control) followChanges() {
	now := c.now()
	c.dir.expirePending(now)
	if c.changePacer.due(now) {
		s := c.changes.Take()
		if s.All || len(s.Links) > 0 {
			c.linksDue = true
		}
		c.dir.hosts.applyChanges(&s, now)
	}
	c.dir.hosts.enqueueRetries(now)
	c.dir.refreshTables()
	if at, ok := c.announcer.next(); ok && at <= now {
		c.sendAnnouncements()
	}
}

// newLocation takes in that the kernel has another place for h than h.at; the zero
// Location, with the reason, if it has none. Routes count: they are the operator's, or his
// routing daemon's. What a frame of a stranger can change, a neighbour entry or a
// forwarding database, is only a reason to ask the member.
func (d *directory) newLocation(h *host, at locate.Location, err error) {
	switch {
	case d.kernelDecides, at.Ifindex == 0, h.pinned.Ifindex == 0, sameLocation(at, h.pinned), !sameRoute(at, h.pinned):
		d.setLocation(h, at, err, func(*group) bool { return true })
	default:
		d.hosts.scheduleRetry(h, at, d.now())
		d.onSuspect(h, at)
	}
}

// sameRoute reports whether the routing table has one and the same way for two places.
func sameRoute(a, b locate.Location) bool {
	return a.Hop == b.Hop && len(a.Links) > 0 && len(b.Links) > 0 && a.Links[0] == b.Links[0]
}

// setLocation makes at the place of h in those of its groups that match; the zero Location if
// it has none, because of err. It is where h is pinned once all groups have it. The
// workers follow with the next retable.
func (d *directory) setLocation(h *host, at locate.Location, err error, match func(*group) bool) {
	all := true
	for g := range h.groups {
		all = all && match(g)
	}
	if all {
		d.hosts.setLocation(h, at)
		if at.Ifindex != 0 {
			h.pinned, h.seenElsewhere = at, nil
		}
		d.hosts.onPinChange(h)
	}
	for g := range h.groups {
		i := slices.IndexFunc(g.slots, func(s slot) bool { return !s.gone && s.record.IP == h.ip })
		if i < 0 || sameLocation(g.slots[i].location, at) || !match(g) {
			continue // evicted, or registered a moment ago
		}
		d.notify(false, "a member's place has changed", "group", g.reg.Group, "member", h.ip, "place", d.locationText(at), "error", err)
		g.slots[i].location = at
		if !g.tableStale {
			g.tableStale = true
			d.staleTables = append(d.staleTables, g)
		}
		d.onMoved(g, h)
	}
}

// tableBatch bounds the groups whose tables are made anew before the control loop
// looks for other work: a group's table has an entry for each member, and one host may
// be in all groups.
const tableBatch = 16

// refreshTables tells the workers of the places that have changed, for up to tableBatch
// groups.
func (d *directory) refreshTables() {
	n := min(tableBatch, len(d.staleTables))
	for _, g := range d.staleTables[:n] {
		g.tableStale = false
		if d.groups[g.reg.Group] != g {
			continue // deleted meanwhile
		}
		t := d.makeTable(&g.reg, g.slots)
		g.worker.do(func() { g.worker.setTable(g.id, t) })
	}
	d.staleTables = slices.Delete(d.staleTables, 0, n)
}
