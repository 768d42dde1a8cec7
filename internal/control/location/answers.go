// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"errors"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// Answered records the kernel's answer about h.
func (x *Hosts) Answered(h *Host, at locate.Location, err error, now time.Duration) {
	if err == nil {
		if err = at.Check(); err != nil {
			at = locate.Location{}
		}
	}
	h.lookupPending, h.answered, h.lookupErr, h.answeredAt = false, true, err, now
	if !errors.Is(err, locate.ErrPending) && !Same(at, h.answer) {
		h.answer = at
		x.onAnswer(h)
	}
	switch {
	case errors.Is(err, locate.ErrPending):
		x.scheduleRetry(h, at, now) // h keeps its old location until the new one is known
	case Same(at, h.location) || !h.isPinned():
		x.setLocation(h, at) // its dependencies may have changed
		if h.isPinned() {
			x.wayChanged(h, at)
			x.onPinChange(h) // the kernel entries that pin it may have gone
		}
	default:
		x.newLocation(h, at, err, now)
	}
	if h.lookupAgain {
		h.lookupAgain = false
		x.LookUp(h)
	}
	if !errors.Is(err, locate.ErrPending) {
		x.located(h, Missing{})
	}
}

// located takes the answer l of h from the registrations that wait for it.
func (x *Hosts) located(h *Host, l Missing) {
	for group, its := range h.waitingGroups {
		if its == l {
			delete(h.waitingGroups, group)
			x.OnLocated(group)
		}
	}
}

// newLocation handles an answer of the kernel whose location for h differs from
// h.location; the zero Location, with err, if the kernel has none. Changes of routes are
// accepted: they come from the operator, or from a routing daemon. Changes that a
// stranger's frame can cause, of a neighbour entry or a forwarding database, are only a
// reason for an inquiry. What the kernel has lost of its pinned host says nothing of places
// elsewhere, which other keys' holders have confirmed.
func (x *Hosts) newLocation(h *Host, at locate.Location, err error, now time.Duration) {
	switch {
	case x.kernelDecides:
		x.move(h, at, err, everywhere)
		return
	case !at.Known():
		here := func(_ netip.Addr, key envelope.KeyID) bool { return Same(h.placeIn(key).at, h.pinned) }
		x.pinAt(h, at)
		x.setGroupLocations(h, at, err, here)
		return
	}
	admitted := make(map[envelope.KeyID]bool, len(h.places))
	for key, p := range h.places {
		if x.admits(p, &at) {
			admitted[key] = true
		}
	}
	home := len(admitted) > 0 || !h.IsMember() // a host with connections alone is where the kernel has it first
	if h.pinned.Known() {
		home = Same(at, h.pinned) || !sameRoute(at, h.pinned)
	}
	if home {
		x.pinAt(h, at)
	}
	x.setGroupLocations(h, at, err, func(_ netip.Addr, key envelope.KeyID) bool { return admitted[key] })
	if !home || h.hasUnknownPlace() {
		x.scheduleRetry(h, at, now)
		x.onSuspect(h, at)
	}
}

// sameRoute reports whether two locations have the same next hop and outgoing interface
// in the routing table.
func sameRoute(a, b locate.Location) bool {
	return a.Hop == b.Hop && len(a.Links) > 0 && len(b.Links) > 0 && a.Links[0] == b.Links[0]
}

// groupMatch says which groups of a host something is about.
type groupMatch = func(group netip.Addr, key envelope.KeyID) bool

// everywhere matches all groups, in(key) those of a key.
func everywhere(netip.Addr, envelope.KeyID) bool { return true }

func in(key envelope.KeyID) groupMatch {
	return func(_ netip.Addr, its envelope.KeyID) bool { return its == key }
}

// move sets the location of h in those of its groups that match; the zero Location
// if h has none, because of err. If all groups match, or h is pinned nowhere, it is pinned there.
func (x *Hosts) move(h *Host, at locate.Location, err error, match groupMatch) {
	all := true
	for group, key := range h.groups {
		all = all && match(group.ip(), key)
	}
	if all || !h.pinned.Known() {
		x.pinAt(h, at)
	}
	x.setGroupLocations(h, at, err, match)
}

// pinAt sets where the kernel has h, and holds it.
func (x *Hosts) pinAt(h *Host, at locate.Location) {
	x.setLocation(h, at)
	if at.Known() {
		moved := !Same(h.pinned, at)
		if h.pinned, h.seenElsewhere = at, nil; moved {
			x.OnPlaced(h)
		}
	}
	x.onPinChange(h)
}

// setGroupLocations sets the location of h in those of its groups that match, and its place in those
// of their keys. A host that the kernel has lost keeps its places.
func (x *Hosts) setGroupLocations(h *Host, at locate.Location, err error, match groupMatch) {
	moved := false
	for id, key := range h.groups {
		group := id.ip()
		if p := h.placeIn(key); at.Known() && match(group, key) && !Same(p.at, at) {
			x.setPlace(h, p, at)
			moved = true
		}
		if match(group, key) {
			x.OnMoved(group, h, at, err)
		}
	}
	if moved {
		x.OnPlaced(h)
	}
}

// wayChanged records the way to h that an answer has which finds h where it was: a port may be in
// a bridge now.
func (x *Hosts) wayChanged(h *Host, at locate.Location) {
	if at.Known() && Same(at, h.pinned) {
		h.pinned = at
	}
	for _, p := range h.places {
		if at.Known() && Same(at, p.at) {
			x.setPlace(h, p, at)
		}
	}
}

// heldPlaces returns what is held of the places of h that have no location, by key, as far as the
// ports are there.
func (x *Hosts) heldPlaces(h *Host) map[envelope.KeyID]locate.Held {
	var list map[envelope.KeyID]locate.Held
	for key, p := range h.places {
		if x, ok := x.held(&p.held); ok && !p.at.Known() {
			if list == nil {
				list = make(map[envelope.KeyID]locate.Held)
			}
			list[key] = x
		}
	}
	return list
}

// recalled gives h the location of a place that was held: its port is there again, or the route.
func (x *Hosts) recalled(h *Host, key envelope.KeyID, at locate.Location) {
	if p := h.places[key]; p != nil && !p.at.Known() {
		x.move(h, at, nil, in(key))
	}
}

// Follow has h in all groups of a key where it has confirmed to be in one of them.
func (x *Hosts) Follow(h *Host, key envelope.KeyID) { x.move(h, h.places[key].at, nil, in(key)) }

// Rebind puts the interface now in place of was in the locations of hosts, each of which is looked up, and so in those
// that their groups share.
func (x *Hosts) Rebind(was, now int) {
	var list []*Host
	for h := range x.byLink[was] {
		list = append(list, h)
	}
	for h := range x.unlocated {
		if h.pinned.Known() && h.pinned.Ifindex == was {
			list = append(list, h)
		} else {
			x.LookUp(h) // its place may be there again
		}
	}
	for _, h := range list {
		for k, p := range h.proven {
			p.location = p.location.Rebound(was, now)
			h.proven[k] = p
		}
		for k, l := range h.left {
			l.at = l.at.Rebound(was, now)
			h.left[k] = l
		}
		h.pinned = h.pinned.Rebound(was, now)
		for _, p := range h.places {
			if p.at.Known() {
				x.setPlace(h, p, p.at.Rebound(was, now))
			}
			if p.shared != nil {
				*p.shared = p.shared.Rebound(was, now)
			}
		}
		x.setLocation(h, h.location.Rebound(was, now))
		x.onPinChange(h)
		x.LookUp(h)
	}
}
