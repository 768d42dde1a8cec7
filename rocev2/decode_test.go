// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Offsets in an untagged IPv4 frame without options.
const (
	offIP  = EthernetLen
	offUDP = offIP + IPv4Len
	offBTH = offUDP + UDPLen
)

// fixIPv4 makes the checksum of an untagged IPv4 frame right again.
func fixIPv4(b []byte) { IPv4(b[offIP:]).UpdateChecksum() }

func put16(b []byte, o int, v uint16) { binary.BigEndian.PutUint16(b[o:], v) }

// setLens makes IPv4 and UDP lengths of b those of a UDP payload of n bytes.
func setLens(b []byte, n int) {
	put16(b, offIP+2, uint16(IPv4Len+UDPLen+n))
	put16(b, offUDP+4, uint16(UDPLen+n))
	fixIPv4(b)
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		op   Opcode
		v6   bool
		edit func([]byte) []byte
		want Reason
	}{
		{"empty", SendOnly, false, func(b []byte) []byte { return nil }, ReasonTruncated},
		{"13 bytes", SendOnly, false, func(b []byte) []byte { return b[:13] }, ReasonTruncated},
		{"cut in IPv4", SendOnly, false, func(b []byte) []byte { return b[:offUDP-1] }, ReasonTruncated},
		{"last byte missing", SendOnly, false, func(b []byte) []byte { return b[:len(b)-1] }, ReasonTruncated},
		{"last byte missing, IPv6", SendOnly, true, func(b []byte) []byte { return b[:len(b)-1] }, ReasonTruncated},
		{"cut in IPv6", SendOnly, true, func(b []byte) []byte { return b[:EthernetLen+39] }, ReasonTruncated},
		{"cut in a tag", SendOnly, false, func(b []byte) []byte { return withTag(b, EtherTypeVLAN, 1)[:17] }, ReasonTruncated},
		{"three tags", SendOnly, false, func(b []byte) []byte {
			return withTag(withTag(withTag(b, EtherTypeVLAN, 1), EtherTypeVLAN, 2), EtherTypeQinQ, 3)
		}, ReasonVLANDepth},
		{"LLDP", SendOnly, false, func(b []byte) []byte { put16(b, 12, 0x88CC); return b }, ReasonNotIP},
		{"short ARP", SendOnly, false, func(b []byte) []byte { put16(b, 12, EtherTypeARP); return b[:41] }, ReasonTruncated},
		{"version 6 in IPv4", SendOnly, false, func(b []byte) []byte { b[offIP] = 0x65; return b }, ReasonBadIPHeader},
		{"version 4 in IPv6", SendOnly, true, func(b []byte) []byte { b[offIP] = 0x45; return b }, ReasonBadIPHeader},
		{"IHL 4", SendOnly, false, func(b []byte) []byte { b[offIP] = 0x44; return b }, ReasonBadIPHeader},
		{"IHL beyond total length", SendOnly, false, func(b []byte) []byte { b[offIP] = 0x4F; put16(b, offIP+2, 59); return b }, ReasonBadIPHeader},
		{"total length 19", SendOnly, false, func(b []byte) []byte { put16(b, offIP+2, 19); fixIPv4(b); return b }, ReasonBadIPHeader},
		{"total length one too many", SendOnly, false, func(b []byte) []byte { put16(b, offIP+2, uint16(len(b)-offIP+1)); fixIPv4(b); return b }, ReasonTruncated},
		{"total length 65535", SendOnly, false, func(b []byte) []byte { put16(b, offIP+2, 65535); fixIPv4(b); return b }, ReasonTruncated},
		{"checksum", SendOnly, false, func(b []byte) []byte { b[offIP+8]--; return b }, ReasonIPChecksum},
		{"first fragment", SendOnly, false, func(b []byte) []byte { put16(b, offIP+6, 0x2000); fixIPv4(b); return b }, ReasonFragment},
		{"later fragment", SendOnly, false, func(b []byte) []byte { put16(b, offIP+6, 0x0001); fixIPv4(b); return b }, ReasonFragment},
		{"IPv6 fragment", SendOnly, true, func(b []byte) []byte { b[offIP+6] = 44; return b }, ReasonFragment},
		{"IPv6 hop-by-hop", SendOnly, true, func(b []byte) []byte { b[offIP+6] = 0; return b }, ReasonIPv6Extension},
		{"IPv6 destination options", SendOnly, true, func(b []byte) []byte { b[offIP+6] = 60; return b }, ReasonIPv6Extension},
		{"UDP length short by 4", SendOnly, false, func(b []byte) []byte { put16(b, offUDP+4, uint16(len(b)-offUDP-4)); return b }, ReasonBadUDPLength},
		{"UDP length long by 4", SendOnly, false, func(b []byte) []byte { put16(b, offUDP+4, uint16(len(b)-offUDP+4)); return b }, ReasonBadUDPLength},
		{"UDP length 7", SendOnly, false, func(b []byte) []byte { put16(b, offUDP+4, 7); return b }, ReasonBadUDPLength},
		{"no room for UDP", SendOnly, false, func(b []byte) []byte { put16(b, offIP+2, 27); fixIPv4(b); return b }, ReasonBadUDPLength},
		{"UDP length, IPv6", SendOnly, true, func(b []byte) []byte { put16(b, offIP+IPv6Len+4, 8); return b }, ReasonBadUDPLength},
		{"no room for BTH", SendOnly, false, func(b []byte) []byte { setLens(b, 15); return b }, ReasonBadBTHLength},
		{"empty RoCE", SendOnly, false, func(b []byte) []byte { setLens(b, 0); return b }, ReasonBadBTHLength},
		{"no room for RETH", WriteOnly, false, func(b []byte) []byte { setLens(b, 12+15+4); return b }, ReasonBadBTHLength},
		{"no room for AtomicETH", CompareSwap, false, func(b []byte) []byte { setLens(b, 12+24+4); return b }, ReasonBadBTHLength},
		{"TVer 1", SendOnly, false, func(b []byte) []byte { b[offBTH+1] |= 1; return b }, ReasonBadTVer},
		{"C14 opcode 0x15", SendOnly, false, func(b []byte) []byte { b[offBTH] = 0x15; return b }, ReasonUnknownOpcode},
		{"opcode UD SEND_ONLY", SendOnly, false, func(b []byte) []byte { b[offBTH] = 0x64; return b }, ReasonUnknownOpcode},
		{"payload not of whole words", SendOnly, false, func(b []byte) []byte { setLens(b, 12+7+4); return b }, ReasonBadPad},
		{"pad without payload", SendOnly, false, func(b []byte) []byte { setLens(b, 16); BTH(b[offBTH:]).SetPad(1); return b }, ReasonBadPad},
		{"payload in ACK", SendOnly, false, func(b []byte) []byte { b[offBTH] = byte(Acknowledge); return b }, ReasonBadBTHLength},
		{"payload in READ_REQUEST", WriteOnly, false, func(b []byte) []byte { b[offBTH] = byte(ReadRequest); return b }, ReasonBadBTHLength},
		{"CNP of 8 bytes", SendOnly, false, func(b []byte) []byte { b[offBTH] = byte(CNP); return b }, ReasonBadBTHLength},
		{"ATOMIC_WRITE of 5 bytes", WriteOnly, false, func(b []byte) []byte { b[offBTH] = byte(AtomicWrite); return b }, ReasonBadBTHLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := v4Path()
			if c.v6 {
				p = v6Path()
			}
			payload := []byte("hello")
			if !c.op.Is(OpPayload) {
				payload = nil
			}
			b := mustBuild(t, &p, &Packet{Op: c.op, DestQP: 0x100}, payload)
			mustDecode(t, b)
			f := Frame{Kind: KindRoCE}
			if r := Decode(c.edit(b), &f); r != c.want {
				t.Fatalf("got %v, want %v", r, c.want)
			}
			if f.Kind != KindNone || f.Bytes() != nil {
				t.Error("the refused frame is not zero")
			}
			useAll(&f)
		})
	}
}

