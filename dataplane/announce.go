// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// A host whose link comes up has lost its neighbour entries, or asks for the group's
// address while nothing receives it, and repeats that only after a second. So the switch
// announces the addresses of groups at a port that comes up, where members are located,
// and at registration: by a gratuitous ARP request (RFC 5944 §4.6), or an unsolicited
// neighbour advertisement (RFC 4861 §7.2.6). Both update neighbour entries and create
// none.

// announcement is a group address at a port, in a VLAN.
type announcement struct {
	port  int
	vlan  uint16
	group netip.Addr
}

// announceAfter are the times at which an announcement is sent: the host's link may come
// up a little later than the switch's, and frames may be lost.
var announceAfter = [...]time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond}

// Announcements are paced: at most announceBatch leave together, and announceInterval
// passes between two batches.
const (
	announceBatch    = 32
	announceInterval = 5 * time.Millisecond
)

// announcer holds the announcements that are to be sent. rounds[i] holds those that have
// been sent i times.
type announcer struct {
	rounds [len(announceAfter)]struct {
		queue []announcement
		since []time.Duration // when each was requested
	}
	queued map[announcement]bool // not sent yet
	last   time.Duration
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

// next returns when the next announcement is due; ok is false if there is none.
func (a *announcer) next() (at time.Duration, ok bool) {
	for i := range a.rounds {
		if t := &a.rounds[i]; len(t.queue) > 0 {
			if due := t.since[0] + announceAfter[i]; !ok || due < at {
				at, ok = due, true
			}
		}
	}
	return max(at, a.last+announceInterval), ok
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

// announcePort announces at port p the groups that have members there.
func (c *control) announcePort(p *port) {
	for h := range c.dir.hosts.byLink[p.ifindex] {
		for g := range h.groups {
			c.announce(g, h)
		}
	}
}

// announceGroup announces g at the locations of its members.
func (c *control) announceGroup(g *group) {
	for ip := range g.hosts {
		c.announce(g, c.dir.hosts.byIP[ip])
	}
}

// announce announces g at the location of h.
func (c *control) announce(g *group, h *host) {
	pi := c.firstWorker.portIndex(h.location.Ifindex)
	if pi < 0 {
		return
	}
	x := announcement{port: pi, vlan: h.location.VLAN, group: g.reg.Group}
	if x.vlan == 0 {
		x.vlan = c.workers.ports[pi].vlan
	}
	c.announcer.add(c.now(), x)
}

// sendAnnouncements sends the announcements that are due.
func (c *control) sendAnnouncements() {
	for _, x := range c.announcer.due(c.now()) {
		if c.dir.groups[x.group] == nil {
			continue // deleted since
		}
		w := c.workers.all[c.workers.txWorker(x.port)]
		w.do(func() {
			if buf, ok := w.beginFrame(x.port); ok {
				w.endFrame(x.port, buildAnnouncement(buf, &x, w.ports[x.port].mac))
				w.count.neighbour++
			}
		})
	}
}

func buildAnnouncement(b []byte, x *announcement, mac rocev2.MAC) int {
	p := rocev2.Path{SrcMAC: mac, DstMAC: rocev2.BroadcastMAC, Tagged: x.vlan != 0, TCI: x.vlan}
	if x.group.Is6() {
		return rocev2.BuildUnsolicitedAdvertisement(b, &p, x.group)
	}
	return rocev2.BuildARP(b, &p, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: mac, SenderIP: x.group, TargetIP: x.group})
}
