// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"net/netip"
)

// IP protocol numbers.
const (
	ProtoUDP    uint8 = 17
	ProtoICMPv6 uint8 = 58
	ProtoICMP   uint8 = 1
)

// Lengths in bytes of IP headers; IPv4 without options.
const (
	IPv4Len = 20
	IPv6Len = 40
)

// ECN is the low two bits of TOS or traffic class (RFC 3168 §5).
type ECN uint8

// ECN code points.
const (
	NotECT ECN = 0
	ECT1   ECN = 1
	ECT0   ECN = 2
	CE     ECN = 3
)

// ipv4DF is the don't-fragment flag in the flags and fragment offset field.
const ipv4DF = 0x4000

// IPv4 is an IPv4 header with its options (RFC 791 §3.1).
//
//	0 version|IHL  1 TOS  2 total length  4 id  6 flags|fragment offset
//	8 TTL  9 protocol  10 checksum  12 source  16 destination  20 options
type IPv4 []byte

// HeaderLen returns the header's length in bytes, with options.
func (h IPv4) HeaderLen() int { return int(h[0]&0x0F) * 4 }

// TOS returns DSCP (6 bits) and ECN (2 bits).
func (h IPv4) TOS() uint8 { return h[1] }

// ECN returns the ECN code point.
func (h IPv4) ECN() ECN { return ECN(h[1] & 3) }

// TotalLen returns the length in bytes of header and payload.
func (h IPv4) TotalLen() int { return int(binary.BigEndian.Uint16(h[2:4])) }

// ID returns the identification. It is covered by the ICRC.
func (h IPv4) ID() uint16 { return binary.BigEndian.Uint16(h[4:6]) }

// FlagsFragment returns the flags (3 bits) and fragment offset (13 bits).
func (h IPv4) FlagsFragment() uint16 { return binary.BigEndian.Uint16(h[6:8]) }

// TTL returns the time to live, in hops.
func (h IPv4) TTL() uint8 { return h[8] }

// Protocol returns the protocol of the payload.
func (h IPv4) Protocol() uint8 { return h[9] }

// Checksum returns the header checksum.
func (h IPv4) Checksum() uint16 { return binary.BigEndian.Uint16(h[10:12]) }

// Src returns the source address.
func (h IPv4) Src() netip.Addr { return netip.AddrFrom4([4]byte(h[12:16])) }

// Dst returns the destination address.
func (h IPv4) Dst() netip.Addr { return netip.AddrFrom4([4]byte(h[16:20])) }

// The setters below leave the checksum alone: finish with UpdateChecksum, or
// patch it with ChecksumUpdate64.

// SetTOS sets DSCP and ECN.
func (h IPv4) SetTOS(t uint8) { h[1] = t }

// SetTTL sets the time to live.
func (h IPv4) SetTTL(t uint8) { h[8] = t }

// SetID sets the identification.
func (h IPv4) SetID(id uint16) { binary.BigEndian.PutUint16(h[4:6], id) }

// SetSrc sets the source address. It panics if a is not an IPv4 address.
func (h IPv4) SetSrc(a netip.Addr) { b := a.As4(); copy(h[12:16], b[:]) }

// SetDst sets the destination address. It panics if a is not an IPv4 address.
func (h IPv4) SetDst(a netip.Addr) { b := a.As4(); copy(h[16:20], b[:]) }

// SetChecksum sets the header checksum.
func (h IPv4) SetChecksum(c uint16) { binary.BigEndian.PutUint16(h[10:12], c) }

// UpdateChecksum computes the header checksum anew and sets it.
func (h IPv4) UpdateChecksum() {
	h.SetChecksum(0)
	h.SetChecksum(Checksum(h[:h.HeaderLen()], 0))
}

// IPv6 is an IPv6 header (RFC 8200 §3).
//
//	0 version|class|flow label  4 payload length  6 next header  7 hop limit
//	8 source  24 destination
type IPv6 []byte

// TrafficClass returns DSCP (6 bits) and ECN (2 bits).
func (h IPv6) TrafficClass() uint8 { return uint8(binary.BigEndian.Uint16(h[0:2]) >> 4) }

// ECN returns the ECN code point.
func (h IPv6) ECN() ECN { return ECN(h.TrafficClass() & 3) }

// FlowLabel returns the flow label, 20 bits.
func (h IPv6) FlowLabel() uint32 { return binary.BigEndian.Uint32(h[0:4]) & 0xFFFFF }

// PayloadLen returns the length in bytes of the part after the header.
func (h IPv6) PayloadLen() int { return int(binary.BigEndian.Uint16(h[4:6])) }

// NextHeader returns the protocol of the payload.
func (h IPv6) NextHeader() uint8 { return h[6] }

// HopLimit returns the hop limit.
func (h IPv6) HopLimit() uint8 { return h[7] }

// Src returns the source address.
func (h IPv6) Src() netip.Addr { return netip.AddrFrom16([16]byte(h[8:24])) }

// Dst returns the destination address.
func (h IPv6) Dst() netip.Addr { return netip.AddrFrom16([16]byte(h[24:40])) }

// SetTrafficClass sets DSCP and ECN.
func (h IPv6) SetTrafficClass(t uint8) {
	binary.BigEndian.PutUint16(h[0:2], binary.BigEndian.Uint16(h[0:2])&0xF00F|uint16(t)<<4)
}

// SetFlowLabel sets the flow label; bits above 20 are ignored.
func (h IPv6) SetFlowLabel(l uint32) {
	binary.BigEndian.PutUint32(h[0:4], binary.BigEndian.Uint32(h[0:4])&^0xFFFFF|l&0xFFFFF)
}

// SetHopLimit sets the hop limit.
func (h IPv6) SetHopLimit(l uint8) { h[7] = l }

// SetSrc sets the source address.
func (h IPv6) SetSrc(a netip.Addr) { b := a.As16(); copy(h[8:24], b[:]) }

// SetDst sets the destination address.
func (h IPv6) SetDst(a netip.Addr) { b := a.As16(); copy(h[24:40], b[:]) }
