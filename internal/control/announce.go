// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/mcast"
)

// A host whose link comes up has lost its neighbour entries, or asks for the group's
// address while nothing receives it, and repeats that only after a second. So the switch
// announces the addresses of groups at a port that comes up, where members are located,
// and at registration: by a gratuitous ARP request (RFC 5944 §4.6), or an unsolicited
// neighbour advertisement (RFC 4861 §7.2.6). Both update neighbour entries and create
// none.

// announceAfter are the times at which an announcement is sent: the host's link may come
// up a little later than the switch's, and frames may be lost.
var announceAfter = [...]time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond}

// Announcements are paced: at most announceBatch leave together, and announceInterval
// passes between two batches. Of a port that comes up sweepGroups groups are looked at meanwhile, so that a link
// with 100,000 of them holds up neither the control loop nor other announcements.
const (
	announceBatch    = 32
	announceInterval = 5 * time.Millisecond
	sweepGroups      = 1024
	recheckGroups    = 64 // the groups that a turn of the control loop checks again
)

// announcer holds the announcements that are to be sent. rounds[i] holds those that have
// been sent i times.
type announcer struct {
	rounds [len(announceAfter)]struct {
		queue []announcement
		since []time.Duration // the times when they were requested
	}
	queued map[announcement]bool // true: the announcement is not sent yet
	sweeps []sweep               // ports whose groups are to be announced
	last   time.Duration
}

// sweep is a port whose groups are looked at in the order of their IDs.
type sweep struct {
	port int // everyPort: all
	next int // the next ID to look at
}

// addSweep has the groups of port pi looked at from the first on.
func addSweep(sweeps *[]sweep, pi int) {
	*sweeps = append(slices.DeleteFunc(*sweeps, func(x sweep) bool { return x.port == pi }), sweep{port: pi})
}

// lookAtNext calls look with the next group of the first sweep, and ends the sweep behind the last one.
func (c *control) lookAtNext(sweeps *[]sweep, look func(g *group, pi int)) {
	x := &(*sweeps)[0]
	if x.next == len(c.dir.byID) {
		*sweeps = (*sweeps)[1:]
		return
	}
	if g := c.dir.byID[x.next]; g != nil {
		look(g, x.port)
	}
	x.next++
}

// announcement is a dataplane.Announcement in 8 bytes: after a restart there is one for each member.
type announcement struct {
	group      mcast.GroupID
	port, vlan uint16
}

func newAnnouncer() *announcer { return &announcer{queued: make(map[announcement]bool)} }

// add requests an announcement, unless it has been requested and not been sent yet.
func (a *announcer) add(now time.Duration, x announcement) {
	if !a.queued[x] {
		a.queued[x] = true
		a.put(0, x, now)
	}
}

func (a *announcer) put(turn int, x announcement, since time.Duration) {
	t := &a.rounds[turn]
	t.queue, t.since = append(t.queue, x), append(t.since, since)
}

// next returns when the next announcement, or the next group of a sweep, is due; ok is false if there is none.
func (a *announcer) next() (at time.Duration, ok bool) {
	if at, ok = a.first(); len(a.sweeps) > 0 {
		at, ok = 0, true
	}
	return max(at, a.last+announceInterval), ok
}

// first returns when the first announcement that has been requested is due, whatever the pace.
func (a *announcer) first() (at time.Duration, ok bool) {
	for i := range a.rounds {
		if t := &a.rounds[i]; len(t.queue) > 0 {
			if due := t.since[0] + announceAfter[i]; !ok || due < at {
				at, ok = due, true
			}
		}
	}
	return at, ok
}

// due removes and returns the announcements that are due now.
func (a *announcer) due(now time.Duration) (xs []announcement) {
	for i := range a.rounds {
		t := &a.rounds[i]
		for len(t.queue) > 0 && len(xs) < announceBatch && t.since[0]+announceAfter[i] <= now {
			x, since := t.queue[0], t.since[0]
			t.queue, t.since = t.queue[1:], t.since[1:]
			xs = append(xs, x)
			if i == 0 {
				delete(a.queued, x)
			}
			if i+1 < len(a.rounds) {
				a.put(i+1, x, since)
			}
		}
	}
	a.last = now
	return xs
}

// announcePort has the groups announced that have members at port pi, or all at all ports.
func (c *control) announcePort(pi int) { addSweep(&c.departures.announcer.sweeps, pi) }

// continueSweeps requests announcements at ports that have come up, if no other one is due.
func (c *control) continueSweeps(now time.Duration) {
	a := c.departures.announcer
	if at, ok := a.first(); ok && at <= now {
		return
	}
	for looks, asked := 0, len(a.queued); looks < sweepGroups && len(a.queued) < asked+announceBatch && len(a.sweeps) > 0; looks++ {
		c.lookAtNext(&a.sweeps, c.announceGroup)
	}
}

// announceGroup announces g at the locations of its members behind a port, or of all.
func (c *control) announceGroup(g *group, only int) {
	for i := range g.slots {
		if s := &g.slots[i]; s.joined && (only == everyPort || c.plane.PortIndex(s.at().Ifindex) == only) {
			c.announceAt(g, s.at())
		}
	}
}

const everyPort = -1

// announce announces g at the location that a host has in it.
func (c *control) announce(g *group, host netip.Addr) {
	if i, ok := g.hostSlot(host); ok {
		c.announceAt(g, g.slots[i].at())
	}
}

func (c *control) announceAt(g *group, at locate.Location) {
	pi := c.plane.PortIndex(at.Ifindex)
	if pi < 0 {
		return
	}
	c.departures.announcer.add(c.now(), announcement{g.id, uint16(pi), cmp.Or(at.VLAN, c.ports[pi].VLAN)})
}

// sendAnnouncements sends the announcements that are due.
func (c *control) sendAnnouncements() {
	c.continueSweeps(c.now())
	var list []dataplane.Announcement
	for _, x := range c.departures.announcer.due(c.now()) {
		if g := c.dir.byID[x.group]; g != nil {
			list = append(list, dataplane.Announcement{Port: int(x.port), VLAN: x.vlan, Group: g.reg.Group})
		}
	}
	c.plane.Announce(list)
}
