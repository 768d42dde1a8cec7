// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

var (
	hostMAC   = MAC{2, 0, 0, 0, 0, 0xA}
	switchMAC = MAC{2, 0, 0, 0, 0, 0xF}
)

func serialize(t testing.TB, l ...gopacket.SerializableLayer) []byte {
	t.Helper()
	s := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(s, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(s.Bytes())
}

// who-has of GroupIP is answered with the switch's MAC; bytes from outside.
func TestC15_ARP(t *testing.T) {
	req := serialize(t,
		&layers.Ethernet{SrcMAC: hostMAC[:], DstMAC: BroadcastMAC[:], EthernetType: layers.EthernetTypeDot1Q},
		&layers.Dot1Q{VLANIdentifier: 42, Type: layers.EthernetTypeARP},
		&layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
			Operation: layers.ARPRequest, SourceHwAddress: hostMAC[:], SourceProtAddress: []byte{10, 0, 0, 1},
			DstHwAddress: make([]byte, 6), DstProtAddress: []byte{10, 9, 9, 9}})
	f := mustDecode(t, append(req, make([]byte, 14)...)) // Ethernet padding
	var a ARP
	if r := DecodeARP(f, &a); r != OK {
		t.Fatal(r)
	}
	want := ARP{Op: ARPRequest, SenderMAC: hostMAC, SenderIP: netip.MustParseAddr("10.0.0.1"), TargetIP: netip.MustParseAddr("10.9.9.9")}
	if a != want {
		t.Fatalf("got %+v, want %+v", a, want)
	}
	b := make([]byte, 60)
	g := parse(t, b[:BuildARPReply(b, f, &a, switchMAC)])
	r := g.Layer(layers.LayerTypeARP).(*layers.ARP)
	if r.Operation != layers.ARPReply || !bytes.Equal(r.SourceHwAddress, switchMAC[:]) || !bytes.Equal(r.DstHwAddress, hostMAC[:]) ||
		!bytes.Equal(r.SourceProtAddress, []byte{10, 9, 9, 9}) || !bytes.Equal(r.DstProtAddress, []byte{10, 0, 0, 1}) {
		t.Errorf("reply %+v", r)
	}
	e := g.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	q, ok := g.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q)
	if MAC(e.DstMAC) != hostMAC || MAC(e.SrcMAC) != switchMAC || !ok || q.VLANIdentifier != 42 {
		t.Errorf("reply goes from %v to %v, tag %+v", e.SrcMAC, e.DstMAC, q)
	}
	// The request that we build is the one that gopacket built.
	p := Path{SrcMAC: hostMAC, DstMAC: BroadcastMAC, Tagged: true, TCI: 42}
	if n := BuildARP(b, &p, &want); !bytes.Equal(b[:n], req[:n]) || n != len(req) && n != 46 {
		t.Errorf("BuildARP\n got %x\nwant %x", b[:n], req)
	}
}

func TestARPRefuses(t *testing.T) {
	var a ARP
	p := Path{SrcMAC: hostMAC, DstMAC: BroadcastMAC}
	src := netip.MustParseAddr("10.0.0.1")
	b := make([]byte, 60)
	BuildARP(b, &p, &ARP{Op: ARPRequest, SenderIP: src, TargetIP: src})
	for o, v := range map[int]byte{0: 9, 2: 0x86, 4: 8, 5: 16, 7: 3} { // type, protocol, lengths, operation
		c := slices.Clone(b)
		c[EthernetLen+o] = v
		if r := DecodeARP(mustDecode(t, c), &a); r != ReasonBadARP {
			t.Errorf("byte %d is %d: %v", o, v, r)
		}
	}
	q := v4Path()
	if r := DecodeARP(mustDecode(t, mustBuild(t, &q, &Packet{Op: SendOnly}, nil)), &a); r != ReasonBadARP {
		t.Errorf("RoCE: %v", r)
	}
	f := mustDecode(t, withTag(withTag(b, EtherTypeVLAN, 1), EtherTypeVLAN, 2))
	if BuildARPReply(make([]byte, 90), f, &ARP{SenderIP: src, TargetIP: src}, switchMAC) != 0 ||
		BuildARP(b[:41], &p, &ARP{SenderIP: src, TargetIP: src}) != 0 || BuildARP(b, &p, &ARP{TargetIP: src}) != 0 {
		t.Error("an ARP was built that cannot be")
	}
}

