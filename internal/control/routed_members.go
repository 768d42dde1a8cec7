// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"slices"
)

// The hosts of members below this switch in a group's tree, behind other switches. They are
// kept, as are the hosts of members here, and when the ways to one of them change, the
// registrar is told which groups have it.

// isKept reports whether h is remembered without being asked for.
func (h *host) isKept() bool { return h.isPinned() || len(h.routed) > 0 }

// setRouted makes the hosts with these addresses those of g's members below.
func (x *hosts) setRouted(g *group, ips map[netip.Addr]struct{}) {
	for ip := range ips {
		h := x.byIP[ip]
		if h == nil {
			h = x.add(ip)
			x.enqueue(h)
		}
		if h.routed == nil {
			h.routed = make(map[*group]struct{})
		}
		h.routed[g] = struct{}{}
	}
	for ip := range g.routed {
		h := x.byIP[ip]
		if _, still := ips[ip]; still || h == nil {
			continue
		}
		if delete(h.routed, g); !h.isKept() {
			h.lastUsed = x.now
			x.listGuest(h, x.now)
		}
	}
	g.routed = ips
}

// followWays makes g's members below those of its slots.
func (d *directory) followWays(g *group, slots []slot) {
	if d.hosts.routes == nil {
		return
	}
	var below map[netip.Addr]struct{}
	for i := range slots {
		s := &slots[i]
		if s.gone || s.isHere() || s.behind == g.reg.Tree.Parent {
			continue
		}
		if below == nil {
			below = make(map[netip.Addr]struct{})
		}
		below[s.record.IP] = struct{}{}
	}
	d.hosts.setRouted(g, below)
}

// sameHops reports whether two lists of next hops lead to the same places.
func sameHops(a, b []nextHop) bool {
	return slices.EqualFunc(a, b, func(x, y nextHop) bool {
		return x.gateway == y.gateway && (x.err == nil) == (y.err == nil) && sameLocation(x.at, y.at)
	})
}

// waysChanged notes the groups that have h below.
func (d *directory) waysChanged(h *host) {
	for g := range h.routed {
		if !g.waysStale {
			g.waysStale = true
			d.staleWays = append(d.staleWays, g)
		}
	}
}

// tellWays tells the registrar of the groups to whose members the ways have changed, which it
// looks at some at a time.
func (c *control) tellWays() {
	d := c.dir
	for _, g := range d.staleWays {
		if g.waysStale = false; d.groups[g.reg.Group] == g {
			c.registrar.GroupRoutesChanged(c.now(), g.reg.Group)
		}
	}
	d.staleWays = d.staleWays[:0]
}
