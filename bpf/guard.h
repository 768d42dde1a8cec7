/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The port guard: no frame in the name of a group comes through a port. Group
 * addresses belong to the switch, whose own frames leave by AF_XDP and do not
 * pass here. Hosts believe frames from them: acknowledgements, data, claims of
 * the address. The guard checks in every frame, for any destination:
 *
 *   source address of IPv4 and IPv6
 *   sender address of ARP and RARP, whatever the operation
 *   target of a neighbour advertisement; target and destination of a redirect
 *   destination of the packet that an ICMP or ICMPv6 error or redirect quotes
 *
 * Below up to MAX_TAGS VLAN tags, in LLC with and without SNAP, and behind up to
 * MAX_EXTENSIONS extension headers, more than any Linux host takes off or any
 * sender puts on. Frames with more of them are dropped, and so are frames whose needed headers are
 * not readable here (in later fragments or later buffers).
 */
#pragma once

#include "headers.h"

#define MAX_TAGS 8 /* VLAN devices nest up to 8 deep: MAX_NEST_DEV */
#define MAX_EXTENSIONS 8
#define MAX_HEADERS 2047 /* bytes of all headers together that are read */

/*
 * A header that is cut is no reason to drop a frame by itself: a host takes no
 * address from it. A header that goes on in another buffer, or in another
 * fragment, is a reason.
 */
INLINE enum steer_reason cut(struct xdp_md *ctx, int fragment)
{
	if (fragment)
		return DROP_GUARD_HIDDEN;
	if (frags && bpf_xdp_get_buff_len(ctx) > ctx->data_end - ctx->data)
		return DROP_GUARD_HIDDEN;
	return PASS_OTHER;
}

INLINE enum steer_reason guard_arp(struct xdp_md *ctx, void *l3, void *end)
{
	struct arp_ipv4 *arp = l3;

	if ((void *)(arp + 1) > end)
		return cut(ctx, 0);
	return in_group4(arp->sender_ip) ? DROP_GUARD_ARP : PASS_OTHER;
}

INLINE int quotes4(__u8 type)
{
	switch (type) {
	case ICMP_UNREACHABLE:
	case ICMP_SOURCE_QUENCH:
	case ICMP_REDIRECT:
	case ICMP_TIME_EXCEEDED:
	case ICMP_PARAMETER_PROBLEM:
		return 1;
	}
	return 0;
}

INLINE enum steer_reason guard_icmp4(struct xdp_md *ctx, void *l4, void *end, int fragment)
{
	struct icmp_header *icmp = l4;
	struct icmp_quote4 *error = l4;

	if ((void *)(icmp + 1) > end)
		return cut(ctx, fragment);
	if (!quotes4(icmp->type))
		return PASS_OTHER;
	if ((void *)(error + 1) > end)
		return cut(ctx, fragment);
	return in_group4(error->quoted.dst) ? DROP_GUARD_ICMP : PASS_OTHER;
}

INLINE enum steer_reason guard_ipv4(struct xdp_md *ctx, void *l3, void *end)
{
	struct ipv4_header *ip = l3;

	if ((void *)(ip + 1) > end)
		return cut(ctx, 0);
	if (in_group4(ip->src))
		return DROP_GUARD_IPV4;
	if (ip->protocol != PROTO_ICMP || ip->fragment & htons(IP_OFFSET))
		return PASS_OTHER;
	return guard_icmp4(ctx, l3 + (ip->version_ihl & 0x0F) * 4, end, ip->fragment & htons(IP_FRAGMENT));
}

INLINE enum steer_reason guard_icmp6(struct xdp_md *ctx, void *l4, void *end, int fragment)
{
	struct icmp_header *icmp = l4;
	struct icmp_quote6 *error = l4;
	struct neighbor_solicitation *nd = l4;
	struct nd_redirect *redirect = l4;

	if ((void *)(icmp + 1) > end)
		return cut(ctx, fragment);
	if (icmp->type <= ICMPV6_LAST_ERROR) {
		if ((void *)(error + 1) > end)
			return cut(ctx, fragment);
		return in_group6(error->quoted.dst) ? DROP_GUARD_ICMP : PASS_OTHER;
	}
	if (icmp->type != ND_NEIGHBOR_ADVERTISEMENT && icmp->type != ND_REDIRECT)
		return PASS_OTHER;
	if ((void *)(nd + 1) > end)
		return cut(ctx, fragment);
	if (in_group6(nd->target))
		return DROP_GUARD_ND;
	if (icmp->type != ND_REDIRECT)
		return PASS_OTHER;
	if ((void *)(redirect + 1) > end)
		return cut(ctx, fragment);
	return in_group6(redirect->destination) ? DROP_GUARD_ND : PASS_OTHER;
}

INLINE int is_extension(__u8 next_header)
{
	switch (next_header) {
	case PROTO_HOP_BY_HOP:
	case PROTO_ROUTING:
	case PROTO_AH:
	case PROTO_DEST_OPTIONS:
	case PROTO_MOBILITY:
	case PROTO_HIP:
	case PROTO_SHIM6:
		return 1;
	}
	return 0;
}

