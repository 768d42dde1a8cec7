// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import "encoding/binary"

// An identification is an echo request to a group address whose data asks who answers. A
// switch returns the data with another label and the MAC address of its port; any other
// host returns the data as they are. docs/PROTOCOL.md §13 has the bytes. It tells a switch
// from a host that has the address, or answers for it; it proves nothing against a host
// that knows the labels.

// Nonce is what an answer repeats from its question.
type Nonce [16]byte

// Layout of an identification's data.
const (
	labelLen      = 8
	identifyMACAt = labelLen
	identifyNonce = identifyMACAt + 6
	identifyLen   = identifyNonce + len(Nonce{})
	identifyAsk   = "gleam: ?"
	identifySwear = "gleam: !"
)

// IdentifyRequestLen is the longest frame of BuildIdentifyRequest in bytes.
const IdentifyRequestLen = EthernetLen + VLANLen + IPv6Len + echoLen + identifyLen

// BuildIdentifyRequest writes an echo request from p.Src to p.Dst that asks who answers. It
// returns its length in bytes; 0 if b is too short or the addresses are missing or of two
// families.
func BuildIdentifyRequest(b []byte, p *Path, nonce Nonce) int {
	at := p.l2Len() + p.ipLen()
	n := at + echoLen + identifyLen
	if !p.valid() || len(b) < n {
		return 0
	}
	request, proto := byte(icmpEchoRequest), ProtoICMP
	if p.Dst.Is6() {
		request, proto = icmpv6EchoRequest, ProtoICMPv6
	}
	p.putIP(b, proto, n-at)
	q := b[at:n]
	clear(q)
	q[0] = request
	copy(q[echoLen:], identifyAsk)
	copy(q[echoLen+identifyNonce:], nonce[:])
	putEchoChecksum(p, q)
	return n
}

// identify makes the reply q, with the headers of p, that of a switch if it is the reply to
// an identification.
func identify(p *Path, q []byte) {
	data := q[echoLen:]
	if len(data) != identifyLen || string(data[:labelLen]) != identifyAsk {
		return
	}
	copy(data, identifySwear)
	copy(data[identifyMACAt:], p.SrcMAC[:])
	putEchoChecksum(p, q)
}

func putEchoChecksum(p *Path, q []byte) {
	q[2], q[3] = 0, 0
	sum := Checksum(q, 0)
	if p.Dst.Is6() {
		sum = transportChecksum(p.Src, p.Dst, ProtoICMPv6, q)
	}
	binary.BigEndian.PutUint16(q[2:4], sum)
}

// Identification is the answer to a request of BuildIdentifyRequest.
type Identification struct {
	Nonce  Nonce
	Switch bool // a switch says that it is one
	MAC    MAC  // the MAC of the switch's port, if a switch answers
}

// DecodeIdentification reads the answer in frame f; ok is false if it is none.
func DecodeIdentification(f *Frame) (x Identification, ok bool) {
	if f.Kind != KindICMP && f.Kind != KindICMPv6 || f.rest != 0 {
		return x, false
	}
	q := f.buf[f.l4:]
	reply := byte(icmpEchoReply)
	if f.v6 {
		reply = icmpv6EchoReply
	}
	if len(q) != echoLen+identifyLen || q[0] != reply || q[1] != 0 || echoChecksum(f, q) != 0 {
		return x, false
	}
	data := q[echoLen:]
	switch string(data[:labelLen]) {
	case identifySwear:
		x.Switch, x.MAC = true, MAC(data[identifyMACAt:])
	case identifyAsk:
	default:
		return x, false
	}
	x.Nonce = Nonce(data[identifyNonce:])
	return x, true
}
