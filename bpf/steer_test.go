// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/lab/labtest"
)

// XDP actions (enum xdp_action).
const (
	xdpDrop     = 1
	xdpPass     = 2
	xdpRedirect = 4
)

var (
	macA = net.HardwareAddr{2, 0, 0, 0, 0, 0xA}
	macB = net.HardwareAddr{2, 0, 0, 0, 0, 0xB}
)

// frame serialises an Ethernet frame; lengths and checksums are filled in.
func frame(t *testing.T, l ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b.Bytes())
}

func eth(t layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: macA, DstMAC: macB, EthernetType: t}
}

func ip(s string) net.IP { return net.IP(netip.MustParseAddr(s).AsSlice()) }

func ip4(dst string, p layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Protocol: p, SrcIP: ip("10.1.0.1"), DstIP: ip(dst)}
}

func ip6(dst string, p layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: p, SrcIP: ip("fd00:1::1"), DstIP: ip(dst)}
}

func udp(t *testing.T, port uint16, n gopacket.NetworkLayer) *layers.UDP {
	t.Helper()
	u := &layers.UDP{SrcPort: 0xC000, DstPort: layers.UDPPort(port)}
	if err := u.SetNetworkLayerForChecksum(n); err != nil {
		t.Fatal(err)
	}
	return u
}

var payload = gopacket.Payload(make([]byte, 64))

func udp4(t *testing.T, dst string, port uint16, tags ...*layers.Dot1Q) []byte {
	n := ip4(dst, layers.IPProtocolUDP)
	return tagged(t, layers.EthernetTypeIPv4, tags, n, udp(t, port, n), payload)
}

func udp6(t *testing.T, dst string, port uint16, tags ...*layers.Dot1Q) []byte {
	n := ip6(dst, layers.IPProtocolUDP)
	return tagged(t, layers.EthernetTypeIPv6, tags, n, udp(t, port, n), payload)
}

// tagged puts tags between Ethernet and the rest, the outer one first.
func tagged(t *testing.T, inner layers.EthernetType, tags []*layers.Dot1Q, rest ...gopacket.SerializableLayer) []byte {
	t.Helper()
	types := append(make([]layers.EthernetType, 0, 4), inner)
	var l []gopacket.SerializableLayer
	for i := len(tags) - 1; i >= 0; i-- {
		tags[i].Type = types[len(types)-1]
		types = append(types, layers.EthernetTypeDot1Q)
		l = append([]gopacket.SerializableLayer{tags[i]}, l...)
	}
	l = append([]gopacket.SerializableLayer{eth(types[len(types)-1])}, l...)
	return frame(t, append(l, rest...)...)
}

func options4(t *testing.T, dst string, p layers.IPProtocol) []byte {
	n := ip4(dst, p)
	n.Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}} // router alert
	return frame(t, eth(layers.EthernetTypeIPv4), n, udp(t, 4791, n), payload)
}

func fragment4(t *testing.T, dst string, flags layers.IPv4Flag, offset uint16) []byte {
	n := ip4(dst, layers.IPProtocolUDP)
	n.Flags, n.FragOffset = flags, offset
	return frame(t, eth(layers.EthernetTypeIPv4), n, udp(t, 4791, n), payload)
}

func arp(t *testing.T, op uint16, target string, tags ...*layers.Dot1Q) []byte {
	return tagged(t, layers.EthernetTypeARP, tags, &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4,
		HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
		SourceHwAddress: macA, SourceProtAddress: ip("10.1.0.1"),
		DstHwAddress: make([]byte, 6), DstProtAddress: ip(target),
	})
}

func solicitation(t *testing.T, dst, target string, icmpType uint8, tags ...*layers.Dot1Q) []byte {
	n := ip6(dst, layers.IPProtocolICMPv6)
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(icmpType, 0)}
	if err := icmp.SetNetworkLayerForChecksum(n); err != nil {
		t.Fatal(err)
	}
	return tagged(t, layers.EthernetTypeIPv6, tags, n, icmp,
		&layers.ICMPv6NeighborSolicitation{TargetAddress: ip(target)})
}

// extension6 is a packet whose first next header is p; what follows is junk.
func extension6(t *testing.T, dst string, p layers.IPProtocol) []byte {
	return frame(t, eth(layers.EthernetTypeIPv6), ip6(dst, p), payload)
}

// set returns f with byte i set to v.
func set(f []byte, i int, v byte) []byte {
	f[i] = v
	return f
}

type steerCase struct {
	name  string
	frame []byte
	want  Reason
}

