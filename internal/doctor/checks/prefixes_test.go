// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// A group prefix that holds addresses of hosts is refused, and the hosts are named.
func TestPrefixOfHosts(t *testing.T) {
	network := func(text string) *net.IPNet {
		ip, n, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		return &net.IPNet{IP: ip, Mask: n.Mask}
	}
	neighbour := func(ip string, state int) netlink.Neigh {
		return netlink.Neigh{LinkIndex: 2, IP: net.ParseIP(ip), State: state, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 7}}
	}
	route := func(dst string, by int, gw string) netlink.Route {
		r := netlink.Route{LinkIndex: by, Family: unix.AF_INET, Gw: net.ParseIP(gw)}
		if dst != "" {
			r.Dst = network(dst)
		}
		return r
	}
	links := iface.Links{
		1: &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: 1, Name: "eth1", MasterIndex: 2}},
		2: &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: 2, Name: "br0"}},
		9: &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 9, Name: "mgmt"}},
	}
	own := netlink.Addr{IPNet: network("10.77.255.254/16"), LinkIndex: 2}
	mine := route("10.77.0.0/16", 2, "")
	for _, c := range []struct {
		name   string
		prefix string
		s      hostNetwork
		want   string // a part of the refusal; empty: none
		learnt bool
	}{
		{"an unused part of the hosts' subnet", "10.77.254.0/24", hostNetwork{addrs: []netlink.Addr{own}, routes: []netlink.Route{mine}, neighbours: []netlink.Neigh{neighbour("10.77.0.2", netlink.NUD_REACHABLE)}}, "", false},
		{"their subnet", "10.77.0.0/16", hostNetwork{addrs: []netlink.Addr{own}, routes: []netlink.Route{mine}}, "the subnet 10.77.0.0/16 of br0", false},
		{"their subnet, with hosts", "10.77.0.0/16", hostNetwork{addrs: []netlink.Addr{own}, neighbours: []netlink.Neigh{neighbour("10.77.0.2", netlink.NUD_STALE)}}, "of br0, among them the hosts 10.77.0.2 (02:00:00:00:00:07 at br0)", false},
		{"their subnet, with hosts that the bridge knows", "10.77.0.0/16", hostNetwork{addrs: []netlink.Addr{own}, learnt: func() []netlink.Neigh {
			return []netlink.Neigh{{LinkIndex: 1, HardwareAddr: net.HardwareAddr{2, 5: 8}, State: netlink.NUD_REACHABLE}, {LinkIndex: 1, HardwareAddr: net.HardwareAddr{2, 5: 1}, State: netlink.NUD_PERMANENT}}
		}}, "of br0, among them the hosts 02:00:00:00:00:08 at eth1", false},
		{"more than their subnet", "10.0.0.0/8", hostNetwork{addrs: []netlink.Addr{own}}, "the subnet 10.77.0.0/16 of br0", false},
		{"a part with a host", "10.77.0.0/24", hostNetwork{addrs: []netlink.Addr{own}, routes: []netlink.Route{mine}, neighbours: []netlink.Neigh{neighbour("10.77.0.2", netlink.NUD_STALE)}}, "holds addresses of hosts: 10.77.0.2 (02:00", true},
		{"a part with a host that did not answer", "10.77.0.0/24", hostNetwork{addrs: []netlink.Addr{own}, routes: []netlink.Route{mine}, neighbours: []netlink.Neigh{neighbour("10.77.0.2", netlink.NUD_FAILED)}}, "", false},
		{"routed hosts", "10.1.0.0/16", hostNetwork{addrs: []netlink.Addr{own}, routes: []netlink.Route{mine, route("10.1.2.0/24", 2, "10.77.0.1")}}, "the route to 10.1.2.0/24", false},
		{"a route to the groups of another switch", "10.99.0.0/24", hostNetwork{addrs: []netlink.Addr{own}, routes: []netlink.Route{mine, route("10.99.0.0/24", 2, "10.77.0.1")}}, "", false},
		{"a router", "10.77.0.0/24", hostNetwork{addrs: []netlink.Addr{own}, routes: []netlink.Route{mine, route("", 2, "10.77.0.1")}}, "10.77.0.1 (a next hop of this machine)", false},
		{"elsewhere", "192.0.2.0/24", hostNetwork{addrs: []netlink.Addr{own, {IPNet: network("192.0.2.1/24"), LinkIndex: 9}}, routes: []netlink.Route{mine, route("192.0.2.128/25", 9, "")}}, "", false},
	} {
		c.s.links = links
		var fatal []Finding
		for _, f := range c.s.checkPrefixes([]config.Port{{Name: "eth1"}}, []netip.Prefix{netip.MustParsePrefix(c.prefix)}) {
			if f.Fatal {
				fatal = append(fatal, f)
			}
		}
		if c.want == "" {
			if len(fatal) > 0 {
				t.Errorf("%s: %v", c.name, fatal)
			}
			continue
		}
		if len(fatal) != 1 || !strings.Contains(fatal[0].Text, c.want) || fatal[0].Check != CheckPrefixes {
			t.Errorf("%s: %v, want %q", c.name, fatal, c.want)
			continue
		}
		if f := fatal[0]; f.EndsStart() == c.learnt || f.ForLog() != c.learnt {
			t.Errorf("%s: ends a start %v, is in the log %v", c.name, f.EndsStart(), f.ForLog())
		}
	}
}
