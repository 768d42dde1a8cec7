// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// Ports may be in VRFs (virtual routing and forwarding): then routes to the hosts behind them are
// in the tables of these, which lookups without a VRF do not see. The most specific route of all
// these tables has the host.

// tables are those in which routes to members are looked up.
type tables struct {
	vrfs []int // interfaces of the VRFs that ports are in, ascending
	main bool  // the tables of no VRF as well: a port is in none
}

// tablesOf returns the tables for ports among these interfaces.
func tablesOf(links iface.Links, ports map[int]bool) (t tables) {
	for p := range ports {
		if links[p] == nil {
			continue
		}
		vrf := links.VRF(p)
		switch {
		case vrf == 0:
			t.main = true
		case !slices.Contains(t.vrfs, vrf):
			t.vrfs = append(t.vrfs, vrf)
		}
	}
	slices.Sort(t.vrfs)
	return t
}

// VRFs returns the interfaces of the VRFs that ports are in, and 0 for those in none; nil if all
// are in none.
func (l *Locator) VRFs() []int {
	if len(l.tables.vrfs) == 0 {
		return nil
	}
	if l.tables.main {
		return append([]int{0}, l.tables.vrfs...)
	}
	return slices.Clone(l.tables.vrfs)
}

// vrfOf returns the VRF whose table has the most specific route to ip; 0: none.
func (l *Locator) vrfOf(ip netip.Addr) (vrf int, err error) {
	longest := -1
	var same []int
	for _, v := range l.VRFs() {
		routes, err := l.handle.RouteGetWithOptions(ip.AsSlice(), &netlink.RouteGetOptions{OifIndex: v, FIBMatch: true})
		if err != nil || len(routes) == 0 || routes[0].Type != unix.RTN_UNICAST && routes[0].Type != unix.RTN_LOCAL {
			continue
		}
		bits := 0
		if d := routes[0].Dst; d != nil {
			bits, _ = d.Mask.Size()
		}
		switch {
		case bits > longest:
			longest, same = bits, []int{v}
		case bits == longest:
			same = append(same, v)
		}
	}
	switch len(same) {
	case 0:
		return 0, nil // the lookup says why
	case 1:
		return same[0], nil
	}
	return 0, fmt.Errorf("%s has equal routes in several VRFs (interfaces %v; 0: in none): members are addresses of one routing table", ip, same)
}
