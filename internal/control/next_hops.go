// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gleam-rdma/gleam/internal/control/fib"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A host is behind other switches if its route has gateways at ports where hellos are
// exchanged. Without keys of switches, and at other ports, a gateway is a router that the
// host is behind, as if it was at that port itself.

// nextHop is a gateway on the way to a host.
type nextHop struct {
	gateway netip.Addr
	at      locate.Location
	err     error // why at is not known; locate.ErrPending: not yet
}

// errRouted is the answer about a host that is behind other switches: it has no location
// at this one.
var errRouted = errors.New("is behind other switches")

// locate looks up a host with l: its location, or the next hops of one that is behind other
// switches.
func (a *lookupQueue) locate(l locator, ip netip.Addr) (locate.Location, []nextHop, error) {
	if a.routes == nil {
		at, err := l.Locate(ip)
		return at, nil, err
	}
	r, ok := a.routes.Route(ip)
	switch {
	case !ok || r.Status == fib.Unmatched:
		return locate.Location{}, nil, fmt.Errorf("the route to %s: %w", ip, locate.ErrPending)
	case r.Status != fib.Usable:
		return locate.Location{}, nil, fmt.Errorf("%s %s", ip, r.Status)
	}
	var hops []nextHop
	for _, h := range r.Hops {
		if !h.Gateway.IsValid() {
			continue
		}
		hop := nextHop{gateway: h.Gateway}
		hop.at, hop.err = l.LocateHop(h.Link, h.Gateway)
		if hop.err == nil && !a.bySwitch(hop.at.Ifindex) {
			continue
		}
		hops = append(hops, hop)
	}
	if len(hops) == 0 {
		at, err := l.Locate(ip)
		return at, nil, err
	}
	return locate.Location{}, hops, fmt.Errorf("%s %w", ip, errRouted)
}

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
	h := d.hosts.guest(ip, maxGuests, d.now())
	switch {
	case h == nil:
		return ways{err: fmt.Errorf("%s: too many hosts are being looked up", ip)}
	case len(h.hops) > 0:
		return d.waysBy(h)
	case h.location.Ifindex != 0:
		return ways{here: true}
	case h.answered && d.now()-h.answeredAt <= maxAnswerAge && h.lookupErr != nil && !errors.Is(h.lookupErr, locate.ErrPending):
		return ways{err: h.lookupErr}
	}
	d.request(h)
	return ways{pending: true}
}

// request has h looked up soon.
func (d *directory) request(h *host) {
	if h.retryIndex < 0 || h.retryAt > d.now()+wantedRetry {
		d.hosts.enqueueUrgent(h)
	}
}

// waysBy returns the ways to a host that is behind other switches.
func (d *directory) waysBy(h *host) (w ways) {
	var why []string
	for i := range h.hops {
		n, err := d.neighbourOf(&h.hops[i])
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
		d.request(h)
	default:
		w.err = fmt.Errorf("%s is behind other switches: %s", h.ip, strings.Join(why, "; "))
	}
	return w
}

// neighbourOf returns the neighbour that a next hop is.
func (d *directory) neighbourOf(hop *nextHop) (mcast.Neighbor, error) {
	if hop.err != nil {
		return 0, hop.err
	}
	pi := d.plane.PortIndex(hop.at.Ifindex)
	if pi < 0 {
		return 0, fmt.Errorf("next hop %s is at no port of this switch any more", hop.gateway)
	}
	name := d.ports[pi].Name
	a, up := d.switches.Table.At(pi)
	switch {
	case hop.at.VLAN != 0 && hop.at.VLAN != d.ports[pi].VLAN:
		return 0, fmt.Errorf("next hop %s on %s is reached in VLAN %d, and group packets leave the port in VLAN %d", hop.gateway, name, hop.at.VLAN, d.ports[pi].VLAN)
	case !up:
		return 0, fmt.Errorf("next hop %s on %s is not a gleamd switch: %s", hop.gateway, name, d.switches.Silence(pi))
	case a.MAC != rocev2.MAC(hop.at.MAC):
		return 0, fmt.Errorf("next hop %s on %s has the MAC address %v, and the switch %v that says hello there has %v", hop.gateway, name, hop.at.MAC, a.ID, a.MAC)
	}
	return a.Number, nil
}

// setHops records the next hops of h, which is behind other switches; none if it is not.
func (x *hosts) setHops(h *host, hops []nextHop) {
	was := h.dependencies()
	h.hops = hops
	x.changeDependencies(h, was)
}
