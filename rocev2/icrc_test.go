// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestShiftAgainstZeroBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.Uint32().Draw(t, "c")
		n := rapid.OneOf(rapid.IntRange(0, 9000), rapid.SampledFrom([]int{1024, 4096, 4183, 65535})).Draw(t, "n")
		want := c
		for range n {
			for range 8 {
				want = mulX(want)
			}
		}
		if got := Shift(c, n); got != want {
			t.Fatalf("Shift %08x, want %08x", got, want)
		}
		if got := NewOperator(n).Apply(c); got != want {
			t.Fatalf("Operator %08x, want %08x", got, want)
		}
		z := &Operators{}
		z.Build(n &^ 3)
		if got := z.Shift(c, n); got != want {
			t.Fatalf("Operators %08x, want %08x", got, want)
		}
	})
}

func TestOperatorsBuild(t *testing.T) {
	z := &Operators{}
	z.Build(-4)
	z.Build(6)
	if len(z.byLength) != 0 || z.Has(0) || z.Has(-4) {
		t.Fatal("a family has operators that cannot be")
	}
	for n := 1024; n < 1052; n += 4 {
		z.Build(n)
	}
	for n := 1024; n < 1052; n += 4 {
		if !z.Has(n) {
			t.Errorf("no operator of %d bytes", n)
		}
	}
	if z.Has(1020) || z.Has(1052) || z.Has(1025) {
		t.Error("more operators than asked for")
	}
	if got, want := z.byLength[256].Apply(12345), Shift(12345, 1024); got != want {
		t.Errorf("operator of 1024 bytes: %08x, want %08x", got, want)
	}
}

// The word-wise ICRC against the standard's definition.
func TestComputeICRCAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, _ := drawFrame(t)
		if got, want := f.ComputeICRC(), referenceICRC(f.L3()); got != want || !f.VerifyICRC() {
			t.Fatalf("ICRC %08x, reference %08x", got, want)
		}
		i := rapid.IntRange(f.L3Offset()+12, f.Len()-1).Draw(t, "byte")
		masked := f.IsIPv6() && i < f.L3Offset()+8 ||
			i == int(f.l4)+6 || i == int(f.l4)+7 || i == int(f.l4)+UDPLen+4
		f.buf[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if f.VerifyICRC() != masked {
			t.Fatalf("flip of byte %d: ICRC verifies: %v", i, !masked)
		}
	})
}

// drawFrame draws a frame with everything Decode accepts.
func drawFrame(t *rapid.T) (*Frame, Packet) {
	v6 := rapid.Bool().Draw(t, "v6")
	p, k := drawPath(t, v6), drawPacket(t)
	payload := drawPayload(t, k.Op)
	b := make([]byte, PacketLen(&p, k.Op, len(payload)))
	if n := BuildPacket(b, &p, &k, payload); n != len(b) {
		t.Fatalf("BuildPacket wrote %d of %d bytes", n, len(b))
	}
	if !v6 {
		if w := rapid.IntRange(0, 10).Draw(t, "options"); w > 0 {
			b = withOptions(t, b, w)
		}
	}
	if rapid.Bool().Draw(t, "second tag") {
		b = withTag(b, EtherTypeQinQ, 7)
	}
	return mustDecode(t, b), k
}

