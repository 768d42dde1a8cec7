// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
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
	shared *locate.Location   // the location that groups have, the last one; see Share
	groups int                // groups of the key that the host is a member of
}

// leftPlace is where a host was when it left its last group of a key.
type leftPlace struct {
	at    locate.Location
	since time.Duration
}

// leftTTL is how long that counts: what tells a host of its group's end is repeated for 8 s.
const leftTTL = 10 * time.Second

// LeftFrom returns where h was when it left its last group of a key, if that was just now.
func (h *Host) LeftFrom(key envelope.KeyID, now time.Duration) locate.Location {
	if l := h.left[key]; now-l.since <= leftTTL {
		return l.at
	}
	return locate.Location{}
}

// placeIn returns the place of h in the groups of a key, which it makes if there is none.
func (h *Host) placeIn(key envelope.KeyID) *place {
	p := h.places[key]
	if p == nil {
		p = &place{}
		h.places[key] = p
	}
	return p
}

// Share returns at for a group of a key, nil for none. Groups that have h at one port, VLAN and MAC address share one
// value: with the way there that was found last, and the interface that the port has.
func (h *Host) Share(key envelope.KeyID, at locate.Location) *locate.Location {
	if !at.Known() {
		return nil
	}
	p := h.placeIn(key)
	if p.shared == nil || !Same(*p.shared, at) {
		p.shared = new(locate.Location)
	}
	*p.shared = at
	return p.shared
}

// isAt reports whether h is pinned at an interface, or has a place there.
func (h *Host) isAt(ifindex int) bool {
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
func (h *Host) hasUnknownPlace() bool {
	for _, p := range h.places {
		if !p.at.Known() {
			return true
		}
	}
	return false
}

// LocationFor returns where h is in the groups of a key, or, if it is in none, where the kernel has
// it: what holders of another key have confirmed does not count.
func (h *Host) LocationFor(key envelope.KeyID) locate.Location {
	if p := h.places[key]; p != nil && p.at.Known() {
		return p.at
	}
	if h.answer.Known() {
		return h.answer
	}
	return h.location
}

// wayTo returns a location of h whose way leads to it: its own, or, if it has none, the kernel's.
func (h *Host) wayTo() locate.Location {
	if h.pinned.Known() {
		return h.pinned
	}
	return h.answer
}

// setPlace records where h is in the groups of a key.
func (x *Hosts) setPlace(h *Host, p *place, at locate.Location) {
	was := h.dependencies()
	p.at = at
	if held := x.heldAt(&at); held != (statefile.Location{}) { // else the port was removed: its name stays
		p.held = held
	}
	x.changeDependencies(h, was)
	x.noteUnlocated(h)
}

// removePlace forgets where h is in the groups of a key.
func (x *Hosts) removePlace(h *Host, key envelope.KeyID) {
	was := h.dependencies()
	delete(h.places, key)
	x.changeDependencies(h, was)
	x.noteUnlocated(h)
}

// noteUnlocated updates x.unlocated for h.
func (x *Hosts) noteUnlocated(h *Host) {
	if delete(x.unlocated, h); !h.location.Known() || h.hasUnknownPlace() {
		x.unlocated[h] = struct{}{}
	}
}

// admits reports whether the kernel's location at is that of p, or another one by a change of
// routes, which are the operator's. Of a host whose place nobody knows it admits none: its members
// have to confirm one.
func (x *Hosts) admits(p *place, at *locate.Location) bool {
	switch {
	case p.at.Known():
		return Same(*at, p.at) || !sameRoute(*at, p.at)
	case p.held == statefile.Location{}:
		return false
	}
	is := x.heldAt(at)
	return is == p.held || is.Hop != p.held.Hop || len(at.Links) == 1 && is.Port != p.held.Port
}

// heldAt returns a location as the state file has it; the zero value for none.
func (x *Hosts) heldAt(at *locate.Location) (held statefile.Location) {
	if pi := x.ports.Index(at.Ifindex); pi >= 0 {
		held = statefile.Location{Port: x.ports.Port(pi).Name, VLAN: at.VLAN, Hop: at.Hop}
		copy(held.MAC[:], at.MAC)
	}
	return held
}

// Saved returns what the state file has of h: its places, whether or not the kernel knows a way
// there at the moment.
func (x *Hosts) Saved(h *Host) *statefile.Host {
	s := &statefile.Host{Pinned: x.heldAt(&h.pinned), Locations: make(map[envelope.KeyID]statefile.Location, len(h.places))}
	for key, p := range h.places {
		if p.held != (statefile.Location{}) {
			s.Locations[key] = p.held
		}
	}
	return s
}

// held returns the form of l that has the present index of the port; ok is false if there is no such port.
func (x *Hosts) held(l *statefile.Location) (at locate.Held, ok bool) {
	for i := range x.ports.Len() {
		if p := x.ports.Port(i); p.Name != "" && p.Name == l.Port && p.Ifindex != 0 {
			return locate.Held{Ifindex: p.Ifindex, MAC: locate.MAC(l.MAC), VLAN: l.VLAN, Hop: l.Hop}, true
		}
	}
	return at, false
}

// Ports are the slots of the switch, as the control plane has them now.
type Ports interface {
	Len() int
	Index(ifindex int) int // the slot of the port with that interface, or -1
	Port(index int) Port
}

// Port is what locations depend on of a port of the switch; the zero value is a slot without one.
type Port struct {
	Name    string
	Ifindex int
	VLAN    uint16
	Bridge  int  // the interface index of its bridge, or 0
	Up      bool // the state that the operator was last told
}

// Origin returns the origin of frames from a host at the given location; its port is -1
// for the zero Location.
func (x *Hosts) Origin(at locate.Location) (s dataplane.Origin) {
	s.Port, s.VLAN = x.ports.Index(at.Ifindex), at.VLAN
	if s.Port >= 0 && s.VLAN == 0 {
		s.VLAN = x.ports.Port(s.Port).VLAN
	}
	copy(s.MAC[:], at.MAC)
	return s
}

// Text names the port and the MAC address of a location.
func (x *Hosts) Text(at locate.Location) string {
	pi := x.ports.Index(at.Ifindex)
	if pi < 0 {
		return "unknown"
	}
	return x.ports.Port(pi).Name + " " + at.MAC.String()
}

// Same reports whether two locations have the same port, VLAN and MAC address.
func Same(a, b locate.Location) bool {
	return a.Ifindex == b.Ifindex && a.VLAN == b.VLAN && slices.Equal(a.MAC, b.MAC)
}

// slotOf returns the slot of a port by its name, or -1.
func (x *Hosts) slotOf(name string) int {
	for i := range x.ports.Len() {
		if x.ports.Port(i).Name == name {
			return i
		}
	}
	return -1
}