// solicitation is made by gopacket; change may edit it before.
func solicitation(t testing.TB, src, dst, target string, opts layers.ICMPv6Options) []byte {
	ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: net.ParseIP(src), DstIP: net.ParseIP(dst)}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborSolicitation, 0)}
	if err := icmp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	m := MulticastMAC(netip.MustParseAddr(dst))
	return serialize(t, &layers.Ethernet{SrcMAC: hostMAC[:], DstMAC: m[:], EthernetType: layers.EthernetTypeIPv6}, ip, icmp,
		&layers.ICMPv6NeighborSolicitation{TargetAddress: net.ParseIP(target), Options: opts})
}

var hostLLA = layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: hostMAC[:]}}

const (
	ndHost, ndGroup = "fd00::1", "fd00::9:8:7:6"
	ndSolicited     = "ff02::1:ff07:6"
)

func TestC15_NeighborDiscovery(t *testing.T) {
	for _, c := range []struct {
		name, src string
		opts      layers.ICMPv6Options
		dst       string
		dstMAC    MAC
		solicited bool
	}{
		{"with link-layer address", ndHost, hostLLA, ndHost, hostMAC, true},
		{"without", ndHost, nil, ndHost, hostMAC, true},
		{"duplicate address detection", "::", nil, "ff02::1", MAC{0x33, 0x33, 0, 0, 0, 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := solicitation(t, c.src, ndSolicited, ndGroup, c.opts)
			f := mustDecode(t, req)
			var s NeighborSolicitation
			if r := DecodeNeighborSolicitation(f, &s); r != OK || !IsNeighborSolicitation(f) {
				t.Fatal(r)
			}
			if s.Target != netip.MustParseAddr(ndGroup) || s.Src != netip.MustParseAddr(c.src) || s.HasLLA != (c.opts != nil) ||
				s.HasLLA && s.SrcLLA != hostMAC {
				t.Fatalf("%+v", s)
			}
			b := make([]byte, 100)
			g := parse(t, b[:BuildNeighborAdvertisement(b, f, &s, switchMAC)])
			e := g.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
			h := g.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
			a := g.Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement)
			if MAC(e.DstMAC) != c.dstMAC || MAC(e.SrcMAC) != switchMAC || addrOf(t, h.DstIP) != netip.MustParseAddr(c.dst) ||
				addrOf(t, h.SrcIP) != s.Target || h.HopLimit != 255 {
				t.Errorf("%v -> %v, %+v", e.SrcMAC, e.DstMAC, h)
			}
			if addrOf(t, a.TargetAddress) != s.Target || a.Solicited() != c.solicited || !a.Override() || a.Router() ||
				len(a.Options) != 1 || a.Options[0].Type != layers.ICMPv6OptTargetAddress || !bytes.Equal(a.Options[0].Data, switchMAC[:]) {
				t.Errorf("advertisement %+v", a)
			}
		})
	}
}

func TestBuildNeighborSolicitation(t *testing.T) {
	want := solicitation(t, ndHost, ndSolicited, ndGroup, hostLLA)
	p := Path{SrcMAC: hostMAC, Src: netip.MustParseAddr(ndHost)}
	b := make([]byte, 100)
	if n := BuildNeighborSolicitation(b, &p, netip.MustParseAddr(ndGroup)); !bytes.Equal(b[:n], want) {
		t.Errorf("\n got %x\nwant %x", b[:n], want)
	}
	v4 := netip.MustParseAddr("10.0.0.1")
	if BuildNeighborSolicitation(b, &p, v4) != 0 || BuildNeighborSolicitation(b, &Path{Src: v4}, p.Src) != 0 ||
		BuildNeighborSolicitation(b[:85], &p, p.Src) != 0 {
		t.Error("a solicitation was built that cannot be")
	}
}

