/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The ingress half of the fast path. It comes before the guard and the choice of steer.c:
 * what it forwards is a UDP packet without options from a source that user space has named,
 * by its address, MAC address and port, so no rule of the guard can meet it. The policy of
 * the port is asked.
 */
#pragma once

#include "fast.h"
#include "headers.h"

struct bth {
	__u8 opcode;
	__u8 flags; /* SE, M, pad (2 bits), TVer (4) */
	__u16 pkey;
	__u32 dest_qp;
	__u32 psn; /* the highest bit is AckReq */
} PACKED;

struct reth {
	__u64 va;
	__u32 rkey;
	__u32 dma_len;
} PACKED;

#define ICRC_LEN 4
#define LAST_OPCODE 0x0B /* WRITE ONLY with immediate data */

/* Sets of opcodes: SEND FIRST is 0, MIDDLE 1, LAST 2 and 3, ONLY 4 and 5; WRITE likewise from 6. */
#define IN(set, opcode) ((set) >> (opcode) & 1)
#define OPS_FULL 0x0C3	/* FIRST and MIDDLE */
#define OPS_LAST 0x30C
#define OPS_END 0xF3C	/* LAST and ONLY */
#define OPS_IMM 0xA28
#define OPS_RETH 0xC40

INLINE int same_word(const __u8 *a, const __u8 *b) { return *(const __u32 *)a == *(const __u32 *)b; }

INLINE int decline(__u32 group, enum fast_reason reason)
{
	__u32 key = group * NUM_FAST_REASONS + reason;
	__u64 *n = bpf_map_lookup_elem(&fast_counters, &key);

	if (n)
		(*n)++;
	return -1;
}

/* The one's complement sum of an IPv4 header without options is right. */
INLINE int checksum_ok(const struct ipv4_header *ip)
{
	const __u32 *w = (const void *)ip;
	__u64 sum = (__u64)w[0] + w[1] + w[2] + w[3] + w[4];

	sum = (sum & 0xFFFFFFFF) + (sum >> 32);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return sum == 0xFFFF;
}

/*
 * The way of a WRITE with bytes: 0 as it is, 1 rewritten, -1 not here. Go: mcast,
 * rewriteOf and checkRequest.
 */
INLINE int write_way(const struct fast_group *g, const struct reth *reth, __u32 dma_len)
{
	__u32 rkey = ntohl(reth->rkey);

	if (g->flags & GROUP_NO_WRITE || (g->flags & GROUP_TARGETS && rkey == g->target_key))
		return -1;
	if (!(g->flags & GROUP_WINDOW))
		return 0;
	__u64 va = ntohll(reth->va), offset = va - g->window_base;
	if (rkey != g->window_rkey || va < g->window_base || offset > g->window_len || dma_len > g->window_len - offset)
		return -1;
	return 1;
}

/*
 * Set by the loader: this machine's processors show stores to others in their order, as
 * x86 does. Others need the barriers that atomic operations are.
 */
const volatile __u8 stores_in_order = 0;

INLINE void store_header(__u64 *header, __u64 value)
{
	if (!stores_in_order) {
		__sync_lock_test_and_set(header, value);
		return;
	}
	asm volatile("" ::: "memory");
	*(volatile __u64 *)header = value;
	asm volatile("" ::: "memory");
}

/*
 * Reads the limit after the word. User space stores the limit of a grant first, and the word last: with
 * the limit of an earlier grant, the program would take a packet that has no slot, or that no
 * position is stored for. x86 makes loads in their order; arm64 and others make this one later
 * because its address depends on the word. Without a new grant an old limit is a lower one, and
 * the compare and swap fails if the word has changed since. What is above the PSN counts for nothing here.
 */
INLINE __u32 limit_after(const struct fast_group *g, __u64 word)
{
	asm volatile("%0 &= 0" : "+r"(word));
	return *(const volatile __u32 *)((const char *)&g->limit + word);
}

/* Stores the packet that was claimed with meta->psn, for repair. */
INLINE void retain(struct xdp_md *ctx, struct fast_slot *slot, __u64 len, __u32 max, const struct fast_meta *meta, __u32 ack_req, __u64 ends)
{
	__u64 is = meta->psn | len << SLOT_LEN | (__u64)meta->incarnation << SLOT_INCARNATION;
	__u64 *header = &slot->header;

	store_header(header, is);
	slot->time = ack_req ? bpf_ktime_get_ns() : 0;
	slot->ends = ends;
	/* Its bounds are checked here, one by one: the verifier of 6.12 does not follow both in one comparison, and that of
	 * 6.1 learns no lower bound from a comparison with 1, which becomes one with 0. */
	asm volatile("" : "+r"(len));
	if (len > max)
		return; /* stays invalid */
	asm volatile("" : "+r"(len));
	if (len < sizeof(struct eth_header) || bpf_xdp_load_bytes(ctx, 0, slot->data, len))
		return;
	store_header(header, is | SLOT_VALID);
}

