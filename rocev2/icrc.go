// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"hash/crc32"
)

// The ICRC is the CRC-32 of Ethernet over the packet as an InfiniBand link
// would carry it (IBTA §7.8.1, annex A17): eight bytes of ones in place of the
// LRH, the IP and UDP headers, BTH, extension headers, payload and pad, with
// the fields that change on the way set to ones. It is stored least
// significant byte first.
//
//	IPv4: TOS, TTL, header checksum     IPv6: traffic class, flow label, hop limit
//	UDP:  checksum                      BTH:  byte 4 (FECN, BECN, reserved)

// icrcInit is the CRC register after the eight bytes of ones.
const icrcInit = 0xDEBB20E3

// crcStep is a table per byte of a 32-bit word: crcStep[i][v] is the register
// after byte v followed by i zero bytes. Only init writes it.
var crcStep = func() (t [4][256]uint32) {
	for v := range 256 {
		c := uint32(v)
		for i := range t {
			for range 8 {
				c = mulX(c)
			}
			t[i][v] = c
		}
	}
	return t
}()

// mulX multiplies by x modulo the CRC's polynomial; bit 31 is x^0.
func mulX(c uint32) uint32 { return c>>1 ^ (crc32.IEEE & -(c & 1)) }

// step returns register c after four more bytes, whose little endian value the
// caller has already added to it.
func step(c uint32) uint32 {
	return crcStep[3][c&0xFF] ^ crcStep[2][c>>8&0xFF] ^ crcStep[1][c>>16&0xFF] ^ crcStep[0][c>>24]
}

// Masks to OR to header words, as little endian loads.
const (
	maskIPv4W0 = 0x0000FF00 // TOS
	maskIPv4W2 = 0xFFFF00FF // TTL, header checksum
	maskIPv6W0 = 0xFFFFFF0F // traffic class, flow label
	maskIPv6W1 = 0xFF000000 // hop limit
	maskUDPW1  = 0xFFFF0000 // checksum
	maskBTHW1  = 0x000000FF // FECN, BECN, reserved
)

// ComputeICRC returns the ICRC of the frame as it is now; 0 if it is not RoCE.
func (f *Frame) ComputeICRC() uint32 {
	if f.chain != nil || f.Kind != KindRoCE {
		return f.computeChainICRC()
	}
	end := len(f.buf) - ICRCLen
	return icrc(f.buf[f.l3:end], int(f.l4-f.l3), f.v6)
}

// VerifyICRC reports whether the frame's ICRC is right. It is false if the
// frame is not RoCE.
func (f *Frame) VerifyICRC() bool {
	return f.Kind == KindRoCE && f.ComputeICRC() == f.ICRC()
}

// icrc computes the ICRC of p, a packet from its IP header of ipLen bytes to
// the end of its pad. p has at least the IP, UDP and base transport headers.
//
// The masked headers go through step word by word, so that no masked copy is
// made; the rest goes through hash/crc32 with its vector instructions.
func icrc(p []byte, ipLen int, v6 bool) uint32 {
	c := headerCRC(icrcInit, p, ipLen, v6)
	return crc32.Update(^c, crc32.IEEETable, p[ipLen+UDPLen+BTHLen:])
}

// headerCRC feeds the masked IP, UDP and base transport headers at the start
// of p to register c.
func headerCRC(c uint32, p []byte, ipLen int, v6 bool) uint32 {
	le := binary.LittleEndian
	if v6 {
		h := p[:IPv6Len]
		c = step(c ^ (le.Uint32(h[0:]) | maskIPv6W0))
		c = step(c ^ (le.Uint32(h[4:]) | maskIPv6W1))
		for o := 8; o+4 <= len(h); o += 4 {
			c = step(c ^ le.Uint32(h[o:]))
		}
	} else {
		h := p[:ipLen]
		c = step(c ^ (le.Uint32(h[0:]) | maskIPv4W0))
		c = step(c ^ le.Uint32(h[4:]))
		c = step(c ^ (le.Uint32(h[8:]) | maskIPv4W2))
		for o := 12; o+4 <= len(h); o += 4 {
			c = step(c ^ le.Uint32(h[o:]))
		}
	}
	h := p[ipLen : ipLen+UDPLen+BTHLen]
	c = step(c ^ le.Uint32(h[0:]))
	c = step(c ^ (le.Uint32(h[4:]) | maskUDPW1))
	c = step(c ^ le.Uint32(h[8:]))
	c = step(c ^ (le.Uint32(h[12:]) | maskBTHW1))
	return step(c ^ le.Uint32(h[16:]))
}
