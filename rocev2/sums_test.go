// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"testing"
)

// edges are the words at which carries happen.
var edges = []uint16{0, 1, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF}

// sameSum says whether two one's complement sums are the same number: 0 has two forms.
func sameSum(a, b uint16) bool { return a%0xFFFF == b%0xFFFF }

// A sum of 64 bits folds to its remainder modulo 2^16-1, whichever carries it has.
func TestFoldAtTheEdges(t *testing.T) {
	for _, a := range edges {
		for _, b := range edges {
			for _, c := range edges {
				for _, d := range edges {
					s := uint64(a)<<48 | uint64(b)<<32 | uint64(c)<<16 | uint64(d)
					if got, want := fold(s), uint16(s%0xFFFF); !sameSum(got, want) || (s != 0) != (got != 0) {
						t.Fatalf("fold of %016x: %04x, want %04x", s, got, want)
					}
				}
			}
		}
	}
}

// An updated checksum verifies, whichever words change.
func TestChecksumUpdateAtTheEdges(t *testing.T) {
	for _, other := range edges {
		for _, old := range edges {
			for _, now := range edges {
				h := make([]byte, 16)
				binary.BigEndian.PutUint16(h[0:], other)
				binary.BigEndian.PutUint16(h[4:], old)
				binary.BigEndian.PutUint16(h[10:], other)
				sum := Checksum(h, 0)
				binary.BigEndian.PutUint16(h[4:], now)
				if binary.BigEndian.PutUint16(h[2:], ChecksumUpdate16(sum, old, now)); !sameSum(Checksum(h, 0), 0) {
					t.Fatalf("%04x, %04x to %04x: does not verify", other, old, now)
				}
				before := binary.BigEndian.Uint64(h[8:])
				for _, w := range edges {
					binary.BigEndian.PutUint16(h[14:], w)
					binary.BigEndian.PutUint16(h[12:], now)
					binary.BigEndian.PutUint16(h[8:], old)
					after := binary.BigEndian.Uint64(h[8:])
					sum := ChecksumUpdate64(binary.BigEndian.Uint16(h[2:]), before, after)
					if binary.BigEndian.PutUint16(h[2:], sum); !sameSum(Checksum(h, 0), 0) {
						t.Fatalf("%016x to %016x: does not verify", before, after)
					}
					before = after
				}
			}
		}
	}
}

// A checksum that comes out as 0 is sent as 0xFFFF: 0 means none.
func TestUDPChecksumIsNeverAbsent(t *testing.T) {
	for _, p := range []Path{v4Path(), v6Path()} {
		b := make([]byte, 200)
		n := BuildUDP(b, &p, 4797, []byte{0, 0})
		f := mustDecode(t, b[:n])
		zero := binary.BigEndian.AppendUint16(nil, f.UDP().Checksum()) // the sum of all is 0xFFFF with it
		n = BuildUDP(b, &p, 4797, zero)
		if f := mustDecode(t, b[:n]); f.UDP().Checksum() != 0xFFFF || !f.VerifyUDPChecksum() {
			t.Errorf("checksum %04x", f.UDP().Checksum())
		}
	}
}

// Operators are built for every multiple of four up to the greatest, and for nothing else.
func TestOperatorsThatAreBuilt(t *testing.T) {
	z := NewOperators(12)
	for n := -8; n <= 20; n++ {
		if got, want := z.Has(n), n >= 0 && n <= 12 && n%4 == 0; got != want {
			t.Errorf("operator of %d bytes: %v", n, got)
		}
	}
	z = &Operators{}
	for _, n := range []int{-4, 3, 0} {
		z.Build(n)
	}
	if !z.Has(0) || len(z.byLength) != 1 {
		t.Errorf("%d operators, built for 0 bytes: %v", len(z.byLength), z.Has(0))
	}
}

// Two frames whose lengths differ have no common change of ICRC.
func TestHeaderDeltaOfUnequalFrames(t *testing.T) {
	p, six := v4Path(), v6Path()
	send := &Packet{Op: SendOnly}
	base := mustBuild(t, &p, send, make([]byte, 24))
	udp := make([]byte, 200)
	udp = udp[:BuildUDP(udp, &p, 4797, make([]byte, 20))]
	frames := map[string][]byte{
		"UDP":           udp,
		"IPv6":          mustBuild(t, &six, send, make([]byte, 24)),
		"IPv4 options":  withOptions(t, base, 1),
		"other headers": mustBuild(t, &p, &Packet{Op: SendOnlyImm}, make([]byte, 24)),
		"other payload": mustBuild(t, &p, send, make([]byte, 28)),
	}
	var z Operators
	f := mustDecode(t, base)
	if d, ok := z.HeaderDelta(f, mustDecode(t, base)); d != 0 || !ok {
		t.Errorf("from a frame to itself: %08x, %v", d, ok)
	}
	for name, b := range frames {
		g := mustDecode(t, b)
		for _, pair := range [][2]*Frame{{f, g}, {g, f}} {
			if d, ok := z.HeaderDelta(pair[0], pair[1]); d != 0 || ok {
				t.Errorf("%s: %08x, %v", name, d, ok)
			}
		}
	}
}
