/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * ACKs that the fast path counts (R113). The ACK of a receiver raises the word of its leg. If it was the
 * last of the slowest, the frame becomes the group's ACK and goes to the source; else it is dropped.
 * Whatever is not the usual ACK is left to user space, and so is one that has raised its word where
 * something else is missing: user space reads the words, and makes the ACK to the source itself.
 *
 *   acked       of a leg      PSN, ON, incarnation, count    this program while ON; user space sets and clears ON
 *   sent        of a group    the same                       likewise
 *
 * Two programs that raise the last two words at once: each raises its own, which is a full barrier, and
 * then reads the other, so one of them at least sees both. Words only grow while they are ON in one
 * incarnation, so the lowest of words that were read at different times is no more than what all have.
 * The count makes a word that was closed and opened again another one.
 *
 * With the lowest word the limit of the group moves (R114): nobody asks again for what all have, so its slots
 * may be written. User space has the limit moved while it has no other business with the group, and is
 * told of such packets in one step. The limit is read before the leg's word is raised, and the words of
 * the others after that: if the limit was closed since, or is that of another grant, the compare
 * and swap fails.
 */
#pragma once

#include "fast.h"
#include "headers.h"

#define ACK_ON (1ULL << 24)
#define ACK_INCARNATION 25	/* 14 bits */
#define ACK_COUNT (1ULL << 39)	/* 25 bits: times that it was raised */
#define MAX_ACK_LEGS 32		/* Go: mcast.MaxACKLegs */

#define OPCODE_ACK 0x11
#define BTH_MIG_REQ 0x40
#define ICRC_INIT 0xDEBB20E3

struct fast_acks {
	__u64 sent;
	__u64 rest[7];
	__u8 eth[12];		/* the rest is of the group's ACK: destination and source */
	__u16 source_port;	/* network order */
	__u16 zero;
	__u8 addresses[32];	/* of the group and the source, as in the IP header; IPv4: the first eight bytes */
	__u32 qpn;		/* the source's; as in the packet, with the first byte 0 */
	__u32 port;		/* where the source is */
	__u32 first;		/* the group's legs */
	__u32 count;
	__u32 from;		/* the first PSN of the grant */
	__u32 messages;		/* the source's messages before it */
	__u32 room;		/* the source may send so much after an ACK: where the limit is closer, user space moves it first */
	__u32 reach;		/* PSNs from the lowest word to the limit that follows from it */
	__u32 step;		/* least number of PSNs by which the limit moves */
	__u32 ceiling;		/* highest limit; user space stores it */
	__u32 rest2[2];
};

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct fast_acks);
	UINT(max_entries, 1);
	UINT(map_flags, BPF_F_MMAPABLE);
} fast_acks SEC(".maps");

/* The ports, by number, with the program for copies: a port has one program in all DEVMAPs. */
struct {
	UINT(type, BPF_MAP_TYPE_DEVMAP);
	UINT(key_size, 4);
	UINT(value_size, 8);
	UINT(max_entries, 1);
} fast_sources SEC(".maps");

struct aeth {
	__u32 word; /* syndrome and MSN */
} PACKED;

/* What follows the IP header of an ACK. */
struct ack {
	struct udp_header udp;
	struct bth bth;
	struct aeth aeth;
	__u32 icrc;
} PACKED;

INLINE __u32 shift(const struct operator *o, __u32 c)
{
	return o->table[0][c & 0xFF] ^ o->table[1][c >> 8 & 0xFF] ^ o->table[2][c >> 16 & 0xFF] ^ o->table[3][c >> 24];
}

