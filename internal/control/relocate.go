// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
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
		c.dir.hosts.Apply(&s, now)
	}
	c.dir.hosts.Retry(now)
	c.dir.refreshTables()
	if at, ok := c.departures.announcer.next(); ok && at <= now {
		c.sendAnnouncements()
	}
}

// memberMoved gives a member another location in a group, or none because of err. The workers' tables follow
// with the next refreshTables.
func (d *directory) memberMoved(group netip.Addr, h *location.Host, at locate.Location, err error) {
	g := d.groups[group]
	i, ok := g.hostSlot(h.IP())
	if !ok || g.slots[i].gone || location.Same(g.slots[i].at(), at) {
		return // evicted, or registered with this location
	}
	d.notify(false, "a member's location has changed", "group", group, "member", h.IP(), "location", d.hosts.Text(at), "error", err)
	g.slots[i].location = h.Share(g.key, at)
	d.noteStaleTable(g)
	d.onMoved(g, h.IP())
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
		t := d.makeTable(g.reg, g.slots, g.legs)
		g.handle.SetTable(&t)
		d.onNewTable(g)
	}
	d.staleTables = slices.Delete(d.staleTables, 0, n)
}
