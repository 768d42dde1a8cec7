// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// route makes the switch of a Star without a bridge forward between its ports:
// a host route to each port, and proxy ARP and ND, because hosts take each
// other to be on their own link.
func (s *Star) route(StarConfig) error {
	sysctls := [][2]string{
		{"net.ipv4.ip_forward", "1"},
		{"net.ipv4.conf.all.rp_filter", "0"},
		{"net.ipv6.conf.all.forwarding", "1"},
	}
	for _, p := range s.Ports {
		sysctls = append(sysctls,
			[2]string{"net.ipv4.conf." + p + ".proxy_arp", "1"},
			[2]string{"net.ipv4.neigh." + p + ".proxy_delay", "0"},
			[2]string{"net.ipv6.neigh." + p + ".proxy_delay", "0"},
			[2]string{"net.ipv6.conf." + p + ".proxy_ndp", "1"},
		)
	}
	for _, kv := range sysctls {
		if err := s.Switch.Sysctl(kv[0], kv[1]); err != nil {
			return err
		}
	}
	for _, h := range s.Hosts {
		if err := s.routeHost(h); err != nil {
			return err
		}
	}
	return nil
}

// routeHost gives the port of h the switch's addresses and a route to h, and
// makes it answer neighbour solicitations for all other hosts (ProxyND). (Proxy ARP works
// by route; proxy ND needs an entry per address.)
func (s *Star) routeHost(h Host) error {
	for _, pair := range [][2]netip.Addr{{StarSwitchIPv4, h.IPv4}, {StarSwitchIPv6, h.IPv6}} {
		self, host := pair[0], pair[1]
		if err := s.Switch.AddAddr(h.Port, netip.PrefixFrom(self, self.BitLen())); err != nil {
			return err
		}
		if err := s.Switch.AddRoute(netip.PrefixFrom(host, host.BitLen()), netip.Addr{}, h.Port); err != nil {
			return err
		}
	}
	return s.ProxyND(h)
}

// ProxyND makes the port of h, in a Star without a bridge, answer neighbour
// solicitations for all other hosts. The kernel removes such entries when the port
// loses its carrier.
func (s *Star) ProxyND(h Host) error {
	port, err := s.Switch.link(h.Port)
	if err != nil {
		return err
	}
	for _, other := range s.Hosts {
		if other.Name == h.Name {
			continue
		}
		entry := &netlink.Neigh{
			LinkIndex: port.Attrs().Index, Family: netlink.FAMILY_V6,
			Flags: netlink.NTF_PROXY, IP: other.IPv6.AsSlice(),
		}
		if err := s.Switch.handle.NeighSet(entry); err != nil {
			return fmt.Errorf("proxy entry for %s on %s: %w", other.IPv6, h.Port, err)
		}
	}
	return nil
}
