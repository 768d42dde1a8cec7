// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// FromMember reports whether the envelope that is being served came by the port and from
// the MAC address of host as a member of a group. If left is set, host is a former member
// that acknowledges a message, and the location where it was pinned last counts. It
// implements envelope.Table.
func (d *directory) FromMember(group, host netip.Addr, left bool) bool {
	if g := d.groups[group]; g != nil {
		if _, behind := g.remote[host]; behind { // its own switch has its location
			d.memberAt = locate.Location{}
			return false
		}
	}
	at, member := d.memberLocation(group, host, left)
	d.memberAt = at
	pi := d.plane.PortIndex(at.Ifindex)
	if pi < 0 {
		return !member // a member whose place is not known cannot be told from anybody
	}
	return d.cameFrom.Port == pi && locate.MAC(d.cameFrom.MAC) == locate.MAC(at.MAC)
}

// memberLocation returns the location of host as a member of a group, or, with left, its
// location when it left its last group, and whether it is a member; the location is the zero one if
// it is, or was, no member. Groups of different keys may have different locations for one host.
func (d *directory) memberLocation(group, host netip.Addr, left bool) (at locate.Location, member bool) {
	h := d.hosts.byIP[host]
	if h == nil {
		return locate.Location{}, false
	}
	if g := d.groups[group]; g != nil {
		if i, in := g.hosts[host]; in {
			if at := g.slots[i].location; at.Known() {
				return at, true
			}
			return h.placeIn(g.key).at, true // the kernel has no location at the moment
		}
	}
	switch {
	case !left:
		return locate.Location{}, false
	case h.isPinned():
		return h.pinned, false
	}
	return h.left, false
}
