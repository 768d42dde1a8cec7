// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The opcode table against reference tables of the wire format: IBTA table 38
// and rdma_rxe rxe_opcode.c, written down once more by header length.
func TestOpcodeTable(t *testing.T) {
	const req, resp = OpRequest, OpResponse
	want := map[Opcode]struct {
		ext   int
		flags OpFlags
	}{
		0x00: {0, req | OpFirst | OpSend | OpPayload},
		0x01: {0, req | OpMiddle | OpSend | OpPayload},
		0x02: {0, req | OpLast | OpSend | OpPayload},
		0x03: {4, req | OpLast | OpSend | OpPayload | OpImm},
		0x04: {0, req | OpOnly | OpSend | OpPayload},
		0x05: {4, req | OpOnly | OpSend | OpPayload | OpImm},
		0x06: {16, req | OpFirst | OpWrite | OpPayload | OpRETH},
		0x07: {0, req | OpMiddle | OpWrite | OpPayload},
		0x08: {0, req | OpLast | OpWrite | OpPayload},
		0x09: {4, req | OpLast | OpWrite | OpPayload | OpImm},
		0x0A: {16, req | OpOnly | OpWrite | OpPayload | OpRETH},
		0x0B: {20, req | OpOnly | OpWrite | OpPayload | OpRETH | OpImm},
		0x0C: {16, req | OpOnly | OpRETH},
		0x0D: {4, resp | OpFirst | OpPayload | OpAETH},
		0x0E: {0, resp | OpMiddle | OpPayload},
		0x0F: {4, resp | OpLast | OpPayload | OpAETH},
		0x10: {4, resp | OpOnly | OpPayload | OpAETH},
		0x11: {4, resp | OpOnly | OpAETH},
		0x12: {4, resp | OpOnly | OpPayload | OpAETH},
		0x13: {28, req | OpOnly | OpAtomicETH},
		0x14: {28, req | OpOnly | OpAtomicETH},
		0x16: {4, req | OpLast | OpSend | OpPayload | OpIETH},
		0x17: {4, req | OpOnly | OpSend | OpPayload | OpIETH},
		0x1C: {20, req | OpOnly | OpFETH | OpRETH},
		0x1D: {16, req | OpOnly | OpPayload | OpRETH},
		0x81: {0, OpPayload},
	}
	for i := range 256 {
		o := Opcode(i)
		w, ok := want[o]
		if ok {
			w.flags |= OpKnown
		}
		if o.Flags() != w.flags || o.ExtLen() != w.ext {
			t.Errorf("opcode %02x: flags %b, ext %d; want %b, %d", i, o.Flags(), o.ExtLen(), w.flags, w.ext)
		}
	}
	if !SendOnly.Is(OpStart) || !SendOnly.Is(OpEnd) || SendFirst.Is(OpEnd) || SendMiddle.Is(OpStart|OpEnd) || !WriteLast.Is(OpEnd) {
		t.Error("OpStart or OpEnd is wrong")
	}
}

func TestPSN(t *testing.T) {
	for _, c := range []struct {
		p, q PSN
		d    int32
	}{
		{0, 0, 0}, {1, 0, 1}, {0, 1, -1}, {0, 0xFFFFFF, 1}, {0xFFFFFF, 0, -1}, {0xFFFFFE, 2, -4}, {2, 0xFFFFFE, 4},
		{0x7FFFFF, 0, 0x7FFFFF}, {0x800000, 0, -0x800000}, {0, 0x800000, -0x800000}, {0xABCDEF, 0xABCDE0, 15},
	} {
		if d := c.p.Sub(c.q); d != c.d {
			t.Errorf("%06x - %06x = %d, want %d", c.p, c.q, d, c.d)
		}
		if c.p.Less(c.q) != (c.d < 0) || c.p.LessEq(c.q) != (c.d <= 0) {
			t.Errorf("%06x < %06x is wrong", c.p, c.q)
		}
	}
	// C22: four packets from FFFFFE.
	p := PSN(0xFFFFFE)
	for _, want := range []PSN{0xFFFFFE, 0xFFFFFF, 0, 1} {
		if p != want {
			t.Errorf("%06x, want %06x", p, want)
		}
		p = p.Next()
	}
	if PSN(0).Prev() != 0xFFFFFF || PSN(0xFFFFFF).Add(2) != 1 || PSN(1).Add(-2) != 0xFFFFFF || MSN(0xFFFFFF).Add(1) != 0 || MSN(0).Add(-1) != 0xFFFFFF {
		t.Error("PSN or MSN arithmetic is wrong at the wrap")
	}
	if MaxPSN(0xFFFFFF, 0) != 0 || MaxPSN(0, 0xFFFFFF) != 0 || MaxPSN(5, 4) != 5 {
		t.Error("MaxPSN is not circular")
	}
	for q, want := range map[QPN]bool{0: false, 1: false, 0xF: false, 0x10: true, 0xFFFFFE: true, 0xFFFFFF: false, 1 << 24: false} {
		if q.Valid() != want {
			t.Errorf("QPN %x valid: %v", q, !want)
		}
	}
}

