// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Copyright 2026 The Gleam Authors */

//go:build ignore

/*
 * Steers frames for multicast groups to the AF_XDP sockets of the
 * switch, and leaves all others to the kernel. One instance serves all
 * ports, since the verifier takes long. Each port has a slot, which its part of
 * the maps goes by; the prefix maps are shared by all.
 *
 *   frame is                                         goes to
 *   in the name of a group (guard.h)                 dropped
 *   RoCEv2 or envelope (UDP), to a group address     XSK
 *   ARP request for a group address                  XSK
 *   ICMPv6 neighbour solicitation for a group        XSK
 *   ICMP or ICMPv6 echo request to a group address   XSK
 *   ... and its RX queue has no socket               dropped: the kernel must not answer for a group
 *   fragment, or truncated UDP, to a group address   dropped: it cannot be served
 *   any other                                        the kernel
 *
 * The program only steers: lengths, checksums and ICRC are checked in user
 * space, once. It reads the fields that the choice needs, and no others.
 *
 * There are two entries with the same rules. steer is for ports on which every
 * frame is in one buffer. steer_frags also accepts frames that go on in more
 * buffers, as they do where the MTU is beyond the size of a page; the headers
 * then have to be in the first buffer, from data to data_end, which alone
 * is read.
 */
#include "headers.h"
#include "prefixes.h"
#include "sight.h"

#define ROCEV2_PORT 4791
#define MAX_VLAN_TAGS 2
#define MAX_QUEUES 1024

/*
 * Every exit of the program counts one of these. The Go names are in
 * reason.go; TestReasonsMatchProgram compares the two.
 */
enum steer_reason {
	PASS_OTHER,		/* none of the below: not for the switch; 0 to the guard: no objection */
	PASS_TRUNCATED,		/* ends inside Ethernet, VLAN, ARP or IP header, or IHL < 5 */
	PASS_VLAN_DEPTH,	/* more than MAX_VLAN_TAGS tags, up to MAX_TAGS */
	PASS_GROUP_OTHER,	/* to a group, but neither RoCEv2 nor envelope nor ND */
	PASS_GROUP_EXTENSION,	/* to a group, with an IPv6 extension header */
	DROP_GROUP_FRAGMENT,	/* to a group, an IPv4 or IPv6 fragment */
	DROP_GROUP_TRUNCATED,	/* to a group, ends inside the UDP header */
	DROP_NO_SOCKET,		/* for user space, but the RX queue has no socket */
	DROP_GUARD_IPV4,	/* source in a group prefix */
	DROP_GUARD_IPV6,	/* likewise */
	DROP_GUARD_ARP,		/* sender in a group prefix */
	DROP_GUARD_ND,		/* advertisement or redirect of an address in a group prefix */
	DROP_GUARD_ICMP,	/* error or redirect that quotes a packet to a group */
	DROP_GUARD_HIDDEN,	/* headers that the guard needs and cannot read */
	DROP_PORT_BLOCKED,	/* for user space, but the policy of the port (policy.h) forbids it */
	DROP_PORT_VLAN,
	DROP_PORT_LOCKED,
	DROP_ALLOW_MAC,
	DROP_ALLOW_ADDRESS,
	XSK_ROCEV2,
	XSK_ENVELOPE,
	XSK_ARP,
	XSK_ND,
	XSK_ECHO,
	FAST_ROCEV2,		/* replicated here (fast_in.h) */
	FAST_ACK,		/* counted here, or sent on to the source (fast_ack.h) */
	NUM_REASONS,
};

/*
 * The slots of ports, by the interface. Slot 0 is that of no port: it has no sockets. A
 * bucket has the interfaces whose index is the same modulo PORT_BUCKETS.
 */
#define PORT_BUCKETS 1024
#define PORTS_IN_BUCKET 4

struct port_bucket {
	__u32 ifindex[PORTS_IN_BUCKET];
	__u32 slot[PORTS_IN_BUCKET];
};

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct port_bucket);
	UINT(max_entries, PORT_BUCKETS);
} ports SEC(".maps");

/*
 * The maps by slot have the entries of one slot here; the loader multiplies them by the
 * number of slots.
 */

/* By slot and RX queue. */
struct {
	UINT(type, BPF_MAP_TYPE_XSKMAP);
	TYPE(key, __u32);
	TYPE(value, __u32);
	UINT(max_entries, MAX_QUEUES);
} xsks SEC(".maps");

