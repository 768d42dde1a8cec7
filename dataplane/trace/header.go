// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Header is what a filter compares of a frame, and where the payload begins. Peek reads it
// from frames that may be damaged, or of another kind than RoCEv2.
type Header struct {
	Src, Dst netip.Addr // the IP addresses; not valid: no IP packet
	UDPPort  uint16     // destination; 0: none
	IsRoCE   bool       // true: the frame has a BTH, and the fields below count
	Op       rocev2.Opcode
	PSN      rocev2.PSN
	DestQP   rocev2.QPN
	Syndrome rocev2.Syndrome // the syndrome of an Acknowledge
	Len      int             // bytes of the frame before the payload, as far as Peek knows the protocol
}

// otherHeaders is the number of bytes that count as headers of a frame whose protocol Peek does
// not know: an ARP request or a neighbour solicitation is that long.
const otherHeaders = 96

// envelopeHeader is the length of the header that messages of UDP port 4797 begin with, for
// IPv4; it has two addresses. What follows it may name R_Keys.
const envelopeHeader = 38

// Peek reads the headers of an Ethernet frame of which b has the beginning.
func Peek(b []byte, envelopePort uint16) (h Header) {
	h.Len = min(len(b), otherHeaders)
	at := rocev2.EthernetLen
	if len(b) < at {
		return h
	}
	kind := binary.BigEndian.Uint16(b[at-2:])
	for kind == rocev2.EtherTypeVLAN || kind == rocev2.EtherTypeQinQ {
		if at += rocev2.VLANLen; len(b) < at {
			return h
		}
		kind = binary.BigEndian.Uint16(b[at-2:])
	}
	protocol := uint8(0)
	switch ip := b[at:]; {
	case kind == rocev2.EtherTypeIPv4 && len(ip) >= rocev2.IPv4Len:
		h.Src, h.Dst, protocol = rocev2.IPv4(ip).Src(), rocev2.IPv4(ip).Dst(), ip[9]
		at += max(rocev2.IPv4Len, int(ip[0]&0xF)*4)
	case kind == rocev2.EtherTypeIPv6 && len(ip) >= rocev2.IPv6Len:
		h.Src, h.Dst, protocol = rocev2.IPv6(ip).Src(), rocev2.IPv6(ip).Dst(), ip[6]
		at += rocev2.IPv6Len
	default:
		return h
	}
	if protocol != udp || len(b) < at+rocev2.UDPLen {
		return h
	}
	h.UDPPort = binary.BigEndian.Uint16(b[at+2:])
	at += rocev2.UDPLen
	switch {
	case h.UDPPort == rocev2.UDPPort && len(b) >= at+rocev2.BTHLen:
		bth := rocev2.BTH(b[at:][:rocev2.BTHLen])
		h.IsRoCE, h.Op, h.PSN, h.DestQP = true, bth.Opcode(), bth.PSN(), bth.DestQP()
		at += rocev2.BTHLen
		if h.Op == rocev2.Acknowledge && len(b) >= at+rocev2.AETHLen {
			h.Syndrome = rocev2.AETH(b[at:][:rocev2.AETHLen]).Syndrome()
		}
		at += h.Op.ExtLen()
	case h.UDPPort == envelopePort:
		at += envelopeHeader + 2*h.Src.BitLen()/8
	}
	h.Len = min(len(b), at)
	return h
}

// udp is the number of UDP in IP headers.
const udp = 17