#include "fast_ack.h"

/* Replicates a packet. -1: it is not for the fast path, and nothing has changed. */
INLINE int forward(struct xdp_md *ctx)
{
	void *data = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;
	struct eth_header *eth = data;
	struct fast_meta meta = {.l2_len = sizeof(*eth), .kind = frags ? META_CLONES : META_COPY};

	if ((void *)(eth + 1) > end)
		return -1;
	void *l3 = eth + 1;
	__u16 type = eth->type;
	if (is_vlan(type)) {
		struct vlan_tag *tag = l3;
		if ((void *)(tag + 1) > end)
			return -1;
		type = tag->type;
		l3 = tag + 1;
		meta.l2_len += sizeof(*tag);
	}

	struct udp_header *udp;
	struct fast_group *g;
	__u32 *index, header_len, bits;
	int same;
	if (type == htons(ETHERTYPE_IPV4)) {
		struct ipv4_header *ip = l3;
		if ((void *)(ip + 1) > end || ip->protocol != PROTO_UDP)
			return -1;
		__builtin_memcpy(&bits, ip->dst, sizeof(bits));
		if (excluded4(bits))
			return -1;
		index = bpf_map_lookup_elem(&fast4, &bits);
		if (!index)
			return -1;
		meta.group = *index;
		g = bpf_map_lookup_elem(&groups, &meta.group);
		if (!g)
			return -1;
		same = same_word(ip->src, g->source);
		if (ip->version_ihl != 0x45 || ip->fragment & htons(IP_FRAGMENT) || !checksum_ok(ip))
			return decline(meta.group, FAST_HEADERS);
		meta.ip_len = ntohs(ip->total_len);
		header_len = sizeof(*ip);
		udp = (void *)(ip + 1);
	} else if (type == htons(ETHERTYPE_IPV6)) {
		struct ipv6_header *ip = l3;
		__u64 first;
		__u8 dst[16];
		if ((void *)(ip + 1) > end || ip->next_header != PROTO_UDP)
			return -1;
		__builtin_memcpy(&first, ip->dst, sizeof(first));
		if (excluded6(first))
			return -1;
		__builtin_memcpy(dst, ip->dst, sizeof(dst));
		index = bpf_map_lookup_elem(&fast6, dst);
		if (!index)
			return -1;
		meta.group = *index;
		g = bpf_map_lookup_elem(&groups, &meta.group);
		if (!g)
			return -1;
		same = same_word(ip->src, g->source) && same_word(ip->src + 4, g->source + 4) &&
		       same_word(ip->src + 8, g->source + 8) && same_word(ip->src + 12, g->source + 12);
		if ((ip->version_class_flow & 0xF0) != 0x60) /* its first byte */
			return decline(meta.group, FAST_HEADERS);
		header_len = sizeof(*ip);
		meta.ip_len = ntohs(ip->payload_len) + header_len;
		meta.ipv6 = 1;
		udp = (void *)(ip + 1);
	} else {
		return -1;
	}

	struct bth *bth = (void *)(udp + 1);
	if ((void *)(bth + 1) > end || udp->dport != htons(ROCEV2_PORT))
		return -1;
	__u32 opcode = bth->opcode;
	if (!same || ctx->ingress_ifindex != g->ifindex || !same_mac(eth->src, g->source_mac)) {
		int action = -1;
		if (!frags && opcode == OPCODE_ACK)
			action = meta.ipv6 ? take_ack(ctx, g, meta.group, 1) : take_ack(ctx, g, meta.group, 0);
		return action >= 0 ? action : decline(meta.group, FAST_NOT_SOURCE);
	}
	if (opcode > LAST_OPCODE)
		return decline(meta.group, FAST_OPCODE);

	__u32 len = frags ? bpf_xdp_get_buff_len(ctx) : end - data, pad = bth->flags >> 4 & 3;
	__u32 fixed = header_len + sizeof(*udp) + sizeof(*bth) + ICRC_LEN +
		      IN(OPS_RETH, opcode) * sizeof(struct reth) + IN(OPS_IMM, opcode) * 4;
	if (meta.l2_len + meta.ip_len > len || ntohs(udp->len) != meta.ip_len - header_len || bth->flags & 0x0F ||
	    meta.ip_len < fixed + pad || (meta.ip_len - fixed) & 3 || (bth->dest_qp & htonl(PSN_MASK)) != g->qpn)
		return decline(meta.group, FAST_HEADERS);
	__u32 payload = meta.ip_len - fixed - pad;
	if (payload > g->pmtu || (IN(OPS_FULL, opcode) && payload != g->pmtu) || (IN(OPS_LAST, opcode) && !payload))
		return decline(meta.group, FAST_LENGTH);
	if (IN(OPS_RETH, opcode)) {
		struct reth *reth = (void *)(bth + 1);
		if ((void *)(reth + 1) > end)
			return decline(meta.group, FAST_HEADERS);
		__u32 dma_len = ntohl(reth->dma_len);
		if (IN(OPS_END, opcode) ? dma_len != payload : dma_len <= payload)
			return decline(meta.group, FAST_LENGTH);
		if (dma_len) {
			int way = write_way(g, reth, dma_len);
			if (way < 0)
				return decline(meta.group, FAST_WINDOW);
			meta.reth = way;
		}
	}

	__u64 word = *(volatile __u64 *)&g->word;
	meta.psn = ntohl(bth->psn) & PSN_MASK;
	__u32 ack_req = (bth->psn & htonl(1U << 31)) | asks(meta.psn);
	if (!(word & WORD_FAST))
		return decline(meta.group, FAST_SLOW);
	if (meta.psn != (word & PSN_MASK))
		return decline(meta.group, (meta.psn - (__u32)word) & 0x800000 ? FAST_BEHIND : FAST_AHEAD);
	if ((limit_after(g, word) - meta.psn - 1) & 0x800000)
		return decline(meta.group, FAST_LIMIT);

	__u32 slot_of_port = slot_of(ctx);
	struct policy *policy = bpf_map_lookup_elem(&policies, &slot_of_port);
	if (policy && policy->flags && police(ctx, XSK_ROCEV2, slot_of_port) != XSK_ROCEV2)
		return -1; /* steer counts it */

	/* Nothing may fail once the packet is claimed, so all that can is done before. */
	void *devmap = bpf_map_lookup_elem(&devmaps, &meta.group);
	__u32 key = g->ring_first + (meta.psn & g->ring_mask), flags = g->flags;
	struct fast_slot *slot = bpf_map_lookup_elem(&ring, &key);
	struct fast_large_slot *large = 0;
	if (flags & GROUP_LARGE)
		large = bpf_map_lookup_elem(&ring_large, &key);
	if (!devmap || (flags & GROUP_RING && flags & GROUP_LARGE ? !large : !slot) ||
	    (flags & GROUP_RING && !(flags & GROUP_LARGE) && len > SLOT_BYTES - SLOT_HEADER))
		return decline(meta.group, FAST_NO_ROOM);
	/* Frames in several buffers are not broadcast, and the kernel may have taken the tag off an skb. */
	if (!(flags & GROUP_CLONES) != !frags || (frags && meta.l2_len != sizeof(*eth)))
		return decline(meta.group, FAST_NO_ROOM);
	if (ctx->data_meta != ctx->data && bpf_xdp_adjust_meta(ctx, ctx->data - ctx->data_meta))
		return decline(meta.group, FAST_NO_ROOM);
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(meta)))
		return decline(meta.group, FAST_NO_ROOM);

	__u64 next = (word & ~(PSN_MASK | WORD_OPEN)) | ((meta.psn + 1) & PSN_MASK);
	if (IN(OPS_END, opcode))
		next = (next & ~(WORD_ENDS * PSN_MASK)) | ((next + WORD_ENDS) & (WORD_ENDS * PSN_MASK));
	else
		next |= WORD_OPEN;
	if (__sync_val_compare_and_swap(&g->word, word, next) != word) {
		bpf_xdp_adjust_meta(ctx, sizeof(meta));
		return decline(meta.group, FAST_RACED);
	}
	__sync_fetch_and_add(&g->bytes, payload);
	meta.incarnation = word >> WORD_INCARNATION;
	if (flags & GROUP_RING) {
		if (large)
			retain(ctx, (void *)large, len, sizeof(large->data), &meta, ack_req, next / WORD_ENDS & PSN_MASK);
		else if (slot)
			retain(ctx, slot, len, sizeof(slot->data), &meta, ack_req, next / WORD_ENDS & PSN_MASK);
	}
	struct fast_meta *to = (void *)(unsigned long)ctx->data_meta;
	if ((void *)(to + 1) <= (void *)(unsigned long)ctx->data)
		*to = meta;
	count(slot_of_port, FAST_ROCEV2);
	if (frags)
		return XDP_PASS; /* fast_clone.h */
	return bpf_redirect_map(devmap, 0, BPF_F_BROADCAST | (flags & GROUP_NOT_BACK ? BPF_F_EXCLUDE_INGRESS : 0));
}