// Lengths come from IP and UDP: a zero-length SEND_ONLY is 58 bytes long and
// padded to 60 by Ethernet.
func TestC8_EthernetPadding(t *testing.T) {
	for name, p := range map[string]Path{"v4": v4Path(), "v6": v6Path()} {
		b := mustBuild(t, &p, &Packet{Op: SendOnly, DestQP: 0x100, PSN: 7}, nil)
		if name == "v4" && len(b) != 58 {
			t.Fatalf("a zero-length SEND_ONLY is %d bytes long", len(b))
		}
		padded := append(slices.Clone(b), 0xAA, 0x55, 0xAA)
		f := mustDecode(t, padded)
		if !bytes.Equal(f.Bytes(), b) || f.PayloadLen() != 0 || !f.VerifyICRC() {
			t.Errorf("%s: %d bytes, payload %d, ICRC %v", name, f.Len(), f.PayloadLen(), f.VerifyICRC())
		}
		if f.IsIPv4() && (f.IPv4().TotalLen() != 44 || f.UDP().Len() != 24) {
			t.Error("lengths changed")
		}
	}
}

func TestDecodeKinds(t *testing.T) {
	p4, p6 := v4Path(), v6Path()
	b := make([]byte, 200)
	for _, p := range []*Path{&p4, &p6} {
		f := mustDecode(t, b[:BuildUDP(b, p, 1234, []byte("envelope"))])
		if f.Kind != KindUDP || string(f.UDPPayload()) != "envelope" || string(f.Payload()) != "envelope" {
			t.Errorf("UDP: %v %q", f.Kind, f.UDPPayload())
		}
		if f.BTH() != nil || f.RETH() != nil || f.ICRC() != 0 || f.VerifyICRC() || f.ComputeICRC() != 0 || f.Tail() != 0 {
			t.Error("UDP has RoCE headers")
		}
	}
	n := BuildUDP(b, &p4, 1234, []byte("x"))
	b[offIP+9] = 6
	fixIPv4(b)
	if f := mustDecode(t, b[:n]); f.Kind != KindOther || len(f.Payload()) != 9 || f.UDP() != nil || f.Src() != p4.Src {
		t.Errorf("TCP: %v, %d bytes", f.Kind, len(f.Payload()))
	}
	n = BuildUDP(b, &p6, 1234, []byte("x"))
	b[offIP+6] = 6
	if f := mustDecode(t, b[:n]); f.Kind != KindOther || f.Dst() != p6.Dst {
		t.Errorf("TCP over IPv6: %v", f.Kind)
	}
	for k := KindNone; k <= KindOther; k++ {
		if (k.String() == "none") != (k == KindNone) {
			t.Errorf("kind %d is called %s", k, k)
		}
	}
}

