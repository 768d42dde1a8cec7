// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Copyright 2026 The Gleam Authors */

//go:build ignore

/*
 * Counts, for each port of the fast path, the frames that the port's driver takes from a
 * DEVMAP, and those that it does not. No program of XDP sees that: a veth whose far end
 * has no NAPI, or whose ring is full, drops them without a word to the sender. The kernel calls
 * it once for a batch of up to 16 frames for one interface, of any network namespace.
 */
#include "fast_ports.h"

#define KERNEL __attribute__((preserve_access_index)) /* members are found by the kernel's BTF */

struct net {
	__u64 net_cookie;
} KERNEL;

typedef struct {
	struct net *net;
} KERNEL possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} KERNEL;

/* Set by the loader: the network namespace of the ports. */
const volatile __u64 netns = 0;

/* The arguments of trace_xdp_devmap_xmit. */
struct devmap_xmit {
	const struct net_device *from, *to;
	__u64 sent, unsent, err; /* each int */
};

SEC("tp_btf/xdp_devmap_xmit")
int transmit(struct devmap_xmit *x)
{
	const struct net_device *to = x->to;

	if (to->nd_net.net->net_cookie != netns)
		return 0;
	struct fast_sent *n = sent_to(to->ifindex);
	if (!n)
		return 0;
	if ((int)x->sent > 0)
		__sync_fetch_and_add(&n->sent, (__u32)x->sent);
	if ((int)x->unsent > 0)
		__sync_fetch_and_add(&n->unsent, (__u32)x->unsent);
	if ((int)x->err < 0)
		*(volatile __u64 *)&n->error = (__u32)-(int)x->err;
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
