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
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/test/labtest"
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
func frame(t testing.TB, l ...gopacket.SerializableLayer) []byte {
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

func udp(t testing.TB, port uint16, n gopacket.NetworkLayer) *layers.UDP {
	t.Helper()
	u := &layers.UDP{SrcPort: 0xC000, DstPort: layers.UDPPort(port)}
	if err := u.SetNetworkLayerForChecksum(n); err != nil {
		t.Fatal(err)
	}
	return u
}

var payload = gopacket.Payload(make([]byte, 64))

func udp4(t testing.TB, dst string, port uint16, tags ...*layers.Dot1Q) []byte {
	n := ip4(dst, layers.IPProtocolUDP)
	return tagged(t, layers.EthernetTypeIPv4, tags, n, udp(t, port, n), payload)
}

func udp6(t testing.TB, dst string, port uint16, tags ...*layers.Dot1Q) []byte {
	n := ip6(dst, layers.IPProtocolUDP)
	return tagged(t, layers.EthernetTypeIPv6, tags, n, udp(t, port, n), payload)
}

// tagged puts tags between Ethernet and the rest, the outer one first.
func tagged(t testing.TB, inner layers.EthernetType, tags []*layers.Dot1Q, rest ...gopacket.SerializableLayer) []byte {
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

func options4(t testing.TB, dst string, p layers.IPProtocol) []byte {
	n := ip4(dst, p)
	n.Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}} // router alert
	return frame(t, eth(layers.EthernetTypeIPv4), n, udp(t, 4791, n), payload)
}

func fragment4(t testing.TB, dst string, flags layers.IPv4Flag, offset uint16) []byte {
	n := ip4(dst, layers.IPProtocolUDP)
	n.Flags, n.FragOffset = flags, offset
	return frame(t, eth(layers.EthernetTypeIPv4), n, udp(t, 4791, n), payload)
}

func arp(t testing.TB, op uint16, target string, tags ...*layers.Dot1Q) []byte {
	return tagged(t, layers.EthernetTypeARP, tags, &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4,
		HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
		SourceHwAddress: macA, SourceProtAddress: ip("10.1.0.1"),
		DstHwAddress: make([]byte, 6), DstProtAddress: ip(target),
	})
}

func solicitation(t testing.TB, dst, target string, icmpType uint8, tags ...*layers.Dot1Q) []byte {
	n := ip6(dst, layers.IPProtocolICMPv6)
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(icmpType, 0)}
	if err := icmp.SetNetworkLayerForChecksum(n); err != nil {
		t.Fatal(err)
	}
	return tagged(t, layers.EthernetTypeIPv6, tags, n, icmp,
		&layers.ICMPv6NeighborSolicitation{TargetAddress: ip(target)})
}

func echo4(t testing.TB, dst string, icmpType uint8, tags ...*layers.Dot1Q) []byte {
	icmp := &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(icmpType, 0), Id: 7, Seq: 1}
	return tagged(t, layers.EthernetTypeIPv4, tags, ip4(dst, layers.IPProtocolICMPv4), icmp, payload)
}

// extension6 is a packet whose first next header is p, and its last one.
func extension6(t testing.TB, dst string, p layers.IPProtocol) []byte {
	return set(frame(t, eth(layers.EthernetTypeIPv6), ip6(dst, p), payload), 54, byte(layers.IPProtocolNoNextHeader))
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
	cut   bool // the case is about the frame's end
}

