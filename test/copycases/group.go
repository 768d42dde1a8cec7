// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package copycases is a table of frames for a group, and of what a switch makes of each:
// copies, byte for byte, or nothing, as it is left to the worker. All that replicates is tested
// with it: rocev2's incremental ICRC, the worker's rewriting, and the XDP programs in the kernel.
// The copies are built from their fields with an ICRC over all of them; nothing is rewritten.
package copycases

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Leg is where copies go: to a member, or to another switch.
type Leg struct {
	Port    int        // index in Ports
	MAC     rocev2.MAC // the MAC of the next hop
	VLAN    uint16     // 0: untagged
	IP      netip.Addr // the IP of the member; invalid: there is a switch behind the leg
	QPN     rocev2.QPN
	PSN     rocev2.PSN // the number added to the source's PSN
	VA      uint64     // the number added to the address of a WRITE into the window
	RKey    uint32     // the R_Key of a WRITE into the window
	PortMAC rocev2.MAC // the MAC of the switch's port
}

// Group is a group with one source, behind port 0.
type Group struct {
	IP, Source netip.Addr
	SourceMAC  rocev2.MAC
	QPN        rocev2.QPN
	PMTU       int

	// The window, if WindowLen is not 0.
	WindowBase, WindowLen uint64
	WindowRKey            uint32

	Legs []Leg
}

// Ports is the number of ports of the switch: the source's, one with two members behind it, one
// with a member in a VLAN, one with a switch, and with another one in a VLAN.
const Ports = 4

// portMAC is the MAC address of the switch's port i.
func portMAC(i int) rocev2.MAC { return rocev2.MAC{2, 0xC0, 0, 0, 0, byte(i)} }

// group returns the group of all cases of an address family and path MTU.
func group(v6 bool, pmtu int, window bool) *Group {
	g := &Group{
		IP: netip.MustParseAddr("10.77.254.9"), Source: netip.MustParseAddr("10.77.0.1"),
		SourceMAC: rocev2.MAC{2, 0xA, 0, 0, 0, 1}, QPN: 0x4711, PMTU: pmtu,
	}
	members := []string{"10.77.0.2", "10.77.0.250", "192.0.2.255"}
	if v6 {
		g.IP, g.Source = netip.MustParseAddr("fd77:1::9"), netip.MustParseAddr("fd77::1")
		members = []string{"fd77::2", "fd77::ffff:ffff:ffff:ffff", "2001:db8::5"}
	}
	if window {
		g.WindowBase, g.WindowLen, g.WindowRKey = 0x7fff_ffff_f000, 1<<20, 0xABCD
	}
	g.Legs = []Leg{
		{Port: 1, QPN: 5},
		{Port: 1, QPN: 0xFFFFFE, PSN: rocev2.PSNMask, VA: 1 << 63, RKey: 0xFFFFFFFF},
		{Port: 2, VLAN: 4094, QPN: 0x102030, PSN: 0xABCDE, VA: ^uint64(0), RKey: 1},
		{Port: 3},
		{Port: 3, VLAN: 1},
	}
	for i := range g.Legs {
		l := &g.Legs[i]
		l.MAC, l.PortMAC = rocev2.MAC{2, 0xB, 0, 0, 0, byte(i)}, portMAC(l.Port)
		if i < len(members) {
			l.IP = netip.MustParseAddr(members[i])
		} else {
			l.MAC = rocev2.MAC{2, 0xB, 0, 0, 0, 0x33} // two ways to one switch
		}
	}
	return g
}
