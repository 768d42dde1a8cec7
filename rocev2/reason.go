// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

// Reason is the reason why a frame was refused; OK (0) if it was not. Reasons are small
// and dense so that a driver can count them in an array of NumReasons.
type Reason uint8

// Reasons of Decode, DecodeChain, DecodeARP and DecodeNeighborSolicitation.
const (
	OK                   Reason = iota
	ReasonTruncated             // the frame ends before the length that its headers claim
	ReasonVLANDepth             // more than two VLAN tags
	ReasonNotIP                 // an EtherType other than IPv4, IPv6 and ARP
	ReasonBadIPHeader           // impossible version, header length or total length
	ReasonIPChecksum            // IPv4 header checksum is wrong
	ReasonFragment              // an IP fragment; RoCEv2 is never fragmented
	ReasonIPv6Extension         // an IPv6 extension header
	ReasonBadUDPLength          // UDP length differs from the length of the IP payload
	ReasonBadBTHLength          // too short for BTH, its extension headers and ICRC, or not of the length that its opcode requires
	ReasonBadTVer               // BTH transport version is not 0
	ReasonUnknownOpcode         // no RC opcode, no CNP and no management datagram
	ReasonBadPad                // BTH pad count exceeds or misaligns the payload
	ReasonBadARP                // an ARP packet that is not Ethernet/IPv4
	ReasonBadND                 // a neighbour discovery message that violates RFC 4861 §7.1
	ReasonICMPv6Checksum        // ICMPv6 checksum is wrong
	ReasonBadEcho               // an ICMP or ICMPv6 message that is no valid echo request
	ReasonSplitHeaders          // in several buffers, and not all headers are in the first one
	ReasonSplitOther            // in several buffers, and not RoCEv2
	ReasonBadQKey               // a management datagram with another Q_Key than that of queue pair 1
	NumReasons                  // the number of reasons
)

var reasonNames = [NumReasons]string{
	OK:                   "ok",
	ReasonTruncated:      "truncated",
	ReasonVLANDepth:      "vlan_depth",
	ReasonNotIP:          "not_ip",
	ReasonBadIPHeader:    "bad_ip_header",
	ReasonIPChecksum:     "ip_checksum",
	ReasonFragment:       "fragment",
	ReasonIPv6Extension:  "ipv6_extension",
	ReasonBadUDPLength:   "bad_udp_length",
	ReasonBadBTHLength:   "bad_bth_length",
	ReasonBadTVer:        "bad_tver",
	ReasonUnknownOpcode:  "unknown_opcode",
	ReasonBadPad:         "bad_pad",
	ReasonBadARP:         "bad_arp",
	ReasonBadND:          "bad_nd",
	ReasonICMPv6Checksum: "icmpv6_checksum",
	ReasonBadEcho:        "bad_echo",
	ReasonSplitHeaders:   "split_headers",
	ReasonSplitOther:     "split_not_roce",
	ReasonBadQKey:        "bad_qkey",
}

// String returns the name of r as counters show it.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "unknown_reason"
}

// reasonTexts tell an operator the meaning and the origin of each reason.
// docs/COUNTERS.md is generated from them.
var reasonTexts = [NumReasons]string{
	OK:                   "not refused",
	ReasonTruncated:      "a frame that ends before the length that its headers claim: cut off on the way, or longer than its buffers",
	ReasonVLANDepth:      "more than two VLAN tags",
	ReasonNotIP:          "an EtherType other than IPv4, IPv6 and ARP",
	ReasonBadIPHeader:    "an IP header whose version, header length or total length cannot be",
	ReasonIPChecksum:     "the IPv4 header checksum is wrong: the frame was damaged, or its sender leaves the checksum to a NIC that it does not pass",
	ReasonFragment:       "an IP fragment: RoCEv2 is never fragmented, so the sender's path MTU is larger than an MTU on the way",
	ReasonIPv6Extension:  "an IPv6 extension header, which RNICs never send",
	ReasonBadUDPLength:   "the UDP length differs from what IP carries",
	ReasonBadBTHLength:   "too short for the headers that the opcode demands, or not of the length that it demands",
	ReasonBadTVer:        "the transport version of the BTH is not 0",
	ReasonUnknownOpcode:  "no opcode of RC, and no CNP: the queue pair is of another type",
	ReasonBadPad:         "the pad count of the BTH exceeds or misaligns the payload",
	ReasonBadARP:         "an ARP packet that is not Ethernet and IPv4",
	ReasonBadND:          "a neighbour discovery message against RFC 4861 §7.1",
	ReasonICMPv6Checksum: "the ICMPv6 checksum is wrong",
	ReasonBadEcho:        "an ICMP or ICMPv6 message to a group that is no echo request, or one whose checksum is wrong",
	ReasonSplitHeaders:   "a packet in several buffers whose headers are not all in the first one",
	ReasonSplitOther:     "a packet in several buffers that is not RoCEv2: envelopes are never that long",
	ReasonBadQKey:        "a management datagram (RDMA-CM) whose Q_Key is not that of queue pair 1",
}

// Text returns the meaning of r, for people.
func (r Reason) Text() string {
	if r < NumReasons {
		return reasonTexts[r]
	}
	return ""
}