// What is built is read back field by field, for every opcode.
func TestBuildDecodeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6 := rapid.Bool().Draw(t, "v6")
		p, k := drawPath(t, v6), drawPacket(t)
		payload := drawPayload(t, k.Op)
		b := make([]byte, PacketLen(&p, k.Op, len(payload))+3)
		n := BuildPacket(b, &p, &k, payload)
		f := mustDecode(t, b)
		if n != len(b)-3 || f.Len() != n || f.Op != k.Op || !bytes.Equal(f.Payload(), payload) || !f.VerifyICRC() {
			t.Fatalf("built %d bytes, decoded %d, %v", n, f.Len(), f.Op)
		}
		if f.Eth().Src() != p.SrcMAC || f.Eth().Dst() != p.DstMAC || f.Src() != p.Src || f.Dst() != p.Dst {
			t.Fatal("addresses differ")
		}
		if tags, tci := f.VLAN(); p.Tagged != (tags == 1) || p.Tagged && tci != p.TCI {
			t.Fatal("VLAN differs")
		}
		if v6 && (f.IPv6().TrafficClass() != p.TOS || f.IPv6().HopLimit() != p.ttl() || f.IPv6().FlowLabel() != p.FlowLabel) ||
			!v6 && (f.IPv4().TOS() != p.TOS || f.IPv4().TTL() != p.ttl() || f.IPv4().ID() != p.ID) {
			t.Fatal("IP header differs")
		}
		if f.UDP().SrcPort() != p.SrcPort || f.UDP().DstPort() != UDPPort || f.UDP().Checksum() != 0 {
			t.Fatal("UDP header differs")
		}
		if f.Pad() != -len(payload)&3 {
			t.Fatalf("pad %d", f.Pad())
		}
		if got, want := fieldsOf(f), onlyItsHeaders(k); got != want {
			t.Fatalf("\n got %+v\nwant %+v", got, want)
		}
	})
}

