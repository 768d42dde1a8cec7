// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
)

// After a restart members are where they were, and pinned there, before any frame is served and
// before the kernel is asked for them: its tables may be what a stranger has made of them meanwhile.
// A member whose port or route is missing keeps its place by the name of the port. It gets nothing,
// and nothing counts as its packet, until
//
//   - the port or the route is there again, or
//   - the kernel finds it at the same port, MAC address and VLAN, or by another route, or
//   - it answers an inquiry where the kernel finds it, under the group's key, or
//   - the operator says where it is.
//
// So it is with a host of which the file has no place for a key.

// unknownPlaceRemedy is what an operator can do for a member without a place.
const unknownPlaceRemedy = "repair the port or the route; or gleam group move-member with port and MAC address"

// Recall makes the hosts of the members that the file has groups of, with their places.
func (x *Hosts) Recall(l Locator, s *statefile.State) []*Host {
	keys := make(map[netip.Addr]map[envelope.KeyID]bool)
	for _, g := range s.Groups {
		for i := range g.Registration.Members {
			if g.Place != nil && g.Place.Members[i] >= 0 {
				continue // behind another switch
			}
			ip := g.Registration.Members[i].IP
			if keys[ip] == nil {
				keys[ip] = make(map[envelope.KeyID]bool)
			}
			keys[ip][g.Key] = true
		}
	}
	var hosts []*Host
	for _, ip := range slices.SortedFunc(maps.Keys(keys), netip.Addr.Compare) {
		h := x.byIP[ip]
		if h == nil {
			h = x.add(ip)
		}
		hosts = append(hosts, h)
		if was := s.Hosts[ip]; was != nil {
			x.recall(l, h, was, keys[ip])
		}
	}
	return hosts
}

// recall gives h, in groups of these keys, the places that it had.
func (x *Hosts) recall(l Locator, h *Host, was *statefile.Host, keys map[envelope.KeyID]bool) {
	for key := range keys {
		held, p := was.Locations[key], h.placeIn(key)
		at, err := x.way(l, h.ip, &held)
		if err != nil {
			p.held = held
			x.notify(true, "a member's location of before the restart is not known yet: the member gets nothing until it is", "member", h.ip, "port", held.Port, "mac", held.MAC, "error", err, "remedy", unknownPlaceRemedy)
			continue
		}
		x.setPlace(h, p, at)
	}
	h.pinned, _ = x.way(l, h.ip, &was.Pinned) // the error is that of a place
}

// way returns the location of a host whose place was held, or why the way there is not known.
func (x *Hosts) way(l Locator, ip netip.Addr, at *statefile.Location) (locate.Location, error) {
	if held, ok := x.held(at); ok {
		return l.Recall(ip, held)
	}
	return locate.Location{}, errors.New("there is no such port")
}

// Release forgets h if none of its groups could be taken up; otherwise the file has what is
// left of it.
func (x *Hosts) Release(h *Host, change *statefile.Change) {
	if !h.isKept() {
		x.forget(h)
		return
	}
	for key, p := range h.places {
		if p.groups == 0 {
			x.removePlace(h, key)
		}
	}
	change.PutHost(h.ip, x.Saved(h))
}

// RecallConnected gives a host that had connections by RDMA-CM alone the place where it was pinned: what
// the connections' end has to say goes there, and not to where a stranger's frames have it.
func (x *Hosts) RecallConnected(l Locator, ip netip.Addr, was *statefile.Host) {
	x.SetConnected(ip, true)
	h := x.byIP[ip]
	if was == nil || h.pinned.Known() {
		return
	}
	if at, err := x.way(l, ip, &was.Pinned); err == nil {
		x.pinAt(h, at)
	}
}

// UnknownPlace says that a member of a group has had no place since the restart; "" if it has one.
func (x *Hosts) UnknownPlace(group, ip netip.Addr) string {
	h := x.byIP[ip]
	if h == nil {
		return ""
	}
	key, in := h.groups[group.As16()]
	if p := h.places[key]; !in || p.at.Known() {
		return ""
	}
	return "its port or route of before the restart is missing, so it gets nothing: " + unknownPlaceRemedy
}
