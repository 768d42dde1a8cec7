// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routeStatic gives every switch its routes over the links that are up at both ends now.
func (f *Fabric) routeStatic() error {
	p := f.topology.shortestPaths(f.down)
	for _, s := range f.Switches {
		for _, to := range f.Switches {
			if hops := p[s.Name][to.Name]; len(hops) > 0 {
				if err := s.routeTo(to, hops); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// networks returns the destinations at s.
func (s *Switch) networks() []netip.Prefix {
	p := []netip.Prefix{netip.PrefixFrom(s.IPv4, 32), netip.PrefixFrom(s.IPv6, 128)}
	if len(s.Hosts) > 0 {
		p = append(p, hostsIPv4(s.number, 0), hostsIPv6(s.number, 0))
	}
	return p
}

// routeTo routes the networks of a switch through the neighbours called hops, in place of
// routes that are there.
func (s *Switch) routeTo(to *Switch, hops []string) error {
	for _, p := range to.networks() {
		r := &netlink.Route{
			Dst:      &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())},
			Protocol: unix.RTPROT_STATIC,
		}
		for _, l := range s.links {
			if !slices.Contains(hops, l.peer.Name) {
				continue
			}
			link, err := s.NS.Handle().LinkByName(l.peer.Name)
			if err != nil {
				return fmt.Errorf("route from %s to %s: interface %s: %w", s.Name, p, l.peer.Name, err)
			}
			via := linkLocal(l.mac)
			if p.Addr().Is4() {
				via = l.far.Addr()
			}
			r.MultiPath = append(r.MultiPath, &netlink.NexthopInfo{LinkIndex: link.Attrs().Index, Gw: via.AsSlice()})
		}
		if err := s.NS.Handle().RouteReplace(r); err != nil {
			return fmt.Errorf("route from %s to %s: %w", s.Name, p, err)
		}
	}
	return nil
}
