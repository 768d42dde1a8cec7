/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * Sightings: a frame that is left to the kernel, from a MAC address or with a sender's
 * address (ARP, neighbour discovery) that belongs to a pinned host, but came by another
 * port, or from another MAC address, than the host's. The kernel itself does not report
 * such frames, since its entries are pinned. A sighting is no proof of a move: user space
 * sends the host an inquiry, once a second and port at most. Frames for user space are not
 * compared. A host is reported four times a second at most, since each report wakes user
 * space; and all hosts together at a port at the rate of user space's inquiries there.
 */
#pragma once

#include "headers.h"

#define MAX_PINS 65536
/* A port reports a host once in that time, in ns. */
#define SIGHTING_AGAIN 250000000
/* A port reports SIGHTING_BURST hosts at once, and one more in each SIGHTING_GAP, in ns. */
#define SIGHTING_BURST 256
#define SIGHTING_GAP 4000000
#define TOLD_BITS 10

struct pin_mac {
	__u8 mac[6];
	__u8 zero[2];
};

/* The location of a pinned host. */
struct pin_addr {
	__u32 ifindex;
	__u8 mac[6];
	__u8 zero[2];
};

struct sighting {
	__u32 ifindex;
	__u16 vlan; /* of the outermost tag; 0: none */
	__u8 mac[6]; /* of the frame */
	__u8 addr[16]; /* of the pinned host, IPv4 mapped to IPv6; zeros if only the MAC address is known */
};

/* The port of a pinned MAC address; 0: it is at several. Shared by all ports. */
struct {
	UINT(type, BPF_MAP_TYPE_HASH);
	TYPE(key, struct pin_mac);
	TYPE(value, __u32);
	UINT(max_entries, MAX_PINS);
	UINT(map_flags, BPF_F_NO_PREALLOC);
} pin_macs SEC(".maps");

/* By address, IPv4 mapped to IPv6. Shared by all ports. */
struct {
	UINT(type, BPF_MAP_TYPE_HASH);
	TYPE(key, __u8[16]);
	TYPE(value, struct pin_addr);
	UINT(max_entries, MAX_PINS);
	UINT(map_flags, BPF_F_NO_PREALLOC);
} pin_addrs SEC(".maps");

/* Shared by all ports. */
struct {
	UINT(type, BPF_MAP_TYPE_RINGBUF);
	UINT(max_entries, 65536);
} sightings SEC(".maps");

/* A host that the port has reported. */
struct reported {
	__u64 who[2]; /* addr of the sighting, or its MAC address and zeros */
	__u64 at;
};

/*
 * The hosts reported last, by the port's slot and a hash: two hosts with the same one may be
 * reported more often. CPUs write without a lock, which costs a sighting too many at worst.
 */
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct reported);
	UINT(max_entries, 1 << TOLD_BITS);
} reported SEC(".maps");

/* By slot, the time at which the port may report a whole burst again. */
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, __u64);
	UINT(max_entries, 1);
} telling SEC(".maps");

/* Whether the port may report a host now. */
INLINE int may_tell(const struct sighting *s, __u32 port)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 who[2] = {};

	__builtin_memcpy(who, s->addr, sizeof(who));
	if (!(who[0] | who[1]))
		__builtin_memcpy(who, s->mac, sizeof(s->mac));
	__u32 hash = ((who[0] ^ who[1] * 31) * 0x9E3779B97F4A7C15ULL) >> (64 - TOLD_BITS);
	__u32 key = (port << TOLD_BITS) + hash;
	struct reported *t = bpf_map_lookup_elem(&reported, &key);
	__u64 *full = bpf_map_lookup_elem(&telling, &port);
	if (!t || !full)
		return 0;
	if (t->who[0] == who[0] && t->who[1] == who[1] && now - t->at < SIGHTING_AGAIN)
		return 0;
	__u64 from = *full > now ? *full : now;
	if (from - now > (SIGHTING_BURST - 1) * (__u64)SIGHTING_GAP)
		return 0;
	*full = from + SIGHTING_GAP;
	t->who[0] = who[0];
	t->who[1] = who[1];
	t->at = now;
	return 1;
}

INLINE int same_mac(const __u8 *a, const __u8 *b)
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3] && a[4] == b[4] && a[5] == b[5];
}

/* The address that the sender of an ARP or neighbour discovery packet claims. */
INLINE int sender_address(void *l3, void *end, __u16 type, __u8 *addr)
{
	if (type == htons(ETHERTYPE_ARP)) {
		struct arp_ipv4 *arp = l3;

		if ((void *)(arp + 1) > end)
			return 0;
		addr[10] = addr[11] = 0xFF;
		__builtin_memcpy(addr + 12, arp->sender_ip, 4);
		return 1;
	}
	if (type == htons(ETHERTYPE_IPV6)) {
		struct ipv6_header *ip = l3;
		struct neighbor_solicitation *nd = (void *)(ip + 1); /* an advertisement looks alike */

		if ((void *)(nd + 1) > end || ip->next_header != PROTO_ICMPV6)
			return 0;
		if (nd->type == ND_NEIGHBOR_ADVERTISEMENT)
			__builtin_memcpy(addr, nd->target, 16);
		else if (nd->type == ND_NEIGHBOR_SOLICITATION)
			__builtin_memcpy(addr, ip->src, 16);
		else
			return 0;
		return 1;
	}
	return 0;
}

/* Reports a frame whose sender is a host that is pinned elsewhere. */
INLINE void look(struct xdp_md *ctx, __u32 slot)
{
	void *data = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;
	struct eth_header *eth = data;
	struct sighting s = {.ifindex = ctx->ingress_ifindex};
	struct pin_mac key = {};
	int elsewhere = 0;

	if ((void *)(eth + 1) > end)
		return;
	__builtin_memcpy(key.mac, eth->src, 6);
	__builtin_memcpy(s.mac, eth->src, 6);
	__u32 *port = bpf_map_lookup_elem(&pin_macs, &key);
	if (port && *port && *port != s.ifindex)
		elsewhere = 1;

	void *l3 = eth + 1;
	__u16 type = eth->type;
	struct vlan_tag *tag = l3;
	if ((type == htons(ETHERTYPE_VLAN) || type == htons(ETHERTYPE_QINQ)) && (void *)(tag + 1) <= end) {
		s.vlan = ntohs(tag->tci) & 0xFFF;
		type = tag->type;
		l3 = tag + 1;
	}
	__u8 addr[16] = {};
	if (sender_address(l3, end, type, addr)) {
		struct pin_addr *pin = bpf_map_lookup_elem(&pin_addrs, addr);
		if (pin && (pin->ifindex != s.ifindex || !same_mac(pin->mac, s.mac))) {
			__builtin_memcpy(s.addr, addr, 16);
			elsewhere = 1;
		}
	}
	if (elsewhere && may_tell(&s, slot))
		bpf_ringbuf_output(&sightings, &s, sizeof(s), 0);
}
