// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
)

// end returns the namespace of a node and the interface there that leads to another.
func (f *Fabric) end(node, to string) (*lab.Namespace, string) {
	if s := f.byName[node]; s != nil {
		return s.NS, to
	}
	return f.host(node).NS, HostInterface
}

// WaitRouted waits until every switch has all shortest paths to the networks of each
// other, over the links that are up, and uses no others. Of IPv6 by OSPF it has at least one.
func (f *Fabric) WaitRouted(ctx context.Context) error {
	want := f.topology.shortestPaths(f.down)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		missing, err := f.unrouted(want)
		if err != nil {
			return err
		}
		if missing == "" {
			return nil
		}
		if err := f.daemonsEnded(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("fabric: %w before all routes were there: %s", context.Cause(ctx), missing)
		case <-time.After(pause):
		}
	}
}

// unrouted names a route that is not as wanted; "" if there is none.
func (f *Fabric) unrouted(want paths) (string, error) {
	for _, s := range f.Switches {
		for _, to := range f.Switches {
			if s == to {
				continue
			}
			for _, p := range to.networks() {
				has, err := s.NextHops(p.Addr())
				if err != nil {
					return "", err
				}
				if hops := want[s.Name][to.Name]; !f.suffices(p.Addr(), has, hops) {
					return fmt.Sprintf("%s has %s through [%s], want [%s]", s.Name, p, strings.Join(has, " "), strings.Join(hops, " ")), nil
				}
			}
		}
	}
	return "", nil
}

// suffices reports whether a switch has the wanted next hops to ip. FRR's ospf6d (8.4.4) leaves
// out some of several equal paths for good where two of them join and part again, as c1 and c2
// do between two pods of a fat-tree, although its database has all links: of IPv6 by OSPF one of
// them is enough.
func (f *Fabric) suffices(ip netip.Addr, has, want []string) bool {
	if f.routing != OSPF || ip.Is4() || len(has) == 0 {
		return slices.Equal(has, want)
	}
	return !slices.ContainsFunc(has, func(n string) bool { return !slices.Contains(want, n) })
}

// NextHops returns the names of the interfaces through which the kernel of s routes
// packets to ip, sorted: those of all next hops that are alive.
func (s *Switch) NextHops(ip netip.Addr) ([]string, error) {
	routes, err := s.NS.Handle().RouteGetWithOptions(ip.AsSlice(), &netlink.RouteGetOptions{FIBMatch: true})
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("route of %s to %s: %w", s.Name, ip, err)
	}
	var names []string
	add := func(index, flags int) error {
		if flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) != 0 {
			return nil
		}
		link, err := s.NS.Handle().LinkByIndex(index)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			return nil // it has been deleted since
		}
		if err != nil {
			return fmt.Errorf("interface %d of %s: %w", index, s.Name, err)
		}
		names = append(names, link.Attrs().Name)
		return nil
	}
	for _, r := range routes {
		if r.Type != unix.RTN_UNICAST {
			continue
		}
		for _, h := range r.MultiPath {
			if err := add(h.LinkIndex, h.Flags); err != nil {
				return nil, err
			}
		}
		if len(r.MultiPath) == 0 {
			if err := add(r.LinkIndex, r.Flags); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