/* The ICRC of an ACK. It is no part of the programs that call it, which are twice the size with it. */
static __attribute__((noinline)) __u32 icrc_of(const struct operator *o, const __u32 *ip, const struct ack *a, int v6)
{
	const __u32 *w = (const void *)a;
	__u32 c = ICRC_INIT;

	c = shift(o, c ^ (ip[0] | (v6 ? 0xFFFFFF0F : 0x0000FF00)));
	c = shift(o, c ^ (ip[1] | (v6 ? 0xFF000000 : 0)));
	c = shift(o, c ^ (ip[2] | (v6 ? 0 : 0xFFFF00FF)));
	c = shift(o, c ^ ip[3]);
	c = shift(o, c ^ ip[4]);
	if (v6) {
		c = shift(o, c ^ ip[5]);
		c = shift(o, c ^ ip[6]);
		c = shift(o, c ^ ip[7]);
		c = shift(o, c ^ ip[8]);
		c = shift(o, c ^ ip[9]);
	}
	c = shift(o, c ^ w[0]);
	c = shift(o, c ^ (w[1] | 0xFFFF0000));
	c = shift(o, c ^ w[2]);
	c = shift(o, c ^ (w[3] | 0x000000FF));
	c = shift(o, c ^ w[4]);
	return ~shift(o, c ^ w[5]);
}

/* a is before b, both in one half of all PSNs. */
INLINE int before(__u32 a, __u32 b) { return (a - b) >> 23 & 1; }

/* The leg of the group at this port whose member has the source address of an ACK, and that MAC address. */
INLINE struct fast_leg *leg_from(__u32 group, __u32 ifindex, const void *src, const __u8 *mac, int v6)
{
	int port = port_of(ifindex);

	if (port < 0)
		return 0;
	__u32 key = group * num_ports + port;
	struct fast_path *path = bpf_map_lookup_elem(&paths, &key);

	if (!path)
		return 0;
	__u32 first = path->first, count = path->count;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MAX_PORT_LEGS && i < count; i++) {
		__u32 at = first + i;
		struct fast_leg *leg = bpf_map_lookup_elem(&legs, &at);
		if (!leg)
			return 0;
		const __u32 *is = (const void *)(leg->addresses + (v6 ? 16 : 4)), *w = src;
		if (is[0] == w[0] && (!v6 || (is[1] == w[1] && is[2] == w[2] && is[3] == w[3])))
			return leg->flags & LEG_REWRITE && same_mac(leg->eth, mac) ? leg : 0;
	}
	return 0;
}

/* Moves the limit, which was read before the words were, with what all legs have. */
INLINE void move_limit(struct fast_group *g, const struct fast_acks *acks, __u64 limit, __u32 lowest)
{
	__u32 to = lowest + acks->reach, ceiling = *(const volatile __u32 *)&acks->ceiling;

	if (before(ceiling, to))
		to = ceiling;
	if (!(limit & LIMIT_MOVES) || before(to, limit + acks->step))
		return;
	__sync_val_compare_and_swap(&g->limit, limit, ((limit & ~(__u64)PSN_MASK) + LIMIT_COUNT) | (to & PSN_MASK));
}

/* The header of a slot that has the packet of psn. */
INLINE int is_slot(__u64 header, __u32 psn, __u64 incarnation)
{
	return header & SLOT_VALID && (header & PSN_MASK) == psn && (header >> SLOT_INCARNATION & 0x3FFF) == incarnation;
}

/* The slot still has the packet of psn, after something of it was read. */
INLINE int has_slot(__u64 *header, __u32 psn, __u64 incarnation)
{
	__u64 word = stores_in_order ? *(volatile __u64 *)header : __sync_fetch_and_add(header, 0);

	return is_slot(word, psn, incarnation);
}

/* The slot of psn, if it has that packet, and in *large what a large one is. */
INLINE __u64 *slot_at(const struct fast_group *g, __u32 psn, __u64 incarnation)
{
	__u32 key = g->ring_first + (psn & g->ring_mask);
	__u64 *header;

	if (!(g->flags & GROUP_RING))
		return 0;
	if (g->flags & GROUP_LARGE)
		header = bpf_map_lookup_elem(&ring_large, &key);
	else
		header = bpf_map_lookup_elem(&ring, &key);
	if (!header)
		return 0;
	__u64 word = *(volatile __u64 *)header;
	if (!is_slot(word, psn, incarnation))
		return 0;
	/* The rest is read after the header: the address depends on it, for arm64. */
	asm volatile("%0 &= 0" : "+r"(word));
	return (void *)((char *)header + word);
}

