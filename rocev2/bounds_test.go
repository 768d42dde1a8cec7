// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// builders build a frame of each kind into b.
func builders(t testing.TB) map[string]func(b []byte) int {
	target := netip.MustParseAddr("fd00:9::7")
	payload := []byte("seven b")
	all := map[string]func(b []byte) int{}
	for name, p := range map[string]Path{"IPv4": v4Path(), "IPv6": v6Path()} {
		p.TOS = 0x69
		for _, op := range allOpcodes {
			data := payload
			switch {
			case !op.Is(OpPayload):
				data = nil
			case op == CNP:
				data = CNPPayload
			case op == AtomicAck, op == AtomicWrite:
				data = payload[:0:0]
				data = append(data, "eight by"...)
			}
			k := &Packet{
				Op: op, PSN: 0x123456, DestQP: 0x654321, VA: 0x1122334455667788, RKey: 0x99AABBCC, DMALen: 0xDDEEFF01,
				Imm: 0x21436587, SwapAdd: 0x0102030405060708, Compare: 0x1112131415161718, Flush: 0x31323334,
				Syndrome: 0x61, MSN: 0x414243,
			}
			all[fmt.Sprintf("%s opcode %02x", name, uint8(op))] = func(b []byte) int { return BuildPacket(b, &p, k, data) }
		}
		all[name+" UDP"] = func(b []byte) int { return BuildUDP(b, &p, 4797, payload) }
		echo := mustDecode(t, echoRequest(&p, 5))
		all[name+" echo reply"] = func(b []byte) int { n, _ := BuildEchoReply(b, echo, p.SrcMAC); return n }
	}
	four, six := v4Path(), v6Path()
	all["ARP"] = func(b []byte) int {
		return BuildARP(b, &four, &ARP{Op: ARPReply, SenderIP: four.Src, TargetMAC: four.DstMAC, TargetIP: four.Dst})
	}
	all["solicitation"] = func(b []byte) int { p := six; return BuildNeighborSolicitation(b, &p, target) }
	all["advertisement"] = func(b []byte) int { p := six; return BuildUnsolicitedAdvertisement(b, &p, target) }
	return all
}

// A builder fills exactly what it says: a buffer of that length is enough, one byte
// less is not, and what was in it before makes no difference.
func TestBuildersFillTheirBuffer(t *testing.T) {
	for name, build := range builders(t) {
		zeros, ones := make([]byte, 300), slices.Repeat([]byte{0xFF}, 300)
		n := build(zeros)
		if n == 0 || build(ones) != n || !bytes.Equal(zeros[:n], ones[:n]) {
			t.Errorf("%s: %d bytes, other ones in a used buffer", name, n)
			continue
		}
		if got := build(make([]byte, n)); got != n {
			t.Errorf("%s: %d bytes in a buffer of %d", name, got, n)
		}
		if got := build(make([]byte, n-1)); got != 0 {
			t.Errorf("%s: %d bytes in a buffer of %d", name, got, n-1)
		}
		if !bytes.Equal(ones[n:], slices.Repeat([]byte{0xFF}, 300-n)) {
			t.Errorf("%s: wrote beyond its %d bytes", name, n)
		}
	}
}

// Every opcode's extension headers are read back, and lie where the frame says.
func TestExtensionHeadersOfEveryOpcode(t *testing.T) {
	for name, build := range builders(t) {
		b := make([]byte, 300)
		f := mustDecode(t, b[:build(b)])
		if f.Kind != KindRoCE {
			continue
		}
		want := onlyItsHeaders(Packet{
			Op: f.Op, PKey: DefaultPKey, PSN: 0x123456, DestQP: 0x654321, VA: 0x1122334455667788, RKey: 0x99AABBCC, DMALen: 0xDDEEFF01,
			Imm: 0x21436587, SwapAdd: 0x0102030405060708, Compare: 0x1112131415161718, Flush: 0x31323334,
			Syndrome: 0x61, MSN: 0x414243,
		})
		if got := fieldsOf(f); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
		if !f.VerifyICRC() || !bytes.HasSuffix(f.UDPPayload()[:len(f.UDPPayload())-ICRCLen-f.Pad()], f.Payload()) || f.PayloadLen() != len(f.Payload()) {
			t.Errorf("%s: payload of %d bytes, %d in the first buffer", name, f.PayloadLen(), len(f.Payload()))
		}
	}
}

