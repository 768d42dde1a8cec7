// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"bytes"
	"slices"
	"testing"
)

// useAll calls every accessor of f, and every method of every view that is not
// nil, and returns something of each so that none is optimized away.
func useAll(f *Frame) (x uint64) {
	add := func(v ...uint64) {
		for _, e := range v {
			x = x*31 + e
		}
	}
	add(uint64(f.Len()), uint64(f.L3Offset()), uint64(f.PayloadLen()), uint64(f.Pad()), uint64(f.Tail()), uint64(f.ECN()))
	add(uint64(f.ICRC()), uint64(f.ComputeICRC()), uint64(len(f.L3())), uint64(len(f.UDPPayload())), uint64(len(f.Bytes())))
	n, tci := f.VLAN()
	add(uint64(n), uint64(tci))
	for i := -1; i < 3; i++ {
		if v := f.VLANTag(i); v != nil {
			add(uint64(v.TCI()), uint64(v.VID()), uint64(v.EtherType()))
		}
	}
	if f.Src().IsValid() != f.Dst().IsValid() || f.Src().Is4() != f.IsIPv4() {
		panic("address families disagree")
	}
	f.VerifyICRC()
	f.VerifyUDPChecksum()
	if e := f.Eth(); e != nil {
		add(uint64(e.Src()[0]), uint64(e.Dst()[5]), uint64(e.EtherType()))
	}
	if h := f.IPv4(); h != nil {
		add(uint64(h.HeaderLen()), uint64(h.TOS()), uint64(h.ECN()), uint64(h.TotalLen()), uint64(h.ID()),
			uint64(h.FlagsFragment()), uint64(h.TTL()), uint64(h.Protocol()), uint64(h.Checksum()))
	}
	if h := f.IPv6(); h != nil {
		add(uint64(h.TrafficClass()), uint64(h.FlowLabel()), uint64(h.PayloadLen()), uint64(h.NextHeader()), uint64(h.HopLimit()))
	}
	if u := f.UDP(); u != nil {
		add(uint64(u.SrcPort()), uint64(u.DstPort()), uint64(u.Len()), uint64(u.Checksum()))
	}
	if mad := f.MAD(); (mad != nil) != (f.Kind == KindMAD) {
		panic("a MAD, or none")
	} else if mad != nil {
		add(uint64(mad[MADLen-1]))
	}
	f.VerifyMAD()
	if f.BTH() != nil {
		k := fieldsOf(f)
		add(uint64(k.PSN), k.VA, k.SwapAdd, uint64(f.BTH().Pad()), uint64(f.BTH().TVer()))
		if a := f.AETH(); a != nil {
			c, _ := a.Syndrome().Credits()
			add(uint64(a.Syndrome().Kind()), uint64(c), uint64(a.Syndrome().RNRCode().Duration()))
		}
	}
	var arp ARP
	var ns NeighborSolicitation
	add(uint64(DecodeARP(f, &arp)), uint64(DecodeNeighborSolicitation(f, &ns)))
	if IsNeighborSolicitation(f) {
		add(1)
	}
	return x
}

// FuzzDecode feeds Decode anything. What it accepts must be safe to read by
// every accessor, lie within the input, and for RoCE be built again from its
// fields to the same bytes from BTH on.
func FuzzDecode(f *testing.F) {
	for _, s := range fuzzSeeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var fr Frame
		if r := Decode(b, &fr); r != OK {
			if fr.Kind != KindNone || r >= NumReasons {
				t.Fatalf("refused with %d and kind %v", r, fr.Kind)
			}
			useAll(&fr)
			return
		}
		useAll(&fr)
		if fr.Len() > len(b) || !bytes.Equal(fr.Bytes(), b[:fr.Len()]) {
			t.Fatal("the frame is not the beginning of the input")
		}
		if fr.Kind == KindRoCE {
			rebuild(t, &fr)
		}
		writeAll(&fr)
		useAll(&fr)
	})
}

// rebuild builds a frame from the fields of f. Reserved bits, pad bytes and
// options are the builder's, so they are taken over before comparing.
func rebuild(t *testing.T, f *Frame) {
	p := v4Path()
	if f.IsIPv6() {
		p = v6Path()
	}
	k := fieldsOf(f)
	got := make([]byte, PacketLen(&p, k.Op, f.PayloadLen()))
	if n := BuildPacket(got, &p, &k, f.Payload()); n != len(got) {
		if len(got)-p.HeaderLen() > maxUDPPayload { // an IPv6 packet longer than an IPv4 one can be
			return
		}
		t.Fatalf("cannot build %v with %d bytes again", k.Op, f.PayloadLen())
	}
	g := mustDecode(t, got)
	want := slices.Clone(f.Bytes()[f.l4+UDPLen : f.Len()-ICRCLen])
	have := got[g.l4+UDPLen : g.Len()-ICRCLen]
	want[4] = want[4] & 0x40 // FECN and reserved bits are not built
	want[8] &= 0x80          // reserved
	clear(want[len(want)-f.Pad():])
	if k.PKey == 0 {
		want[2], want[3] = 0xFF, 0xFF
	}
	if !bytes.Equal(have, want) {
		t.Fatalf("built again\n got %x\nwant %x", have, want)
	}
}

// writeAll overwrites headers with ones: lengths were checked once, and what
// is written later must not lead an accessor astray.
func writeAll(f *Frame) {
	f.SetECN(CE)
	f.SetICRC(0xFFFFFFFF)
	for _, h := range [][]byte{f.Eth(), f.IPv4(), f.IPv6(), f.UDP(), f.BTH(), f.FETH(), f.RETH(), f.AETH(), f.ImmDt(), f.IETH(), f.AtomicETH()} {
		for i := range h {
			h[i] = 0xFF
		}
	}
}

// fuzzSeeds returns a valid frame of every kind, and some on the edge.
func fuzzSeeds(t testing.TB) (s [][]byte) {
	p4, p6 := v4Path(), v6Path()
	p6.Tagged, p6.TCI = true, 100
	for i, op := range allOpcodes {
		p := &p4
		if i%2 == 1 {
			p = &p6
		}
		n := 0
		switch {
		case op == CNP:
			n = 16
		case op == AtomicAck, op == AtomicWrite:
			n = 8
		case op.Is(OpPayload):
			n = i
		}
		s = append(s, mustBuild(t, p, &Packet{Op: op, DestQP: 0x100, PSN: PSN(i), Syndrome: SyndromeACK}, make([]byte, n)))
	}
	b := mustBuild(t, &p4, &Packet{Op: SendOnly}, nil)
	s = append(s, withOptions(t, b, 10), append(slices.Clone(b), 0, 0), withTag(withTag(b, EtherTypeVLAN, 1), EtherTypeQinQ, 2))
	u, m := make([]byte, 100), make([]byte, 400)
	s = append(s, slices.Clone(u[:BuildUDP(u, &p4, 9, []byte("udp"))]))
	s = append(s, slices.Clone(m[:BuildMAD(m, &p4, 7, make([]byte, MADLen))]))
	s = append(s, slices.Clone(u[:BuildARP(u, &p4, &ARP{Op: ARPRequest, SenderIP: p4.Src, TargetIP: p4.Dst})]))
	return append(s, slices.Clone(u[:BuildNeighborSolicitation(u, &p6, p6.Dst)]))
}
