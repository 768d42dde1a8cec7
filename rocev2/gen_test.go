// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// referenceICRC is the ICRC by the letter of the standard: a masked copy after
// eight bytes of ones, through the standard library. ip is a packet from its
// IP header to its ICRC, which is left out.
func referenceICRC(ip []byte) uint32 {
	q := slices.Concat(slices.Repeat([]byte{0xFF}, 8), ip[:len(ip)-ICRCLen])
	h := q[8:]
	hl := 40
	if h[0]>>4 == 4 {
		hl = int(h[0]&15) * 4
		h[1], h[8], h[10], h[11] = 0xFF, 0xFF, 0xFF, 0xFF
	} else {
		h[0] |= 0x0F
		h[1], h[2], h[3], h[7] = 0xFF, 0xFF, 0xFF, 0xFF
	}
	h[hl+6], h[hl+7], h[hl+8+4] = 0xFF, 0xFF, 0xFF
	return crc32.ChecksumIEEE(q)
}

// allOpcodes are the defined opcodes, in order.
var allOpcodes = func() (o []Opcode) {
	for i := range 256 {
		if Opcode(i).Is(OpKnown) {
			o = append(o, Opcode(i))
		}
	}
	return o
}()

func drawAddr(t *rapid.T, v6 bool, label string) netip.Addr {
	if v6 {
		b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label)
		b[0] = 0x20 // neither multicast nor IPv4-mapped
		return netip.AddrFrom16([16]byte(b))
	}
	return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, label)))
}

func drawPath(t *rapid.T, v6 bool) Path {
	p := Path{
		Tagged:    rapid.Bool().Draw(t, "tagged"),
		TCI:       rapid.Uint16().Draw(t, "tci"),
		TPID:      rapid.SampledFrom([]uint16{0, EtherTypeVLAN, EtherTypeQinQ}).Draw(t, "tpid"),
		Src:       drawAddr(t, v6, "src"),
		Dst:       drawAddr(t, v6, "dst"),
		TTL:       rapid.Byte().Draw(t, "ttl"),
		TOS:       rapid.Byte().Draw(t, "tos"),
		ID:        rapid.Uint16().Draw(t, "id"),
		FlowLabel: rapid.Uint32Range(0, 0xFFFFF).Draw(t, "flow"),
		SrcPort:   rapid.Uint16().Draw(t, "sport"),
	}
	copy(p.SrcMAC[:], rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "smac"))
	copy(p.DstMAC[:], rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "dmac"))
	return p
}

func drawPacket(t *rapid.T) Packet {
	return Packet{
		Op:       rapid.SampledFrom(allOpcodes).Draw(t, "op"),
		SE:       rapid.Bool().Draw(t, "se"),
		MigReq:   rapid.Bool().Draw(t, "m"),
		AckReq:   rapid.Bool().Draw(t, "ackreq"),
		BECN:     rapid.Bool().Draw(t, "becn"),
		PKey:     rapid.Uint16Range(1, 0xFFFF).Draw(t, "pkey"),
		DestQP:   QPN(rapid.Uint32Range(0, PSNMask).Draw(t, "qpn")),
		PSN:      PSN(rapid.Uint32Range(0, PSNMask).Draw(t, "psn")),
		VA:       rapid.Uint64().Draw(t, "va"),
		RKey:     rapid.Uint32().Draw(t, "rkey"),
		DMALen:   rapid.Uint32().Draw(t, "dmalen"),
		Imm:      rapid.Uint32().Draw(t, "imm"),
		SwapAdd:  rapid.Uint64().Draw(t, "swap"),
		Compare:  rapid.Uint64().Draw(t, "compare"),
		Flush:    rapid.Uint32().Draw(t, "flush"),
		Syndrome: Syndrome(rapid.Byte().Draw(t, "syndrome")),
		MSN:      MSN(rapid.Uint32Range(0, PSNMask).Draw(t, "msn")),
	}
}

// drawPayload draws a payload that op may carry, of up to 4096 bytes.
func drawPayload(t *rapid.T, op Opcode) []byte {
	// rapid prefers small numbers: lengths near each path MTU are asked for.
	n := rapid.OneOf(
		rapid.IntRange(0, 4096),
		rapid.Map(rapid.IntRange(0, 4096), func(n int) int { return 4096 - n }),
		rapid.SampledFrom([]int{255, 256, 257, 512, 1023, 1024, 2047, 2048, 2049, 4093}),
	).Draw(t, "payload")
	switch {
	case !op.Is(OpPayload):
		n = 0
	case op == CNP:
		n = 16
	case op == AtomicAck, op == AtomicWrite:
		n = 8
	}
	seed := rapid.Byte().Draw(t, "seed")
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + byte(i>>8) + seed
	}
	return b
}

func mustBuild(t testing.TB, p *Path, k *Packet, payload []byte) []byte {
	t.Helper()
	b := make([]byte, PacketLen(p, k.Op, len(payload)))
	if n := BuildPacket(b, p, k, payload); n != len(b) {
		t.Fatalf("BuildPacket wrote %d of %d bytes", n, len(b))
	}
	return b
}

func mustDecode(t rapid.TB, b []byte) *Frame {
	t.Helper()
	f := new(Frame)
	if r := Decode(b, f); r != OK {
		t.Fatalf("Decode: %v of %x", r, b)
	}
	return f
}

// withOptions returns a copy of IPv4 RoCE frame b with words of IPv4 options.
func withOptions(t rapid.TB, b []byte, words int) []byte {
	f := mustDecode(t, b)
	o := f.L3Offset() + IPv4Len
	opts := slices.Repeat([]byte{1, 1, 1, 0}, words)
	c := slices.Concat(b[:o], opts, b[o:])
	h := IPv4(c[f.L3Offset():])
	h[0] = 0x40 | byte(5+words)
	binary.BigEndian.PutUint16(h[2:4], uint16(h.TotalLen()+4*words))
	h.UpdateChecksum()
	g := mustDecode(t, c)
	g.SetICRC(g.ComputeICRC())
	return c
}

// withTag returns a copy of frame b with one more VLAN tag outside.
func withTag(b []byte, tpid, tci uint16) []byte {
	tag := binary.BigEndian.AppendUint16(nil, tpid)
	tag = binary.BigEndian.AppendUint16(tag, tci)
	return slices.Concat(b[:12], tag, b[12:])
}

// v4Path and v6Path are plain paths for tests that care for nothing more.
func v4Path() Path {
	return Path{
		SrcMAC: MAC{2, 0, 0, 0, 0, 1}, DstMAC: MAC{2, 0, 0, 0, 0, 2},
		Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.9.9.9"),
		ID: 0x1234, SrcPort: 0xC123,
	}
}

func v6Path() Path {
	p := v4Path()
	p.Src, p.Dst = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00:9::9")
	return p
}