// A frame that is cut anywhere is refused, also one whose last byte alone is missing,
// and into a Frame that holds another one.
func TestDecodeRefusesEveryCut(t *testing.T) {
	used := *mustDecode(t, withTag(mustBuild(t, &Path{
		Src: v4Path().Src, Dst: v4Path().Dst,
	}, &Packet{Op: WriteOnly}, []byte("abc")), EtherTypeVLAN, 5))
	for name, build := range builders(t) {
		b := make([]byte, 300)
		b = b[:build(b)]
		f := used
		if r := Decode(b, &f); r != OK || f.Len() != len(b) {
			t.Errorf("%s: %v, %d bytes of %d", name, r, f.Len(), len(b))
		}
		if n, _ := f.VLAN(); n != 0 {
			t.Errorf("%s: %d tags", name, n)
		}
		if again := *mustDecode(t, b); again.Kind != f.Kind || again.Op != f.Op || again.payloadOff != f.payloadOff || again.l4 != f.l4 || again.pad != f.pad {
			t.Errorf("%s: decoded into a used Frame it is another one", name)
		}
		for n := range b {
			if r := Decode(b[:n], &f); r == OK || f.Kind != KindNone {
				t.Errorf("%s: %v of the first %d bytes of %d", name, r, n, len(b))
			}
		}
	}
}

// The shortest frame of each kind has nothing behind its headers.
func TestShortestFrames(t *testing.T) {
	eth := func(types ...uint16) []byte {
		b := make([]byte, 12)
		for _, et := range types {
			if len(b) > 12 {
				b = append(b, 0, 7)
			}
			b = binary.BigEndian.AppendUint16(b, et)
		}
		return b
	}
	v4 := func(hl int, proto byte) []byte {
		h := make([]byte, hl)
		h[0], h[9] = 0x40|byte(hl/4), proto
		binary.BigEndian.PutUint16(h[2:], uint16(hl))
		IPv4(h).UpdateChecksum()
		return h
	}
	v6 := func(next byte) []byte {
		h := make([]byte, IPv6Len)
		h[0], h[6] = 0x60, next
		return h
	}
	for name, c := range map[string]struct {
		b    []byte
		want Reason
		kind Kind
	}{
		"Ethernet alone":            {eth(0x88CC), ReasonNotIP, KindNone},
		"one tag":                   {eth(EtherTypeVLAN, 0x88CC), ReasonNotIP, KindNone},
		"two tags":                  {eth(EtherTypeQinQ, EtherTypeVLAN, 0x88CC), ReasonNotIP, KindNone},
		"three tags":                {eth(EtherTypeQinQ, EtherTypeVLAN, EtherTypeVLAN, 0x88CC), ReasonVLANDepth, KindNone},
		"IPv4 without payload":      {append(eth(EtherTypeIPv4), v4(20, 99)...), OK, KindOther},
		"IPv4 with options alone":   {append(eth(EtherTypeIPv4), v4(24, 99)...), OK, KindOther},
		"ICMP without a byte":       {append(eth(EtherTypeIPv4), v4(20, ProtoICMP)...), OK, KindICMP},
		"IPv6 without payload":      {append(eth(EtherTypeIPv6), v6(59)...), OK, KindOther},
		"ICMPv6 without a byte":     {append(eth(EtherTypeIPv6), v6(ProtoICMPv6)...), OK, KindICMPv6},
		"UDP over IPv4, no header":  {append(eth(EtherTypeIPv4), v4(20, ProtoUDP)...), ReasonBadUDPLength, KindNone},
		"IPv4 header of four words": {append(eth(EtherTypeIPv4), v4(16, 99)...), ReasonTruncated, KindNone},
	} {
		var f Frame
		if r := Decode(c.b, &f); r != c.want || f.Kind != c.kind {
			t.Errorf("%s: %v, kind %v; want %v, %v", name, r, f.Kind, c.want, c.kind)
			continue
		}
		if c.want != OK {
			continue
		}
		if f.PayloadLen() != 0 || len(f.Payload()) != 0 || f.UDPPayload() != nil || f.VerifyUDPChecksum() || f.PartialUDPChecksum() {
			t.Errorf("%s: payload of %d bytes, or a UDP header", name, f.PayloadLen())
		}
		before := bytes.Clone(c.b)
		if f.SetICRC(0x01020304); f.ICRC() != 0 || !bytes.Equal(before, c.b) {
			t.Errorf("%s: has an ICRC", name)
		}
		if IsNeighborSolicitation(&f) {
			t.Errorf("%s: is a solicitation", name)
		}
		if _, r := BuildEchoReply(make([]byte, 100), &f, MAC{}); r != ReasonBadEcho {
			t.Errorf("%s: an echo request, %v", name, r)
		}
	}
}

