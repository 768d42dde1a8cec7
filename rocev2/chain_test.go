// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// cut returns a copy of b in buffers of their own, cut at the offsets at, which
// are put in order and within b.
func cut(b []byte, at ...int) Chain {
	at = slices.Clone(at)
	for i := range at {
		at[i] = min(max(at[i], 0), len(b))
	}
	slices.Sort(at)
	var c Chain
	from := 0
	for _, to := range append(at, len(b)) {
		c = append(c, slices.Clip(slices.Clone(b[from:to])))
		from = to
	}
	return c
}

// checkChain decodes b whole and in buffers, and compares everything that can
// be asked of the two.
func checkChain(t rapid.TB, b []byte, at ...int) {
	t.Helper()
	whole := slices.Clone(b)
	c := cut(b, at...)
	first := len(c[0])
	var want, got Frame
	wr, r := Decode(whole, &want), DecodeChain(&c, &got)
	if may := mayRefuse(&want, wr, first); !slices.Contains(may, r) {
		t.Fatalf("cut at %d: %v, want one of %v", at, r, may)
	}
	if r != OK {
		if got.Kind != KindNone || got.Bytes() != nil || got.Len() != 0 || got.Rest() != nil {
			t.Fatalf("cut at %d: the refused frame is not zero", at)
		}
		useAll(&got)
		return
	}
	if !bytes.Equal(slices.Concat(c...), want.Bytes()) || len(c) != 1+len(got.Rest()) {
		t.Fatalf("cut at %d: the chain is not the frame: %d buffers, rest %d", at, len(c), len(got.Rest()))
	}
	sameFrame(t, &want, &got)
	sameWrites(t, &want, &got, c)
	useAll(&got)
	writeAll(&got)
	useAll(&got)
}

// mayRefuse returns what DecodeChain may say where Decode said r and filled f.
func mayRefuse(f *Frame, r Reason, first int) []Reason {
	switch {
	case r != OK:
		// What is wrong may be behind what has to be in the first buffer.
		return []Reason{r, ReasonSplitHeaders, ReasonSplitOther}
	case first >= f.Len():
		return []Reason{OK}
	case f.Kind != KindRoCE:
		return []Reason{ReasonSplitHeaders, ReasonSplitOther}
	case first < int(f.payloadOff):
		return []Reason{ReasonSplitHeaders}
	}
	return []Reason{OK}
}

// sameFrame compares what the frames say.
func sameFrame(t rapid.TB, want, got *Frame) {
	t.Helper()
	type numbers struct {
		kind                                     Kind
		op                                       Opcode
		v6, v4                                   bool
		vlans, l3, l4, n, payload, pad, tail     int
		tci                                      uint16
		ecn                                      ECN
		icrc, computed                           uint32
		verified, udp                            bool
		feth, reth, aeth, immdt, ieth, atomicETH string
	}
	of := func(f *Frame) (n numbers) {
		n = numbers{
			kind: f.Kind, op: f.Op, v6: f.IsIPv6(), v4: f.IsIPv4(), l3: f.L3Offset(), l4: f.L4Offset(),
			n: f.Len(), payload: f.PayloadLen(), pad: f.Pad(), tail: f.Tail(), ecn: f.ECN(),
			icrc: f.ICRC(), computed: f.ComputeICRC(), verified: f.VerifyICRC(), udp: f.VerifyUDPChecksum(),
			feth: string(f.FETH()), reth: string(f.RETH()), aeth: string(f.AETH()),
			immdt: string(f.ImmDt()), ieth: string(f.IETH()), atomicETH: string(f.AtomicETH()),
		}
		n.vlans, n.tci = f.VLAN()
		return n
	}
	if w, g := of(want), of(got); w != g {
		t.Fatalf("\n got %+v\nwant %+v", g, w)
	}
	if want.Src() != got.Src() || want.Dst() != got.Dst() || !bytes.Equal(want.BTH(), got.BTH()) || !bytes.Equal(want.UDP(), got.UDP()) {
		t.Fatal("addresses or headers differ")
	}
	if !bytes.HasPrefix(want.Payload(), got.Payload()) || !bytes.HasPrefix(want.L3(), got.L3()) ||
		!bytes.HasPrefix(want.UDPPayload(), got.UDPPayload()) || !bytes.HasPrefix(want.Bytes(), got.Bytes()) {
		t.Fatal("what is in the first buffer is not the beginning of the whole")
	}
	scratch := make([]byte, want.PayloadLen())
	if p := got.PayloadIn(scratch); !bytes.Equal(p, want.Payload()) {
		t.Fatalf("payload of %d bytes, want %d", len(p), len(want.Payload()))
	}
	if n := len(scratch); n > 0 && got.Rest() != nil && got.PayloadIn(scratch[:n-1]) != nil {
		t.Fatal("a payload fitted a scratch that is too short")
	}
}

