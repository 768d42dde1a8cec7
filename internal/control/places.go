// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
)

// A host has one place for each key: where it is in the groups of that key. Holders of a key say
// where a host is in these groups, and in no others. Groups that are registered by hand have key 0,
// which no configured key has. The state file has the same places, by the names of ports.

// place is where a host is in the groups of one key.
type place struct {
	at     locate.Location    // none: the way to held is not known yet, or nothing is
	held   statefile.Location // the location as the state file has it; the zero value: nobody knows where the host is
	groups int                // groups of the key that the host is a member of
}

// leftPlace is where a host was when it left its last group of a key.
type leftPlace struct {
	at    locate.Location
	since time.Duration
}

// leftTTL is how long that counts: what tells a host of its group's end is repeated for 8 s.
const leftTTL = 10 * time.Second

// leftFrom returns where h was when it left its last group of a key, if that was just now.
func (h *host) leftFrom(key envelope.KeyID, now time.Duration) locate.Location {
	if l := h.left[key]; now-l.since <= leftTTL {
		return l.at
	}
	return locate.Location{}
}

// placeIn returns the place of h in the groups of a key, which it makes if there is none.
func (h *host) placeIn(key envelope.KeyID) *place {
	p := h.places[key]
	if p == nil {
		p = &place{}
		h.places[key] = p
	}
	return p
}

// isAt reports whether h is pinned at an interface, or has a place there.
func (h *host) isAt(ifindex int) bool {
	if ifindex == 0 || h.pinned.Ifindex == ifindex {
		return ifindex != 0
	}
	for _, p := range h.places {
		if p.at.Ifindex == ifindex {
			return true
		}
	}
	return false
}

// hasUnknownPlace reports whether h is in groups of a key without a location in them.
func (h *host) hasUnknownPlace() bool {
	for _, p := range h.places {
		if !p.at.Known() {
			return true
		}
	}
	return false
}

// locationFor returns where h is in the groups of a key, or, if it is in none, where the kernel has
// it: what holders of another key have confirmed does not count.
func (h *host) locationFor(key envelope.KeyID) locate.Location {
	if p := h.places[key]; p != nil && p.at.Known() {
		return p.at
	}
	if h.answer.Known() {
		return h.answer
	}
	return h.location
}

// locationIn returns where h gets what a group sends: its location there, or, if it is no member of
// the group, that of the host.
func (h *host) locationIn(g *group) locate.Location {
	if g != nil {
		if i, in := g.hosts[h.ip]; in {
			return g.slots[i].location
		}
	}
	return h.location
}

// wayTo returns a location of h whose way leads to it: its own, or, if it has none, the kernel's.
func (h *host) wayTo() locate.Location {
	if h.pinned.Known() {
		return h.pinned
	}
	return h.answer
}

// setPlace records where h is in the groups of a key.
func (x *hosts) setPlace(h *host, p *place, at locate.Location) {
	was := h.dependencies()
	p.at = at
	if held := x.heldAt(&at); held != (statefile.Location{}) { // else the port was removed: its name stays
		p.held = held
	}
	x.changeDependencies(h, was)
	x.noteUnlocated(h)
}

// removePlace forgets where h is in the groups of a key.
func (x *hosts) removePlace(h *host, key envelope.KeyID) {
	was := h.dependencies()
	delete(h.places, key)
	x.changeDependencies(h, was)
	x.noteUnlocated(h)
}

// noteUnlocated updates x.unlocated for h.
func (x *hosts) noteUnlocated(h *host) {
	if delete(x.unlocated, h); !h.location.Known() || h.hasUnknownPlace() {
		x.unlocated[h] = struct{}{}
	}
}

// admits reports whether the kernel's location at is that of p, or another one by a change of
// routes, which are the operator's. Of a host whose place nobody knows it admits none: its members
// have to confirm one.
func (x *hosts) admits(p *place, at *locate.Location) bool {
	switch {
	case p.at.Known():
		return sameLocation(*at, p.at) || !sameRoute(*at, p.at)
	case p.held == statefile.Location{}:
		return false
	}
	is := x.heldAt(at)
	if !p.held.Hop.IsValid() { // from a file of before version 5
		is.Hop = netip.Addr{}
	}
	return is == p.held || is.Hop != p.held.Hop || len(at.Links) == 1 && is.Port != p.held.Port
}

// heldAt returns a location as the state file has it; the zero value for none.
func (d *directory) heldAt(at *locate.Location) (x statefile.Location) {
	if pi := d.plane.PortIndex(at.Ifindex); pi >= 0 {
		x = statefile.Location{Port: d.ports[pi].Name, VLAN: at.VLAN, Hop: at.Hop}
		copy(x.MAC[:], at.MAC)
	}
	return x
}

// heldPlaces returns what is held of the places of h that have no location, by key, as far as the
// ports are there.
func (d *directory) heldPlaces(h *host) map[envelope.KeyID]locate.Held {
	var list map[envelope.KeyID]locate.Held
	for key, p := range h.places {
		if x, ok := d.held(&p.held); ok && !p.at.Known() {
			if list == nil {
				list = make(map[envelope.KeyID]locate.Held)
			}
			list[key] = x
		}
	}
	return list
}

// held returns the form of x that has the present index of the port; ok is false if there is no such
// port, or if the next hop is not known: the kernel has to find the same location then.
func (d *directory) held(x *statefile.Location) (at locate.Held, ok bool) {
	for _, p := range d.ports {
		if p.Name != "" && p.Name == x.Port && p.Ifindex != 0 && x.Hop.IsValid() {
			return locate.Held{Ifindex: p.Ifindex, MAC: locate.MAC(x.MAC), VLAN: x.VLAN, Hop: x.Hop}, true
		}
	}
	return at, false
}

// recalled gives h the location of a place that was held: its port is there again, or the route.
func (d *directory) recalled(h *host, key envelope.KeyID, at locate.Location) {
	if p := h.places[key]; p != nil && !p.at.Known() {
		d.setLocation(h, at, nil, func(g *group) bool { return g.key == key })
	}
}

// followPlaces has the other groups of g's key follow members of g who have confirmed another place
// than they had.
func (d *directory) followPlaces(g *group, moved []*host) {
	for _, h := range moved {
		d.setLocation(h, h.places[g.key].at, nil, func(o *group) bool { return o.key == g.key })
	}
}