/* By slot and reason. */
struct {
	UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	TYPE(key, __u32);
	TYPE(value, __u64);
	UINT(max_entries, NUM_REASONS);
} counters SEC(".maps");

/*
 * By slot and reason, the source MAC of the last frame that guard or policy dropped: its six bytes
 * as they are in the frame, then two of 0. One store, so that it is never torn.
 */
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, __u64);
	UINT(max_entries, NUM_REASONS);
} offenders SEC(".maps");

/* Set by the loader before the program is verified: */

/* UDP port of envelopes */
const volatile __u16 envelope_port = 0;

/* The program takes frames in several buffers: it is steer_frags. */
const volatile __u8 frags = 0;

/* The slot of the port that a frame has come by. */
INLINE __u32 slot_of(struct xdp_md *ctx)
{
	__u32 ifindex = ctx->ingress_ifindex;
	__u32 key = ifindex % PORT_BUCKETS;
	struct port_bucket *b = bpf_map_lookup_elem(&ports, &key);

	if (!b)
		return 0;
#pragma unroll
	for (int i = 0; i < PORTS_IN_BUCKET; i++)
		if (b->ifindex[i] == ifindex)
			return b->slot[i];
	return 0;
}

INLINE void count(__u32 slot, enum steer_reason reason)
{
	__u32 key = slot * NUM_REASONS + reason;
	__u64 *n = bpf_map_lookup_elem(&counters, &key);

	if (n)
		(*n)++; /* per CPU, and XDP does not nest on one */
}

#include "guard.h"
#include "policy.h"
#ifdef FAST_PATH
#include "fast_in.h"
#endif

INLINE enum steer_reason steer_udp(void *l4, void *end)
{
	struct udp_header *udp = l4;

	if ((void *)(udp + 1) > end)
		return DROP_GROUP_TRUNCATED;
	if (udp->dport == htons(ROCEV2_PORT))
		return XSK_ROCEV2;
	if (udp->dport == htons(envelope_port))
		return XSK_ENVELOPE;
	return PASS_GROUP_OTHER;
}

INLINE int is_echo_request(void *l4, void *end, __u8 type)
{
	struct icmp_header *icmp = l4;

	if ((void *)(icmp + 1) > end)
		return 0;
	return icmp->type == type && icmp->code == 0;
}

INLINE enum steer_reason steer_arp(void *l3, void *end)
{
	struct arp_ipv4 *arp = l3;

	if ((void *)(arp + 1) > end)
		return PASS_TRUNCATED;
	if (arp->hardware != htons(ARP_HARDWARE_ETHERNET) || arp->protocol != htons(ETHERTYPE_IPV4) ||
	    arp->hardware_len != 6 || arp->protocol_len != 4 || arp->operation != htons(ARP_REQUEST))
		return PASS_OTHER;
	if (!in_group4(arp->target_ip))
		return PASS_OTHER;
	return XSK_ARP;
}

INLINE enum steer_reason steer_ipv4(void *l3, void *end)
{
	struct ipv4_header *ip = l3;

	if ((void *)(ip + 1) > end)
		return PASS_TRUNCATED;
	__u32 header_len = (ip->version_ihl & 0x0F) * 4;
	if (header_len < sizeof(*ip))
		return PASS_TRUNCATED;
	if (!in_group4(ip->dst))
		return PASS_OTHER;
	if (ip->fragment & htons(IP_FRAGMENT))
		return DROP_GROUP_FRAGMENT;
	if (ip->protocol == PROTO_ICMP && is_echo_request(l3 + header_len, end, ICMP_ECHO_REQUEST))
		return XSK_ECHO;
	if (ip->protocol != PROTO_UDP)
		return PASS_GROUP_OTHER;
	return steer_udp(l3 + header_len, end);
}

/*
 * A first solicitation goes to the target's solicited-node multicast address,
 * a later one (reachability probe) to the target itself: the target decides.
 */
INLINE int is_solicitation_for_group(void *l4, void *end)
{
	struct neighbor_solicitation *ns = l4;

	if ((void *)(ns + 1) > end)
		return 0;
	return ns->type == ND_NEIGHBOR_SOLICITATION && ns->code == 0 && in_group6(ns->target);
}

