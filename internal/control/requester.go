// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane"
)

// A request proves the address of its sender by its MAC and by its cookie, which the switch has sent
// to that address. Its answer goes back by the port and to the MAC address that it came from: the
// kernel's tables, which anyone's frames may have changed, are not asked, nor are places that holders
// of other keys have confirmed. What proves nothing is answered where the kernel has the address, or
// where it is pinned: a Challenge that followed its request would give the cookie of any address to a
// stranger who claims it.

// requester is the sender of an envelope.
type requester struct {
	ip      netip.Addr
	from    dataplane.Origin
	ifindex int  // the interface of the port
	proved  bool // the envelope proves that it is from ip
}

// nobody is the requester while no envelope is served.
var nobody = requester{from: dataplane.Origin{Port: -1}}

// origin returns where m goes whatever the kernel's tables have; ok is false if its receiver is a
// member of the group, whose location there counts, or if they are all that is known. A host that has
// a place under the key of m gets it there, and a request from elsewhere leads no answer away from it.
func (c *control) origin(m *message) (at dataplane.Origin, ok bool) {
	d, key, proved := c.dir, m.Body.packet.Key, m.Body.asker.proved
	if key == 0 && !proved {
		return at, false // of RDMA-CM, or nobody authenticates
	}
	h := d.hosts.Of(m.Body.packet.Dst.Addr())
	if h != nil {
		if g := d.groups[m.Group]; g != nil {
			if _, is := g.hostSlot(h.IP()); is {
				return at, false
			}
		}
		if place, has := h.Place(key); has {
			at = d.hosts.Origin(place)
			return at, at.Port >= 0
		}
	}
	switch {
	case proved:
		return m.Body.asker.from, d.plane.PortIndex(m.Body.asker.ifindex) == m.Body.asker.from.Port
	case h != nil && !m.Body.asker.ip.IsValid(): // an end of a group, for one that has just left it
		h.Use(c.now())
		at = d.hosts.Origin(h.LeftFrom(key, c.now()))
		return at, at.Port >= 0
	}
	return at, false
}