// fieldsOf reads a Packet back from a frame.
func fieldsOf(f *Frame) Packet {
	b := f.BTH()
	k := Packet{Op: b.Opcode(), SE: b.SE(), MigReq: b.MigReq(), AckReq: b.AckReq(), BECN: b.BECN(), PKey: b.PKey(),
		DestQP: b.DestQP(), PSN: b.PSN()}
	if h := f.FETH(); h != nil {
		k.Flush = binary.BigEndian.Uint32(h)
	}
	if h := f.RETH(); h != nil {
		k.VA, k.RKey, k.DMALen = h.VA(), h.RKey(), h.DMALen()
	}
	if h := f.AETH(); h != nil {
		k.Syndrome, k.MSN = h.Syndrome(), h.MSN()
	}
	if h := f.ImmDt(); h != nil {
		k.Imm = h.Data()
	}
	if h := f.IETH(); h != nil {
		k.RKey = h.RKey()
	}
	if h := f.AtomicETH(); h != nil {
		k.VA, k.RKey, k.SwapAdd, k.Compare = h.VA(), h.RKey(), h.SwapAdd(), h.Compare()
	}
	return k
}

// onlyItsHeaders clears the fields of headers that k.Op does not have, by a
// list of its own.
func onlyItsHeaders(k Packet) Packet {
	w := Packet{Op: k.Op, SE: k.SE, MigReq: k.MigReq, AckReq: k.AckReq, BECN: k.BECN, PKey: k.PKey, DestQP: k.DestQP, PSN: k.PSN}
	switch k.Op {
	case WriteFirst, WriteOnly, WriteOnlyImm, ReadRequest, Flush, AtomicWrite:
		w.VA, w.RKey, w.DMALen = k.VA, k.RKey, k.DMALen
	case CompareSwap, FetchAdd:
		w.VA, w.RKey, w.SwapAdd, w.Compare = k.VA, k.RKey, k.SwapAdd, k.Compare
	case SendLastInv, SendOnlyInv:
		w.RKey = k.RKey
	case ReadRespFirst, ReadRespLast, ReadRespOnly, Acknowledge, AtomicAck:
		w.Syndrome, w.MSN = k.Syndrome, k.MSN
	}
	switch k.Op {
	case SendLastImm, SendOnlyImm, WriteLastImm, WriteOnlyImm:
		w.Imm = k.Imm
	case Flush:
		w.Flush = k.Flush
	}
	return w
}

func TestBuildRefuses(t *testing.T) {
	p, mixed := v4Path(), v4Path()
	mixed.Src = v6Path().Src
	b := make([]byte, 70000)
	k := &Packet{Op: SendOnly}
	for name, n := range map[string]int{
		"short buffer":       BuildPacket(b[:57], &p, k, nil),
		"unknown opcode":     BuildPacket(b, &p, &Packet{Op: 0x15}, nil),
		"two families":       BuildPacket(b, &mixed, k, nil),
		"no addresses":       BuildPacket(b, &Path{}, k, nil),
		"payload in ACK":     BuildPacket(b, &p, &Packet{Op: Acknowledge}, []byte{1}),
		"CNP without body":   BuildPacket(b, &p, &Packet{Op: CNP}, nil),
		"too long":           BuildPacket(b, &p, k, make([]byte, 65500)),
		"UDP, short buffer":  BuildUDP(b[:41], &p, 1, nil),
		"UDP, too long":      BuildUDP(b, &p, 1, make([]byte, 65508)),
		"UDP, two families":  BuildUDP(b, &mixed, 1, nil),
		"ACK, short buffer":  BuildAck(b[:61], &p, 1, 1, SyndromeACK, 1, false),
		"CNP, short buffer":  BuildCNP(b[:73], &p, 1),
		"no address at all ": BuildCNP(b, &Path{}, 1),
	} {
		if n != 0 {
			t.Errorf("%s: built %d bytes", name, n)
		}
	}
	// The payload may already be in its place.
	copy(b[offBTH+BTHLen:], "in place")
	n := BuildPacket(b, &p, k, b[offBTH+BTHLen:offBTH+BTHLen+8])
	if f := mustDecode(t, b[:n]); string(f.Payload()) != "in place" {
		t.Errorf("payload in place became %q", f.Payload())
	}
}

func TestReasonNames(t *testing.T) {
	seen := map[string]bool{}
	for r := OK; r < NumReasons; r++ {
		if s := r.String(); s == "" || seen[s] || s == NumReasons.String() || r.Text() == "" {
			t.Errorf("reason %d is called %q: %q", r, s, r.Text())
		}
		seen[r.String()] = true
	}
}