// rewrite does to frame f what a switch does, with random values, and returns
// the ICRC by all incremental ways.
func rewrite(t *rapid.T, z *Operators, f *Frame) (byLeg, byHeader uint32) {
	old := mustDecode(t, slices.Clone(f.Bytes()))
	icrc := f.ICRC()
	src, dst := drawAddr(t, f.IsIPv6(), "src'"), drawAddr(t, f.IsIPv6(), "dst'")
	opt := 0
	if f.IsIPv6() {
		f.IPv6().SetSrc(src)
		f.IPv6().SetDst(dst)
		f.IPv6().SetHopLimit(rapid.Byte().Draw(t, "hop'"))
		f.IPv6().SetTrafficClass(rapid.Byte().Draw(t, "class'"))
		f.IPv6().SetFlowLabel(rapid.Uint32().Draw(t, "flow'"))
	} else {
		h := f.IPv4()
		opt = h.HeaderLen() - IPv4Len
		h.SetSrc(src)
		h.SetDst(dst)
		h.SetTTL(rapid.Byte().Draw(t, "ttl'"))
		h.SetTOS(rapid.Byte().Draw(t, "tos'"))
		h.UpdateChecksum()
	}
	f.UDP().SetChecksum(rapid.Uint16().Draw(t, "csum'"))
	b, ob := f.BTH(), old.BTH()
	b.SetBECN(rapid.Bool().Draw(t, "becn'"))
	b.SetFECN(rapid.Bool().Draw(t, "fecn'"))
	b.SetDestQP(QPN(rapid.Uint32Range(0, PSNMask).Draw(t, "qpn'")))
	b.SetPSN(PSN(rapid.Uint32Range(0, PSNMask).Draw(t, "psn'")))
	b.SetAckReq(rapid.Bool().Draw(t, "ackreq'"))

	fs := z.Fields(f.Op.ExtLen(), f.Tail())
	leg := LegDelta(old.Src(), src, old.Dst(), dst, ob.DestQP(), b.DestQP(), opt)
	d := fs.PSN(leg ^ DiffBTH2(ob.PSN(), b.PSN(), ob.AckReq() != b.AckReq()))
	if r := f.RETH(); r != nil && f.Op != Flush {
		va, key := r.VA(), r.RKey()
		r.SetVA(rapid.Uint64().Draw(t, "va'"))
		r.SetRKey(rapid.Uint32().Draw(t, "rkey'"))
		d ^= fs.RETH(va, r.VA(), key, r.RKey())
	}
	if a := f.AETH(); a != nil {
		o := uint32(a.Syndrome())<<24 | uint32(a.MSN())
		a.Set(Syndrome(rapid.Byte().Draw(t, "syn'")), MSN(rapid.Uint32().Draw(t, "msn'")))
		d ^= fs.Ext(0, Diff32(o, uint32(a.Syndrome())<<24|uint32(a.MSN())))
	}
	if i := f.IETH(); i != nil {
		o := i.RKey()
		i.SetRKey(rapid.Uint32().Draw(t, "ieth'"))
		d ^= fs.Ext(0, Diff32(o, i.RKey()))
	}
	hd, ok := z.HeaderDelta(old, f)
	if !ok {
		t.Fatal("HeaderDelta refuses frames of one shape")
	}
	return icrc ^ d, icrc ^ hd
}

func testIncremental(t *testing.T, z *Operators) {
	rapid.Check(t, func(t *rapid.T) {
		f, _ := drawFrame(t)
		byLeg, byHeader := rewrite(t, z, f)
		if want := referenceICRC(f.L3()); byLeg != want || byHeader != want {
			t.Fatalf("incremental %08x, by headers %08x, full %08x", byLeg, byHeader, want)
		}
	})
}

// Random rewrites of every opcode, address family, VLAN depth, IPv4 option
// length and payload of 0..4096 bytes, by tables, without, and with some.
func TestC4_IncrementalEqualsFull(t *testing.T) {
	t.Run("tables", func(t *testing.T) { testIncremental(t, NewOperators(MaxShift)) })
	t.Run("fallback", func(t *testing.T) { testIncremental(t, &Operators{}) })
	t.Run("partial", func(t *testing.T) {
		z := &Operators{}
		for n := 0; n < MaxShift; n += 12 {
			z.Build(n)
		}
		testIncremental(t, z)
	})
}

// Every payload length from 0 to 4096, full and incremental.
func TestEveryLength(t *testing.T) {
	z := NewOperators(MaxShift)
	payload := make([]byte, 4096)
	for i := range payload {
		payload[i] = byte(i*i>>3 + i)
	}
	b := make([]byte, 4300)
	for _, p := range []Path{v4Path(), v6Path()} {
		q := p
		q.Src, q.Dst = p.Dst, p.Src
		leg := LegDelta(p.Src, q.Src, p.Dst, q.Dst, 0x123456, 0xABCDEF, 0)
		for n := range len(payload) + 1 {
			k := Packet{Op: WriteOnly, DestQP: 0x123456, PSN: PSN(n), VA: 0x7f0000001000, RKey: 1}
			f := mustDecode(t, b[:BuildPacket(b, &p, &k, payload[:n])])
			fs := z.Fields(f.Op.ExtLen(), f.Tail())
			c := f.ICRC() ^ fs.PSN(leg^DiffBTH2(k.PSN, 0xFFFFFF, true)) ^ fs.RETH(k.VA, 0x6f0012345678, k.RKey, 0xFFFF0000)
			k.DestQP, k.PSN, k.AckReq, k.VA, k.RKey = 0xABCDEF, 0xFFFFFF, true, 0x6f0012345678, 0xFFFF0000
			f = mustDecode(t, b[:BuildPacket(b, &q, &k, payload[:n])])
			if want := referenceICRC(f.L3()); c != want || f.ICRC() != want {
				t.Fatalf("payload %d: incremental %08x, full %08x, reference %08x", n, c, f.ICRC(), want)
			}
		}
	}
}

