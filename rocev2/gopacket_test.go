// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"
)

// parse reads b with gopacket, so that the builders do not only agree with our
// own decode, and checks every checksum that it knows.
func parse(t rapid.TB, b []byte) gopacket.Packet {
	t.Helper()
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("gopacket: %v in %x", e.Error(), b)
	}
	if l, ok := p.TransportLayer().(*layers.UDP); ok {
		if err := l.SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
			t.Fatal(err)
		}
	}
	if l, ok := p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6); ok {
		if err := l.SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
			t.Fatal(err)
		}
	}
	err, bad := p.VerifyChecksums()
	if err != nil || len(bad) > 0 {
		t.Fatalf("gopacket: checksums: %v %v", err, bad)
	}
	return p
}

func addrOf(t rapid.TB, ip []byte) netip.Addr {
	a, ok := netip.AddrFromSlice(ip)
	if !ok {
		t.Fatalf("no address: %x", ip)
	}
	return a
}

// checkPath compares the layers up to UDP with p.
func checkPath(t rapid.TB, g gopacket.Packet, p *Path, udpPayload int) {
	e := g.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	if MAC(e.SrcMAC) != p.SrcMAC || MAC(e.DstMAC) != p.DstMAC {
		t.Fatalf("MACs %v %v", e.SrcMAC, e.DstMAC)
	}
	if q, ok := g.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q); ok != p.Tagged ||
		ok && (q.VLANIdentifier != p.TCI&0xFFF || uint16(q.Priority) != p.TCI>>13) {
		t.Fatalf("tag %+v", q)
	}
	if p.Dst.Is4() {
		h := g.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if addrOf(t, h.SrcIP) != p.Src || addrOf(t, h.DstIP) != p.Dst || h.TOS != p.TOS || h.TTL != p.ttl() || h.Id != p.ID ||
			h.Flags != layers.IPv4DontFragment || int(h.Length) != 28+udpPayload || h.Protocol != layers.IPProtocolUDP {
			t.Fatalf("IPv4 %+v", h)
		}
	} else {
		h := g.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
		if addrOf(t, h.SrcIP) != p.Src || addrOf(t, h.DstIP) != p.Dst || h.TrafficClass != p.TOS || h.HopLimit != p.ttl() ||
			h.FlowLabel != p.FlowLabel || int(h.Length) != 8+udpPayload || h.NextHeader != layers.IPProtocolUDP {
			t.Fatalf("IPv6 %+v", h)
		}
	}
	if u := g.Layer(layers.LayerTypeUDP).(*layers.UDP); uint16(u.SrcPort) != p.SrcPort || int(u.Length) != 8+udpPayload {
		t.Fatalf("UDP %+v", u)
	}
}

func TestBuiltPacketsInGopacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6 := rapid.Bool().Draw(t, "v6")
		p, k := drawPath(t, v6), drawPacket(t)
		p.SrcPort |= 0xC000 // gopacket reads well-known source ports further
		payload := drawPayload(t, k.Op)
		b := make([]byte, PacketLen(&p, k.Op, len(payload)))
		BuildPacket(b, &p, &k, payload)
		n := len(b) - p.HeaderLen()
		if v6 {
			// gopacket refuses checksum 0 over IPv6, which RoCEv2 is (and RFC
			// 6935 lets a tunnel be): give it a right one.
			f := mustDecode(t, b)
			f.UDP().SetChecksum(transportChecksum(p.Src, p.Dst, ProtoUDP, b[f.l4:]))
		}
		checkPath(t, parse(t, b), &p, n)
	})
}

func TestBuiltUDPInGopacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPath(t, rapid.Bool().Draw(t, "v6"))
		p.SrcPort |= 0xC000
		payload := rapid.SliceOfN(rapid.Byte(), 0, 1472).Draw(t, "payload")
		b := make([]byte, 1600)
		n := BuildUDP(b, &p, 20000, payload) // a port that gopacket parses no further
		g := parse(t, b[:n])
		checkPath(t, g, &p, len(payload))
		if u := g.Layer(layers.LayerTypeUDP).(*layers.UDP); u.Checksum == 0 || !bytes.Equal(u.Payload, payload) {
			t.Fatalf("checksum %04x, payload %x", u.Checksum, u.Payload)
		}
		if f := mustDecode(t, b[:n]); !f.VerifyUDPChecksum() || !bytes.Equal(f.UDPPayload(), payload) {
			t.Fatal("we do not agree with ourselves")
		}
	})
}

// The other way round: what gopacket writes, options and all, we read.
func TestGopacketPacketsDecode(t *testing.T) {
	eth := &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: layers.EthernetTypeQinQ}
	outer := &layers.Dot1Q{VLANIdentifier: 10, Priority: 3, Type: layers.EthernetTypeDot1Q}
	inner := &layers.Dot1Q{VLANIdentifier: 20, Type: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, TTL: 9, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2},
		Options: []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}}}
	udp := &layers.UDP{SrcPort: 5, DstPort: 4242}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	s := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(s, opts, eth, outer, inner, ip, udp, gopacket.Payload("hello")); err != nil {
		t.Fatal(err)
	}
	f := mustDecode(t, s.Bytes())
	n, tci := f.VLAN()
	if n != 2 || tci != 3<<13|10 || f.VLANTag(1).VID() != 20 || f.VLANTag(1).EtherType() != EtherTypeIPv4 || f.VLANTag(2) != nil {
		t.Errorf("%d tags, TCI %04x", n, tci)
	}
	if f.IPv4().HeaderLen() != 24 || f.Kind != KindUDP || string(f.UDPPayload()) != "hello" || !f.VerifyUDPChecksum() {
		t.Errorf("header %d bytes, kind %v, payload %q", f.IPv4().HeaderLen(), f.Kind, f.UDPPayload())
	}
}
