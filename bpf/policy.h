/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The policy of a port: the hosts behind it that may send to groups, resolve their addresses
 * and send envelopes. It has the rules of the port's bridge for frames for the bridge
 * itself, which these frames do not come to, and the lists of the configuration:
 *
 *   the bridge port does not forward (spanning tree, or disabled)    DROP_PORT_BLOCKED
 *   not in a VLAN of the port in which the bridge itself is          DROP_PORT_VLAN
 *   locked, and the MAC address is none that the bridge has there    DROP_PORT_LOCKED
 *   not in the list of MAC addresses                                 DROP_ALLOW_MAC
 *   not in the list of addresses                                     DROP_ALLOW_ADDRESS
 *
 * The last three are about hosts: the neighbour switch of the port, which has proved itself by
 * hellos, may send all the same. Its frames have the addresses of hosts behind it.
 *
 * Only frames for user space are checked: the bridge checks the others.
 */
#pragma once

#include "headers.h"

#define POLICY_BLOCKED 1
#define POLICY_VLANS 2
#define POLICY_LOCKED 4
#define POLICY_MACS 8
#define POLICY_ADDRESSES 16
#define POLICY_NEIGHBOUR 32

#define MAX_STATIONS 65536 /* of all ports */
#define MAX_ALLOWED 1024

struct policy {
	__u32 flags;	 /* 0: all hosts may send */
	__u16 pvid;	 /* of untagged frames; 0: none */
	__u16 tag_type;	 /* of the bridge's VLANs, as in the frame */
	__u8 vlans[512]; /* by VID, the lowest bit first */
	__u8 neighbour[6]; /* MAC address, if POLICY_NEIGHBOUR is set */
	__u8 zero[2];
};

/* A sender at the port of a slot; vid is 0 where the bridge does not filter VLANs. */
struct station {
	__u8 mac[6];
	__u16 vid;
	__u32 slot;
};

/* Prefixes of senders; the slot counts as their first 32 bits. */
struct allowed4 {
	__u32 len;
	__u32 slot;
	__u8 addr[4];
};

struct allowed6 {
	__u32 len;
	__u32 slot;
	__u8 addr[16];
};

/* By slot. */

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct policy);
	UINT(max_entries, 1);
} policies SEC(".maps");

/* The hosts that the bridge has at this port: they may send by a locked port. */
struct {
	UINT(type, BPF_MAP_TYPE_HASH);
	TYPE(key, struct station);
	TYPE(value, __u32);
	UINT(max_entries, MAX_STATIONS);
	UINT(map_flags, BPF_F_NO_PREALLOC);
} stations SEC(".maps");

/* The configuration's lists; vid is 0. */
struct {
	UINT(type, BPF_MAP_TYPE_HASH);
	TYPE(key, struct station);
	TYPE(value, __u32);
	UINT(max_entries, MAX_ALLOWED);
	UINT(map_flags, BPF_F_NO_PREALLOC);
} allowed_macs SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_LPM_TRIE);
	TYPE(key, struct allowed4);
	TYPE(value, __u32);
	UINT(max_entries, MAX_ALLOWED);
	UINT(map_flags, BPF_F_NO_PREALLOC);
} allowed4 SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_LPM_TRIE);
	TYPE(key, struct allowed6);
	TYPE(value, __u32);
	UINT(max_entries, MAX_ALLOWED);
	UINT(map_flags, BPF_F_NO_PREALLOC);
} allowed6 SEC(".maps");

INLINE int allows4(__u32 slot, const __u8 *addr, int request)
{
	struct allowed4 key = {.len = 64, .slot = slot};

	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	if (request && !(addr[0] | addr[1] | addr[2] | addr[3]))
		return 1; /* whether somebody has the address */
	return bpf_map_lookup_elem(&allowed4, &key) != 0;
}

/* Hosts also send requests from their link-local address, and from none before they have one. */
INLINE int allows6(__u32 slot, const __u8 *addr, int request)
{
	struct allowed6 key = {.len = 160, .slot = slot};
	__u64 word[2];

	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	__builtin_memcpy(word, addr, sizeof(word));
	if (request && (!(word[0] | word[1]) || (addr[0] == 0xFE && (addr[1] & 0xC0) == 0x80)))
		return 1;
	return bpf_map_lookup_elem(&allowed6, &key) != 0;
}

/* The exit of a frame after the policy: reason itself, or a drop. */
NOINLINE enum steer_reason police(struct xdp_md *ctx, __u32 reason, __u32 slot)
{
	void *end = (void *)(unsigned long)ctx->data_end;
	struct eth_header *eth = (void *)(unsigned long)ctx->data;
	struct vlan_tag *tag = (void *)(eth + 1);
	struct station who = {.slot = slot};
	struct policy *policy = bpf_map_lookup_elem(&policies, &slot);

	if (!policy || (void *)(eth + 1) > end)
		return reason;
	if (policy->flags & POLICY_BLOCKED)
		return DROP_PORT_BLOCKED;
	__builtin_memcpy(who.mac, eth->src, sizeof(who.mac));
	__u32 neighbour = policy->flags & POLICY_NEIGHBOUR && same_mac(policy->neighbour, who.mac);
	if (policy->flags & POLICY_MACS && !neighbour && !bpf_map_lookup_elem(&allowed_macs, &who))
		return DROP_ALLOW_MAC;
	if (policy->flags & POLICY_VLANS) {
		__u16 vid = 0;
		if (eth->type == policy->tag_type && (void *)(tag + 1) <= end)
			vid = ntohs(tag->tci) & 0xFFF;
		if (!vid)
			vid = policy->pvid;
		if (!(policy->vlans[(vid >> 3) & 511] & (1 << (vid & 7))))
			return DROP_PORT_VLAN;
		who.vid = vid;
	}
	if (neighbour)
		return reason;
	if (policy->flags & POLICY_LOCKED && !bpf_map_lookup_elem(&stations, &who))
		return DROP_PORT_LOCKED;
	if (!(policy->flags & POLICY_ADDRESSES))
		return reason;

	void *l3 = eth + 1;
	__u16 type = eth->type;
#pragma unroll
	for (int i = 0; i < MAX_VLAN_TAGS; i++) {
		if (!is_vlan(type))
			break;
		tag = l3;
		if ((void *)(tag + 1) > end)
			return DROP_ALLOW_ADDRESS;
		type = tag->type;
		l3 = tag + 1;
	}
	struct ipv4_header *ip = l3;
	struct ipv6_header *ip6 = l3;
	struct arp_ipv4 *arp = l3;
	if (type == htons(ETHERTYPE_IPV4) && (void *)(ip + 1) <= end && allows4(slot, ip->src, 0))
		return reason;
	if (type == htons(ETHERTYPE_IPV6) && (void *)(ip6 + 1) <= end && allows6(slot, ip6->src, reason == XSK_ND))
		return reason;
	if (type == htons(ETHERTYPE_ARP) && (void *)(arp + 1) <= end && allows4(slot, arp->sender_ip, 1))
		return reason;
	return DROP_ALLOW_ADDRESS;
}
