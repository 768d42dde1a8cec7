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
	d.memberAt = d.memberLocation(group, host, left)
	pi := d.plane.PortIndex(d.memberAt.Ifindex)
	return pi < 0 || d.cameFrom.Port == pi && locate.MAC(d.cameFrom.MAC) == locate.MAC(d.memberAt.MAC)
}

// memberLocation returns the location of host as a member of a group, or, with left, its
// location when it left its last group; the zero Location if it is, or was, no member.
// Groups of different keys may have different locations for one host.
func (d *directory) memberLocation(group, host netip.Addr, left bool) locate.Location {
	h := d.hosts.byIP[host]
	if h == nil {
		return locate.Location{}
	}
	if g := d.groups[group]; g != nil {
		if i, in := g.hosts[host]; in {
			if at := g.slots[i].location; at.Ifindex != 0 {
				return at
			}
			return h.pinned // the kernel has no location at the moment
		}
	}
	switch {
	case !left:
		return locate.Location{}
	case h.isMember():
		return h.pinned
	}
	return h.left
}
