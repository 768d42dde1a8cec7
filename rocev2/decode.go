// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import "encoding/binary"

// maxVLANTags is the number of VLAN tags that Decode accepts.
const maxVLANTags = 2

// Decode checks the frame in buf, from its Ethernet header on, and fills f. It returns
// OK, or the reason why the frame is refused; f is then the zero Frame.
//
// Lengths come from IP and UDP alone. Bytes after the IP packet (Ethernet padding) are
// ignored; a frame shorter than its IP length is refused, and so is a UDP length that
// differs from the length of the IP payload. For RoCEv2 the opcode, the lengths it
// implies, the pad count and the transport version are checked; the ICRC is not (see
// VerifyICRC), nor are P_Key and addresses. The IPv4 header checksum is checked, the UDP
// checksum is not (see VerifyUDPChecksum).
func Decode(buf []byte, f *Frame) Reason {
	*f = Frame{}
	r := f.decodeEthernet(buf)
	if r != OK {
		*f = Frame{}
	}
	return r
}

// decodeEthernet and its callees see buf, the first buffer; f.more bytes are in other
// buffers, none for Decode.
func (f *Frame) decodeEthernet(buf []byte) Reason {
	if len(buf) < EthernetLen {
		return f.short(EthernetLen - len(buf))
	}
	o := EthernetLen
	et := Ethernet(buf).EtherType()
	for et == EtherTypeVLAN || et == EtherTypeQinQ {
		if f.vlans == maxVLANTags {
			return ReasonVLANDepth
		}
		if len(buf) < o+VLANLen {
			return f.short(o + VLANLen - len(buf))
		}
		et = VLAN(buf[o : o+VLANLen]).EtherType()
		o += VLANLen
		f.vlans++
	}
	f.l3 = uint32(o)
	switch et {
	case EtherTypeIPv4:
		return f.decodeIPv4(buf)
	case EtherTypeIPv6:
		return f.decodeIPv6(buf)
	case EtherTypeARP:
		if len(buf) < o+ARPLen {
			return f.short(o + ARPLen - len(buf))
		}
		f.Kind, f.buf, f.rest = KindARP, buf[:o+ARPLen], 0
		return OK
	}
	return ReasonNotIP
}

func (f *Frame) decodeIPv4(buf []byte) Reason {
	p := buf[f.l3:]
	if len(p) < IPv4Len {
		return f.short(IPv4Len - len(p))
	}
	h := IPv4(p)
	hl, n := h.HeaderLen(), h.TotalLen()
	if h[0]>>4 != 4 || hl < IPv4Len || n < hl {
		return ReasonBadIPHeader
	}
	if len(p) < n {
		if r := f.continues(p, n, hl); r != OK {
			return r
		}
		n = len(p)
	} else {
		f.rest = 0
	}
	if Checksum(p[:hl], 0) != 0 {
		return ReasonIPChecksum
	}
	if h.FlagsFragment()&0x3FFF != 0 { // more fragments, or an offset
		return ReasonFragment
	}
	f.l4 = f.l3 + uint32(hl)
	f.buf = buf[:int(f.l3)+n]
	switch h.Protocol() {
	case ProtoUDP:
		return f.decodeUDP()
	case ProtoICMP:
		f.Kind, f.payloadOff = KindICMP, f.l4
		return OK
	}
	f.Kind, f.payloadOff = KindOther, f.l4
	return OK
}

func (f *Frame) decodeIPv6(buf []byte) Reason {
	p := buf[f.l3:]
	if len(p) < IPv6Len {
		return f.short(IPv6Len - len(p))
	}
	h := IPv6(p)
	if h[0]>>4 != 6 {
		return ReasonBadIPHeader
	}
	n := IPv6Len + h.PayloadLen()
	if len(p) < n {
		if r := f.continues(p, n, IPv6Len); r != OK {
			return r
		}
		n = len(p)
	} else {
		f.rest = 0
	}
	f.v6 = true
	f.l4 = f.l3 + IPv6Len
	f.buf = buf[:int(f.l3)+n]
	switch h.NextHeader() {
	case ProtoUDP:
		return f.decodeUDP()
	case ProtoICMPv6:
		f.Kind, f.payloadOff = KindICMPv6, f.l4
		return OK
	case 44:
		return ReasonFragment
	case 0, 43, 51, 60, 135, 139, 140, 253, 254: // the IANA registry of extension headers, without ESP
		return ReasonIPv6Extension
	}
	f.Kind, f.payloadOff = KindOther, f.l4
	return OK
}

func (f *Frame) decodeUDP() Reason {
	p := f.buf[f.l4:]
	if len(p) < UDPLen {
		return f.shortOr(ReasonBadUDPLength, UDPLen-len(p))
	}
	if UDP(p).Len() != len(p)+int(f.rest) {
		return ReasonBadUDPLength
	}
	f.payloadOff = f.l4 + UDPLen
	if binary.BigEndian.Uint16(p[2:4]) != UDPPort {
		f.Kind = KindUDP
		return OK
	}
	return f.decodeBTH(p[UDPLen:])
}

// Payload lengths in bytes that these opcodes require.
const (
	cnpPayloadLen    = 16
	atomicPayloadLen = 8 // AtomicAckETH, and the value of an ATOMIC_WRITE
)

// decodeBTH checks the UDP payload, of which p is in the first buffer.
func (f *Frame) decodeBTH(p []byte) Reason {
	if len(p) < BTHLen+ICRCLen {
		if r := f.shortBTH(p); r != OK {
			return r
		}
	}
	b := BTH(p[:BTHLen])
	op := b.Opcode()
	fl := op.Flags()
	if isMAD(b) {
		return f.decodeMAD(p)
	}
	if fl&OpKnown == 0 {
		return ReasonUnknownOpcode
	}
	if b.TVer() != 0 {
		return ReasonBadTVer
	}
	// The bytes between extension headers and ICRC are payload and pad: a
	// multiple of 4 (IBTA §9.4.3), of which pad is no more than there are.
	n := len(p) + int(f.rest) - BTHLen - op.ExtLen() - ICRCLen
	if n < 0 {
		return ReasonBadBTHLength
	}
	pad := b.Pad()
	if n&3 != 0 || pad > n {
		return ReasonBadPad
	}
	switch {
	case fl&OpPayload == 0:
		if n != 0 {
			return ReasonBadBTHLength
		}
	case op == CNP:
		if n-pad != cnpPayloadLen {
			return ReasonBadBTHLength
		}
	case op == AtomicAck || op == AtomicWrite:
		if n-pad != atomicPayloadLen {
			return ReasonBadBTHLength
		}
	}
	f.Kind, f.Op, f.flags, f.pad = KindRoCE, op, fl, uint8(pad)
	f.payloadOff += uint32(BTHLen + op.ExtLen())
	return OK
}