// A UDP frame is no RoCE frame: it has no ICRC to set.
func TestUDPHasNoICRC(t *testing.T) {
	p := v4Path()
	b := make([]byte, 200)
	b = b[:BuildUDP(b, &p, 4797, []byte("some bytes of payload"))]
	f, before := mustDecode(t, b), bytes.Clone(b)
	if f.SetICRC(0x01020304); f.ICRC() != 0 || !bytes.Equal(b, before) {
		t.Error("the frame has changed")
	}
	if f.PayloadLen() != 21 || string(f.Payload()) != "some bytes of payload" || string(f.UDPPayload()) != "some bytes of payload" {
		t.Errorf("payload %q of %d bytes", f.Payload(), f.PayloadLen())
	}
}

// The longest packets that IP carries are built, one byte more is not.
func TestLongestPackets(t *testing.T) {
	p, b := v4Path(), make([]byte, 70000)
	if n := BuildUDP(b, &p, 1, make([]byte, maxUDPPayload)); n != p.HeaderLen()+maxUDPPayload {
		t.Errorf("%d bytes", n)
	} else if f := mustDecode(t, b[:n]); f.PayloadLen() != maxUDPPayload {
		t.Errorf("%d bytes of payload", f.PayloadLen())
	}
	if n := BuildUDP(b, &p, 1, make([]byte, maxUDPPayload+1)); n != 0 {
		t.Errorf("%d bytes, one too many", n)
	}
	most := (maxUDPPayload - BTHLen - ICRCLen) &^ 3
	if n := BuildPacket(b, &p, &Packet{Op: SendOnly}, make([]byte, most)); n == 0 || mustDecode(t, b[:n]).PayloadLen() != most {
		t.Errorf("%d bytes for a payload of %d", n, most)
	}
	if n := BuildPacket(b, &p, &Packet{Op: SendOnly}, make([]byte, most+1)); n != 0 {
		t.Errorf("%d bytes for a payload of %d", n, most+1)
	}
	if most+BTHLen+ICRCLen < maxUDPPayload-3 {
		t.Errorf("%d is not the longest", most)
	}
}

// An address that is missing is no address of IPv6.
func TestBuildWithoutAddress(t *testing.T) {
	b := make([]byte, 200)
	for _, p := range []Path{{Src: v6Path().Src}, {Dst: v6Path().Dst}, {Src: v4Path().Src}, {Dst: v4Path().Dst}} {
		if n := BuildUDP(b, &p, 1, nil); n != 0 {
			t.Errorf("%v to %v: %d bytes", p.Src, p.Dst, n)
		}
	}
	four, six := v4Path(), v6Path()
	if n := buildND(b, &four, icmpNeighborSolicitation, 0, six.Src, 1, MAC{}); n != 0 {
		t.Errorf("a solicitation over IPv4: %d bytes", n)
	}
	if n := buildND(b, &six, icmpNeighborSolicitation, 0, four.Src, 1, MAC{}); n != 0 {
		t.Errorf("a solicitation for an IPv4 address: %d bytes", n)
	}
	for _, a := range []ARP{{SenderIP: four.Src, TargetIP: six.Src}, {SenderIP: six.Src, TargetIP: four.Src}, {SenderIP: four.Src}} {
		if n := BuildARP(b, &four, &a); n != 0 {
			t.Errorf("ARP of %v and %v: %d bytes", a.SenderIP, a.TargetIP, n)
		}
	}
}

