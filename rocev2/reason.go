// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

// Reason is the reason why a frame was refused; OK (0) if it was not. Reasons are small
// and dense so that a driver can count them in an array of NumReasons.
type Reason uint8

// Reasons of Decode, DecodeChain, DecodeARP and DecodeNeighborSolicitation. What each means is in
// the table reasons.
const (
	OK Reason = iota
	ReasonTruncated
	ReasonVLANDepth
	ReasonNotIP
	ReasonBadIPHeader
	ReasonIPChecksum
	ReasonFragment
	ReasonIPv6Extension
	ReasonBadUDPLength
	ReasonBadBTHLength
	ReasonBadTVer
	ReasonUnknownOpcode
	ReasonBadPad
	ReasonBadARP
	ReasonBadND
	ReasonICMPv6Checksum
	ReasonBadEcho
	ReasonSplitHeaders
	ReasonSplitOther
	ReasonBadQKey
	NumReasons
)

// reasons has a row for each Reason, and a last one for all other values: the name as counters show it, and
// the meaning for an operator. docs/COUNTERS.md is made of it.
var reasons = [NumReasons + 1]struct {
	name, text string
}{
	OK:                   {name: "ok", text: "not refused"},
	ReasonTruncated:      {name: "truncated", text: "a frame that ends before the length that its headers claim: cut off on the way, or longer than its buffers"},
	ReasonVLANDepth:      {name: "vlan_depth", text: "more than two VLAN tags"},
	ReasonNotIP:          {name: "not_ip", text: "an EtherType other than IPv4, IPv6 and ARP"},
	ReasonBadIPHeader:    {name: "bad_ip_header", text: "an IP header whose version, header length or total length cannot be"},
	ReasonIPChecksum:     {name: "ip_checksum", text: "the IPv4 header checksum is wrong: the frame was damaged, or its sender leaves the checksum to a NIC that it does not pass"},
	ReasonFragment:       {name: "fragment", text: "an IP fragment: RoCEv2 is never fragmented, so the sender's path MTU is larger than an MTU on the way"},
	ReasonIPv6Extension:  {name: "ipv6_extension", text: "an IPv6 extension header, which RNICs never send"},
	ReasonBadUDPLength:   {name: "bad_udp_length", text: "the UDP length differs from what IP carries"},
	ReasonBadBTHLength:   {name: "bad_bth_length", text: "too short for the headers that the opcode demands, or not of the length that it demands"},
	ReasonBadTVer:        {name: "bad_tver", text: "the transport version of the BTH is not 0"},
	ReasonUnknownOpcode:  {name: "unknown_opcode", text: "no opcode of RC, and no CNP: the queue pair is of another type"},
	ReasonBadPad:         {name: "bad_pad", text: "the pad count of the BTH exceeds or misaligns the payload"},
	ReasonBadARP:         {name: "bad_arp", text: "an ARP packet that is not Ethernet and IPv4"},
	ReasonBadND:          {name: "bad_nd", text: "a neighbour discovery message against RFC 4861 §7.1"},
	ReasonICMPv6Checksum: {name: "icmpv6_checksum", text: "the ICMPv6 checksum is wrong"},
	ReasonBadEcho:        {name: "bad_echo", text: "an ICMP or ICMPv6 message to a group that is no echo request, or one whose checksum is wrong"},
	ReasonSplitHeaders:   {name: "split_headers", text: "a packet in several buffers whose headers are not all in the first one"},
	ReasonSplitOther:     {name: "split_not_roce", text: "a packet in several buffers that is not RoCEv2: envelopes are never that long"},
	ReasonBadQKey:        {name: "bad_qkey", text: "a management datagram (RDMA-CM) whose Q_Key is not that of queue pair 1"},
	NumReasons:           {name: "unknown_reason"},
}

// String returns the name of r as counters show it.
func (r Reason) String() string { return reasons[min(r, NumReasons)].name }

// Text returns the meaning of r, for people.
func (r Reason) Text() string { return reasons[min(r, NumReasons)].text }