func TestNeighborSolicitationRefuses(t *testing.T) {
	icmp := EthernetLen + IPv6Len
	good := solicitation(t, ndHost, ndSolicited, ndGroup, hostLLA)
	// fix makes the checksum right again after an edit.
	fix := func(b []byte) []byte {
		h := IPv6(b[EthernetLen:])
		put16(b, icmp+2, 0)
		put16(b, icmp+2, transportChecksum(h.Src(), h.Dst(), ProtoICMPv6, b[icmp:]))
		return b
	}
	edit := func(o int, v byte) []byte { c := slices.Clone(good); c[o] = v; return fix(c) }
	wrong := slices.Clone(good)
	wrong[icmp+2] ^= 1
	short := slices.Clone(good[:icmp+20])
	put16(short, EthernetLen+4, 20)
	odd := append(slices.Clone(good), 1)
	put16(odd, EthernetLen+4, 33)
	for name, c := range map[string]struct {
		frame []byte
		want  Reason
	}{
		"checksum":               {wrong, ReasonICMPv6Checksum},
		"hop limit 254":          {edit(EthernetLen+7, 254), ReasonBadND},
		"code 1":                 {edit(icmp+1, 1), ReasonBadND},
		"advertisement":          {edit(icmp, 136), ReasonBadND},
		"multicast target":       {edit(icmp+8, 0xFF), ReasonBadND},
		"20 bytes":               {fix(short), ReasonBadND},
		"option of length 0":     {edit(icmp+25, 0), ReasonBadND},
		"option beyond the end":  {edit(icmp+25, 2), ReasonBadND},
		"half an option":         {fix(odd), ReasonBadND},
		"DAD with an address":    {solicitation(t, "::", ndSolicited, ndGroup, hostLLA), ReasonBadND},
		"DAD to another address": {solicitation(t, "::", "ff02::1", ndGroup, nil), ReasonBadND},
		"no target":              {solicitation(t, ndHost, ndSolicited, "::", nil), ReasonBadND},
	} {
		var s NeighborSolicitation
		if r := DecodeNeighborSolicitation(mustDecode(t, c.frame), &s); r != c.want || s.Target.IsValid() {
			t.Errorf("%s: %v, want %v", name, r, c.want)
		}
	}
}

func TestNeighborAdvertisementRefuses(t *testing.T) {
	target, from := netip.MustParseAddr("fd00:77::1"), netip.MustParseAddr("fd00::9")
	path := Path{SrcMAC: MAC{2, 0, 0, 0, 0, 7}, Src: target, Dst: from}
	for name, c := range map[string]struct {
		change func(icmp []byte) []byte
		frame  func(*Frame)
		want   Reason
		mac    MAC
	}{
		"an option":        {nil, nil, OK, MAC{5}},
		"no option":        {func(p []byte) []byte { return p[:ndLen] }, nil, OK, path.SrcMAC},
		"20 bytes":         {func(p []byte) []byte { return p[:20] }, nil, ReasonBadND, MAC{}},
		"a solicitation":   {func(p []byte) []byte { p[0] = icmpNeighborSolicitation; return p }, nil, ReasonBadND, MAC{}},
		"code 1":           {func(p []byte) []byte { p[1] = 1; return p }, nil, ReasonBadND, MAC{}},
		"multicast target": {func(p []byte) []byte { p[8] = 0xFF; return p }, nil, ReasonBadND, MAC{}},
		"another protocol": {nil, func(f *Frame) { f.Kind = KindUDP }, ReasonBadND, MAC{}},
		"a part":           {nil, func(f *Frame) { f.rest = 1 }, ReasonBadND, MAC{}},
	} {
		b := make([]byte, 200)
		b = b[:buildND(b, &path, icmpNeighborAdvertisement, naSolicited, target, optTargetLLA, MAC{5})]
		const icmp = EthernetLen + IPv6Len
		if c.change != nil {
			p := c.change(b[icmp:])
			b = b[:icmp+len(p)]
			put16(b, EthernetLen+4, uint16(len(p)))
			put16(p, 2, 0)
			put16(p, 2, transportChecksum(target, from, ProtoICMPv6, p))
		}
		f := mustDecode(t, b)
		if c.frame != nil {
			c.frame(f)
		}
		a := NeighborAdvertisement{Target: from, MAC: MAC{9}}
		if r := DecodeNeighborAdvertisement(f, &a); r != c.want || a.MAC != c.mac || a.Target.IsValid() != (r == OK) {
			t.Errorf("%s: %v, %+v", name, r, a)
		}
	}
}
