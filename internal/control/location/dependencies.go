// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// The dependencies of hosts' locations decide which changes the kernel reports: no
// others, so that strangers cannot cause more reports than the switch can read
// (locate.Filter).

// netlinkFilter is the part of locate.Filter that hosts uses.
type netlinkFilter interface {
	PassMAC(mac locate.MAC, hear bool) error
	PassNeighbour(ip netip.Addr, hear bool) error
}

// dependencies are the kernel entries that a host's locations depend on.
type dependencies struct {
	hops  []netip.Addr
	macs  []locate.MAC
	links []int
}

func appendUnique[T comparable](list []T, x T) []T {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// dependencies returns the dependencies of the last answer, of the present location, which counts
// until there is another one, and of the places.
func (h *Host) dependencies() (n dependencies) {
	from := []*locate.Location{&h.location, &h.dependsOn}
	for i := range h.hops {
		from = append(from, &h.hops[i].At)
	}
	for _, p := range h.places {
		from = append(from, &p.at)
	}
	for _, l := range from {
		if l.Hop.IsValid() {
			n.hops = appendUnique(n.hops, l.Hop)
		}
		if len(l.MAC) > 0 {
			n.macs = appendUnique(n.macs, locate.MAC(l.MAC))
		}
		for _, i := range l.Links {
			n.links = appendUnique(n.links, i)
		}
		if l.Ifindex != 0 {
			n.links = appendUnique(n.links, l.Ifindex)
		}
	}
	return n
}

// setDependencies records h's location and the dependencies of the last answer. It
// repeats the lookup if a dependency is new, since a change may have come before the
// filter passed it (changeDependencies).
func (x *Hosts) setDependencies(h *Host, at, known locate.Location) {
	was := h.dependencies()
	h.location, h.dependsOn = at, known
	x.changeDependencies(h, was)
}

// changeDependencies updates the indexes and the filter for h, whose dependencies were
// others before.
func (x *Hosts) changeDependencies(h *Host, was dependencies) {
	is := h.dependencies()
	fresh := false
	for _, k := range is.hops {
		if x.byHop.add(k, h) && x.filter != nil {
			fresh = true
			x.noteFilterErr(x.filter.PassNeighbour(k, true))
		}
	}
	for _, k := range is.macs {
		if x.byMAC.add(k, h) && x.filter != nil {
			fresh = true
			x.noteFilterErr(x.filter.PassMAC(k, true))
		}
	}
	for _, k := range is.links {
		x.byLink.add(k, h)
	}
	for _, k := range was.hops {
		if !slices.Contains(is.hops, k) && x.byHop.remove(k, h) && x.filter != nil {
			x.noteFilterErr(x.filter.PassNeighbour(k, false))
		}
	}
	for _, k := range was.macs {
		if !slices.Contains(is.macs, k) && x.byMAC.remove(k, h) && x.filter != nil {
			x.noteFilterErr(x.filter.PassMAC(k, false))
		}
	}
	for _, k := range was.links {
		if !slices.Contains(is.links, k) {
			x.byLink.remove(k, h)
		}
	}
	if fresh {
		x.LookUp(h)
	}
}

// noteFilterErr records the first error of the filter, for the operator.
func (x *Hosts) noteFilterErr(err error) {
	if x.filterErr == nil {
		x.filterErr = err
	}
}
