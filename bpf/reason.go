// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

// Reason is the exit that a frame took out of the XDP program: every frame
// counts for exactly one. It is enum steer_reason of steer.c.
type Reason uint32

// Reasons. PassX frames went on to the kernel, XskX frames to the AF_XDP socket
// of their RX queue, FastX frames to receivers; DropX frames went nowhere.
const (
	PassOther          Reason = iota // neither to a group nor a request for a group's address
	PassTruncated                    // ends inside the Ethernet, VLAN, ARP or IP header
	PassVLANDepth                    // more than two VLAN tags, and not more than eight
	PassGroupOther                   // to a group, but neither RoCEv2 nor envelope nor ND
	PassGroupExtension               // to a group, with an IPv6 extension header
	DropGroupFragment                // to a group, an IP fragment
	DropGroupTruncated               // to a group, ends inside the UDP header
	DropNoSocket                     // for user space, but its RX queue has no socket
	DropGuardIPv4                    // the source is in a group prefix
	DropGuardIPv6                    // likewise
	DropGuardARP                     // the sender is in a group prefix
	DropGuardND                      // advertisement or redirect of an address in a group prefix
	DropGuardICMP                    // error or redirect that quotes a packet to a group
	DropGuardHidden                  // headers that the guard needs and cannot read
	DropPortBlocked                  // for user space, from a bridge port that does not forward
	DropPortVLAN                     // ... in a VLAN that the port, or the bridge itself, is not in
	DropPortLocked                   // ... from a MAC address that may not send by a locked port
	DropAllowMAC                     // ... from a MAC address that is not in the port's allow list
	DropAllowAddress                 // ... from an address that is not in the port's allow list
	XskRoCEv2                        // UDP port 4791 to a group
	XskEnvelope                      // the envelope port to a group
	XskARP                           // ARP request for a group address
	XskND                            // neighbour solicitation for a group address
	XskEcho                          // ICMP or ICMPv6 echo request to a group address
	FastRoCEv2                       // from a group's source, replicated in XDP
	NumReasons
)

var reasonNames = [NumReasons]string{
	PassOther:          "pass_other",
	PassTruncated:      "pass_truncated",
	PassVLANDepth:      "pass_vlan_depth",
	PassGroupOther:     "pass_group_other",
	PassGroupExtension: "pass_group_extension",
	DropGroupFragment:  "drop_group_fragment",
	DropGroupTruncated: "drop_group_truncated",
	DropNoSocket:       "drop_no_socket",
	DropGuardIPv4:      "drop_guard_ipv4",
	DropGuardIPv6:      "drop_guard_ipv6",
	DropGuardARP:       "drop_guard_arp",
	DropGuardND:        "drop_guard_nd",
	DropGuardICMP:      "drop_guard_icmp",
	DropGuardHidden:    "drop_guard_hidden",
	DropPortBlocked:    "drop_port_blocked",
	DropPortVLAN:       "drop_port_vlan",
	DropPortLocked:     "drop_port_locked",
	DropAllowMAC:       "drop_allow_mac",
	DropAllowAddress:   "drop_allow_address",
	XskRoCEv2:          "xsk_rocev2",
	XskEnvelope:        "xsk_envelope",
	XskARP:             "xsk_arp",
	XskND:              "xsk_nd",
	XskEcho:            "xsk_echo",
	FastRoCEv2:         "fast_rocev2",
}

// String returns the name under which r is counted.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "invalid"
}

// IsGuard reports whether frames that took exit r were dropped by the port guard or by
// the port's policy, because of their sender. A bridge port that does not forward is no
// sender's fault.
func (r Reason) IsGuard() bool {
	return r >= DropGuardIPv4 && r <= DropAllowAddress && r != DropPortBlocked
}

// IsGroupSender reports whether frames that took exit r were dropped since their sender, or the address
// that they speak for, is in a group prefix.
func (r Reason) IsGroupSender() bool { return r >= DropGuardIPv4 && r <= DropGuardND }

// Counters are the frames that took each exit, by Reason.
type Counters [NumReasons]uint64

// reasonTexts explain the exits to an operator. docs/COUNTERS.md is made of them.
var reasonTexts = [NumReasons]string{
	PassOther:          "neither to a group nor asking for one: the kernel's",
	PassTruncated:      "ends inside the Ethernet, VLAN, ARP or IP header: left to the kernel",
	PassVLANDepth:      "more than two VLAN tags, up to eight: left to the kernel",
	PassGroupOther:     "to a group, but neither RoCEv2 nor an envelope, neighbour discovery or echo request: left to the kernel",
	PassGroupExtension: "to a group, with an IPv6 extension header, which RNICs never send: left to the kernel",
	DropGroupFragment:  "to a group, an IP fragment: dropped; the sender's path MTU is larger than an MTU on the way",
	DropGroupTruncated: "to a group, ends inside the UDP header: dropped",
	DropNoSocket:       "for gleamd, by a receive queue without a socket: dropped; the interface has more queues than when gleamd started",
	DropGuardIPv4:      "IPv4 from an address in a group prefix: dropped; a host has such an address: change `group_prefixes`, or its address; or this is an attack, as only gleamd sends in a group's name",
	DropGuardIPv6:      "IPv6 from an address in a group prefix: dropped; a host has such an address: change `group_prefixes`, or its address; or this is an attack, as only gleamd sends in a group's name",
	DropGuardARP:       "ARP or RARP whose sender is an address in a group prefix: dropped; a host has such an address: change `group_prefixes`, or its address; or this is an attack, as only gleamd answers for groups",
	DropGuardND:        "a neighbour advertisement or redirect of an address in a group prefix: dropped; a host has such an address: change `group_prefixes`, or its address; or this is an attack, as only gleamd answers for groups",
	DropGuardICMP:      "an ICMP or ICMPv6 error or redirect about a packet to a group: dropped; such packets end at gleamd, so this is an attack",
	DropGuardHidden:    "more than eight VLAN tags or IPv6 extension headers, or headers in a later fragment or buffer, where the source guard cannot read them: dropped",
	DropPortBlocked:    "for gleamd, at a port that its bridge does not forward from (spanning tree, or disabled): dropped, as the bridge would",
	DropPortVLAN:       "for gleamd, in a VLAN that the port, or the bridge itself, is not in: dropped, as the bridge would; or the interface takes tags off before (RX VLAN offload, `gleam doctor` has it), so that the frame seems to be in another VLAN",
	DropPortLocked:     "for gleamd, at a locked port, from a MAC address that the bridge does not have there: dropped, as the bridge would",
	DropAllowMAC:       "for gleamd, from a MAC address that is not in the port's `allow.macs`: dropped",
	DropAllowAddress:   "for gleamd, from an address that is not in the port's `allow.addresses`: dropped",
	XskRoCEv2:          "RoCEv2 to a group: taken by gleamd",
	XskEnvelope:        "an envelope to a group: taken by gleamd",
	XskARP:             "an ARP request for a group address: taken by gleamd",
	XskND:              "a neighbour solicitation for a group address: taken by gleamd",
	XskEcho:            "an ICMP or ICMPv6 echo request (ping) to a group address: taken by gleamd, which answers",
	FastRoCEv2:         "RoCEv2 of a group's source, in order: replicated by the XDP program itself, where the fast path is on",
}

// Text returns what r means, for people.
func (r Reason) Text() string {
	if r < NumReasons {
		return reasonTexts[r]
	}
	return ""
}