/*
 * The rest of an IPv6 packet from offset at on, where a header next is. A global
 * function: the verifier checks it once, not for each path to it.
 */
NOINLINE enum steer_reason guard_chain(struct xdp_md *ctx, __u64 at, __u64 next)
{
	void *end = (void *)(unsigned long)ctx->data_end;
	int fragment = 0;

	for (int i = 0; i <= MAX_EXTENSIONS; i++) {
		if (at > MAX_HEADERS)
			return DROP_GUARD_HIDDEN;
		void *l4 = (void *)(unsigned long)ctx->data + at;
		if (next == PROTO_ICMPV6)
			return guard_icmp6(ctx, l4, end, fragment);
		if (!is_extension(next) && next != PROTO_FRAGMENT)
			return PASS_OTHER;
		struct fragment_header *part = l4; /* all are as long at least */
		struct extension_header *extension = l4;
		if ((void *)(part + 1) > end)
			return cut(ctx, fragment);
		__u64 len = (extension->len + 1) * 8;
		if (next == PROTO_AH)
			len = (extension->len + 2) * 4;
		if (next == PROTO_FRAGMENT) {
			if (part->offset & htons(IPV6_OFFSET))
				return PASS_OTHER; /* the headers are in the first one */
			fragment = 1;
			len = sizeof(*part);
		}
		next = extension->next_header;
		at += len;
	}
	return DROP_GUARD_HIDDEN;
}

INLINE enum steer_reason guard_ipv6(struct xdp_md *ctx, void *l3, void *end)
{
	struct ipv6_header *ip = l3;

	if ((void *)(ip + 1) > end)
		return cut(ctx, 0);
	if (in_group6(ip->src))
		return DROP_GUARD_IPV6;
	if (ip->next_header == PROTO_UDP || ip->next_header == PROTO_TCP)
		return PASS_OTHER;
	return guard_chain(ctx, (void *)(ip + 1) - (void *)(unsigned long)ctx->data, ip->next_header);
}

INLINE int is_vlan(__u16 type)
{
	return type == htons(ETHERTYPE_VLAN) || type == htons(ETHERTYPE_QINQ);
}

INLINE enum steer_reason guard_l3(struct xdp_md *ctx, __u16 type, void *l3, void *end)
{
	switch (type) {
	case htons(ETHERTYPE_IPV4):
		return guard_ipv4(ctx, l3, end);
	case htons(ETHERTYPE_IPV6):
		return guard_ipv6(ctx, l3, end);
	case htons(ETHERTYPE_ARP):
	case htons(ETHERTYPE_RARP):
		return guard_arp(ctx, l3, end);
	}
	return PASS_OTHER;
}

/* Tags of VLANs, also of the EtherTypes that were in use before 802.1ad. */
INLINE int is_tag(__u16 type)
{
	return is_vlan(type) || type == htons(0x9100) || type == htons(0x9200) || type == htons(0x9300);
}

/* A length in place of an EtherType: LLC follows. */
INLINE int is_length(__u16 type)
{
	return __builtin_bswap16(type) < ETHERTYPE_FIRST;
}

/* Steering does not read what follows: guard_below does. */
INLINE int is_below(__u16 type)
{
	return is_tag(type) || is_length(type);
}

/* A frame with more tags than steering skips, or others, or with LLC. */
NOINLINE enum steer_reason guard_below(struct xdp_md *ctx)
{
	void *end = (void *)(unsigned long)ctx->data_end;
	struct eth_header *eth = (void *)(unsigned long)ctx->data;

	if ((void *)(eth + 1) > end)
		return cut(ctx, 0);
	void *l3 = eth + 1;
	__u16 type = eth->type;

#pragma unroll
	for (int i = 0; i < MAX_TAGS; i++) {
		struct vlan_tag *tag = l3;
		if (!is_tag(type))
			break;
		if ((void *)(tag + 1) > end)
			return cut(ctx, 0);
		type = tag->type;
		l3 = tag + 1;
	}
	if (is_length(type)) {
		struct snap_header *snap = l3;
		if ((void *)(snap + 1) > end)
			return cut(ctx, 0);
		if (snap->control != LLC_UI)
			return PASS_OTHER;
		if (snap->dsap == LLC_IP && snap->ssap == LLC_IP)
			return guard_ipv4(ctx, snap->organization, end);
		if (snap->dsap != LLC_SNAP || snap->ssap != LLC_SNAP || snap->organization[0] || snap->organization[1] ||
		    (snap->organization[2] && snap->organization[2] != SNAP_BRIDGED))
			return PASS_OTHER;
		type = snap->type;
		l3 = snap + 1;
	}
	if (is_tag(type))
		return DROP_GUARD_HIDDEN;
	return guard_l3(ctx, type, l3, end);
}
