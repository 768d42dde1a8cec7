// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestCheckFindsTraps sets up a switch step by step, as somebody would who begins
// with nothing: at each step exactly what is missing is named.
func TestCheckFindsTraps(t *testing.T) {
	labtest.Enter(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	link := func(name string) netlink.Link {
		t.Helper()
		l, err := netlink.LinkByName(name)
		must(err)
		return l
	}
	address := func(name, prefix string) *netlink.Addr {
		t.Helper()
		a, err := netlink.ParseAddr(prefix)
		must(err)
		must(netlink.AddrAdd(link(name), a))
		return a
	}
	cfg := config.Default()
	cfg.FastPath = config.FastPathOff // the peers have no GRO
	cfg.Ports = []config.Port{{Name: "p1"}, {Name: "p2"}}
	cfg.GroupPrefixes = []netip.Prefix{netip.MustParsePrefix("10.77.254.0/24")}
	// expect compares what is found with texts, each part of one finding.
	expect := func(step string, want ...string) {
		t.Helper()
		o := &Outcome{}
		s, err := readHostNetwork()
		must(err)
		s.checkInterfaces(o, cfg)
		found := append(append(o.Findings, s.check(cfg)...), s.checkFastPath(cfg)...)
		for _, w := range want {
			i := slices.IndexFunc(found, func(f Finding) bool { return strings.Contains(f.String(), w) })
			if i < 0 {
				t.Errorf("%s: %q is not found", step, w)
				continue
			}
			if fatal := strings.Contains(w, "there is no interface"); found[i].Fatal != fatal {
				t.Errorf("%s: %v: fatal %v, want %v", step, found[i], found[i].Fatal, fatal)
			}
			found = slices.Delete(found, i, i+1)
		}
		for _, f := range found {
			t.Errorf("%s: found besides: %s", step, f)
		}
	}

	expect("nothing", "port p1: there is no interface", "port p2: there is no interface")
	for _, p := range []string{"1", "2"} {
		must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "p" + p, MTU: 1500}, PeerName: "h" + p}))
	}
	const noIPv4 = "no IPv4 route leads through any port: no member of a group in 10.77.254.0/24 is found: give this switch IPv4 addresses"
	expect("ports that are down", "port p1: port is down: ip link set p1 up", "port p2: port is down: ip link set p2 up",
		"port p1: no route leads through p1:", "port p2: no route leads through p2:", noIPv4)
	must(netlink.LinkSetUp(link("p1")))
	must(netlink.LinkSetUp(link("p2")))
	must(netlink.LinkSetUp(link("h2")))
	carrier := func(name string) { // which the kernel notes some time after
		t.Helper()
		for range 500 {
			if iface.Running(link(name).Attrs()) {
				return
			}
			<-time.After(10 * time.Millisecond)
		}
		t.Fatalf("%s has no carrier", name)
	}
	carrier("p2")
	expect("a port without carrier", "port p1: port is down: the interface has no carrier, since its peer is down: ip link set h1 up",
		"port p1: no route leads through p1:", "port p2: no route leads through p2:", noIPv4)
	must(netlink.LinkSetUp(link("h1")))
	carrier("p1")

	must(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}))
	for _, p := range []string{"p1", "p2"} {
		must(netlink.LinkSetMaster(link(p), link("br0")))
	}
	const add = "ip address add ADDRESS/LENGTH dev br0"
	expect("a bridge that is down and has no address", "port p1: no route leads through p1 or br0: members behind it are not found, since their locations are looked up in the kernel: ip link set br0 up; "+add,
		"port p2: no route leads through p2 or br0", noIPv4)
	must(netlink.LinkSetUp(link("br0")))
	expect("a bridge without an address", "port p1: no route leads through p1 or br0: members behind it are not found, since their locations are looked up in the kernel: "+add,
		"port p2: no route leads through p2 or br0", noIPv4)

	// An address elsewhere, with a default route, is of no use.
	must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "mgmt"}, PeerName: "office"}))
	must(netlink.LinkSetUp(link("office")))
	must(netlink.LinkSetUp(link("mgmt")))
	address("mgmt", "192.0.2.1/24")
	_, everywhere, err := net.ParseCIDR("0.0.0.0/0")
	must(err)
	must(netlink.RouteAdd(&netlink.Route{LinkIndex: link("mgmt").Attrs().Index, Dst: everywhere}))
	expect("a default route through another interface", "port p1: no route leads through p1 or br0", "port p2: no route leads through p2 or br0", noIPv4)

	inside := address("br0", "10.77.254.1/16")
	expect("an address inside the group prefix", "address 10.77.254.1 of br0 is inside group prefix 10.77.254.0/24")
	must(netlink.AddrDel(link("br0"), inside))
	own := address("br0", "10.77.255.254/16")
	expect("a bridge with an address")

	cfg.GroupPrefixes = append(cfg.GroupPrefixes, netip.MustParsePrefix("10.99.0.0/24"), netip.MustParsePrefix("fd77::6c65:0/112"))
	expect("prefixes that hosts do not reach", "group prefix 10.99.0.0/24 is in no subnet of the ports: hosts reach its groups only if they have a route: at each host: ip route add 10.99.0.0/24 dev INTERFACE",
		"no IPv6 route leads through any port: no member of a group in fd77::6c65:0/112 is found")
	cfg.GroupPrefixes = cfg.GroupPrefixes[:1]

	must(netlink.LinkSetMTU(link("p2"), 1080))
	expect("an MTU for path MTU 512", "port p2: its MTU of 1080 is too small for groups of path MTU 1024 in 10.77.254.0/24: ip link set p2 mtu 1088,")
	must(netlink.LinkSetMTU(link("p2"), 1088))
	expect("an MTU that just fits")

	cfg.FastPath = "auto"
	expect("the fast path", "port p1: its peer takes no redirected frames: groups with receivers there stay off the fast path", "port p2: its peer takes no")
	cfg.FastPath = config.FastPathOff

	must(netlink.AddrDel(link("br0"), own))
	expect("no address again", "port p1: no route", "port p2: no route", noIPv4)
}
