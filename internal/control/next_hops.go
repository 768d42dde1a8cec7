// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A host is behind other switches if its route has gateways at ports where hellos are
// exchanged. Without keys of switches, and at other ports, a gateway is a router that the
// host is behind, as if it was at that port itself.

// ways are how group packets get to a host.
type ways struct {
	here    bool             // the host has a location at a port of this switch
	hops    []mcast.Neighbor // the neighbours on its equally good routes that are up, ascending; if it is not here
	pending bool             // true: the kernel has been asked; if it is not here
	err     error            // the reason why there is no way; if it is not here
}

// waysTo returns the ways to a host. It does not wait: with pending, the kernel has been
// asked, and the next call may have the answer.
func (d *directory) waysTo(ip netip.Addr) ways {
	h := d.hosts.Guest(ip, d.now())
	switch {
	case h == nil:
		return ways{err: fmt.Errorf("%s: too many hosts are being looked up", ip)}
	case len(h.Hops()) > 0:
		return d.waysBy(h)
	case h.At().Ifindex != 0:
		return ways{here: true}
	case h.Fresh(d.now()) && h.Err() != nil && !errors.Is(h.Err(), locate.ErrPending):
		return ways{err: h.Err()}
	}
	d.hosts.Request(h, d.now())
	return ways{pending: true}
}

// waysBy returns the ways to a host that is behind other switches.
func (d *directory) waysBy(h *location.Host) (w ways) {
	var why []string
	for i := range h.Hops() {
		n, err := d.neighbourOf(&h.Hops()[i])
		switch {
		case err == nil:
			w.hops = append(w.hops, n)
		case errors.Is(err, locate.ErrPending):
			w.pending = true
		default:
			why = append(why, err.Error())
		}
	}
	switch {
	case len(w.hops) > 0:
		slices.Sort(w.hops)
		w.hops, w.pending = slices.Compact(w.hops), false
	case w.pending:
		d.hosts.Request(h, d.now())
	default:
		w.err = fmt.Errorf("%s is behind other switches: %s", h.IP(), strings.Join(why, "; "))
	}
	return w
}

// neighbourOf returns the neighbour that a next hop is.
func (d *directory) neighbourOf(hop *location.NextHop) (mcast.Neighbor, error) {
	if hop.Err != nil {
		return 0, hop.Err
	}
	pi := d.plane.PortIndex(hop.At.Ifindex)
	if pi < 0 {
		return 0, fmt.Errorf("next hop %s is at no port of this switch any more", hop.Gateway)
	}
	name := d.ports[pi].Name
	a, up := d.switches.Table.At(pi)
	switch {
	case hop.At.VLAN != 0 && hop.At.VLAN != d.ports[pi].VLAN:
		return 0, fmt.Errorf("next hop %s on %s is reached in VLAN %d, and group packets leave the port in VLAN %d", hop.Gateway, name, hop.At.VLAN, d.ports[pi].VLAN)
	case !up:
		return 0, fmt.Errorf("next hop %s on %s is not a gleamd switch: %s", hop.Gateway, name, d.switches.Silence(pi))
	case a.MAC != rocev2.MAC(hop.At.MAC):
		return 0, fmt.Errorf("next hop %s on %s has the MAC address %v, and the switch %v that says hello there has %v", hop.Gateway, name, hop.At.MAC, a.ID, a.MAC)
	}
	return a.Number, nil
}
