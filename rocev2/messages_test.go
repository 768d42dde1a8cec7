// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
)

// An ARP packet is read whole, and what is refused leaves nothing behind.
func TestARPFields(t *testing.T) {
	p := v4Path()
	want := ARP{Op: ARPReply, SenderMAC: p.SrcMAC, SenderIP: p.Src, TargetMAC: p.DstMAC, TargetIP: p.Dst}
	b := make([]byte, EthernetLen+ARPLen)
	BuildARP(b, &p, &want)
	var a ARP
	if r := DecodeARP(mustDecode(t, b), &a); r != OK || a != want {
		t.Errorf("%v: %+v, want %+v", r, a, want)
	}
	b[EthernetLen+7] = 3 // the operation
	if r := DecodeARP(mustDecode(t, b), &a); r != ReasonBadARP || a != (ARP{}) {
		t.Errorf("%v: %+v", r, a)
	}
}

// The options of a solicitation are followed to their end, and one that is not the
// sender's Ethernet address is passed over.
func TestSolicitationOptions(t *testing.T) {
	lla := []byte{optSourceLLA, 1, 2, 0, 0, 0, 0, 9}
	long := append([]byte{optSourceLLA, 2}, make([]byte, 14)...)
	other := append([]byte{14, 1}, make([]byte, 6)...) // a nonce
	for name, c := range map[string]struct {
		opts    []byte
		has, ok bool
	}{
		"none":                       {nil, false, true},
		"an address":                 {lla, true, true},
		"another option":             {other, false, true},
		"another one, an address":    {slices.Concat(other, lla), true, true},
		"an address, another one":    {slices.Concat(lla, other), true, true},
		"an address of 14 bytes":     {long, false, true},
		"one byte":                   {lla[:1], false, false},
		"two bytes":                  {lla[:2], false, false},
		"seven bytes":                {lla[:7], false, false},
		"an address, and one byte":   {append(slices.Clone(lla), 1), false, false},
		"no length":                  {[]byte{14, 0}, false, false},
		"an address, then no length": {append(slices.Clone(lla), 14, 0), false, false},
	} {
		m, has, ok := linkLayerOption(c.opts, optSourceLLA)
		if want := (MAC{2, 0, 0, 0, 0, 9}); has != c.has || ok != c.ok || has && m != want || !has && m != (MAC{}) {
			t.Errorf("%s: %v, %v, %v; want %v, %v", name, m, has, ok, c.has, c.ok)
		}
	}
}

// The type alone makes a solicitation; what follows is checked by the decoder, which
// leaves nothing of a message that it refuses.
func TestSolicitationByType(t *testing.T) {
	p := v6Path()
	b := make([]byte, 200)
	b = b[:BuildNeighborSolicitation(b, &p, p.Dst)]
	var s NeighborSolicitation
	if f := mustDecode(t, b); !IsNeighborSolicitation(f) || DecodeNeighborSolicitation(f, &s) != OK || s.Target != v6Path().Dst {
		t.Errorf("a solicitation: %+v", s)
	}
	b[len(b)-1]++
	if f := mustDecode(t, b); !IsNeighborSolicitation(f) || DecodeNeighborSolicitation(f, &s) != ReasonICMPv6Checksum || s != (NeighborSolicitation{}) {
		t.Errorf("a damaged one leaves %+v", s)
	}
	b[EthernetLen+IPv6Len] = icmpNeighborAdvertisement
	if IsNeighborSolicitation(mustDecode(t, b)) {
		t.Error("an advertisement is one")
	}
	q := v6Path()
	udp := make([]byte, 200)
	udp = udp[:BuildUDP(udp, &q, 4797, nil)]
	udp[EthernetLen+IPv6Len] = icmpNeighborSolicitation // the upper half of the source port
	if IsNeighborSolicitation(mustDecode(t, udp)) {
		t.Error("a UDP packet is one")
	}
}

// An unsolicited advertisement goes to all nodes.
func TestUnsolicitedAdvertisement(t *testing.T) {
	p := Path{SrcMAC: switchMAC, Tagged: true, TCI: 9}
	b := make([]byte, 200)
	f := mustDecode(t, b[:BuildUnsolicitedAdvertisement(b, &p, v6Path().Dst)])
	if f.Eth().Dst() != (MAC{0x33, 0x33, 0, 0, 0, 1}) || f.Eth().Src() != switchMAC || f.Dst() != netip.MustParseAddr("ff02::1") ||
		f.Src() != v6Path().Dst || f.IPv6().HopLimit() != ndHopLimit {
		t.Errorf("%x", f.Bytes())
	}
	if n, tci := f.VLAN(); n != 1 || tci != 9 {
		t.Errorf("%d tags, %d", n, tci)
	}
	if n := BuildUnsolicitedAdvertisement(b, &p, v4Path().Dst); n != 0 {
		t.Errorf("for an IPv4 address: %d bytes", n)
	}
}

