// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"iter"
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
)

// FromMember reports whether the envelope that is being served came by the port and from
// the MAC address of host as a member of a group. If left is set, host is a former member
// that acknowledges a message under a key, and its last place in groups of that key counts. It
// implements envelope.Table.
func (d *directory) FromMember(group, host netip.Addr, key envelope.KeyID, left bool) bool {
	if g := d.groups[group]; g != nil {
		if _, behind := g.remote[host]; behind { // its own switch has its location
			d.memberAt = locate.Location{}
			return false
		}
	}
	at, member := d.memberLocation(group, host, key, left)
	d.memberAt = at
	if d.plane.PortIndex(at.Ifindex) < 0 {
		return !member // a member whose place is not known cannot be told from anybody
	}
	return d.isFrom(d.cameFrom, &at)
}

// isFrom reports whether frames of a host at the given location come from s.
func (d *directory) isFrom(s dataplane.Origin, at *locate.Location) bool {
	return s.Port >= 0 && s.Port == d.plane.PortIndex(at.Ifindex) && locate.MAC(s.MAC) == locate.MAC(at.MAC)
}

// memberLocation returns the location of host as a member of a group, or, with left, that in the
// groups of a key, or in the last one that it left, and whether it is a member; the location is the zero one if
// it is, or was, no member. Groups of different keys may have different locations for one host.
func (d *directory) memberLocation(group, host netip.Addr, key envelope.KeyID, left bool) (at locate.Location, member bool) {
	h := d.hosts.Of(host)
	if h == nil {
		return locate.Location{}, false
	}
	if g := d.groups[group]; g != nil {
		if i, in := g.hostSlot(host); in {
			if at := g.slots[i].at(); at.Known() {
				return at, true
			}
			at, _ = h.Place(g.key)
			return at, true // the kernel has no location at the moment
		}
	}
	if !left {
		return locate.Location{}, false
	}
	if at, has := h.Place(key); has {
		return at, false
	}
	return h.LeftFrom(key, d.now()), false
}

// setMembers makes the hosts of g those of its slots, with the slots' locations, which were was before.
// It must be called when members have joined or gone. It returns the hosts that are elsewhere now than the
// other groups of g's key have them.
func (d *directory) setMembers(g *group, was, slots []slot) (moved []*location.Host) {
	var now map[netip.Addr]struct{} // those of slots; only if some may have left
	if len(was) > 0 {
		now = make(map[netip.Addr]struct{}, len(slots))
	}
	for i := range slots {
		if s := &slots[i]; !s.gone && s.isHere() {
			if now != nil {
				now[s.record.IP] = struct{}{}
			}
			h, elsewhere := d.hosts.Join(g.reg.Group, g.key, s.record.IP, s.at())
			if elsewhere {
				moved = append(moved, h)
			}
			s.location = h.Share(g.key, s.at())
		}
	}
	for i := range was {
		s := &was[i]
		if _, ok := now[s.record.IP]; !ok && s.joined {
			d.hosts.Leave(g.reg.Group, s.record.IP)
		}
		s.joined = false
	}
	for i := range slots {
		slots[i].joined = !slots[i].gone && slots[i].isHere()
	}
	return moved
}

// slotGone removes g from the host of its slot i, whose member has gone.
func (d *directory) slotGone(g *group, i int) {
	if s := &g.slots[i]; s.joined {
		s.joined = false
		d.hosts.Leave(g.reg.Group, s.record.IP)
	}
}

// hosts returns the hosts of the members that are here.
func (g *group) hosts() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for i := range g.slots {
			if s := &g.slots[i]; s.joined && !yield(s.record.IP) {
				return
			}
		}
	}
}

// hostSlot returns the slot of the member at a host that is here; ok is false if there is none.
func (g *group) hostSlot(ip netip.Addr) (i int, ok bool) {
	for i := range g.slots {
		if s := &g.slots[i]; s.joined && s.record.IP == ip {
			return i, true
		}
	}
	return -1, false
}

// locationIn returns where h gets what g sends: its location there, or, if it is no member of g, which may
// be nil, that of the host.
func locationIn(g *group, h *location.Host) locate.Location {
	if g != nil {
		if i, in := g.hostSlot(h.IP()); in {
			return g.slots[i].at()
		}
	}
	return h.At()
}
