// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// gid is an entry of a port's GID table (struct ibv_gid_entry).
type gid struct {
	addr    netip.Addr
	port    uint8
	index   uint8
	rocev2  bool
	ifindex int // the index of its network interface
}

// gidAddr returns the address in a GID: RoCEv2 writes IPv4 as IPv4-mapped IPv6.
func gidAddr(raw [16]byte) netip.Addr { return netip.AddrFrom16(raw).Unmap() }

// usable says whether g stands for an address that hosts are known by.
func (g gid) usable() bool {
	return g.rocev2 && !g.addr.IsLinkLocalUnicast() && !g.addr.IsUnspecified()
}

// chooseGIDs returns the GIDs of one port, one for each address, that agree
// with cfg: those of the first port that has any. ifindex is cfg.Interface's, 0
// if none is given. cfg.LocalIP comes first, then IPv4, else they are in the
// order of their indices.
func chooseGIDs(table []gid, cfg Config, ifindex int) (chosen []gid) {
	ports := make(map[uint8]bool)
	var order []uint8
	for _, g := range table {
		if !ports[g.port] && (cfg.Port == 0 || cfg.Port == g.port) {
			ports[g.port] = true
			order = append(order, g.port)
		}
	}
	slices.Sort(order)
	for _, port := range order {
		chosen = nil
		seen := make(map[netip.Addr]bool)
		for _, g := range table {
			if g.port == port && g.usable() && (ifindex == 0 || g.ifindex == ifindex) && !seen[g.addr] {
				seen[g.addr] = true
				chosen = append(chosen, g)
			}
		}
		if len(chosen) == 0 || cfg.LocalIP.IsValid() && !seen[cfg.LocalIP] {
			continue
		}
		rank := func(g gid) int {
			if g.addr == cfg.LocalIP {
				return 0
			}
			return g.addr.BitLen()
		}
		slices.SortStableFunc(chosen, func(a, b gid) int { return rank(a) - rank(b) })
		return chosen
	}
	return nil
}

// candidate is a device that does not do.
type candidate struct {
	name  string
	table []gid
	err   error // the error of asking it; nil: it has answered
}

// String says what the device has.
func (c candidate) String() string {
	if c.err != nil {
		return fmt.Sprintf("%s: %v", c.name, c.err)
	}
	var has []string
	for _, g := range c.table {
		if g.usable() {
			has = append(has, fmt.Sprintf("%s (port %d)", g.addr, g.port))
		}
	}
	if has == nil {
		return c.name + " has no RoCEv2 GID for an IP address: is its network interface up, and has it an address?"
	}
	return c.name + " has " + strings.Join(has, ", ")
}

// noDevice says that no device agrees with cfg. lacking are devices the kernel
// has and libibverbs does not know.
func noDevice(cfg Config, tried []candidate, lacking []string) error {
	var b strings.Builder
	switch {
	case cfg.LocalIP.IsValid():
		fmt.Fprintf(&b, "no RDMA device has a GID for %s", cfg.LocalIP)
	case cfg.Interface != "":
		fmt.Fprintf(&b, "no RDMA device is on %s", cfg.Interface)
	case cfg.Device != "":
		fmt.Fprintf(&b, "there is no usable RDMA device %s", cfg.Device)
	default:
		b.WriteString("there is no usable RDMA device")
	}
	netdev := cfg.Interface
	if netdev == "" {
		netdev = "eth0"
	}
	fmt.Fprintf(&b, ": load the RNIC's driver, or make a software one: rdma link add rxe0 type rxe netdev %s", netdev)
	for _, c := range tried {
		fmt.Fprintf(&b, "; %s", c)
	}
	for _, name := range lacking {
		fmt.Fprintf(&b, "; the kernel has %s, but libibverbs lacks its driver: install ibverbs-providers (rdma-core)", name)
	}
	return fmt.Errorf("%s", b.String())
}
