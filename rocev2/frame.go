// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"net/netip"
)

// Kind is the kind of a decoded frame.
type Kind uint8

// Kinds of frame. The zero Frame, and one that Decode refused, has no kind.
const (
	KindNone   Kind = iota
	KindRoCE        // RoCEv2: UDP to port 4791
	KindUDP         // UDP to another port
	KindARP         // ARP; see DecodeARP
	KindICMPv6      // ICMPv6; see DecodeNeighborSolicitation and BuildEchoReply
	KindOther       // IP with another protocol
	KindICMP        // ICMP over IPv4; see BuildEchoReply
	KindMAD         // RoCEv2 to queue pair 1: a management datagram
)

// String returns the name of k.
func (k Kind) String() string {
	switch k {
	case KindRoCE:
		return "roce"
	case KindUDP:
		return "udp"
	case KindARP:
		return "arp"
	case KindICMPv6:
		return "icmpv6"
	case KindICMP:
		return "ICMP"
	case KindMAD:
		return "mad"
	case KindOther:
		return "other"
	}
	return "none"
}

// Frame is the result of one checked Decode: a buffer and the offsets of the
// headers in it. It refers to the buffer and copies nothing.
//
// A RoCE frame of DecodeChain may continue in more buffers; see Rest. All its headers are
// in the first one. Bytes, L3, UDPPayload and Payload then end with the first buffer,
// while lengths, offsets and the ICRC are those of the whole frame.
//
// Accessors return nil, or a zero value, for a header that the frame does not have: for
// example RETH of a SEND, or BTH of a frame that is not RoCE. A view that is not nil has
// the length of its header, so its methods cannot panic. The offsets remain those of the
// decode if a view is then written to.
//
// A Frame is a plain value for one goroutine at a time; reuse it.
type Frame struct {
	buf   []byte // the first buffer, trimmed to the length that IP (or ARP) gives
	chain *Chain // all buffers, trimmed likewise; nil if there is only one

	Kind       Kind
	Op         Opcode // KindRoCE
	v6         bool
	vlans      uint8
	pad        uint8
	flags      OpFlags
	l3         uint32 // IP or ARP header
	l4         uint32 // UDP, ICMP or ICMPv6 header, or payload of KindOther
	payloadOff uint32 // UDP payload; for KindRoCE the payload after the extension headers
	rest       uint32 // bytes in the other buffers
}

// Bytes returns the frame from its Ethernet header to the end that IP gives, as
// far as it is in the first buffer: Ethernet padding is cut off.
func (f *Frame) Bytes() []byte { return f.buf }

// Len returns the length in bytes from the Ethernet header to the end that IP
// gives, in all buffers.
func (f *Frame) Len() int { return len(f.buf) + int(f.rest) }

// IsIPv6 reports whether the frame is IPv6.
func (f *Frame) IsIPv6() bool { return f.v6 }

// IsIPv4 reports whether the frame is IPv4.
func (f *Frame) IsIPv4() bool { return f.Kind != KindNone && f.Kind != KindARP && !f.v6 }

// Eth returns the Ethernet header.
func (f *Frame) Eth() Ethernet {
	if f.Kind == KindNone {
		return nil
	}
	return Ethernet(f.buf[:EthernetLen])
}

// VLAN returns the number of VLAN tags, 0..2, and the outer one's TCI.
func (f *Frame) VLAN() (tags int, tci uint16) {
	if f.vlans == 0 {
		return 0, 0
	}
	return int(f.vlans), f.VLANTag(0).TCI()
}

// VLANTag returns VLAN tag i, 0 being the outer one; nil if there is none.
func (f *Frame) VLANTag(i int) VLAN {
	if i < 0 || i >= int(f.vlans) {
		return nil
	}
	o := EthernetLen + i*VLANLen
	return VLAN(f.buf[o : o+VLANLen])
}

// L3Offset returns the offset in bytes of the IP or ARP header.
func (f *Frame) L3Offset() int { return int(f.l3) }