func TestC5_MaskedFieldsKeepICRC(t *testing.T) {
	for name, p := range map[string]Path{"v4": v4Path(), "v6": v6Path()} {
		t.Run(name, func(t *testing.T) {
			p.TOS = uint8(ECT0)
			f := mustDecode(t, mustBuild(t, &p, &Packet{Op: SendOnly, PSN: 1, DestQP: 0x100}, []byte("hello")))
			f.SetECN(CE)
			f.BTH().SetFECN(true)
			f.UDP().SetChecksum(0xABCD)
			if f.IsIPv6() {
				f.IPv6().SetHopLimit(f.IPv6().HopLimit() - 1)
			} else {
				h := f.IPv4()
				old := uint16(h.TTL())<<8 | uint16(h.Protocol())
				h.SetTTL(h.TTL() - 1)
				h.SetChecksum(ChecksumUpdate16(h.Checksum(), old, old-0x100))
				if Checksum(h, 0) != 0 {
					t.Error("IPv4 checksum is wrong after CE and TTL")
				}
			}
			if !f.VerifyICRC() || f.ECN() != CE {
				t.Errorf("ICRC verifies: %v, ECN %d", f.VerifyICRC(), f.ECN())
			}
		})
	}
}

func TestC6_CorruptionStaysVisible(t *testing.T) {
	z := NewOperators(MaxShift)
	rapid.Check(t, func(t *rapid.T) {
		f, _ := drawFrame(t)
		if len(f.Payload()) == 0 {
			t.Skip("no payload")
		}
		f.Payload()[rapid.IntRange(0, f.PayloadLen()-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		c, _ := rewrite(t, z, f)
		f.SetICRC(c)
		if f.VerifyICRC() {
			t.Fatal("the rewrite laundered a flipped bit")
		}
	})
}

func TestC7_VLANOutsideICRC(t *testing.T) {
	p := v4Path()
	b := mustBuild(t, &p, &Packet{Op: SendOnly}, []byte("hello"))
	want := mustDecode(t, b).ICRC()
	for tags := range 3 {
		f := mustDecode(t, b)
		if n, tci := f.VLAN(); n != tags || tags > 0 && tci != 0x2000+uint16(tags) {
			t.Errorf("%d tags read as %d, TCI %04x", tags, n, tci)
		}
		if f.ComputeICRC() != want || !f.VerifyICRC() {
			t.Errorf("%d tags: ICRC %08x, want %08x", tags, f.ComputeICRC(), want)
		}
		b = withTag(b, EtherTypeVLAN, 0x2001+uint16(tags))
	}
	p.Tagged, p.TCI = true, 5
	if f := mustDecode(t, mustBuild(t, &p, &Packet{Op: SendOnly}, []byte("hello"))); f.ICRC() != want {
		t.Errorf("built with a tag: ICRC %08x, want %08x", f.ICRC(), want)
	}
}

func TestC10_RewriteKeepsIdentity(t *testing.T) {
	p := v4Path()
	f := mustDecode(t, mustBuild(t, &p, &Packet{Op: SendOnly}, []byte("x")))
	h := f.IPv4()
	h.SetSrc(p.Dst)
	h.SetDst(p.Src)
	h.UpdateChecksum()
	f.BTH().SetPSN(9)
	f.BTH().SetDestQP(0x77)
	if h.ID() != p.ID || h.FlagsFragment() != ipv4DF || f.UDP().SrcPort() != p.SrcPort || h.TotalLen() != f.Len()-EthernetLen {
		t.Fatal("a rewrite touched id, DF, source port or length")
	}
}

// TestPartialUDPChecksum: the value that Linux leaves for a device to finish, by
// hand, and nothing else. TestEnvelopesOfHostsWithChecksumOffload lets the kernel make it.
func TestPartialUDPChecksum(t *testing.T) {
	for _, c := range []struct {
		src, dst string
		data     string
		partial  uint16
	}{
		// 0a00+0001 + 0a00+0002 + 0011 + 000c
		{"10.0.0.1", "10.0.0.2", "abcd", 0x1420},
		// c0a8+0001 + c0a8+00ff + 0011 + 0009 = 1826a: the carry comes back
		{"192.168.0.1", "192.168.0.255", "x", 0x826b},
		// ffda+0000 + 0000+0002 + 0011 + 0012 = ffff, which is not folded to 0
		{"255.218.0.0", "0.0.0.2", "0123456789", 0xffff},
		// fd77+0001 + fd77+6c65+0001 + 0011 + 000c = 26772
		{"fd77::1", "fd77::6c65:1", "abcd", 0x6774},
	} {
		p := Path{Src: netip.MustParseAddr(c.src), Dst: netip.MustParseAddr(c.dst), SrcPort: 4797}
		b := make([]byte, 200)
		f := mustDecode(t, b[:BuildUDP(b, &p, 4797, []byte(c.data))])
		if f.PartialUDPChecksum() || !f.VerifyUDPChecksum() {
			t.Errorf("%s: a complete checksum %04x is taken for a partial one", c.src, f.UDP().Checksum())
		}
		for sum := range 1 << 16 {
			f.UDP().SetChecksum(uint16(sum))
			if got, want := f.PartialUDPChecksum(), uint16(sum) == c.partial; got != want {
				t.Errorf("%s to %s: checksum %04x is partial: %v, want %v", c.src, c.dst, sum, got, want)
			}
		}
		if f.UDP().SetChecksum(c.partial); f.VerifyUDPChecksum() {
			t.Errorf("%s: the partial checksum verifies as a complete one", c.src)
		}
	}
}

func TestC11_UDPChecksum(t *testing.T) {
	for name, p := range map[string]Path{"v4": v4Path(), "v6": v6Path()} {
		b := mustBuild(t, &p, &Packet{Op: SendOnly}, []byte("hello"))
		f := mustDecode(t, b)
		if f.UDP().Checksum() != 0 || !f.VerifyUDPChecksum() {
			t.Errorf("%s: built with checksum %04x", name, f.UDP().Checksum())
		}
		u := b[f.l4:]
		f.UDP().SetChecksum(transportChecksum(p.Src, p.Dst, ProtoUDP, u))
		if f.UDP().Checksum() == 0 || !f.VerifyUDPChecksum() || !f.VerifyICRC() {
			t.Errorf("%s: a right checksum does not verify", name)
		}
		f.UDP().SetChecksum(f.UDP().Checksum() ^ 0x0100)
		if f.VerifyUDPChecksum() {
			t.Errorf("%s: a wrong checksum verifies", name)
		}
		f.UDP().SetChecksum(0)
		if !f.VerifyUDPChecksum() || !f.VerifyICRC() {
			t.Errorf("%s: checksum 0 is refused", name)
		}
	}
}

// A datagram that is not RoCEv2, an envelope, may lack a checksum over IPv4 and not
// over IPv6 (docs/PROTOCOL.md §1).
func TestAbsentUDPChecksumOfOthers(t *testing.T) {
	for name, p := range map[string]Path{"v4": v4Path(), "v6": v6Path()} {
		b := make([]byte, 256)
		b = b[:BuildUDP(b, &p, 4797, []byte("hello"))]
		f := mustDecode(t, b)
		if !f.VerifyUDPChecksum() || f.UDP().Checksum() == 0 {
			t.Errorf("%s: built with a checksum that does not verify", name)
		}
		f.UDP().SetChecksum(0)
		if ok := f.VerifyUDPChecksum(); ok != (name == "v4") {
			t.Errorf("%s: without a checksum it verifies: %v", name, ok)
		}
	}
}