/* Makes the frame the group's ACK of psn; -1: it has not the room, which it had. */
INLINE int put_ack(struct xdp_md *ctx, const struct fast_acks *acks, const struct operator *o, __u32 psn, __u32 msn, __u8 mig_req, int v6)
{
	void *data = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;
	struct ack *a;
	__u32 *words = data + sizeof(struct eth_header);

	if (v6) {
		struct ipv6_header *ip = (void *)words;
		a = (void *)(ip + 1);
		if ((void *)(a + 1) > end)
			return -1;
		ip->version_class_flow &= htonl(0x0FC00000); /* the class of the receiver's, without ECN */
		ip->version_class_flow |= htonl(0x60000000);
		ip->hop_limit = 64;
		__builtin_memcpy(ip->src, acks->addresses, 32);
	} else {
		struct ipv4_header *ip = (void *)words;
		a = (void *)(ip + 1);
		if ((void *)(a + 1) > end)
			return -1;
		ip->tos &= 0xFC;
		ip->id = 0;
		ip->fragment = htons(0x4000);
		ip->ttl = 64;
		ip->checksum = 0;
		__builtin_memcpy(ip->src, acks->addresses, 8);
		__u64 sum = (__u64)words[0] + words[1] + words[2] + words[3] + words[4];
		sum = (sum & 0xFFFFFFFF) + (sum >> 32);
		sum = (sum & 0xFFFF) + (sum >> 16);
		sum = (sum & 0xFFFF) + (sum >> 16);
		sum = (sum & 0xFFFF) + (sum >> 16);
		ip->checksum = ~sum;
	}
	__builtin_memcpy(data, acks->eth, sizeof(acks->eth));
	a->udp.sport = acks->source_port;
	a->udp.checksum = 0;
	a->bth.flags = mig_req;
	a->bth.dest_qp = acks->qpn;
	a->bth.psn = htonl(psn);
	a->aeth.word = htonl(0x1FU << 24 | msn);
	a->icrc = icrc_of(o, words, a, v6);
	return 0;
}

