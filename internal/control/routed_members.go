// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/internal/control/location"
)

// The hosts of members below this switch in a group's tree, behind other switches. They are
// kept, as are the hosts of members here, and when the ways to one of them change, the
// registrar is told which groups have it.

// setRouted makes the hosts with these addresses those of g's members below.
func (d *directory) setRouted(g *group, ips map[netip.Addr]struct{}) {
	for ip := range ips {
		d.hosts.Route(g.reg.Group, ip)
	}
	for ip := range g.routed {
		if _, still := ips[ip]; !still {
			d.hosts.Unroute(g.reg.Group, ip)
		}
	}
	g.routed = ips
}

// followWays makes g's members below those of its slots.
func (d *directory) followWays(g *group, slots []slot) {
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
	d.setRouted(g, below)
}

// waysChanged notes the groups that have h below.
func (d *directory) waysChanged(h *location.Host) {
	for ip := range h.Below() {
		if g := d.groups[ip]; !g.waysStale {
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
