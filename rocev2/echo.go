// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import "encoding/binary"

// Echo requests and replies: RFC 792, RFC 4443 §4.
const (
	echoLen         = 8 // the length without data
	icmpEchoReply   = 0
	icmpEchoRequest = 8

	icmpv6EchoRequest = 128
	icmpv6EchoReply   = 129
)

// BuildEchoReply writes into b the reply to the echo request in frame f, from the address
// that the request was sent to, at mac, with f's VLAN tag. An identification is answered
// as a switch does. It returns the reply's length in bytes; 0 if b is too short or f has
// two tags. The reason is not OK unless f has a valid echo request in one buffer.
func BuildEchoReply(b []byte, f *Frame, mac MAC) (n int, r Reason) {
	if f.Kind != KindICMP && f.Kind != KindICMPv6 || f.rest != 0 {
		return 0, ReasonBadEcho
	}
	q := f.buf[f.l4:]
	request, reply, proto := byte(icmpEchoRequest), byte(icmpEchoReply), ProtoICMP
	if f.v6 {
		request, reply, proto = icmpv6EchoRequest, icmpv6EchoReply, ProtoICMPv6
	}
	if len(q) < echoLen || q[0] != request || q[1] != 0 || !isHost(f) || echoChecksum(f, q) != 0 {
		return 0, ReasonBadEcho
	}
	p := Path{SrcMAC: mac, DstMAC: f.Eth().Src(), Src: f.Dst(), Dst: f.Src()}
	if f.v6 {
		p.TOS = f.IPv6().TrafficClass()
	} else {
		p.TOS = f.IPv4().TOS()
	}
	if !p.tagLike(f) {
		return 0, OK
	}
	at := p.l2Len() + p.ipLen()
	if n = at + len(q); len(b) < n {
		return 0, OK
	}
	p.putIP(b, proto, len(q))
	copy(b[at:], q)
	// One byte of the sum changes; the order of source and destination does not count.
	b[at] = reply
	old, now := uint16(request)<<8, uint16(reply)<<8
	binary.BigEndian.PutUint16(b[at+2:], ChecksumUpdate16(binary.BigEndian.Uint16(q[2:4]), old, now))
	identify(&p, b[at:n])
	return n, OK
}

// isHost reports whether f comes from an address that may get an answer.
func isHost(f *Frame) bool {
	src := f.Src()
	return !src.IsUnspecified() && !src.IsMulticast() && src.As16() != [16]byte{10: 0xFF, 11: 0xFF, 12: 0xFF, 13: 0xFF, 14: 0xFF, 15: 0xFF}
}

func echoChecksum(f *Frame, q []byte) uint16 {
	if f.v6 {
		return transportChecksum(f.Src(), f.Dst(), ProtoICMPv6, q)
	}
	return Checksum(q, 0)
}