func steerCases(t *testing.T) []steerCase {
	const g4, g6, other4, other6 = "10.77.3.4", "fd00:77::9", "10.78.0.1", "fd00:78::1"
	const sol = "ff02::1:ff00:9"
	tag := func(id uint16) *layers.Dot1Q { return &layers.Dot1Q{VLANIdentifier: id} }
	tcp4 := ip4(g4, layers.IPProtocolTCP)
	qinq := set(set(udp4(t, g4, 4791, tag(5), tag(6)), 12, 0x88), 13, 0xA8)
	cases := []steerCase{
		{"IPv4 RoCEv2", udp4(t, g4, 4791), XskRoCEv2},
		{"IPv4 RoCEv2, second prefix", udp4(t, "192.0.2.128", 4791), XskRoCEv2},
		{"IPv4 RoCEv2, just below the prefix", udp4(t, "192.0.2.127", 4791), PassOther},
		{"IPv4 RoCEv2, another address", udp4(t, other4, 4791), PassOther},
		{"IPv4 RoCEv2 with IP options", options4(t, g4, layers.IPProtocolUDP), XskRoCEv2},
		{"IPv4 RoCEv2, don't fragment", fragment4(t, g4, layers.IPv4DontFragment, 0), XskRoCEv2},
		{"IPv4 envelope", udp4(t, g4, testEnvelopePort), XskEnvelope},
		{"IPv4 envelope, another address", udp4(t, other4, testEnvelopePort), PassOther},
		{"IPv4 UDP, another port", udp4(t, g4, 4793), PassGroupOther},
		{"IPv4 UDP, port bytes swapped", udp4(t, g4, 0xB712), PassGroupOther},
		{"IPv4 ICMP to a group", frame(t, eth(layers.EthernetTypeIPv4), ip4(g4, layers.IPProtocolICMPv4), payload), PassGroupOther},
		{"IPv4 TCP to a group", frame(t, eth(layers.EthernetTypeIPv4), tcp4, payload), PassGroupOther},
		{"IPv4 first fragment", fragment4(t, g4, layers.IPv4MoreFragments, 0), DropGroupFragment},
		{"IPv4 last fragment", fragment4(t, g4, 0, 100), DropGroupFragment},
		{"IPv4 fragment, offset in the low byte", fragment4(t, g4, 0, 1), DropGroupFragment},
		{"IPv4 fragment to another address", fragment4(t, other4, layers.IPv4MoreFragments, 0), PassOther},
		{"IPv4, IHL 4", set(udp4(t, g4, 4791), 14, 0x44), PassTruncated},
		{"IPv4, IHL 15 beyond the end", set(udp4(t, g4, 4791)[:60], 14, 0x4F), DropGroupTruncated},
		{"IPv4 802.1Q", udp4(t, g4, 4791, tag(5)), XskRoCEv2},
		{"IPv4 802.1Q twice", udp4(t, g4, 4791, tag(5), tag(6)), XskRoCEv2},
		{"IPv4 802.1ad", qinq, XskRoCEv2},
		{"three tags", udp4(t, g4, 4791, tag(5), tag(6), tag(7)), PassVLANDepth},
		{"IPv4 802.1Q, another address", udp4(t, other4, 4791, tag(5)), PassOther},
		{"IPv6 RoCEv2", udp6(t, g6, 4791), XskRoCEv2},
		{"IPv6 RoCEv2 802.1Q", udp6(t, g6, 4791, tag(5)), XskRoCEv2},
		{"IPv6 RoCEv2, another address", udp6(t, other6, 4791), PassOther},
		{"IPv6 envelope", udp6(t, g6, testEnvelopePort), XskEnvelope},
		{"IPv6 UDP, another port", udp6(t, g6, 53), PassGroupOther},
		{"IPv6 echo request to a group", solicitation(t, g6, g6, layers.ICMPv6TypeEchoRequest), PassGroupOther},
		{"IPv6 fragment", extension6(t, g6, layers.IPProtocolIPv6Fragment), DropGroupFragment},
		{"ARP request", arp(t, layers.ARPRequest, g4), XskARP},
		{"ARP request 802.1Q", arp(t, layers.ARPRequest, g4, tag(5)), XskARP},
		{"ARP request for another address", arp(t, layers.ARPRequest, other4), PassOther},
		{"ARP reply to a group", arp(t, layers.ARPReply, g4), PassOther},
		{"ARP with IEEE 802 hardware", set(arp(t, layers.ARPRequest, g4), 15, 6), PassOther},
		{"ARP with 16-byte protocol addresses", set(arp(t, layers.ARPRequest, g4), 19, 16), PassOther},
		{"solicitation, multicast", solicitation(t, sol, g6, layers.ICMPv6TypeNeighborSolicitation), XskND},
		{"solicitation 802.1Q", solicitation(t, sol, g6, layers.ICMPv6TypeNeighborSolicitation, tag(5)), XskND},
		{"solicitation, unicast probe", solicitation(t, g6, g6, layers.ICMPv6TypeNeighborSolicitation), XskND},
		{"solicitation for another address", solicitation(t, sol, other6, layers.ICMPv6TypeNeighborSolicitation), PassOther},
		{"advertisement of a group address", solicitation(t, "ff02::1", g6, layers.ICMPv6TypeNeighborAdvertisement), PassOther},
		{"solicitation with a code", set(solicitation(t, sol, g6, layers.ICMPv6TypeNeighborSolicitation), 55, 1), PassOther},
		{"solicitation ends in the target", solicitation(t, sol, g6, layers.ICMPv6TypeNeighborSolicitation)[:77], PassOther},
		{"LLDP", frame(t, eth(layers.EthernetTypeLinkLayerDiscovery), payload), PassOther},
		{"802.3 length", frame(t, eth(layers.EthernetType(0x05DC)), payload), PassOther},
		{"MPLS", frame(t, eth(layers.EthernetTypeMPLSUnicast), payload), PassOther},
	}
	for _, p := range []layers.IPProtocol{0, 43, 51, 60, 135, 139, 140} {
		cases = append(cases, steerCase{"IPv6 extension header " + p.String(), extension6(t, g6, p), PassGroupExtension},
			steerCase{"IPv6 extension header to another address " + p.String(), extension6(t, other6, p), PassOther})
	}
	return append(cases, truncatedCases(t)...)
}

