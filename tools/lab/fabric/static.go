// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"errors"
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

// SetLink sets both ends of the link between two nodes up or down. With static routes, the
// routes of its two ends are set anew after it is up: the kernel removes some when an
// interface goes down. Other switches' routes stay as they are.
func (f *Fabric) SetLink(a, b string, up bool) error {
	i := slices.IndexFunc(f.topology.Links, func(l Link) bool { return l.A == a && l.B == b || l.A == b && l.B == a })
	if i < 0 {
		return fmt.Errorf("fabric: there is no link between %s and %s", a, b)
	}
	l := f.topology.Links[i]
	var errs []error
	for _, end := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
		ns, name := f.end(end[0], end[1])
		if up {
			errs = append(errs, ns.SetUp(name))
		} else {
			errs = append(errs, ns.SetDown(name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("fabric: link %v: %w", l, err)
	}
	if !up {
		f.down[l] = true
		return nil
	}
	delete(f.down, l)
	p := f.topology.shortestPaths(f.down)
	for _, name := range []string{l.A, l.B} {
		s := f.byName[name]
		if s == nil {
			continue
		}
		if err := s.NS.WaitUp(linkTimeout); err != nil {
			return err
		}
		if f.routing != Static {
			continue
		}
		for _, to := range f.Switches {
			if hops := p[name][to.Name]; len(hops) > 0 {
				errs = append(errs, s.routeTo(to, hops))
			}
		}
	}
	return errors.Join(errs...)
}
