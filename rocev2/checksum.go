// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Checksum returns the Internet checksum of b (RFC 1071), started with the
// one's complement sum init.
func Checksum(b []byte, init uint32) uint16 { return ^fold(onesSum(b, uint64(init))) }

// onesSum adds the 16-bit big endian words of b to s, modulo 2^64-1. A one's
// complement sum may be taken over words of 64 bits as well, with the carry
// added back, since 2^16 is 1 modulo 2^16-1 (RFC 1071 §2).
func onesSum(b []byte, s uint64) uint64 {
	var carry uint64
	for len(b) >= 16 {
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b), carry)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b[8:]), carry)
		b = b[16:]
	}
	if len(b) >= 8 {
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	// The remaining bytes make one more word, with zeros to their right.
	var w uint64
	shift := 48
	if len(b) >= 4 {
		w = uint64(binary.BigEndian.Uint32(b)) << 32
		b, shift = b[4:], 16
	}
	if len(b) >= 2 {
		w |= uint64(binary.BigEndian.Uint16(b)) << shift
		b, shift = b[2:], shift-16
	}
	if len(b) == 1 {
		w |= uint64(b[0]) << (shift + 8)
	}
	s, carry = bits.Add64(s, w, carry)
	return s + carry // cannot wrap: with a carry out, s is below 2^64-1
}

func fold(s uint64) uint16 {
	s = s>>32 + s&0xFFFFFFFF
	s = s>>16 + s&0xFFFF
	s = s>>16 + s&0xFFFF
	return uint16(s>>16 + s)
}

// ChecksumUpdate16 returns checksum c after one 16-bit word under it changed
// from old to new: HC' = ~(~HC + ~m + m') (RFC 1624 eqn. 3).
func ChecksumUpdate16(c, old, new uint16) uint16 {
	s := uint32(^c) + uint32(^old) + uint32(new)
	s = s>>16 + s&0xFFFF
	return ^uint16(s>>16 + s)
}

// ChecksumUpdate64 is ChecksumUpdate16 for four adjacent words, such as both
// addresses of an IPv4 header.
func ChecksumUpdate64(c uint16, old, new uint64) uint16 {
	s := uint64(^c) + uint64(uint32(^old)) + ^old>>32 + uint64(uint32(new)) + new>>32
	return ^fold(s)
}

// pseudoSum returns the one's complement sum of the pseudo header of RFC 768
// (IPv4) or RFC 8200 §8.1 (IPv6) for n bytes of protocol proto. Both addresses are
// of one family.
func pseudoSum(src, dst netip.Addr, proto uint8, n int) uint64 {
	s := uint64(proto) + uint64(n)
	if src.Is4() {
		a, b := src.As4(), dst.As4()
		return onesSum(b[:], onesSum(a[:], s))
	}
	a, b := src.As16(), dst.As16()
	return onesSum(b[:], onesSum(a[:], s))
}

// transportChecksum returns the checksum of segment b, a UDP or ICMPv6 header with its
// payload, under the pseudo header. It is 0 if b holds the right checksum.
func transportChecksum(src, dst netip.Addr, proto uint8, b []byte) uint16 {
	return ^fold(onesSum(b, pseudoSum(src, dst, proto, len(b))))
}