// sameWrites compares the bytes after writing ICRC and ECN to both.
func sameWrites(t rapid.TB, want, got *Frame, c Chain) {
	t.Helper()
	for _, v := range []uint32{0x01020304, 0xFFEEDDCC} {
		want.SetICRC(v)
		got.SetICRC(v)
		if got.ICRC() != want.ICRC() || want.Kind == KindRoCE && got.ICRC() != v {
			t.Fatalf("ICRC written %08x, read %08x, want %08x", v, got.ICRC(), want.ICRC())
		}
		if want.Kind == KindRoCE && c.ICRC() != v {
			t.Fatalf("the chain ends with %08x, want %08x", c.ICRC(), v)
		}
	}
	want.SetECN(CE)
	got.SetECN(CE)
	if !bytes.Equal(slices.Concat(c...), want.Bytes()) {
		t.Fatal("the frames differ after writing to them")
	}
}

// chainFrames are frames of every kind, short enough to be cut everywhere.
func chainFrames(t testing.TB) map[string][]byte {
	p4, p6 := v4Path(), v6Path()
	p6.Tagged, p6.TCI = true, 100
	plain := mustBuild(t, &p4, &Packet{Op: WriteMiddle, PSN: 5}, []byte("0123456789abcdefg"))
	m := map[string][]byte{
		"write":        plain,
		"padded":       append(slices.Clone(plain), 0xAA, 0x55, 0xAA, 0x55, 0xAA),
		"IPv6 with VA": mustBuild(t, &p6, &Packet{Op: WriteOnlyImm, VA: 1 << 40, RKey: 7, Imm: 9}, []byte("abc")),
		"options":      withOptions(t, mustBuild(t, &p4, &Packet{Op: SendOnly}, []byte("hello")), 3),
		"empty":        append(mustBuild(t, &p4, &Packet{Op: SendOnly}, nil), 0, 0),
		"ACK":          mustBuild(t, &p6, &Packet{Op: Acknowledge, Syndrome: SyndromeACK, MSN: 4}, nil),
		"CNP":          mustBuild(t, &p4, &Packet{Op: CNP}, make([]byte, 16)),
		"wrong UDP sum": func() []byte {
			b := slices.Clone(plain)
			put16(b, offUDP+6, 0x1234)
			return b
		}(),
		"right UDP sum": func() []byte {
			b := slices.Clone(plain)
			f := mustDecode(t, b)
			f.UDP().SetChecksum(transportChecksum(f.Src(), f.Dst(), ProtoUDP, b[f.l4:]))
			if !f.VerifyUDPChecksum() || f.UDP().Checksum() == 0 {
				t.Fatal("the checksum is not right")
			}
			return b
		}(),
	}
	u := make([]byte, 120)
	m["UDP"] = slices.Clone(u[:BuildUDP(u, &p4, 9, []byte("an envelope"))])
	m["ARP"] = slices.Clone(u[:BuildARP(u, &p4, &ARP{Op: ARPRequest, SenderIP: p4.Src, TargetIP: p4.Dst})])
	m["ND"] = slices.Clone(u[:BuildNeighborSolicitation(u, &p6, p6.Dst)])
	return m
}

// A frame in two and in three buffers, cut at every place and at every pair of
// places, is the frame in one; only headers must not be cut, nor what is no
// RoCE.
func TestChainCutEverywhere(t *testing.T) {
	for name, b := range chainFrames(t) {
		t.Run(name, func(t *testing.T) {
			for i := range len(b) + 1 {
				checkChain(t, b, i)
				for j := i; j <= len(b); j++ {
					checkChain(t, b, i, j)
				}
			}
		})
	}
}

// The ICRC in as many as five buffers, with empty ones between.
func TestChainICRCInSlivers(t *testing.T) {
	for name, b := range chainFrames(t) {
		f := new(Frame)
		if Decode(b, f) != OK || f.Kind != KindRoCE {
			continue
		}
		n := f.Len()
		for _, at := range [][]int{
			{n - 4, n - 3, n - 2, n - 1}, {n - 5, n - 3, n - 3, n - 3, n - 1}, {n - 2, n - 2, n}, {n - 4, n - 4, n, n}, {n - 1, n},
		} {
			t.Run(name, func(t *testing.T) { checkChain(t, b, at...) })
		}
	}
}

