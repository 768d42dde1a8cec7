// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
)

// A management datagram counts if it comes from where its host is: the location that the host is pinned
// to as a member of a group, or as an end of a connection; without one, the kernel's. Nobody has
// to answer an inquiry for that, as programs by RDMA-CM cannot. A datagram of a host that the kernel has not
// located yet waits for the answer: its host would repeat it after seconds.

// mad is a management datagram.
type mad struct {
	from        dataplane.Origin
	host, group netip.Addr
	bytes       []byte
	until       time.Duration // the time until which it waits for the location of host
}

// Bounds of the datagrams that wait. A port has a share, so that strangers at another one do not take all.
const (
	maxHeldMADs        = 256
	maxHeldMADsPerPort = maxHeldMADs / 8
	maxHeldMADsPerHost = 2 // datagrams in the name of one host, from one port
	heldMADTime        = parkTTL
)

// heldMADs are the datagrams that wait for the locations of their hosts, in order of arrival. It
// does not read a clock.
type heldMADs struct {
	waiting  []mad
	nextPoll time.Duration
}

// hasRoom reports whether one more datagram from a port, in a host's name, may wait.
func (q *heldMADs) hasRoom(port int, host netip.Addr) bool {
	ofPort, ofHost := 0, 0
	for i := range q.waiting {
		if x := &q.waiting[i]; x.from.Port == port {
			if ofPort++; x.host == host {
				ofHost++
			}
		}
	}
	return len(q.waiting) < maxHeldMADs && ofPort < maxHeldMADsPerPort && ofHost < maxHeldMADsPerHost
}

// next returns when the control loop serves them.
func (q *heldMADs) next() (at time.Duration, ok bool) { return q.nextPoll, len(q.waiting) > 0 }

// take returns the datagrams if it is time to look at them.
func (q *heldMADs) take(now time.Duration) (all []mad) {
	if len(q.waiting) == 0 || now < q.nextPoll {
		return nil
	}
	all, q.waiting, q.nextPoll = q.waiting, nil, now+parkPollInterval
	return all
}

// serveMAD serves a management datagram.
func (c *control) serveMAD(d *dataplane.Datagram) {
	x := mad{from: d.From, host: d.Src.Addr(), group: d.Dst.Addr(), bytes: d.Payload()}
	if origin, state := c.originOfHost(x.host, x.from.Port); state == stillLocated {
		x.bytes, x.until = slices.Clone(x.bytes), c.now()+heldMADTime
		c.connections.heldMADs.waiting = append(c.connections.heldMADs.waiting, x)
	} else {
		c.serveLocatedMAD(&x, origin, state)
	}
	d.Release()
}

// serveHeldMADs serves the datagrams whose hosts the kernel has located, or has not in time.
func (c *control) serveHeldMADs() {
	q := &c.connections.heldMADs
	for _, x := range q.take(c.now()) {
		switch origin, state := c.originOfHost(x.host, -1); {
		case state != stillLocated:
			c.serveLocatedMAD(&x, origin, state)
		case c.now() >= x.until:
			c.count.cm[cm.Unlocated]++
		default:
			q.waiting = append(q.waiting, x)
		}
	}
}

// hostState says what is known of a host's location.
type hostState uint8

const (
	located      hostState = iota
	stillLocated           // the kernel is asked
	unlocated              // the kernel has no location, or is asked for too many
)

// originOfHost returns the origin of what a host sends. If that is not known, the kernel is asked, where a
// datagram from port may wait for the answer; a negative port: one waits already.
func (c *control) originOfHost(ip netip.Addr, port int) (origin dataplane.Origin, state hostState) {
	now := c.now()
	h := c.dir.hosts.Of(ip)
	if origin = c.dir.originOfHost(h); origin.Port >= 0 {
		c.dir.hosts.Guest(ip, now) // a host with a connection is in use
		return origin, located
	}
	if port >= 0 && !c.connections.heldMADs.hasRoom(port, ip) {
		return origin, unlocated
	}
	if h = c.dir.hosts.Guest(ip, now); h == nil || h.Fresh(now) && !errors.Is(h.Err(), locate.ErrPending) {
		return origin, unlocated
	}
	c.dir.hosts.RequestOnce(h)
	return origin, stillLocated
}

// originOfHost returns the origin of what h sends; its port is -1 if that is not known.
func (d *directory) originOfHost(h *location.Host) dataplane.Origin {
	if h == nil {
		return dataplane.Origin{Port: -1}
	}
	at := h.Pinned()
	if at.Ifindex == 0 {
		at = h.At()
	}
	return d.hosts.Origin(at)
}

// serveLocatedMAD passes a datagram to the manager if it comes from its host's origin.
func (c *control) serveLocatedMAD(x *mad, origin dataplane.Origin, state hostState) {
	switch {
	case state != located:
		c.count.cm[cm.Unlocated]++
	case origin != c.originOfFrame(x.from):
		c.count.cm[cm.WrongSource]++
		if suppressed, report := c.connections.strays.add(c.now(), x.from.Port, strayMAD{*x, origin}); report {
			c.logStrayMAD(strayMAD{*x, origin}, suppressed)
		}
		c.dir.inquirer.Sighting(dataplane.Sighting{Origin: x.from, IP: x.host})
	default:
		c.inputMAD(x)
	}
}

// originOfFrame returns the origin of a frame as originOf returns that of a location.
func (c *control) originOfFrame(s dataplane.Origin) dataplane.Origin {
	if s.VLAN == 0 {
		s.VLAN = c.ports[s.Port].VLAN
	}
	return s
}

// strayMAD is a datagram from elsewhere than its host is.
type strayMAD struct {
	mad
	origin dataplane.Origin // the location of the host
}

func (c *control) logStrayMAD(x strayMAD, suppressed uint64) {
	c.notify(true, "a message of RDMA-CM has come from elsewhere than its host is, and has no effect: somebody uses the host's address, or it has moved",
		"group", x.group, "host", x.host, "port", c.ports[x.from.Port].Name, "mac", x.from.MAC, "vlan", x.from.VLAN, "location", c.ports[x.origin.Port].Name+" "+x.origin.MAC.String(), "suppressed", suppressed)
}

// followConnections has a host pinned, as members are, for as long as it has connections. A listener
// that does not answer is not: the kernel may have been told a wrong place, and would hold it there.
func (c *control) followConnections(ip netip.Addr) {
	c.dir.hosts.SetConnected(ip, c.connections.manager.IsConnected(ip))
}
