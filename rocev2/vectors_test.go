// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func le(t testing.TB, s string) uint32 { return binary.LittleEndian.Uint32(unhex(t, s)) }

// A CNP captured from a ConnectX-4 Lx (scapy test/contrib/roce.uts).
func TestC1_CNPVector(t *testing.T) {
	b := unhex(t, "e41d2dab2bc27cfe90643b320800"+
		"45c2003c718c4000401191610a0011010a001201"+"000012b700280000"+
		"8100ffff4000011800000000"+"00000000000000000000000000000000"+"82fd002a")
	f := mustDecode(t, b)
	if got, want := f.ComputeICRC(), le(t, "82fd002a"); got != want || f.ICRC() != want || !f.VerifyICRC() {
		t.Fatalf("ICRC %08x, carried %08x, want %08x", got, f.ICRC(), want)
	}
	// The builder makes the same bytes.
	p := Path{
		SrcMAC: MAC{0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32}, DstMAC: MAC{0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2},
		Src: netip.MustParseAddr("10.0.17.1"), Dst: netip.MustParseAddr("10.0.18.1"), TOS: 0xC2, ID: 0x718C,
	}
	got := make([]byte, 100)
	if n := BuildCNP(got, &p, 0x118); !bytes.Equal(got[:n], b) {
		t.Fatalf("BuildCNP\n got %x\nwant %x", got[:n], b)
	}
}

// A UC SEND_ONLY (same source). UC is none of our opcodes, so its ICRC is
// computed below Decode, which refuses it.
func TestC2_UCVector(t *testing.T) {
	ip := unhex(t, "4501004004784000"+"4011b4d5c0a80007c0a80007"+"c00012b7002caca2"+
		"2460ffff000000d300cf1710"+"4630818be28935d90e9a95505401be885e500000")
	if got, want := icrc(ip, IPv4Len, false), le(t, "78f353f3"); got != want {
		t.Fatalf("ICRC %08x, want %08x", got, want)
	}
	if Checksum(ip[:20], 0) != 0 {
		t.Fatal("the vector's IPv4 checksum does not verify")
	}
	var f Frame
	frame := append(append(make([]byte, 12), 8, 0), append(ip, 0x78, 0xf3, 0x53, 0xf3)...)
	if r := Decode(frame, &f); r != ReasonUnknownOpcode {
		t.Fatalf("Decode of a UC packet: %v", r)
	}
}

// exampleA and exampleB are the two ends of a rewrite: an address, QPN, PSN,
// VA and R_Key change, TTL and ECN too.
func exampleA(t testing.TB) []byte {
	p := v4Path()
	return mustBuild(t, &p, &Packet{
		Op: WriteFirst, DestQP: 1, PSN: 0x100, VA: 0x7f0000001000, RKey: 0x11223344, DMALen: 4096,
	}, examplePayload())
}

func exampleB(t testing.TB) []byte {
	p := v4Path()
	p.Src, p.Dst = netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("10.0.0.2")
	p.TTL, p.TOS = 63, 3
	return mustBuild(t, &p, &Packet{
		Op: WriteFirst, DestQP: 0xa7, PSN: 0xfffffe, VA: 0x7fee00003000, RKey: 0x00c0ffee, DMALen: 4096,
	}, examplePayload())
}

func examplePayload() []byte {
	b := make([]byte, 1024)
	for i := range b {
		b[i] = byte(7*i + 3)
	}
	return b
}

