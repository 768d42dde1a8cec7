// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// The address plan. Switch i, from 1 in the topology's order, has the router ID
// 10.255.0.0 + i, and that address and fd67:ff::i on its loopback interface. Its hosts are
// in 10.(64+i>>8).(i&255).0/24 and fd67:i::/64, where the switch's bridge has .254 and
// ::fe. With static routes and OSPF, link n has the two addresses of the n-th /31 in
// 172.16.0.0/12; with BGP links have link-local IPv6 addresses only.

// GroupsIPv4 and GroupsIPv6 are for addresses of groups. They lie in none of the switches' networks.
var (
	GroupsIPv4 = netip.MustParsePrefix("10.254.0.0/16")
	GroupsIPv6 = netip.MustParsePrefix("fd67:fe::/112")
)

const (
	bridge = "br0" // the bridge of a switch's hosts
	wires  = "wires"
	// HostInterface is the name of the interface of every host.
	HostInterface = "eth0"
)

func routerID(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 255, byte(i >> 8), byte(i)}) }

func loopbackIPv6(i int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x67, 3: 0xff, 14: byte(i >> 8), 15: byte(i)})
}

// hostsIPv4 returns the address with the last byte host in the network of the hosts of
// switch i, with its length.
func hostsIPv4(i int, host byte) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 64 + byte(i>>8), byte(i), host}), 24)
}

func hostsIPv6(i int, host byte) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x67, 2: byte(i >> 8), 3: byte(i), 15: host}), 64)
}

// gateway is the last byte of the addresses of a switch's bridge.
const gateway = 254

// linkIPv4 returns the addresses of the two ends of link n.
func linkIPv4(n int) (a, b netip.Prefix) {
	at := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16 + byte(i>>16), byte(i >> 8), byte(i)}), 31)
	}
	return at(2 * n), at(2*n + 1)
}

// mac returns the locally administered address of end 0 or 1 of link n.
func mac(n, end int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0x67, 0x6d, byte(n >> 8), byte(n), byte(end)}
}

// bridgeMAC returns the address of the bridge of switch i.
func bridgeMAC(i int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0x67, 0x6e, byte(i >> 8), byte(i), 0}
}

// linkLocal returns the address that the kernel makes of an interface's MAC address
// (RFC 4291, appendix A).
func linkLocal(m net.HardwareAddr) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

// ID is the ID by which other switches know s.
func (s *Switch) ID() string { return fmt.Sprintf("%016x", s.number) }

// Config returns the lines of the configuration file of a gleamd in s that follow from the
// topology: its ports, the prefixes of groups, and the switch among others, which know each
// other by the key.
func (s *Switch) Config(key []byte) string {
	text := "ports:\n"
	for _, p := range s.Ports() {
		text += "  - name: " + p + "\n"
	}
	return text + fmt.Sprintf(`group_prefixes: [%q, %q]
switch:
  id: %q
  keys: [{id: 1, secret: "hex:%x"}]
  ports: [%s]
`, GroupsIPv4, GroupsIPv6, s.ID(), key, strings.Join(s.Neighbours(), ", "))
}
