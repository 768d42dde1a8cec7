/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The egress half of the fast path makes a copy that the ingress half sent to a port the
 * packet that its leg expects, as dataplane/leg.go does. It is the only program in all
 * devmaps, since the kernel runs that of the first frame of a batch for all of the batch.
 */
#pragma once

#include "fast_in.h"

#define MIN_FRAME 60 /* without FCS */

/* The leg of the group at this port whose turn it is to get psn; 0: none's. */
INLINE struct fast_leg *leg_of(const struct fast_meta *meta, __u32 ifindex)
{
	int port = port_of(ifindex);

	if (port < 0)
		return 0;
	__u32 key = meta->group * num_ports + port;
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
		if ((*(volatile __u64 *)&leg->gate & (GATE_SHUT | PSN_MASK)) == meta->psn && leg->incarnation == meta->incarnation)
			return leg;
	}
	if (count) {
		struct fast_leg *leg = bpf_map_lookup_elem(&legs, &first);
		if (leg)
			__sync_fetch_and_add(&leg->missed, 1);
	}
	return 0;
}

/* Writes the Ethernet header and the leg's VLAN tag, with the priority of the received one. */
INLINE void put_l2(void *data, const struct fast_leg *leg, __u16 type, __u16 tci)
{
	struct eth_header *eth = data;
	struct vlan_tag *tag = (void *)(eth + 1);

	__builtin_memcpy(data, leg->eth, sizeof(leg->eth));
	if (!(leg->flags & LEG_TAGGED)) {
		eth->type = type;
		return;
	}
	eth->type = htons(ETHERTYPE_VLAN);
	tag->tci = (tci & htons(0xF000)) | leg->vid;
	tag->type = type;
}

/* Makes ip the packet for the leg's member; bth follows it, of which m words are left to the ICRC. */
INLINE __u32 rewrite(const struct fast_leg *leg, const struct fast_meta *meta, struct udp_header *udp, __u32 *icrc_at, __u32 m, void *end)
{
	struct bth *bth = (void *)(udp + 1);
	struct reth *reth = (void *)(bth + 1);
	__u32 second = m - 1, third = m - 2, fourth = m - 3;

	if ((void *)(bth + 1) > end)
		return 0;
	struct operator *o = bpf_map_lookup_elem(&operators, &m);
	if (!o)
		return 0;
	__u32 psn = (bth->psn & ~htonl(PSN_MASK)) | asks(meta->psn) | htonl((meta->psn + leg->psn_delta) & PSN_MASK);
	__u32 icrc = *icrc_at ^ shift(o, leg->icrc ^ psn ^ bth->psn);
	bth->psn = psn;
	bth->dest_qp = (bth->dest_qp & ~htonl(PSN_MASK)) | leg->qpn;
	udp->checksum = 0;
	if (meta->reth) {
		struct operator *o1 = bpf_map_lookup_elem(&operators, &second);
		struct operator *o2 = bpf_map_lookup_elem(&operators, &third);
		struct operator *o3 = bpf_map_lookup_elem(&operators, &fourth);
		if (!o1 || !o2 || !o3 || (void *)(reth + 1) > end)
			return 0;
		__u64 va = htonll(ntohll(reth->va) + leg->va_delta), d = va ^ reth->va;
		icrc ^= shift(o1, d) ^ shift(o2, d >> 32) ^ shift(o3, leg->rkey ^ reth->rkey);
		reth->va = va;
		reth->rkey = leg->rkey;
	}
	*icrc_at = icrc;
	return 1;
}