// truncatedCases cuts a frame of each kind at its headers' ends: whole, the
// header is understood; one byte short, it is not. The kernel does not run XDP
// tests on less than an Ethernet header.
func truncatedCases(t *testing.T) []steerCase {
	f4, f6 := udp4(t, "10.77.0.1", 4791), udp6(t, "fd00:77::1", 4791)
	tags := udp4(t, "10.77.0.1", 4791, &layers.Dot1Q{VLANIdentifier: 1}, &layers.Dot1Q{VLANIdentifier: 2})
	req := arp(t, layers.ARPRequest, "10.77.0.1")
	return []steerCase{
		{"IPv4, Ethernet only", f4[:14], PassTruncated},
		{"IPv4 header cut", f4[:33], PassTruncated},
		{"IPv4 header only", f4[:34], DropGroupTruncated},
		{"IPv4 UDP header cut", f4[:41], DropGroupTruncated},
		{"IPv4 UDP header only", f4[:42], XskRoCEv2},
		{"first tag cut", tags[:17], PassTruncated},
		{"second tag cut", tags[:21], PassTruncated},
		{"two tags only", tags[:22], PassTruncated},
		{"IPv6 header cut", f6[:53], PassTruncated},
		{"IPv6 header only", f6[:54], DropGroupTruncated},
		{"IPv6 UDP header cut", f6[:61], DropGroupTruncated},
		{"IPv6 UDP header only", f6[:62], XskRoCEv2},
		{"ARP cut", req[:41], PassTruncated},
		{"ARP only", req[:42], XskARP},
	}
}

// The real program, in the kernel: every frame takes the expected exit, and is
// counted for it and for nothing else. Test runs have RX queue 0; without a
// socket there, frames for user space are dropped as DropNoSocket.
func TestSteer(t *testing.T) {
	s := newTestSteering(t)
	p := &PortProgram{ifname: "test"}
	if err := s.load(&p.objects); err != nil {
		t.Fatal(err)
	}
	defer p.objects.Close()
	cases := steerCases(t)
	seen := map[Reason]bool{DropNoSocket: true}
	for _, tc := range cases {
		seen[tc.want] = true
		action, want := uint32(xdpPass), tc.want
		if tc.want >= XskRoCEv2 {
			want = DropNoSocket
		}
		if want.Drop() {
			action = xdpDrop
		}
		runSteer(t, p, tc, action, want)
	}
	for r := range NumReasons {
		if !seen[r] {
			t.Errorf("no case for %s", r)
		}
	}
}

// With a socket on the RX queue the frames for user space are redirected.
func TestSteerToSocket(t *testing.T) {
	labtest.Enter(t)
	s := newTestSteering(t)
	l := addVeth(t, "p0", "h0")
	p, err := s.Attach(l.Attrs().Index, "p0", Auto)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.SetSocket(0, boundSocket(t, l.Attrs().Index, "p0")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range steerCases(t) {
		action := uint32(xdpPass)
		switch {
		case tc.want >= XskRoCEv2:
			action = xdpRedirect
		case tc.want.Drop():
			action = xdpDrop
		}
		runSteer(t, p, tc, action, tc.want)
	}
}

// runSteer runs the program of p over one frame.
func runSteer(t *testing.T, p *PortProgram, tc steerCase, action uint32, want Reason) {
	t.Helper()
	before, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.objects.Steer.Run(&ebpf.RunOptions{Data: tc.frame, Repeat: 1})
	if err != nil {
		t.Errorf("%s: %v", tc.name, err)
		return
	}
	after, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if got != action {
		t.Errorf("%s: XDP action %d, want %d", tc.name, got, action)
	}
	for r := range after {
		n := after[r] - before[r]
		if Reason(r) == want && n != 1 || Reason(r) != want && n != 0 {
			t.Errorf("%s: %s counted %d frames; want 1 for %s only", tc.name, Reason(r), n, want)
		}
	}
}

// boundSocket returns the descriptor of an AF_XDP socket on queue 0.
func boundSocket(t *testing.T, ifindex int, ifname string) int {
	t.Helper()
	u, err := xsk.NewUmem(1, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s, err := xsk.Open(u, xsk.Config{Ifindex: ifindex, Ifname: ifname})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), u.Close()); err != nil {
			t.Error(err)
		}
	})
	return s.FD()
}
