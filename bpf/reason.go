// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

// Reason is the exit that a frame took out of the XDP program: every frame
// counts for exactly one. It is enum steer_reason of steer.c.
type Reason uint32

// Reasons. PassX frames went on to the kernel, XskX frames to the AF_XDP socket
// of their RX queue, FastX frames to receivers; DropX frames went nowhere. What each means is in
// the table reasons.
const (
	PassOther Reason = iota
	PassTruncated
	PassVLANDepth
	PassGroupOther
	PassGroupExtension
	DropGroupFragment
	DropGroupTruncated
	DropNoSocket
	DropGuardIPv4
	DropGuardIPv6
	DropGuardARP
	DropGuardND
	DropGuardICMP
	DropGuardHidden
	DropPortBlocked
	DropPortVLAN
	DropPortLocked
	DropAllowMAC
	DropAllowAddress
	XskRoCEv2
	XskEnvelope
	XskARP
	XskND
	XskEcho
	FastRoCEv2
	FastACK
	NumReasons
)

// reasons has a row for each Reason, and a last one for all other values. docs/COUNTERS.md is made of it.
var reasons = [NumReasons + 1]struct {
	name, text  string
	guard       bool // the answer of IsGuard
	groupSender bool // the answer of IsGroupSender
}{
	PassOther:          {name: "pass_other", text: "neither to a group nor asking for one: the kernel's"},
	PassTruncated:      {name: "pass_truncated", text: "ends inside the Ethernet, VLAN, ARP or IP header: left to the kernel"},
	PassVLANDepth:      {name: "pass_vlan_depth", text: "more than two VLAN tags, up to eight: left to the kernel"},
	PassGroupOther:     {name: "pass_group_other", text: "to a group, but neither RoCEv2 nor an envelope, neighbour discovery or echo request: left to the kernel"},
	PassGroupExtension: {name: "pass_group_extension", text: "to a group, with an IPv6 extension header, which RNICs never send: left to the kernel"},
	DropGroupFragment:  {name: "drop_group_fragment", text: "to a group, an IP fragment: dropped; the sender's path MTU is larger than an MTU on the way"},
	DropGroupTruncated: {name: "drop_group_truncated", text: "to a group, ends inside the UDP header: dropped"},
	DropNoSocket:       {name: "drop_no_socket", text: "for gleamd, by a receive queue without a socket: dropped; the interface has more queues than when gleamd started"},
	DropGuardIPv4:      {name: "drop_guard_ipv4", guard: true, groupSender: true, text: "IPv4 from an address in a group prefix: dropped; a host has such an address: change `group_prefixes`, or its address; or this is an attack, as only gleamd sends in a group's name"},
	DropGuardIPv6:      {name: "drop_guard_ipv6", guard: true, groupSender: true, text: "IPv6 from an address in a group prefix: dropped; a host has such an address: change `group_prefixes`, or its address; or this is an attack, as only gleamd sends in a group's name"},
	DropGuardARP:       {name: "drop_guard_arp", guard: true, groupSender: true, text: "ARP or RARP whose sender is an address in a group prefix: dropped; a host has such an address: change `group_prefixes`, or its address; or this is an attack, as only gleamd answers for groups"},
	DropGuardND:        {name: "drop_guard_nd", guard: true, groupSender: true, text: "a neighbour advertisement or redirect of an address in a group prefix: dropped; a host has such an address: change `group_prefixes`, or its address; or this is an attack, as only gleamd answers for groups"},
	DropGuardICMP:      {name: "drop_guard_icmp", guard: true, text: "an ICMP or ICMPv6 error or redirect about a packet to a group: dropped; such packets end at gleamd, so this is an attack"},
	DropGuardHidden:    {name: "drop_guard_hidden", guard: true, text: "more than eight VLAN tags or IPv6 extension headers, or headers in a later fragment or buffer, where the source guard cannot read them: dropped"},
	DropPortBlocked:    {name: "drop_port_blocked", text: "for gleamd, at a port that its bridge does not forward from (spanning tree, or disabled): dropped, as the bridge would"},
	DropPortVLAN:       {name: "drop_port_vlan", guard: true, text: "for gleamd, in a VLAN that the port, or the bridge itself, is not in: dropped, as the bridge would; or the interface takes tags off before (RX VLAN offload, `gleam doctor` has it), so that the frame seems to be in another VLAN"},
	DropPortLocked:     {name: "drop_port_locked", guard: true, text: "for gleamd, at a locked port, from a MAC address that the bridge does not have there: dropped, as the bridge would"},
	DropAllowMAC:       {name: "drop_allow_mac", guard: true, text: "for gleamd, from a MAC address that is not in the port's `allow.macs`: dropped"},
	DropAllowAddress:   {name: "drop_allow_address", guard: true, text: "for gleamd, from an address that is not in the port's `allow.addresses`: dropped"},
	XskRoCEv2:          {name: "xsk_rocev2", text: "RoCEv2 to a group: taken by gleamd"},
	XskEnvelope:        {name: "xsk_envelope", text: "an envelope to a group: taken by gleamd"},
	XskARP:             {name: "xsk_arp", text: "an ARP request for a group address: taken by gleamd"},
	XskND:              {name: "xsk_nd", text: "a neighbour solicitation for a group address: taken by gleamd"},
	XskEcho:            {name: "xsk_echo", text: "an ICMP or ICMPv6 echo request (ping) to a group address: taken by gleamd, which answers"},
	FastRoCEv2:         {name: "fast_rocev2", text: "RoCEv2 of a group's source, in order: replicated by the XDP program itself, where the fast path is on"},
	FastACK:            {name: "fast_ack", text: "ACKs of receivers that the XDP program has counted itself: dropped, or made the ACK to the source"},
	NumReasons:         {name: "invalid"},
}

// String returns the name under which r is counted.
func (r Reason) String() string { return reasons[min(r, NumReasons)].name }

// IsGuard reports whether frames that took exit r were dropped by the port guard or by
// the port's policy, because of their sender. A bridge port that does not forward is no
// sender's fault.
func (r Reason) IsGuard() bool { return reasons[min(r, NumReasons)].guard }

// IsGroupSender reports whether frames that took exit r were dropped since their sender, or the address
// that they speak for, is in a group prefix.
func (r Reason) IsGroupSender() bool { return reasons[min(r, NumReasons)].groupSender }

// Counters are the frames that took each exit, by Reason.
type Counters [NumReasons]uint64

// Text returns what r means, for people.
func (r Reason) Text() string { return reasons[min(r, NumReasons)].text }