func steerCases(t *testing.T) []steerCase {
	const g4, g6, other4, other6 = "10.77.3.4", "fd00:77::9", "10.78.0.1", "fd00:78::1"
	const sol = "ff02::1:ff00:9"
	tag := func(id uint16) *layers.Dot1Q { return &layers.Dot1Q{VLANIdentifier: id} }
	tcp4 := ip4(g4, layers.IPProtocolTCP)
	qinq := set(set(udp4(t, g4, 4791, tag(5), tag(6)), 12, 0x88), 13, 0xA8)
	cases := []steerCase{
		{"IPv4 RoCEv2", udp4(t, g4, 4791), XskRoCEv2, false},
		{"IPv4 RoCEv2, second prefix", udp4(t, "192.0.2.128", 4791), XskRoCEv2, false},
		{"IPv4 RoCEv2, just below the prefix", udp4(t, "192.0.2.127", 4791), PassOther, false},
		{"IPv4 RoCEv2, another address", udp4(t, other4, 4791), PassOther, false},
		{"IPv4 RoCEv2 with IP options", options4(t, g4, layers.IPProtocolUDP), XskRoCEv2, false},
		{"IPv4 RoCEv2, don't fragment", fragment4(t, g4, layers.IPv4DontFragment, 0), XskRoCEv2, false},
		{"IPv4 envelope", udp4(t, g4, testEnvelopePort), XskEnvelope, false},
		{"IPv4 envelope, another address", udp4(t, other4, testEnvelopePort), PassOther, false},
		{"IPv4 UDP, another port", udp4(t, g4, 4793), PassGroupOther, false},
		{"IPv4 UDP, port bytes swapped", udp4(t, g4, 0xB712), PassGroupOther, false},
		{"IPv4 ICMP to a group", frame(t, eth(layers.EthernetTypeIPv4), ip4(g4, layers.IPProtocolICMPv4), payload), PassGroupOther, false},
		{"IPv4 echo request to a group", echo4(t, g4, layers.ICMPv4TypeEchoRequest), XskEcho, false},
		{"IPv4 echo request 802.1Q", echo4(t, g4, layers.ICMPv4TypeEchoRequest, tag(5)), XskEcho, false},
		{"IPv4 echo reply to a group", echo4(t, g4, layers.ICMPv4TypeEchoReply), PassGroupOther, false},
		{"IPv4 TCP to a group", frame(t, eth(layers.EthernetTypeIPv4), tcp4, payload), PassGroupOther, false},
		{"IPv4 first fragment", fragment4(t, g4, layers.IPv4MoreFragments, 0), DropGroupFragment, false},
		{"IPv4 last fragment", fragment4(t, g4, 0, 100), DropGroupFragment, false},
		{"IPv4 fragment, offset in the low byte", fragment4(t, g4, 0, 1), DropGroupFragment, false},
		{"IPv4 fragment to another address", fragment4(t, other4, layers.IPv4MoreFragments, 0), PassOther, false},
		{"IPv4, IHL 4", set(udp4(t, g4, 4791), 14, 0x44), PassTruncated, false},
		{"IPv4, IHL 15 beyond the end", set(udp4(t, g4, 4791)[:60], 14, 0x4F), DropGroupTruncated, true},
		{"IPv4 802.1Q", udp4(t, g4, 4791, tag(5)), XskRoCEv2, false},
		{"IPv4 802.1Q twice", udp4(t, g4, 4791, tag(5), tag(6)), XskRoCEv2, false},
		{"IPv4 802.1ad", qinq, XskRoCEv2, false},
		{"three tags", udp4(t, g4, 4791, tag(5), tag(6), tag(7)), PassVLANDepth, false},
		{"IPv4 802.1Q, another address", udp4(t, other4, 4791, tag(5)), PassOther, false},
		{"IPv6 RoCEv2", udp6(t, g6, 4791), XskRoCEv2, false},
		{"IPv6 RoCEv2 802.1Q", udp6(t, g6, 4791, tag(5)), XskRoCEv2, false},
		{"IPv6 RoCEv2, another address", udp6(t, other6, 4791), PassOther, false},
		{"IPv6 envelope", udp6(t, g6, testEnvelopePort), XskEnvelope, false},
		{"IPv6 UDP, another port", udp6(t, g6, 53), PassGroupOther, false},
		{"IPv6 echo request to a group", solicitation(t, g6, g6, layers.ICMPv6TypeEchoRequest), XskEcho, false},
		{"IPv6 echo reply to a group", solicitation(t, g6, g6, layers.ICMPv6TypeEchoReply), PassGroupOther, false},
		{"IPv6 fragment", extension6(t, g6, layers.IPProtocolIPv6Fragment), DropGroupFragment, false},
		{"ARP request", arp(t, layers.ARPRequest, g4), XskARP, false},
		{"ARP request 802.1Q", arp(t, layers.ARPRequest, g4, tag(5)), XskARP, false},
		{"ARP request for another address", arp(t, layers.ARPRequest, other4), PassOther, false},
		{"ARP reply to a group", arp(t, layers.ARPReply, g4), PassOther, false},
		{"ARP with IEEE 802 hardware", set(arp(t, layers.ARPRequest, g4), 15, 6), PassOther, false},
		{"ARP with 16-byte protocol addresses", set(arp(t, layers.ARPRequest, g4), 19, 16), PassOther, false},
		{"solicitation, multicast", solicitation(t, sol, g6, layers.ICMPv6TypeNeighborSolicitation), XskND, false},
		{"solicitation 802.1Q", solicitation(t, sol, g6, layers.ICMPv6TypeNeighborSolicitation, tag(5)), XskND, false},
		{"solicitation, unicast probe", solicitation(t, g6, g6, layers.ICMPv6TypeNeighborSolicitation), XskND, false},
		{"solicitation for another address", solicitation(t, sol, other6, layers.ICMPv6TypeNeighborSolicitation), PassOther, false},
		{"solicitation with a code", set(solicitation(t, sol, g6, layers.ICMPv6TypeNeighborSolicitation), 55, 1), PassOther, false},
		{"solicitation ends in the target", solicitation(t, sol, g6, layers.ICMPv6TypeNeighborSolicitation)[:77], PassOther, true},
		{"LLDP", frame(t, eth(layers.EthernetTypeLinkLayerDiscovery), payload), PassOther, false},
		{"802.3 length", frame(t, eth(layers.EthernetType(0x05DC)), payload), PassOther, false},
		{"MPLS", frame(t, eth(layers.EthernetTypeMPLSUnicast), payload), PassOther, false},
	}
	for _, p := range []layers.IPProtocol{0, 43, 51, 60, 135, 139, 140} {
		cases = append(cases, steerCase{"IPv6 extension header " + p.String(), extension6(t, g6, p), PassGroupExtension, false},
			steerCase{"IPv6 extension header to another address " + p.String(), extension6(t, other6, p), PassOther, false})
	}
	cases = append(cases, guardCases(t)...)
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
		{"IPv4, Ethernet only", f4[:14], PassTruncated, true},
		{"IPv4 header cut", f4[:33], PassTruncated, true},
		{"IPv4 header only", f4[:34], DropGroupTruncated, true},
		{"IPv4 UDP header cut", f4[:41], DropGroupTruncated, true},
		{"IPv4 UDP header only", f4[:42], XskRoCEv2, true},
		{"first tag cut", tags[:17], PassTruncated, true},
		{"second tag cut", tags[:21], PassTruncated, true},
		{"two tags only", tags[:22], PassTruncated, true},
		{"IPv6 header cut", f6[:53], PassTruncated, true},
		{"IPv6 header only", f6[:54], DropGroupTruncated, true},
		{"IPv6 UDP header cut", f6[:61], DropGroupTruncated, true},
		{"IPv6 UDP header only", f6[:62], XskRoCEv2, true},
		{"ARP cut", req[:41], PassTruncated, true},
		{"ARP only", req[:42], XskARP, true},
	}
}