// Whatever the frame, its damage and the cuts: the chain decodes as the frame
// in one piece does.
func TestChainIsItsFrame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, _ := drawFrame(t)
		b := append(slices.Clone(f.Bytes()), make([]byte, rapid.IntRange(0, 40).Draw(t, "padding"))...)
		if rapid.Bool().Draw(t, "damaged") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		at := rapid.SliceOfN(rapid.OneOf(
			rapid.IntRange(0, len(b)),
			rapid.IntRange(max(0, f.Len()-6), f.Len()+2), // about the ICRC
			rapid.IntRange(int(f.payloadOff), len(b)),
		), 0, 6).Draw(t, "cuts")
		checkChain(t, b, at...)
	})
}

// A forwarded chain gets the ICRC that the frame in one piece would get.
func TestChainICRCRewritten(t *testing.T) {
	z := NewOperators(MaxShift)
	rapid.Check(t, func(t *rapid.T) {
		f, _ := drawFrame(t)
		c := cut(f.Bytes(), int(f.payloadOff)+rapid.IntRange(0, f.Tail()+ICRCLen).Draw(t, "cut"),
			f.Len()-rapid.IntRange(0, 8).Draw(t, "last"))
		if len(c[0]) < int(f.payloadOff) {
			t.Skip("the second cut is in the headers")
		}
		var g Frame
		if r := DecodeChain(&c, &g); r != OK {
			t.Fatal(r)
		}
		psn := PSN(rapid.Uint32Range(0, PSNMask).Draw(t, "psn"))
		d := z.Fields(g.Op.ExtLen(), g.Tail()).PSN(DiffBTH2(g.BTH().PSN(), psn, false))
		g.BTH().SetPSN(psn)
		g.SetICRC(g.ICRC() ^ d)
		if !g.VerifyICRC() || referenceICRC(slices.Concat(c...)[g.l3:]) != c.ICRC() {
			t.Fatal("the rewritten chain has a wrong ICRC")
		}
	})
}

func TestDecodeChainOfNothing(t *testing.T) {
	for _, c := range []Chain{nil, {}, {nil}, {nil, nil}, {make([]byte, 13), nil}} {
		f := Frame{Kind: KindRoCE}
		if r := DecodeChain(&c, &f); r != ReasonTruncated || f.Kind != KindNone {
			t.Errorf("%d buffers: %v", len(c), r)
		}
	}
}

// FuzzDecodeChain feeds DecodeChain anything, cut anywhere, and compares it with
// Decode.
func FuzzDecodeChain(f *testing.F) {
	for i, s := range fuzzSeeds(f) {
		f.Add(s, uint16(len(s)-3), uint16(i*5), uint16(len(s)/2))
	}
	f.Fuzz(func(t *testing.T, b []byte, i, j, k uint16) {
		checkChain(t, b, int(i))
		checkChain(t, b, int(i), int(j), int(k))
	})
}

func TestChainAllocatesNothing(t *testing.T) {
	p := v4Path()
	b := mustBuild(t, &p, &Packet{Op: WriteMiddle}, make([]byte, 4096))
	bufs := cut(b, 1792, 3584, len(b)-2)
	scratch := make([]byte, 4096)
	c := make(Chain, 0, 8)
	var f Frame
	if n := testing.AllocsPerRun(100, func() {
		c = append(c[:0], bufs...)
		if DecodeChain(&c, &f) != OK || !f.VerifyICRC() || len(f.PayloadIn(scratch)) != 4096 || len(f.Rest()) != 3 {
			t.Fatal("refused")
		}
		f.SetICRC(f.ICRC())
	}); n != 0 {
		t.Errorf("%v allocations per frame, want 0", n)
	}
}

func BenchmarkDecodeChain(b *testing.B) {
	p := v4Path()
	bufs := cut(mustBuild(b, &p, &Packet{Op: WriteMiddle}, make([]byte, 4096)), 1792, 3584)
	c := make(Chain, 0, 8)
	var f Frame
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c = append(c[:0], bufs...)
			if DecodeChain(&c, &f) != OK {
				b.Fatal("refused")
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.SetBytes(int64(f.Len()))
		b.ReportAllocs()
		for b.Loop() {
			if !f.VerifyICRC() {
				b.Fatal("wrong")
			}
		}
	})
	b.Run("set ICRC", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.SetICRC(f.ICRC())
		}
	})
}
