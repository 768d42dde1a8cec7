// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// The policy of a port decides about frames for user space, and about those alone.
func TestPolicy(t *testing.T) {
	const g4, g6 = "10.77.3.4", "fd00:77::9"
	vlan := func(vid uint16) *layers.Dot1Q { return &layers.Dot1Q{VLANIdentifier: vid} }
	vlans := func(vids ...uint16) (v VLANs) {
		for _, vid := range vids {
			v.Add(vid)
		}
		return v
	}
	prefix := netip.MustParsePrefix
	own, other := [6]byte(macA), [6]byte(macB)
	roce4, roce6 := udp4(t, g4, 4791), udp6(t, g6, 4791)
	ask6 := solicitation(t, "ff02::1:ff00:9", g6, layers.ICMPv6TypeNeighborSolicitation)
	ask := func(source string) []byte {
		return from(solicitation(t, "ff02::1:ff00:9", g6, 135), offSource6, source)
	}
	filtering := func(pvid uint16, vids ...uint16) Policy {
		return Policy{Filters: true, PVID: pvid, TagType: 0x8100, VLANs: vlans(vids...)}
	}
	for _, c := range []struct {
		name   string
		policy Policy
		frame  []byte
		want   Reason
	}{
		{"none", Policy{}, roce4, XskRoCEv2},
		{"blocked", Policy{Blocked: true}, roce4, DropPortBlocked},
		{"blocked, envelope", Policy{Blocked: true}, udp4(t, g4, testEnvelopePort), DropPortBlocked},
		{"blocked, ARP", Policy{Blocked: true}, arp(t, layers.ARPRequest, g4), DropPortBlocked},
		{"blocked, solicitation", Policy{Blocked: true}, ask6, DropPortBlocked},
		{"blocked, echo", Policy{Blocked: true}, echo4(t, g4, layers.ICMPv4TypeEchoRequest), DropPortBlocked},
		{"blocked, for the kernel", Policy{Blocked: true}, udp4(t, "10.78.0.1", 4791), PassOther},
		{"untagged in the PVID", filtering(5, 5), roce4, XskRoCEv2},
		{"untagged without a PVID", filtering(0, 5), roce4, DropPortVLAN},
		{"untagged, the bridge is not in the PVID", filtering(5), roce4, DropPortVLAN},
		{"tagged", filtering(5, 5, 7), udp4(t, g4, 4791, vlan(7)), XskRoCEv2},
		{"tagged, the highest VID", filtering(0, 4094), udp4(t, g4, 4791, vlan(4094)), XskRoCEv2},
		{"tagged, in another VLAN", filtering(5, 5, 7), udp4(t, g4, 4791, vlan(8)), DropPortVLAN},
		{"priority-tagged", filtering(5, 5), udp4(t, g4, 4791, &layers.Dot1Q{Priority: 3}), XskRoCEv2},
		{"priority-tagged without a PVID", filtering(0, 5), udp4(t, g4, 4791, &layers.Dot1Q{Priority: 3}), DropPortVLAN},
		{"a tag of another kind is payload", filtering(5, 5), set(set(udp4(t, g4, 4791, vlan(7)), 12, 0x88), 13, 0xA8), XskRoCEv2},
		{"the outer tag counts", filtering(5, 5, 7), udp4(t, g4, 4791, vlan(7), vlan(8)), XskRoCEv2},
		{"the inner tag does not", filtering(5, 5, 7), udp4(t, g4, 4791, vlan(8), vlan(7)), DropPortVLAN},
		{"locked, known in no VLAN", Policy{Locked: true}, roce4, XskRoCEv2},
		{"locked, known in VLAN 7", Policy{Locked: true, Filters: true, TagType: 0x8100, VLANs: vlans(7, 8)}, udp4(t, g4, 4791, vlan(7)), XskRoCEv2},
		{"locked, unknown in VLAN 8", Policy{Locked: true, Filters: true, TagType: 0x8100, VLANs: vlans(7, 8)}, udp4(t, g4, 4791, vlan(8)), DropPortLocked},
		{"locked, unknown", Policy{Locked: true}, set(udp4(t, g4, 4791), 11, 0xCC), DropPortLocked},
		{"MAC is in the list", Policy{MACs: [][6]byte{other, own}}, roce6, XskRoCEv2},
		{"MAC is not in the list", Policy{MACs: [][6]byte{other}}, set(udp4(t, g4, 4791), 11, 0xCC), DropAllowMAC},
		{"an empty list of MACs", Policy{MACs: [][6]byte{}}, set(udp4(t, g4, 4791), 11, 0xCC), DropAllowMAC},
		{"address is in the list", Policy{Addresses: []netip.Prefix{prefix("10.1.0.0/24")}}, roce4, XskRoCEv2},
		{"address is in the list, tagged", Policy{Addresses: []netip.Prefix{prefix("10.1.0.0/24")}}, udp4(t, g4, 4791, vlan(3), vlan(4)), XskRoCEv2},
		{"address is not in the list", Policy{Addresses: []netip.Prefix{prefix("10.1.0.0/24")}}, from(udp4(t, g4, 4791), offSource4, "10.1.1.1"), DropAllowAddress},
		{"IPv6 address is in the list", Policy{Addresses: []netip.Prefix{prefix("fd00:1::1/128")}}, roce6, XskRoCEv2},
		{"IPv6 address is not in the list", Policy{Addresses: []netip.Prefix{prefix("fd00:1::1/128")}}, from(udp6(t, g6, 4791), offSource6, "fd00:1::2"), DropAllowAddress},
		{"ARP sender is in the list", Policy{Addresses: []netip.Prefix{prefix("10.1.0.0/24")}}, arp(t, 1, g4), XskARP},
		{"ARP sender is not in the list", Policy{Addresses: []netip.Prefix{prefix("10.1.0.0/24")}}, from(arp(t, 1, g4), offSend4, "10.1.1.1"), DropAllowAddress},
		{"ARP probe", Policy{Addresses: []netip.Prefix{prefix("10.1.0.0/24")}}, from(arp(t, 1, g4), offSend4, "0.0.0.0"), XskARP},
		{"solicitation from the list", Policy{Addresses: []netip.Prefix{prefix("fd00:1::1/128")}}, ask("fd00:1::1"), XskND},
		{"solicitation from elsewhere", Policy{Addresses: []netip.Prefix{prefix("fd00:1::1/128")}}, ask("fd00:1::2"), DropAllowAddress},
		{"solicitation from a link-local address", Policy{Addresses: []netip.Prefix{prefix("fd00:1::1/128")}}, ask("fe80::2"), XskND},
		{"solicitation from nobody", Policy{Addresses: []netip.Prefix{prefix("fd00:1::1/128")}}, ask("::"), XskND},
		{"a neighbour that no list has", Policy{MACs: [][6]byte{}, Addresses: []netip.Prefix{}, Neighbour: own}, roce4, XskRoCEv2},
		{"a neighbour's envelope", Policy{MACs: [][6]byte{other}, Neighbour: own}, udp4(t, g4, testEnvelopePort), XskEnvelope},
		{"a neighbour's ARP request", Policy{Addresses: []netip.Prefix{}, Neighbour: own}, arp(t, 1, g4), XskARP},
		{"a neighbour at a locked port", Policy{Locked: true, Neighbour: [6]byte{own[0], own[1], own[2], own[3], own[4], 0xCC}}, set(udp4(t, g4, 4791), 11, 0xCC), XskRoCEv2},
		{"a host beside the neighbour", Policy{MACs: [][6]byte{}, Neighbour: other}, roce4, DropAllowMAC},
		{"a host with an address beside the neighbour", Policy{Addresses: []netip.Prefix{}, Neighbour: other}, roce4, DropAllowAddress},
		{"a host at a locked port with a neighbour", Policy{Locked: true, Neighbour: own}, set(udp4(t, g4, 4791), 11, 0xCC), DropPortLocked},
		{"a neighbour in another VLAN", Policy{Filters: true, TagType: 0x8100, VLANs: vlans(7), MACs: [][6]byte{}, Neighbour: own}, udp4(t, g4, 4791, vlan(8)), DropPortVLAN},
		{"a neighbour at a blocked port", Policy{Blocked: true, Locked: true, Neighbour: own}, roce4, DropPortBlocked},
		{"no neighbour, a sender without a MAC address", Policy{MACs: [][6]byte{}}, set(set(set(set(set(set(udp4(t, g4, 4791), 6, 0), 7, 0), 8, 0), 9, 0), 10, 0), 11, 0), DropAllowMAC},
		{"data from a link-local address", Policy{Addresses: []netip.Prefix{prefix("fd00:1::1/128")}}, from(udp6(t, g6, 4791), offSource6, "fe80::2"), DropAllowAddress},
	} {
		for _, frags := range []bool{false, true} {
			p := loaded(t, frags)
			for _, s := range []Station{{MAC: own}, {MAC: own, VID: 7}, {MAC: other}} {
				if err := p.SetStation(s, true); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.SetStation(Station{MAC: other}, false); err != nil {
				t.Fatal(err)
			}
			if err := p.SetPolicy(&c.policy); err != nil {
				t.Fatal(err)
			}
			action, want := withoutSocket(c.want)
			runSteer(t, p, steerCase{name: c.name, frame: c.frame}, action, want)
		}
	}
}

// The program's cost per frame, with one group prefix of each family: frames that go on
// to the kernel, that are for user space (a queue without a socket drops them), and that
// the guard drops.
func BenchmarkSteer(b *testing.B) {
	labtest.Require(b)
	s, err := NewSteering([]netip.Prefix{netip.MustParsePrefix("10.77.0.0/16"), netip.MustParsePrefix("fd00:77::/64")}, testEnvelopePort, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	p := s.loadedPort(b, false)
	for _, c := range []struct {
		name  string
		frame []byte
	}{
		{"pass-IPv4", udp4(b, outside4, 4791)}, {"pass-IPv6", udp6(b, outside6, 4791)}, {"pass-ARP", arp(b, 1, outside4)},
		{"group-IPv4", udp4(b, inGroup4, 4791)}, {"group-IPv6", udp6(b, inGroup6, 4791)},
		{"guard-IPv4", from(udp4(b, outside4, 4791), offSource4, inGroup4)}, {"guard-IPv6", from(udp6(b, outside6, 4791), offSource6, inGroup6)},
	} {
		b.Run(c.name, func(b *testing.B) {
			for n := b.N; n > 0; n -= 1 << 20 {
				if _, err := p.program.Run(&ebpf.RunOptions{Data: c.frame, Repeat: uint32(min(n, 1<<20))}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
