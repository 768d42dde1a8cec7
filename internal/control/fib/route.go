// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fib

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// NextHop is a neighbour, or a link, that packets to a destination leave by. Its key is
// the pair of link and gateway: with unnumbered BGP, the gateways of all links may have the
// same address.
type NextHop struct {
	Link    int        // interface index
	Gateway netip.Addr // the gateway, of either family; not valid if the destination itself is on the link
	Weight  int        // share of the flows, relative to the other next hops; at least 1
}

func (n NextHop) String() string {
	if !n.Gateway.IsValid() {
		return fmt.Sprintf("link %d weight %d", n.Link, n.Weight)
	}
	return fmt.Sprintf("%s link %d weight %d", n.Gateway, n.Link, n.Weight)
}

// Status says whether a destination has usable next hops, or why not.
type Status uint8

// Values of Status.
const (
	Unmatched    Status = iota // the kernel has not been asked yet
	Usable                     // Hops has one next hop or more
	NoRoute                    // no route: the kernel has none
	Blackhole                  // the route says to drop
	Unreachable                // the route says that the destination is unreachable
	Prohibited                 // the route says that the destination is prohibited
	Local                      // the destination is an address of this host
	NotUnicast                 // the destination is a broadcast or multicast address, or the route is of another special type
	Down                       // the links of all next hops are down
	Encapsulated               // all next hops that are alive wrap packets, as MPLS does
	HopsWithheld               // the kernel names a nexthop object in place of its hops
	Malformed                  // the kernel's answer could not be read
	statusCount
)

var statusTexts = [statusCount]string{
	Unmatched:    "has not been looked up yet",
	Usable:       "has usable next hops",
	NoRoute:      "has no route: give this switch one, or a routing engine",
	Blackhole:    "has a blackhole route",
	Unreachable:  "has a route of type unreachable",
	Prohibited:   "has a route of type prohibit",
	Local:        "is an address of this switch itself",
	NotUnicast:   "has no unicast route",
	Down:         "has a route whose links are all down",
	Encapsulated: "has a route that wraps packets, which group traffic cannot follow",
	HopsWithheld: "has a route with a nexthop object, which the kernel does not show: set the sysctl net.ipv4.nexthop_compat_mode to 1",
	Malformed:    "has a route that could not be read",
}

// String completes the sentence that begins with the destination.
func (s Status) String() string {
	if s < statusCount {
		return statusTexts[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Route is what the FIB has for a destination.
type Route struct {
	Status Status
	Prefix netip.Prefix // the prefix that matched; not valid without a route
	Hops   []NextHop    // usable ones, sorted by link and gateway; empty unless Usable

	// What the route depends on, beside Hops.
	links []int  // the links of all its next hops, dead ones included, sorted
	group uint32 // its nexthop object or group; 0: none
}

func (r Route) String() string {
	if r.Status != Usable {
		return r.Status.String()
	}
	s := make([]string, len(r.Hops))
	for i, h := range r.Hops {
		s[i] = h.String()
	}
	return fmt.Sprintf("%s by %s", r.Prefix, strings.Join(s, ", "))
}

// same reports whether two routes are the same to their users.
func (r Route) same(o Route) bool {
	return r.Status == o.Status && r.Prefix == o.Prefix && slices.Equal(r.Hops, o.Hops)
}

// arrange sorts hops and links, and joins hops that are there more than once.
func (r *Route) arrange() {
	slices.SortFunc(r.Hops, func(a, b NextHop) int {
		return cmp.Or(cmp.Compare(a.Link, b.Link), a.Gateway.Compare(b.Gateway))
	})
	hops := r.Hops[:0]
	for _, h := range r.Hops {
		if n := len(hops); n > 0 && hops[n-1].Link == h.Link && hops[n-1].Gateway == h.Gateway {
			hops[n-1].Weight += h.Weight
			continue
		}
		hops = append(hops, h)
	}
	if r.Hops = hops; len(hops) == 1 {
		hops[0].Weight = 1 // the kernel keeps the weight of a nexthop object that is left alone, or not
	}
	slices.Sort(r.links)
	r.links = slices.Compact(r.links)
}
