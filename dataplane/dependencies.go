// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/dataplane/locate"
)

// What the places of hosts depend on, and what the kernel tells of: nothing else, so that
// strangers cannot make it tell more than anybody can read (locate.Filter).

// netlinkFilter is what hosts wants of locate.Filter.
type netlinkFilter interface {
	PassMAC(mac locate.MAC, hear bool) error
	PassNeighbour(ip netip.Addr, hear bool) error
}

// dependencies are what a host's places depend on.
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

// dependencies returns what the last answer depended on, and the present place, which counts
// until there is another one.
func (h *host) dependencies() (n dependencies) {
	for _, l := range []*locate.Location{&h.location, &h.dependsOn} {
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

// setDependencies notes h's place and what the last answer depended on. What may have changed
// before it was heard of is asked for once more.
func (x *hosts) setDependencies(h *host, at, known locate.Location) {
	was := h.dependencies()
	h.location, h.dependsOn = at, known
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
		x.enqueue(h)
	}
}

// noteFilterErr keeps an error of the filter for the operator.
func (x *hosts) noteFilterErr(err error) {
	if x.filterErr == nil {
		x.filterErr = err
	}
}
