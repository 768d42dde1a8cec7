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

// hearer is what hosts wants of locate.Filter.
type hearer interface {
	HearMAC(mac locate.MAC, hear bool) error
	HearNeighbour(ip netip.Addr, hear bool) error
}

// needs are what a host's places depend on.
type needs struct {
	hops  []netip.Addr
	macs  []locate.MAC
	links []int
}

func with[T comparable](list []T, x T) []T {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// needs returns what the last answer depended on, and the present place, which counts
// until there is another one.
func (h *host) needs() (n needs) {
	for _, l := range []*locate.Location{&h.at, &h.known} {
		if l.Hop.IsValid() {
			n.hops = with(n.hops, l.Hop)
		}
		if len(l.MAC) > 0 {
			n.macs = with(n.macs, locate.MAC(l.MAC))
		}
		for _, i := range l.Links {
			n.links = with(n.links, i)
		}
		if l.Ifindex != 0 {
			n.links = with(n.links, l.Ifindex)
		}
	}
	return n
}

// depend notes h's place and what the last answer depended on. What may have changed
// before it was heard of is asked for once more.
func (x *hosts) depend(h *host, at, known locate.Location) {
	was := h.needs()
	h.at, h.known = at, known
	is := h.needs()
	fresh := false
	for _, k := range is.hops {
		if x.byHop.add(k, h) && x.hearer != nil {
			fresh = true
			x.heard(x.hearer.HearNeighbour(k, true))
		}
	}
	for _, k := range is.macs {
		if x.byMAC.add(k, h) && x.hearer != nil {
			fresh = true
			x.heard(x.hearer.HearMAC(k, true))
		}
	}
	for _, k := range is.links {
		x.byLink.add(k, h)
	}
	for _, k := range was.hops {
		if !slices.Contains(is.hops, k) && x.byHop.remove(k, h) && x.hearer != nil {
			x.heard(x.hearer.HearNeighbour(k, false))
		}
	}
	for _, k := range was.macs {
		if !slices.Contains(is.macs, k) && x.byMAC.remove(k, h) && x.hearer != nil {
			x.heard(x.hearer.HearMAC(k, false))
		}
	}
	for _, k := range was.links {
		if !slices.Contains(is.links, k) {
			x.byLink.remove(k, h)
		}
	}
	if fresh {
		x.ask(h)
	}
}

// heard keeps an error of the filter for the operator.
func (x *hosts) heard(err error) {
	if x.deaf == nil {
		x.deaf = err
	}
}