// variants runs f for the program that takes frames in one buffer, and for the
// one that takes them in several.
func variants(t *testing.T, f func(t *testing.T, frags bool)) {
	t.Run("one buffer", func(t *testing.T) { f(t, false) })
	t.Run("several buffers", func(t *testing.T) { f(t, true) })
}

// loaded returns an instance of a program that is attached nowhere.
func loaded(t testing.TB, frags bool) *PortProgram {
	t.Helper()
	s := newTestSteering(t)
	return s.loadedPort(t, frags)
}

// loadedPort returns a port whose interface is that of test runs, and whose program is
// attached nowhere.
func (s *Steering) loadedPort(t testing.TB, frags bool) *PortProgram {
	t.Helper()
	p, err := s.Spare(frags)
	if err == nil {
		err = p.steer(testIfindex)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// testIfindex is the interface by which frames of test runs come.
const testIfindex = 1

// withoutSocket returns the action and the count for a frame with exit r where the RX
// queue has no socket, as in test runs.
func withoutSocket(r Reason) (action uint32, counted Reason) {
	if r >= XskRoCEv2 {
		r = DropNoSocket
	}
	if isDrop(r) {
		return xdpDrop, r
	}
	return xdpPass, r
}

// The real program, in the kernel: every frame takes the expected exit, and is counted
// for that exit alone. Test runs have RX queue 0; without a socket there, frames for
// user space are dropped as DropNoSocket.
func TestSteer(t *testing.T) {
	variants(t, func(t *testing.T, frags bool) {
		p := loaded(t, frags)
		seen := map[Reason]bool{DropNoSocket: true}
		for _, tc := range steerCases(t) {
			seen[tc.want] = true
			action, want := withoutSocket(tc.want)
			runSteer(t, p, tc, action, want)
		}
		for r := range NumReasons {
			if !seen[r] && (r < DropPortBlocked || r > DropAllowAddress) && r != FastRoCEv2 && r != FastACK { // those: TestPolicy, TestFast
				t.Errorf("no case for %s", r)
			}
		}
	})
}

// Frames of 9000 bytes, which are in several pages, take the same exits as
// short ones. The test run makes the first buffer as long as it can be.
func TestSteerSeveralBuffers(t *testing.T) {
	p := loaded(t, true)
	for _, tc := range steerCases(t) {
		if tc.cut {
			continue
		}
		tc.frame = append(bytes.Clone(tc.frame), make([]byte, 9000-len(tc.frame))...)
		action, want := withoutSocket(tc.want)
		runSteer(t, p, tc, action, want)
	}
}

// testContext is struct xdp_md for a test run; the kernel takes DataEnd for the
// length of the first buffer (since Linux 6.18; net/bpf/test_run.c).
type testContext struct{ Data, DataEnd, DataMeta, IngressIfindex, RxQueueIndex, EgressIfindex uint32 }

// The program reads the first buffer only, and never beyond its end. A frame whose
// headers are cut there is dropped, since the guard cannot read the next one: the
// frame's source address could be a group's.
func TestSteerFirstBufferOnly(t *testing.T) {
	p := loaded(t, true)
	rest := make([]byte, 5000)
	f4, f6 := udp4(t, "10.77.0.1", 4791), udp6(t, "fd00:77::1", 4791)
	for _, tc := range truncatedCases(t) {
		whole := f4
		switch first := len(tc.frame); {
		case bytes.HasPrefix(f6, tc.frame):
			whole = f6
		case !bytes.HasPrefix(f4, tc.frame):
			whole = append(bytes.Clone(tc.frame), make([]byte, 100)...) // its other headers do not matter
		case first == len(whole):
			t.Fatalf("%s: not cut", tc.name)
		}
		run := ebpf.RunOptions{
			Data: append(bytes.Clone(whole), rest...), Repeat: 1,
			Context: testContext{DataEnd: uint32(len(tc.frame))},
		}
		if tc.want == PassTruncated {
			tc.want = DropGuardHidden
		}
		action, want := withoutSocket(tc.want)
		err := runSteerWith(t, p, tc.name, &run, action, want)
		if errors.Is(err, unix.EINVAL) {
			t.Skip("this kernel cannot run a program on a first buffer of a given length (Linux 6.18 can)")
		}
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// With a socket on the RX queue the frames for user space are redirected.
func TestSteerToSocket(t *testing.T) {
	variants(t, func(t *testing.T, frags bool) {
		labtest.Enter(t)
		s := newTestSteering(t)
		l := addVeth(t, "p0", "h0")
		mtu := 1500
		if frags {
			mtu = 9000
		}
		setMTU(t, mtu, "p0", "h0")
		p, err := s.Attach(l.Attrs().Index, "p0", Auto, mtu)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if p.Frags() != frags {
			t.Fatalf("with MTU %d, frags is %v", mtu, p.Frags())
		}
		if err := errors.Join(p.SetSocket(0, boundSocket(t, l.Attrs().Index, "p0")), p.steer(testIfindex)); err != nil {
			t.Fatal(err)
		}
		for _, tc := range steerCases(t) {
			action := uint32(xdpPass)
			switch {
			case tc.want >= XskRoCEv2:
				action = xdpRedirect
			case isDrop(tc.want):
				action = xdpDrop
			}
			runSteer(t, p, tc, action, tc.want)
		}
	})
}

// runSteer runs the program of p over one frame.
func runSteer(t *testing.T, p *PortProgram, tc steerCase, action uint32, want Reason) {
	t.Helper()
	if err := runSteerWith(t, p, tc.name, &ebpf.RunOptions{Data: tc.frame, Repeat: 1}, action, want); err != nil {
		t.Errorf("%s: %v", tc.name, err)
	}
}

func runSteerWith(t *testing.T, p *PortProgram, name string, run *ebpf.RunOptions, action uint32, want Reason) error {
	t.Helper()
	before, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.program.Run(run)
	if err != nil {
		return err
	}
	after, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if got != action {
		t.Errorf("%s: XDP action %d, want %d", name, got, action)
	}
	for r := range after {
		n := after[r] - before[r]
		if Reason(r) == want && n != 1 || Reason(r) != want && n != 0 {
			t.Errorf("%s: %s counted %d frames; want 1 for %s only", name, Reason(r), n, want)
		}
	}
	return nil
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

// isDrop reports whether frames that took exit r were dropped.
func isDrop(r Reason) bool { return r >= DropGroupFragment && r < XskRoCEv2 }