INLINE enum steer_reason steer_ipv6(void *l3, void *end)
{
	struct ipv6_header *ip = l3;

	if ((void *)(ip + 1) > end)
		return PASS_TRUNCATED;
	if (ip->next_header == PROTO_ICMPV6 && is_solicitation_for_group(ip + 1, end))
		return XSK_ND;
	if (!in_group6(ip->dst))
		return PASS_OTHER;
	if (ip->next_header == PROTO_UDP)
		return steer_udp(ip + 1, end);
	if (ip->next_header == PROTO_ICMPV6 && is_echo_request(ip + 1, end, ICMPV6_ECHO_REQUEST))
		return XSK_ECHO;
	if (ip->next_header == PROTO_FRAGMENT)
		return DROP_GROUP_FRAGMENT;
	if (is_extension(ip->next_header))
		return PASS_GROUP_EXTENSION;
	return PASS_GROUP_OTHER;
}

/* The exit of a frame, before the policy of the port. */
INLINE enum steer_reason classify(struct xdp_md *ctx)
{
	void *data = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;
	struct eth_header *eth = data;
	enum steer_reason reason;

	if ((void *)(eth + 1) > end)
		return PASS_TRUNCATED;
	void *l3 = eth + 1;
	__u16 type = eth->type;

#pragma unroll
	for (int i = 0; i < MAX_VLAN_TAGS; i++) {
		if (!is_vlan(type))
			break;
		struct vlan_tag *tag = l3;
		if ((void *)(tag + 1) > end) {
			reason = cut(ctx, 0);
			return reason ? reason : PASS_TRUNCATED;
		}
		type = tag->type;
		l3 = tag + 1;
	}
	if (is_below(type)) {
		reason = guard_below(ctx);
		if (reason)
			return reason;
		return is_vlan(type) ? PASS_VLAN_DEPTH : PASS_OTHER;
	}
	reason = guard_l3(ctx, type, l3, end);
	if (reason)
		return reason;
	switch (type) {
	case htons(ETHERTYPE_IPV4):
		return steer_ipv4(l3, end);
	case htons(ETHERTYPE_IPV6):
		return steer_ipv6(l3, end);
	case htons(ETHERTYPE_ARP):
		return steer_arp(l3, end);
	}
	return PASS_OTHER;
}

/* The last argument of bpf_redirect_map is its result on a miss. */
INLINE int to_socket(struct xdp_md *ctx, __u32 slot, enum steer_reason reason)
{
	__u32 queue = ctx->rx_queue_index;
	int action = XDP_DROP;

	if (queue < MAX_QUEUES)
		action = bpf_redirect_map(&xsks, slot * MAX_QUEUES + queue, XDP_DROP);
	count(slot, action == XDP_REDIRECT ? reason : DROP_NO_SOCKET);
	return action;
}

/* Stores the source MAC address of a frame that guard or policy drop. */
INLINE void note(struct xdp_md *ctx, __u32 slot, enum steer_reason reason)
{
	struct eth_header *eth = (void *)(unsigned long)ctx->data;
	__u32 key = slot * NUM_REASONS + reason;
	__u64 *offender = bpf_map_lookup_elem(&offenders, &key);
	__u64 mac = 0;

	if ((void *)(eth + 1) > (void *)(unsigned long)ctx->data_end)
		return;
	__builtin_memcpy(&mac, eth->src, sizeof(eth->src));
	if (offender)
		*offender = mac;
}

INLINE int steer_frame(struct xdp_md *ctx)
{
#ifdef FAST_PATH
	int action = forward(ctx);
	if (action >= 0)
		return action;
#endif
	enum steer_reason reason = classify(ctx);
	__u32 slot = slot_of(ctx);

	if (reason >= XSK_ROCEV2) {
		struct policy *policy = bpf_map_lookup_elem(&policies, &slot);

		if (!policy || !policy->flags)
			return to_socket(ctx, slot, reason);
		reason = police(ctx, reason, slot);
		if (reason >= XSK_ROCEV2)
			return to_socket(ctx, slot, reason);
	}
	count(slot, reason);
	if (reason >= DROP_GUARD_IPV4)
		note(ctx, slot, reason);
	if (reason >= DROP_GROUP_FRAGMENT)
		return XDP_DROP;
	look(ctx, slot); /* what is left to the kernel may be a sighting */
	return XDP_PASS;
}

SEC("xdp")
int steer(struct xdp_md *ctx)
{
	return steer_frame(ctx);
}

SEC("xdp.frags")
int steer_frags(struct xdp_md *ctx)
{
	return steer_frame(ctx);
}

char _license[] SEC("license") = "Dual BSD/GPL";
