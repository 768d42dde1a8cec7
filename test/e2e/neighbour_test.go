// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
)

// Hosts resolve a GroupIP when they connect their queue pairs, before the group is
// registered: the switch answers for every address of the group prefixes, with the MAC
// of the port that the host is behind, and for no other.
func TestC15_GroupAddressesResolveBeforeRegistration(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 2}})
	ports := r.ports()
	for _, group := range []string{
		"10.77.254.0", "10.77.254.1", "10.77.254.77", "10.77.254.255",
		"fd77::6c65:0", "fd77::6c65:1", "fd77::6c65:ffff",
	} {
		for i, h := range r.star.Hosts {
			if mac := resolve(t, h, netip.MustParseAddr(group)); mac.String() != ports[i].MAC {
				t.Errorf("%s at %s: %v, want %v", group, h.Name, mac, ports[i].MAC)
			}
		}
	}
	// Other addresses have their own MAC: a host's, and the bridge's.
	for _, a := range []netip.Addr{r.star.Hosts[1].IPv4, r.star.Hosts[1].IPv6} {
		if mac := resolve(t, r.star.Hosts[0], a); mac.String() != r.star.Hosts[1].MAC.String() {
			t.Errorf("%s: %v, want %v", a, mac, r.star.Hosts[1].MAC)
		}
	}
	if n := r.stats().Neighbour; n < 14 {
		t.Errorf("%d answers are counted", n)
	}
}

// resolve has h's kernel resolve a, by sending to it, and returns the answer.
func resolve(t *testing.T, h lab.Host, a netip.Addr) (mac net.HardwareAddr) {
	t.Helper()
	family := unix.AF_INET
	if a.Is6() {
		family = unix.AF_INET6
	}
	err := h.NS.Do(func() error {
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 9)))
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte{0})
		return err
	})
	if err != nil {
		t.Fatalf("send to %s from %s: %v", a, h.Name, err)
	}
	link, err := h.NS.Handle().LinkByName(h.Interface)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "resolution of "+a.String()+" at "+h.Name, func() bool {
		list, err := h.NS.Handle().NeighList(link.Attrs().Index, family)
		if err != nil {
			t.Fatal(err)
		}
		const valid = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE
		for _, n := range list {
			if n.IP.Equal(a.AsSlice()) && n.State&valid != 0 {
				mac = n.HardwareAddr
			}
		}
		return mac != nil
	})
	return mac
}