// A reply has the traffic class of its request, and only a whole request is answered.
func TestEchoReplyClassAndLength(t *testing.T) {
	for _, p := range []Path{v4Path(), v6Path()} {
		p.TOS = 0xB8
		for data := -4; data <= 0; data++ {
			b := echoRequest(&p, 0)
			at := p.l2Len() + p.ipLen()
			p.putIP(b, map[bool]uint8{true: ProtoICMP, false: ProtoICMPv6}[p.Dst.Is4()], echoLen+data)
			q := b[at : at+echoLen+data]
			clear(q[2:4])
			sum := Checksum(q, 0)
			if p.Dst.Is6() {
				sum = transportChecksum(p.Src, p.Dst, ProtoICMPv6, q)
			}
			put16(b, at+2, sum)
			f := mustDecode(t, b[:at+echoLen+data])
			n, r := BuildEchoReply(make([]byte, 200), f, switchMAC)
			if data < 0 && (n != 0 || r != ReasonBadEcho) || data == 0 && (n == 0 || r != OK) {
				t.Errorf("a request of %d bytes: %d, %v", echoLen+data, n, r)
			}
		}
		out := make([]byte, 200)
		n, _ := BuildEchoReply(out, mustDecode(t, echoRequest(&p, 3)), switchMAC)
		f := mustDecode(t, out[:n])
		if f.IsIPv6() && f.IPv6().TrafficClass() != 0xB8 || f.IsIPv4() && f.IPv4().TOS() != 0xB8 {
			t.Errorf("the traffic class of the reply: %x", f.Bytes())
		}
	}
	// A frame that is no ICMP has no request, whatever its bytes.
	p := v4Path()
	b := echoRequest(&p, 8)
	b[offIP+9] = 99
	fixIPv4(b)
	if n, r := BuildEchoReply(make([]byte, 200), mustDecode(t, b), switchMAC); n != 0 || r != ReasonBadEcho {
		t.Errorf("protocol 99: %d bytes, %v", n, r)
	}
}

// A chain is refused when bytes are missing at its end, or when headers go on in its
// second buffer; which of the two, the lengths decide to the byte.
func TestChainRefusalsToTheByte(t *testing.T) {
	frames := builders(t)
	for _, name := range []string{"IPv4 opcode 0a", "IPv6 opcode 0a", "ARP"} {
		b := make([]byte, 300)
		b = withTag(b[:frames[name](b)], EtherTypeVLAN, 7)
		for n := range b {
			for at := range n + 1 {
				var f Frame
				c := cut(b[:n], at)
				need := EthernetLen // without which nothing is known of a tag
				if at >= need {
					need += VLANLen
				}
				r := DecodeChain(&c, &f)
				if r == OK || n < need && r != ReasonTruncated || n >= need && at < need && r != ReasonSplitHeaders {
					t.Fatalf("%s: %v of %d bytes of %d, cut at %d", name, r, n, len(b), at)
				}
			}
		}
		// Nothing is missing, but headers are in two buffers.
		for at := 1; at < EthernetLen+VLANLen; at++ {
			var f Frame
			c := cut(b, at)
			if r := DecodeChain(&c, &f); r != ReasonSplitHeaders {
				t.Fatalf("%s: %v, cut at %d", name, r, at)
			}
		}
	}
}

// An IP packet whose header ends the first buffer is refused for what it is, not for
// its headers; one that ends in the first buffer is a frame by itself.
func TestChainOfOtherProtocols(t *testing.T) {
	for _, p := range []Path{v4Path(), v6Path()} {
		b := make([]byte, 200)
		p.putIP(b, 99, 30)
		end := p.l2Len() + p.ipLen()
		c := cut(b[:end+30], end)
		var f Frame
		if r := DecodeChain(&c, &f); r != ReasonSplitOther {
			t.Errorf("split behind its IP header: %v", r)
		}
		c = Chain{bytes.Clone(b[:end+30]), make([]byte, 60)} // the second buffer is Ethernet padding
		if r := DecodeChain(&c, &f); r != OK || len(c) != 1 || f.Len() != end+30 || f.PayloadLen() != 30 {
			t.Errorf("with padding: %v, %d buffers, %d bytes", r, len(c), f.Len())
		}
		if n, r := BuildEchoReply(make([]byte, 200), &f, switchMAC); n != 0 || r != ReasonBadEcho {
			t.Errorf("an echo request: %d bytes, %v", n, r)
		}
	}
}