func TestPSNProperties(t *testing.T) {
	psn := rapid.Custom(func(t *rapid.T) PSN { return PSN(rapid.Uint32Range(0, PSNMask).Draw(t, "p")) })
	rapid.Check(t, func(t *rapid.T) {
		p, q := psn.Draw(t, "p"), psn.Draw(t, "q")
		n := rapid.Int32Range(-1<<23, 1<<23-1).Draw(t, "n")
		if p.Add(n).Sub(p) != n || p.Add(q.Sub(p)) != q || p.Add(n) > PSNMask {
			t.Fatalf("Add and Sub disagree at %06x, %06x, %d", p, q, n)
		}
		if d := p.Sub(q); d != -1<<23 && q.Sub(p) != -d {
			t.Fatalf("Sub is not antisymmetric at %06x, %06x", p, q)
		}
		if m := MaxPSN(p, q); m != p && m != q || m.Less(p) && p.Sub(q) != -1<<23 {
			t.Fatalf("MaxPSN(%06x, %06x) = %06x", p, q, m)
		}
	})
}

func TestSyndromeKind(t *testing.T) {
	for i := range 256 {
		s := Syndrome(i)
		want := KindReserved
		switch {
		case i <= 0x1F:
			want = KindACK
		case i <= 0x3F:
			want = KindRNR
		case i == 0x60:
			want = KindSequence
		case i == 0x61, i == 0x62, i == 0x63:
			want = KindFatal
		}
		if s.Kind() != want {
			t.Errorf("syndrome %02x: kind %d, want %d", i, s.Kind(), want)
		}
	}
}

func TestRNRTimer(t *testing.T) {
	ms := []float64{655.36, .01, .02, .03, .04, .06, .08, .12, .16, .24, .32, .48, .64, .96, 1.28, 1.92, 2.56, 3.84, 5.12, 7.68,
		10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52}
	for c, v := range ms {
		want := time.Duration(v*1e6+.5) * time.Nanosecond
		d := RNRCode(c).Duration()
		if d != want {
			t.Errorf("code %d: %v, want %v", c, d, want)
		}
		if got := RNRCodeFor(d); int(got) != c {
			t.Errorf("code for %v: %d, want %d", d, got, c)
		}
		if got := RNRCodeFor(d - 1); int(got) != c {
			t.Errorf("code for just under %v: %d, want %d", d, got, c)
		}
		if s := RNRCode(c).RNR(); s.Kind() != KindRNR || int(s.RNRCode()) != c {
			t.Errorf("syndrome of code %d: %02x", c, s)
		}
	}
	if RNRCodeFor(time.Second) != 0 || RNRCodeFor(0) != 1 {
		t.Error("RNRCodeFor is wrong at its ends")
	}
}

func TestCredits(t *testing.T) {
	want := []int{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
		8192, 12288, 16384, 24576, 32768}
	for i := range 256 {
		n, limited := Syndrome(i).Credits()
		if limited != (i < len(want)) || limited && n != want[i] {
			t.Errorf("syndrome %02x: %d credits, limited %v", i, n, limited)
		}
	}
	for n, s := range map[int]Syndrome{-1: 0, 0: 0, 1: 1, 5: 4, 6: 5, 7: 5, 32767: 0x1D, 32768: 0x1E, 1 << 20: 0x1E} {
		if got := SyndromeCredits(n); got != s {
			t.Errorf("syndrome for %d credits: %02x, want %02x", n, got, s)
		}
	}
}

func TestChecksumUpdate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := IPv4(rapid.SliceOfN(rapid.Byte(), 60, 60).Draw(t, "h"))
		words := rapid.IntRange(5, 15).Draw(t, "words")
		h[0] = 0x40 | byte(words)
		h.UpdateChecksum()
		if Checksum(h[:4*words], 0) != 0 {
			t.Fatal("a fresh checksum does not verify")
		}
		o := 12
		a, b := binary.BigEndian.Uint64(h[o:]), rapid.Uint64().Draw(t, "src' and dst'")
		binary.BigEndian.PutUint64(h[o:], b)
		h.SetChecksum(ChecksumUpdate64(h.Checksum(), a, b))
		old := binary.BigEndian.Uint16(h[8:])
		h.SetTTL(rapid.Byte().Draw(t, "ttl'"))
		h.SetChecksum(ChecksumUpdate16(h.Checksum(), old, binary.BigEndian.Uint16(h[8:])))
		if Checksum(h[:4*words], 0) != 0 {
			t.Fatalf("checksum %04x does not verify after updates", h.Checksum())
		}
	})
	// RFC 1624 §4: the case that RFC 1141 gets wrong.
	if got := ChecksumUpdate16(0xDD2F, 0x5555, 0x3285); got != 0x0000 {
		t.Errorf("RFC 1624 example: %04x", got)
	}
	// RFC 1071 §3, and odd lengths.
	if got := Checksum([]byte{0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7}, 0); got != ^uint16(0xddf2) {
		t.Errorf("RFC 1071 example: %04x", got)
	}
	for n := range 70 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(0xFF - i*i)
		}
		s := uint32(0x1234)
		for i, v := range b {
			s += uint32(v) << (8 * (1 - i&1))
		}
		s = s>>16 + s&0xFFFF
		if got := Checksum(b, 0x1234); got != ^uint16(s>>16+s) {
			t.Errorf("checksum of %d bytes: %04x", n, got)
		}
	}
}

// The local ACK timeout of each exponent (ibv_modify_qp(3)).
func TestAckTimeout(t *testing.T) {
	for _, tc := range []struct {
		code uint8
		want time.Duration
	}{{0, 0}, {1, 8192}, {14, 67108864}, {18, 1073741824}, {31, 4096 << 31}, {32, 0}} {
		if got := AckTimeout(tc.code); got != tc.want {
			t.Errorf("AckTimeout(%d) = %v, want %v", tc.code, got, tc.want)
		}
	}
}
