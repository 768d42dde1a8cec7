// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Watch tells changed of every neighbour, forwarding database entry, route and
// interface that changes, until ctx ends. It returns once the subscriptions stand, so
// that no change after it is missed.
func Watch(ctx context.Context, changed *Changes, failed func(error)) error {
	done := make(chan struct{})
	neigh := make(chan netlink.NeighUpdate, 64)
	link := make(chan netlink.LinkUpdate, 64)
	route := make(chan netlink.RouteUpdate, 64)
	subscribe := []struct {
		what string
		do   func() error
	}{
		{"neighbours", func() error {
			return netlink.NeighSubscribeWithOptions(neigh, done, netlink.NeighSubscribeOptions{ErrorCallback: failed})
		}},
		{"links", func() error {
			return netlink.LinkSubscribeWithOptions(link, done, netlink.LinkSubscribeOptions{ErrorCallback: failed})
		}},
		{"routes", func() error {
			return netlink.RouteSubscribeWithOptions(route, done, netlink.RouteSubscribeOptions{ErrorCallback: failed})
		}},
	}
	for _, s := range subscribe {
		if err := s.do(); err != nil {
			close(done)
			return fmt.Errorf("watch %s by netlink: %w", s.what, err)
		}
	}
	go func() {
		defer close(done)
		for {
			// The library closes its channel on a socket error, after telling failed.
			select {
			case <-ctx.Done():
				return
			case n, ok := <-neigh:
				if !ok {
					return
				}
				changed.neighbour(&n)
			case l, ok := <-link:
				if !ok {
					return
				}
				changed.Link(int(l.Index))
			case r, ok := <-route:
				if !ok {
					return
				}
				changed.Route(destination(&r.Route))
			}
		}
	}()
	return nil
}

// neighbour notes an entry of a neighbour table or of a forwarding database.
func (c *Changes) neighbour(n *netlink.NeighUpdate) {
	var mac MAC
	copy(mac[:], n.HardwareAddr)
	there := n.Type == unix.RTM_NEWNEIGH
	if n.Family == unix.AF_BRIDGE {
		c.Learn(mac, there)
	} else if ip, ok := netip.AddrFromSlice(n.IP); ok {
		c.Neighbour(ip, Neighbour{MAC: mac, Usable: there && n.State&usable != 0 && len(n.HardwareAddr) == len(mac)})
	}
}

// destination returns where r leads to; the default route of its family is to
// everything.
func destination(r *netlink.Route) netip.Prefix {
	if r.Dst != nil {
		if ip, ok := netip.AddrFromSlice(r.Dst.IP); ok {
			bits, _ := r.Dst.Mask.Size()
			return netip.PrefixFrom(ip, bits)
		}
	}
	if r.Family == unix.AF_INET6 {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}