// Opcodes with a payload of one length are refused with another, by builder and decoder.
func TestPayloadsOfOneLength(t *testing.T) {
	p := v4Path()
	for op, n := range map[Opcode]int{CNP: 16, AtomicAck: 8, AtomicWrite: 8} {
		b := mustBuild(t, &p, &Packet{Op: op}, make([]byte, n))
		for _, other := range []int{n - 4, n - 1, n + 1, n + 4} {
			if got := BuildPacket(make([]byte, 200), &p, &Packet{Op: op}, make([]byte, other)); got != 0 {
				t.Errorf("%v with %d bytes of payload: built %d", op, other, got)
			}
			c := slices.Insert(bytes.Clone(b), len(b)-ICRCLen, make([]byte, max(0, (other+3)&^3-n))...)
			if other < n {
				c = slices.Delete(bytes.Clone(b), len(b)-ICRCLen-(n-other)&^3, len(b)-ICRCLen)
			}
			BTH(c[offBTH:]).SetPad(-other & 3)
			setLens(c, len(c)-offBTH)
			if r := Decode(c, new(Frame)); r != ReasonBadBTHLength {
				t.Errorf("%v with %d bytes of payload: %v", op, other, r)
			}
		}
	}
}

// Setters change their field alone, whatever was in it.
func TestSettersChangeTheirField(t *testing.T) {
	for _, fill := range []byte{0, 0xFF} {
		head := func(n int) []byte { return slices.Repeat([]byte{fill}, n) }
		a := AETH(head(AETHLen))
		if a.Set(0x6A, 0x010203); a.Syndrome() != 0x6A || a.MSN() != 0x010203 {
			t.Errorf("AETH: %x", a)
		}
		b := BTH(head(BTHLen))
		for _, v := range []bool{true, false} {
			if b.SetFECN(v); b.FECN() != v || b.BECN() != (fill != 0) {
				t.Errorf("FECN %v: %x", v, b)
			}
			if b.SetSE(v); b.SE() != v || b.MigReq() != (fill != 0) {
				t.Errorf("SE %v: %x", v, b)
			}
		}
		i := IETH(head(IETHLen))
		if i.SetRKey(0x01020304); i.RKey() != 0x01020304 {
			t.Errorf("R_Key to invalidate: %x", i)
		}
		at := AtomicETH(head(AtomicETHLen))
		at.SetVA(0x0102030405060708)
		at.SetRKey(0x11121314)
		at.SetSwapAdd(0x2122232425262728)
		at.SetCompare(0x3132333435363738)
		if at.VA() != 0x0102030405060708 || at.RKey() != 0x11121314 || at.SwapAdd() != 0x2122232425262728 || at.Compare() != 0x3132333435363738 {
			t.Errorf("AtomicETH: %x", at)
		}
		h := IPv6(head(IPv6Len))
		if h.SetFlowLabel(0x12345); h.FlowLabel() != 0x12345 || h.TrafficClass() != fill {
			t.Errorf("flow label: %x", h)
		}
	}
	if MinPSN(0xFFFFFF, 1) != 0xFFFFFF || MinPSN(1, 0xFFFFFF) != 0xFFFFFF || MaxPSN(0xFFFFFF, 1) != 1 || MaxPSN(1, 0xFFFFFF) != 1 {
		t.Error("the lesser and the greater PSN, around 0")
	}
	if NumReasons.Text() != "" || Reason(255).Text() != "" || ReasonSplitOther.Text() == "" {
		t.Error("texts of what is no reason")
	}
}