// L4Offset returns the offset in bytes of the IP payload: the UDP header of a RoCE or UDP
// frame.
func (f *Frame) L4Offset() int { return int(f.l4) }

// L3 returns the frame from its IP header on, as far as it is in the first
// buffer.
func (f *Frame) L3() []byte { return f.buf[f.l3:] }

// IPv4 returns the IPv4 header with its options.
func (f *Frame) IPv4() IPv4 {
	if !f.IsIPv4() {
		return nil
	}
	return IPv4(f.buf[f.l3:f.l4])
}

// IPv6 returns the IPv6 header.
func (f *Frame) IPv6() IPv6 {
	if !f.v6 {
		return nil
	}
	return IPv6(f.buf[f.l3:f.l4])
}

// Src returns the IP source; IPv4 addresses are 4-byte ones. It is the zero
// Addr if the frame is not IP.
func (f *Frame) Src() netip.Addr {
	if f.v6 {
		return f.IPv6().Src()
	}
	if !f.IsIPv4() {
		return netip.Addr{}
	}
	return f.IPv4().Src()
}

// Dst returns the IP destination, as Src does the source.
func (f *Frame) Dst() netip.Addr {
	if f.v6 {
		return f.IPv6().Dst()
	}
	if !f.IsIPv4() {
		return netip.Addr{}
	}
	return f.IPv4().Dst()
}

// ECN returns the ECN code point of the IP header.
func (f *Frame) ECN() ECN {
	switch {
	case f.v6:
		return f.IPv6().ECN()
	case f.IsIPv4():
		return f.IPv4().ECN()
	}
	return NotECT
}

// SetECN sets the ECN code point, and patches the IPv4 header checksum. The
// ICRC does not cover it.
func (f *Frame) SetECN(e ECN) {
	switch {
	case f.v6:
		h := f.IPv6()
		h.SetTrafficClass(h.TrafficClass()&^3 | uint8(e&3))
	case f.IsIPv4():
		h := f.IPv4()
		old := binary.BigEndian.Uint16(h[0:2])
		h.SetTOS(h.TOS()&^3 | uint8(e&3))
		h.SetChecksum(ChecksumUpdate16(h.Checksum(), old, binary.BigEndian.Uint16(h[0:2])))
	}
}

// UDP returns the UDP header.
func (f *Frame) UDP() UDP {
	if f.Kind != KindRoCE && f.Kind != KindUDP {
		return nil
	}
	return UDP(f.buf[f.l4 : f.l4+UDPLen])
}

// UDPPayload returns the UDP payload, also of a RoCE frame, as far as it is in the first
// buffer.
func (f *Frame) UDPPayload() []byte {
	if f.Kind != KindRoCE && f.Kind != KindUDP {
		return nil
	}
	return f.buf[f.l4+UDPLen:]
}

// BTH returns the base transport header.
func (f *Frame) BTH() BTH {
	if f.Kind != KindRoCE {
		return nil
	}
	o := f.l4 + UDPLen
	return BTH(f.buf[o : o+BTHLen])
}

// ext returns extension header h of n bytes, after those named by before.
func (f *Frame) ext(h OpFlags, n uint32, before OpFlags) []byte {
	if f.flags&h == 0 {
		return nil
	}
	o := f.l4 + UDPLen + BTHLen
	if f.flags&before&OpFETH != 0 {
		o += FETHLen
	}
	if f.flags&before&OpRETH != 0 {
		o += RETHLen
	}
	return f.buf[o : o+n]
}

// FETH returns the flush header of a FLUSH, FETHLen bytes, undecoded.
func (f *Frame) FETH() []byte { return f.ext(OpFETH, FETHLen, 0) }

// RETH returns the RDMA header.
func (f *Frame) RETH() RETH { return RETH(f.ext(OpRETH, RETHLen, OpFETH)) }

