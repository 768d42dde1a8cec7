/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The copies of frames in several buffers, which the kernel does not broadcast. The ingress half
 * claims such a packet, stores it, and leaves it to the kernel with its fast_meta. This program of tc, at the same
 * port, takes it from there: for each leg whose turn it is it makes the skb the leg's packet, and sends a clone. What
 * is lost between the two is lost for all receivers, as on the link, and repaired from the ring.
 */
#pragma once

#include "fast_out.h"

/* What remake changes of a packet. */
struct original {
	__u8 eth[14];
	__u16 checksum;
	__u8 addresses[32];
	__u32 dest_qp;
	__u32 psn;
	__u32 icrc;
	__u32 rkey;
	__u64 va;
	__u16 udp_checksum;
};

/* Saves what remake changes, or restores it; 0: the frame does not have it. */
INLINE int keep_original(void *data, void *end, const struct fast_meta *meta, struct original *o, int restore)
{
	struct eth_header *eth = data;
	struct udp_header *udp;
	__u32 header_len;

	if (meta->ipv6) {
		struct ipv6_header *ip = (void *)(eth + 1);
		if ((void *)(ip + 1) > end)
			return 0;
		if (restore)
			__builtin_memcpy(ip->src, o->addresses, 32);
		else
			__builtin_memcpy(o->addresses, ip->src, 32);
		header_len = sizeof(*ip);
		udp = (void *)(ip + 1);
	} else {
		struct ipv4_header *ip = (void *)(eth + 1);
		if ((void *)(ip + 1) > end)
			return 0;
		if (restore) {
			__builtin_memcpy(ip->src, o->addresses, 8);
			ip->checksum = o->checksum;
		} else {
			__builtin_memcpy(o->addresses, ip->src, 8);
			o->checksum = ip->checksum;
		}
		header_len = sizeof(*ip);
		udp = (void *)(ip + 1);
	}
	__u32 rest = meta->ip_len - header_len - sizeof(*udp) - ICRC_LEN;
	if (rest > 4 * MAX_WORDS)
		return 0;
	struct bth *bth = (void *)(udp + 1);
	__u32 *icrc_at = (void *)bth + rest;
	if ((void *)(bth + 1) > end || (void *)(icrc_at + 1) > end)
		return 0;
	if (restore) {
		__builtin_memcpy(eth, o->eth, sizeof(o->eth));
		udp->checksum = o->udp_checksum;
		bth->dest_qp = o->dest_qp;
		bth->psn = o->psn;
		*icrc_at = o->icrc;
	} else {
		__builtin_memcpy(o->eth, eth, sizeof(o->eth));
		o->udp_checksum = udp->checksum;
		o->dest_qp = bth->dest_qp;
		o->psn = bth->psn;
		o->icrc = *icrc_at;
	}
	if (!meta->reth)
		return 1;
	struct reth *reth = (void *)(bth + 1);
	if ((void *)(reth + 1) > end)
		return 0;
	if (restore) {
		reth->va = o->va;
		reth->rkey = o->rkey;
	} else {
		o->va = reth->va;
		o->rkey = reth->rkey;
	}
	return 1;
}

/* A packet whose clones are sent. */
struct cloned {
	struct __sk_buff *skb;
	__u32 first; /* leg */
	struct fast_meta meta;
	struct original original;
};

/* Sends a clone to leg number i, if it is its turn. It is called by bpf_loop, so that the verifier looks at it once. */
static long clone_to(__u32 i, struct cloned *x)
{
	struct __sk_buff *skb = x->skb;
	struct fast_meta *meta = &x->meta;
	__u32 key = x->first + i;
	struct fast_leg *leg = bpf_map_lookup_elem(&legs, &key);

	if (!leg)
		return 0;
	if ((*(volatile __u64 *)&leg->gate & (GATE_SHUT | PSN_MASK)) != meta->psn || leg->incarnation != meta->incarnation) {
		__sync_fetch_and_add(&leg->missed, 1);
		return 0;
	}
	if (bpf_skb_pull_data(skb, skb->len)) /* a clone may share the bytes */
		return 0;
	void *data = (void *)(unsigned long)skb->data;
	void *end = (void *)(unsigned long)skb->data_end;
	if (!keep_original(data, end, meta, &x->original, 1) || !remake(data, end, leg, meta, 0) || !pass_gate(leg, meta->psn))
		return 0;
	struct fast_sent *n = sent_to(leg->ifindex);
	long error = bpf_clone_redirect(skb, leg->ifindex, 0);
	if (!n)
		return 0;
	if (!error) {
		__sync_fetch_and_add(&n->sent, 1);
		return 0;
	}
	__sync_fetch_and_add(&n->unsent, 1);
	if (error < 0)
		*(volatile __u64 *)&n->error = (__u32)-error;
	return 0;
}

SEC("tc")
int clones(struct __sk_buff *skb)
{
	void *data = (void *)(unsigned long)skb->data;
	struct fast_meta *at = (void *)(unsigned long)skb->data_meta;
	struct cloned x = {.skb = skb};

	if ((void *)(at + 1) > data || at->kind != META_CLONES)
		return TC_ACT_UNSPEC;
	x.meta = *at;
	struct fast_group *g = bpf_map_lookup_elem(&groups, &x.meta.group);
	if (!g || !(g->flags & GROUP_CLONES))
		return TC_ACT_SHOT;
	__u32 len = sizeof(struct eth_header) + x.meta.ip_len;
	if (skb->len != len && bpf_skb_change_tail(skb, len, 0)) /* what is behind the packet */
		return TC_ACT_SHOT;
	if (len < MIN_FRAME && bpf_skb_change_tail(skb, MIN_FRAME, 0)) /* zeros */
		return TC_ACT_SHOT;
	if (bpf_skb_pull_data(skb, skb->len))
		return TC_ACT_SHOT;
	data = (void *)(unsigned long)skb->data;
	if (!keep_original(data, (void *)(unsigned long)skb->data_end, &x.meta, &x.original, 0))
		return TC_ACT_SHOT;
	x.first = g->first_leg;
	__u32 n = g->num_legs;
	bpf_loop(n < MAX_CLONES ? n : MAX_CLONES, clone_to, &x, 0);
	return TC_ACT_SHOT;
}