/* Takes an ACK for a group. -1: it is left to user space. */
INLINE int take_ack(struct xdp_md *ctx, struct fast_group *g, __u32 group, int v6)
{
	void *data = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;
	struct eth_header *eth = data;
	__u32 *ip = data + sizeof(*eth);
	struct ack *a = (void *)ip + (v6 ? sizeof(struct ipv6_header) : sizeof(struct ipv4_header));
	struct fast_acks *acks = bpf_map_lookup_elem(&fast_acks, &group);
	__u32 one = 1;

	if (!acks || !(*(volatile __u64 *)&acks->sent & ACK_ON))
		return -1;
	/* The frame ends with the ACK, and has nothing unusual. */
	if ((void *)(a + 1) > end)
		return -1;
	__u32 len = end - data;
	asm volatile("" : "+r"(len)); /* else the verifier sees one comparison, for equality, and learns nothing from it */
	if (len != (void *)(a + 1) - data || is_vlan(eth->type) || a->udp.len != htons(sizeof(*a)))
		return -1;
	if (v6 ? ((struct ipv6_header *)ip)->payload_len != htons(sizeof(*a)) : ((struct ipv4_header *)ip)->total_len != htons(sizeof(struct ipv4_header) + sizeof(*a)))
		return -1;
	if (a->bth.flags & ~BTH_MIG_REQ || a->bth.pkey != 0xFFFF || a->bth.dest_qp != g->qpn || a->bth.psn & 0xFF || a->aeth.word & 0xE0)
		return -1;
	__u32 psn = ntohl(a->bth.psn);
	if (psn == PSN_MASK && !(a->aeth.word & ~0xFFU))
		return -1; /* rdma_rxe that has accepted nothing */

	__u64 word = *(volatile __u64 *)&g->word;
	if (!(word & WORD_FAST))
		return -1;
	__u64 incarnation = word >> WORD_INCARNATION;
	__u64 on = ACK_ON | incarnation << ACK_INCARNATION, mask = ACK_ON | 0x3FFFULL << ACK_INCARNATION;
	const void *src = v6 ? (void *)((struct ipv6_header *)ip)->src : (void *)((struct ipv4_header *)ip)->src;
	struct fast_leg *leg = leg_from(group, ctx->ingress_ifindex, src, eth->src, v6);
	if (!leg)
		return -1;
	psn = (psn - leg->psn_delta) & PSN_MASK;
	__u64 was = *(volatile __u64 *)&leg->acked;
	if ((was & mask) != on || !before(was, psn) || !before(psn, word))
		return -1;
	struct operator *o = bpf_map_lookup_elem(&operators, &one);
	if (!o || icrc_of(o, ip, a, v6) != a->icrc)
		return -1;
	__u32 slot_of_port = slot_of(ctx);
	struct policy *policy = bpf_map_lookup_elem(&policies, &slot_of_port);
	if (policy && policy->flags && police(ctx, XSK_ROCEV2, slot_of_port) != XSK_ROCEV2)
		return -1; /* steer counts it */

	__u64 limit = *(volatile __u64 *)&g->limit;
	if (__sync_val_compare_and_swap(&leg->acked, was, ((was & ~(__u64)PSN_MASK) + ACK_COUNT) | psn) != was)
		return -1;
	*(volatile __u64 *)&leg->acked_at = bpf_ktime_get_ns();

	__u32 lowest = psn, first = acks->first, n = acks->count;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MAX_ACK_LEGS && i < n; i++) {
		__u32 at = first + i;
		struct fast_leg *other = bpf_map_lookup_elem(&legs, &at);
		if (!other)
			return -1;
		__u64 has = *(volatile __u64 *)&other->acked;
		if ((has & mask) != on)
			return -1;
		if (before(has, lowest))
			lowest = has & PSN_MASK;
	}
	__u64 sent = *(volatile __u64 *)&acks->sent;
	if ((sent & mask) != on)
		return -1;
	if (!before(sent, lowest)) {
		__sync_fetch_and_add(&leg->taken, 1);
		count(slot_of_port, FAST_ACK);
		return XDP_DROP; /* another leg is slower, or another CPU has answered */
	}
	if (before(lowest, acks->from))
		return -1;
	move_limit(g, acks, limit, lowest);
	if (before(limit_after(g, word), lowest + acks->room))
		return -1;
	__u64 *slot = slot_at(g, lowest, incarnation);
	if (!slot)
		return -1;
	__u32 msn = (acks->messages + (__u32)*(volatile __u64 *)(slot + 2)) & PSN_MASK;
	__u8 mig_req = *(volatile __u8 *)((__u8 *)(slot + 3) + sizeof(*eth) + (v6 ? sizeof(struct ipv6_header) : sizeof(struct ipv4_header)) + sizeof(struct udp_header) + 1) & BTH_MIG_REQ;

	/* Another program may have moved the limit on, and a third one may be writing the slot. Whoever writes it
	 * stores its header first; the compare and swap below keeps this look before what follows, and a
	 * barrier keeps it behind what was read. */
	if (!has_slot(slot, lowest, incarnation))
		return -1;

	/* Nothing may fail once the ACK is promised. */
	struct fast_meta meta = {.kind = META_ACK};
	if (ctx->data_meta != ctx->data && bpf_xdp_adjust_meta(ctx, ctx->data - ctx->data_meta))
		return -1;
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(meta)))
		return -1;
	if (__sync_val_compare_and_swap(&acks->sent, sent, ((sent & ~(__u64)PSN_MASK) + ACK_COUNT) | lowest) != sent) {
		bpf_xdp_adjust_meta(ctx, sizeof(meta));
		return -1;
	}
	__sync_fetch_and_add(&leg->taken, 1);
	if (put_ack(ctx, acks, o, lowest, msn, mig_req, v6))
		return XDP_DROP;
	struct fast_meta *to = (void *)(unsigned long)ctx->data_meta;
	if ((void *)(to + 1) <= (void *)(unsigned long)ctx->data)
		*to = meta;
	count(slot_of_port, FAST_ACK);
	return bpf_redirect_map(&fast_sources, acks->port, 0);
}