// AETH returns the ACK header.
func (f *Frame) AETH() AETH { return AETH(f.ext(OpAETH, AETHLen, 0)) }

// ImmDt returns the immediate data.
func (f *Frame) ImmDt() ImmDt { return ImmDt(f.ext(OpImm, ImmDtLen, OpRETH)) }

// IETH returns the invalidate header.
func (f *Frame) IETH() IETH { return IETH(f.ext(OpIETH, IETHLen, 0)) }

// AtomicETH returns the atomic header.
func (f *Frame) AtomicETH() AtomicETH { return AtomicETH(f.ext(OpAtomicETH, AtomicETHLen, 0)) }

// Payload returns the payload after BTH and its extension headers, without pad; for a UDP
// frame the UDP payload, for ICMPv6 and other protocols the IP payload. Of a frame in
// several buffers it is the part in the first one: see PayloadIn.
func (f *Frame) Payload() []byte {
	switch f.Kind {
	case KindRoCE:
		return f.buf[f.payloadOff:min(len(f.buf), f.Len()-ICRCLen-int(f.pad))]
	case KindNone, KindARP:
		return nil
	}
	return f.buf[f.payloadOff:]
}

// PayloadLen returns the length in bytes of the payload in all buffers.
func (f *Frame) PayloadLen() int {
	switch f.Kind {
	case KindRoCE:
		return f.Len() - ICRCLen - int(f.pad) - int(f.payloadOff)
	case KindNone, KindARP:
		return 0
	}
	return f.Len() - int(f.payloadOff)
}

// Pad returns the number of pad bytes between payload and ICRC, 0..3.
func (f *Frame) Pad() int { return int(f.pad) }

// Tail returns the number of bytes from the end of the headers to the ICRC:
// payload and pad. It selects the operators of the incremental ICRC.
func (f *Frame) Tail() int {
	if f.Kind != KindRoCE {
		return 0
	}
	return f.Len() - ICRCLen - int(f.payloadOff)
}

// ICRC returns the ICRC that the frame carries; 0 if it is not RoCE.
func (f *Frame) ICRC() uint32 {
	if f.chain != nil || f.Kind != KindRoCE {
		return f.chainICRC()
	}
	return binary.LittleEndian.Uint32(f.buf[len(f.buf)-ICRCLen:])
}

// SetICRC writes the ICRC, least significant byte first. It does nothing if
// the frame is not RoCE.
func (f *Frame) SetICRC(c uint32) {
	if f.chain != nil || f.Kind != KindRoCE {
		f.setChainICRC(c)
		return
	}
	binary.LittleEndian.PutUint32(f.buf[len(f.buf)-ICRCLen:], c)
}

// VerifyUDPChecksum reports whether the UDP checksum is right, or absent over
// IPv4. Over IPv6 an absent one is wrong (RFC 8200 §8.1), except in RoCEv2.
func (f *Frame) VerifyUDPChecksum() bool {
	u := f.UDP()
	if u == nil {
		return false
	}
	if u.Checksum() == 0 {
		return !f.v6 || f.Kind == KindRoCE
	}
	return ^fold(sumChain(f.buf[f.l4:], f.Rest(), f.udpPseudoSum())) == 0
}

// PartialUDPChecksum reports whether the sender left the UDP checksum to its network
// device (Linux: CHECKSUM_PARTIAL). The field then holds the folded sum of the pseudo
// header, not complemented, and the device completes it (udp4_hwcsum, udp6_hwcsum). Such
// a frame has not passed a physical device: it comes from a veth, a tap or another
// interface within this machine.
func (f *Frame) PartialUDPChecksum() bool {
	u := f.UDP()
	return u != nil && u.Checksum() == fold(f.udpPseudoSum())
}

// udpPseudoSum is the sum of the pseudo header of a frame that has a UDP header.
func (f *Frame) udpPseudoSum() uint64 {
	return pseudoSum(f.Src(), f.Dst(), ProtoUDP, f.Len()-int(f.l4))
}