/* Makes the frame the copy for a leg; the tag of the packet is in tci. */
INLINE int remake(void *data, void *end, const struct fast_leg *leg, const struct fast_meta *meta, __u16 tci)
{
	__u32 off = leg->flags & LEG_TAGGED ? 18 : 14; /* a constant, for the verifier */
	void *l3 = data + off;
	struct udp_header *udp;
	__u32 header_len;
	if (meta->ipv6) {
		struct ipv6_header *ip = l3;
		if ((void *)(ip + 1) > end)
			return 0;
		put_l2(data, leg, htons(ETHERTYPE_IPV6), tci);
		if (leg->flags & LEG_REWRITE)
			__builtin_memcpy(ip->src, leg->addresses, 32);
		header_len = sizeof(*ip);
		udp = (void *)(ip + 1);
	} else {
		struct ipv4_header *ip = l3;
		if ((void *)(ip + 1) > end)
			return 0;
		put_l2(data, leg, htons(ETHERTYPE_IPV4), tci);
		if (leg->flags & LEG_REWRITE) {
			__u64 sum = (__u64)(__u16)~ip->checksum + leg->checksum;
			sum = (sum & 0xFFFFFFFF) + (sum >> 32);
			sum = (sum & 0xFFFF) + (sum >> 16);
			sum = (sum & 0xFFFF) + (sum >> 16);
			sum = (sum & 0xFFFF) + (sum >> 16);
			ip->checksum = ~sum;
			__builtin_memcpy(ip->src, leg->addresses, 8);
		}
		header_len = sizeof(*ip);
		udp = (void *)(ip + 1);
	}
	if (!(leg->flags & LEG_REWRITE))
		return 1;
	/* To the ICRC, from BTH on, and in words from the PSN on. */
	__u32 rest = meta->ip_len - header_len - sizeof(*udp) - ICRC_LEN;
	if (rest > 4 * MAX_WORDS)
		return 0;
	__u32 *icrc_at = (void *)(udp + 1) + rest;
	if ((void *)(icrc_at + 1) > end)
		return 0;
	return rewrite(leg, meta, udp, icrc_at, (rest - 8) / 4, end);
}

/* Counts the copy of psn at the gate of a leg; 0: it is not to leave. */
INLINE int pass_gate(struct fast_leg *leg, __u32 psn)
{
	__u64 gate = *(volatile __u64 *)&leg->gate;
	if ((gate & (GATE_SHUT | PSN_MASK)) != psn)
		return 0;
	__u64 next = ((gate & ~PSN_MASK) + GATE_COPIES) & ~GATE_SHUT;
	next |= (psn + 1) & PSN_MASK;
	return __sync_val_compare_and_swap(&leg->gate, gate, next) == gate;
}

/* Makes the frame the copy for a leg; XDP_DROP: there is none for it. */
INLINE int copy(struct xdp_md *ctx)
{
	void *data = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;
	struct fast_meta *at = (void *)(unsigned long)ctx->data_meta, meta;
	struct vlan_tag *tag = data + sizeof(struct eth_header);
	__u16 tci = 0;

	if ((void *)(at + 1) > data)
		return XDP_DROP; /* no copy of a group */
	meta = *at;
	if (meta.kind == META_ACK)
		return bpf_xdp_adjust_meta(ctx, sizeof(meta)) ? XDP_DROP : XDP_PASS;
	if (meta.l2_len != sizeof(struct eth_header)) {
		if ((void *)(tag + 1) > end)
			return XDP_DROP;
		tci = tag->tci;
	}
	struct fast_leg *leg = leg_of(&meta, ctx->egress_ifindex);
	if (!leg)
		return XDP_DROP;

	__u32 l2_len = sizeof(struct eth_header) + (leg->flags & LEG_TAGGED ? sizeof(*tag) : 0);
	__u32 len = l2_len + meta.ip_len, is = end - data - meta.l2_len + l2_len;
	if (len < MIN_FRAME)
		len = MIN_FRAME;
	if (bpf_xdp_adjust_meta(ctx, sizeof(meta)))
		return XDP_DROP;
	if (l2_len != meta.l2_len && bpf_xdp_adjust_head(ctx, (int)meta.l2_len - (int)l2_len))
		return XDP_DROP;
	if (len != is && bpf_xdp_adjust_tail(ctx, (int)len - (int)is))
		return XDP_DROP;
	data = (void *)(unsigned long)ctx->data;
	end = (void *)(unsigned long)ctx->data_end;

	if (!remake(data, end, leg, &meta, tci) || !pass_gate(leg, meta.psn))
		return XDP_DROP;
	return XDP_PASS;
}

SEC("xdp/devmap")
int egress(struct xdp_md *ctx)
{
	int action = copy(ctx);

	if (action == XDP_DROP) {
		struct fast_sent *n = sent_to(ctx->egress_ifindex);
		if (n)
			__sync_fetch_and_add(&n->withheld, 1);
	}
	return action;
}
