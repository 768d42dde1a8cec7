// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
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

// lookAround takes in what netlink has said, goes on asking for hosts that are due,
// and sends the announcements whose time has come.
func (c *control) lookAround() {
	if c.pace.due(c.now()) {
		s := c.changes.Take()
		if s.All || len(s.Links) > 0 {
			c.linksChanged()
		}
		c.dir.hosts.concern(&s, c.now())
		if s.News() {
			c.reg.Retry(c.now(), &c.out)
			c.finish()
		}
	}
	c.dir.hosts.retries(c.now())
	if len(c.dir.hosts.queue) > 0 {
		c.dir.relocate(c.now())
	}
	if at, ok := c.announcer.next(); ok && at <= c.now() {
		c.sendAnnouncements()
	}
}

// relocateBatch is how many hosts are asked for before the control loop looks for
// other work: a question takes the kernel up to a millisecond.
const relocateBatch = 16

// relocate asks where the hosts are that are due, up to relocateBatch of them, and
// tells the workers of those that have moved, appeared or gone.
func (d *directory) relocate(now time.Duration) {
	x := d.hosts
	changed := make(map[*group]struct{})
	for range min(relocateBatch, len(x.queue)) {
		h := x.queue[0]
		x.queue = x.queue[1:]
		h.due = false
		if len(h.groups) > 0 {
			d.relocateHost(h, now, changed)
		}
	}
	for g := range changed {
		t := d.tableOf(&g.reg, g.slots)
		g.w.do(func() { g.w.setTable(g.id, t) })
	}
}

func (d *directory) relocateHost(h *host, now time.Duration, changed map[*group]struct{}) {
	at, err := d.locator.Locate(h.ip)
	if errors.Is(err, locate.ErrPending) {
		d.hosts.wait(h, at, now) // it keeps its old place until the new one is known
		return
	}
	same := samePlace(at, h.at) && !h.mixed
	d.hosts.place(h, at)
	h.mixed = false
	if same {
		return
	}
	for g := range h.groups {
		i := slices.IndexFunc(g.slots, func(s slot) bool { return !s.gone && s.rec.IP == h.ip })
		if i < 0 || samePlace(g.slots[i].place, at) {
			continue // evicted, or registered a moment ago
		}
		d.notify(false, "a member's place has changed", "group", g.reg.Group, "member", h.ip, "place", d.placeString(at), "error", err)
		g.slots[i].place = at
		changed[g] = struct{}{}
		d.moved(g, h)
	}
}