func TestC3_IncrementalWorkedExample(t *testing.T) {
	a, b := mustDecode(t, exampleA(t)), mustDecode(t, exampleB(t))
	if a.ICRC() != le(t, "d7f938f2") || b.ICRC() != le(t, "209e50bd") {
		t.Fatalf("ICRCs %08x, %08x", a.ICRC(), b.ICRC())
	}
	const delta = 0x4F6867F7
	if d := a.ICRC() ^ b.ICRC(); d != delta {
		t.Fatalf("delta %08x, want %08x", d, delta)
	}
	if got := Shift(0x0C3C4EFF, 1024); got != delta {
		t.Errorf("Shift of the header difference %08x, want %08x", got, delta)
	}
	z := NewOperators(MaxShift)
	for name, z := range map[string]*Operators{"tables": z, "no tables": {}} {
		if d, ok := z.HeaderDelta(a, b); !ok || d != delta {
			t.Errorf("%s: HeaderDelta %08x, %v", name, d, ok)
		}
		fs := z.Fields(RETHLen, 1024)
		leg := LegDelta(a.Src(), b.Src(), a.Dst(), b.Dst(), 1, 0xa7, 0)
		got := fs.PSN(leg^DiffBTH2(0x100, 0xfffffe, false)) ^
			fs.RETH(0x7f0000001000, 0x7fee00003000, 0x11223344, 0x00c0ffee)
		if got != delta {
			t.Errorf("%s: leg constant, PSN and RETH %08x, want %08x", name, got, delta)
		}
	}
}

// Each field of the example alone, and the constants of the shift.
func TestIncrementalPerField(t *testing.T) {
	z := NewOperators(MaxShift)
	fs := z.Fields(RETHLen, 1024)
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.9.9.9")
	dst2 := netip.MustParseAddr("10.0.0.2")
	for _, c := range []struct {
		name      string
		got, want uint32
	}{
		{"srcIP", fs.PSN(LegDelta(src, dst, dst, dst, 1, 1, 0)), 0x5F381D7D},
		{"dstIP", fs.PSN(LegDelta(src, src, dst, dst2, 1, 1, 0)), 0x88DBD700},
		{"QPN", fs.PSN(LegDelta(src, src, dst, dst, 1, 0xa7, 0)), 0xBDB2E0A7},
		{"PSN", fs.PSN(DiffBTH2(0x100, 0xfffffe, false)), 0xA9DDB507},
		{"VA", fs.RETH(0x7f0000001000, 0x7fee00003000, 0, 0), 0xD89C170A},
		{"R_Key", fs.RETH(0, 0, 0x11223344, 0x00c0ffee), 0x5478EF20},
		{"R_Key as a word", fs.Ext(8, Diff32(0x11223344, 0x00c0ffee)), 0x5478EF20},
	} {
		if c.got != c.want {
			t.Errorf("%s: %08x, want %08x", c.name, c.got, c.want)
		}
	}
	for n, want := range map[int]uint32{
		4: 0xEDB88320, 256: 0xEC447F11, 512: 0x8E7EA170, 1024: 0x6427800E, 2048: 0x4D47BAE0, 4096: 0x09FE548F,
	} {
		if got := Shift(1<<31, n); got != want {
			t.Errorf("x^(8*%d) = %08x, want %08x", n, got, want)
		}
		if got := NewOperator(n).Apply(1 << 31); got != want {
			t.Errorf("operator of %d bytes: %08x, want %08x", n, got, want)
		}
	}
}

// An ACK on its way from a receiver to the source, aggregated: every header
// field that a switch changes does change.
func TestIncrementalAckRewrite(t *testing.T) {
	p, q := v4Path(), v4Path()
	p.Src, p.Dst = netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.9.9.9")
	q.Src, q.Dst = netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("10.0.0.1")
	var ab, bb [MinFrameLen + 2]byte
	if BuildAck(ab[:], &p, 0x9, 0xfffffe, 0x0A, 77, false) != 62 || BuildAck(bb[:], &q, 0x11, 0x100, SyndromeACK, 5, true) != 62 {
		t.Fatal("an ACK is not 62 bytes long")
	}
	a, b := mustDecode(t, ab[:]), mustDecode(t, bb[:])
	z := NewOperators(64)
	fs := z.Fields(AETHLen, 0)
	d := fs.PSN(LegDelta(p.Src, q.Src, p.Dst, q.Dst, 0x9, 0x11, 0)^DiffBTH2(0xfffffe, 0x100, false)) ^
		fs.Ext(0, Diff32(0x0A<<24|77, 0x1F<<24|5))
	if a.ICRC()^d != b.ICRC() || referenceICRC(b.L3()) != b.ICRC() {
		t.Fatalf("incremental %08x, built %08x, reference %08x", a.ICRC()^d, b.ICRC(), referenceICRC(b.L3()))
	}
}
