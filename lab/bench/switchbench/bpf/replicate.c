// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Copyright 2026 The Gleam Authors */

//go:build ignore

/*
 * The programs of `gleam bench switch`.
 *
 *   generate    makes the frames: run by BPF_PROG_TEST_RUN with live frames, it
 *               sends RoCEv2 packets with rising PSNs and right ICRCs out of the
 *               source's interface, and the receivers' ACKs out of theirs
 *   sink_tc      counts and drops frames that arrive at a host, behind the skb
 *   sink_xdp     the same before there is an skb
 *   to_socket   hands RoCEv2 packets to an AF_XDP socket; to_socket_frags long ones
 *   broadcast   replicates RoCEv2 packets inside XDP
 *   egress      gives such a copy the MAC addresses of its port
 *   clone       keeps a RoCEv2 packet, and replicates it by clones of its skb
 *
 * Every instance has constants of its own, set before it is loaded.
 */
#include "kernel.h"

#define MAX_LEGS 16
#define MAX_GROUPS 4
#define GROUP_QPNS 16 /* from a member's QPN in one group to that in the next */

const volatile __u32 groups = 1;

/* The index of a leg of a group. */
INLINE __u32 at(__u32 leg, __u32 group)
{
	return leg + MAX_LEGS * group;
}

/* ---- arriving frames ---- */

/* Counters of one sink. Index 0 is the source's, 1... are the receivers'. */
struct seen {
	__u64 good;	/* data as this sink should get it, for the first time */
	__u64 again;	/* ... with a PSN that is not behind the last one */
	__u64 wrong;	/* data with another MAC, address, QPN or length */
	__u64 acks;
};

struct {
	UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct seen);
	UINT(max_entries, MAX_LEGS);
} seen SEC(".maps");

/*
 * The last PSN of each group at each sink, at the source's that of the last ACK; PSN_NONE before
 * the first one. A cache line each: CPUs that send to different sinks do not wait for
 * each other here.
 */
#define PSN_NONE 0xFFFFFFFF
struct last {
	__u32 psn;
	__u32 pass;	/* user space sets it: the sink's XDP program lets frames pass */
	__u32 asked;	/* packets with AckReq that have arrived, for the first time or again */
	__u32 rest[13];
};

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct last);
	UINT(max_entries, MAX_LEGS * MAX_GROUPS);
} arrived SEC(".maps");

const volatile __u32 leg = 0;
const volatile __u32 expect_len = 0;	/* of the frame */
const volatile __u32 expect_qpn = 0;	/* in the first group */
const volatile __u32 expect_dst = 0;	/* network byte order */
const volatile __u32 expect_mac_high = 0; /* the first four bytes as they are in memory */
const volatile __u16 expect_mac_low = 0;

INLINE int is_rocev2(struct headers *h, void *end)
{
	return (void *)(h + 1) <= end && h->ether_type == htons(ETHERTYPE_IPV4) && h->version_ihl == 0x45 &&
	       h->protocol == PROTO_UDP && h->dport == htons(ROCEV2_PORT);
}

/* Counts a RoCEv2 packet; 0 if it is none. */
INLINE int count(void *data, void *end, __u32 len)
{
	struct headers *h = data;
	__u32 key = leg;

	if (!is_rocev2(h, end))
		return 0;
	struct seen *s = bpf_map_lookup_elem(&seen, &key);
	if (!s)
		return 1;
	__u32 qpns = ((ntohl(h->dest_qp) & PSN_MASK) - expect_qpn) & PSN_MASK, group = qpns / GROUP_QPNS;
	int member = qpns % GROUP_QPNS == 0 && group < groups;
	__u32 which = at(leg, member ? group % MAX_GROUPS : 0);
	struct last *last = bpf_map_lookup_elem(&arrived, &which);
	if (!last)
		return 1;
	if (h->opcode == OP_ACKNOWLEDGE) {
		s->acks++;
		last->psn = ntohl(h->psn) & PSN_MASK;
		return 1;
	}
	if (len != expect_len || *(__u32 *)h->dst_mac != expect_mac_high ||
	    *(__u16 *)(h->dst_mac + 4) != expect_mac_low || h->dst != expect_dst || !member) {
		s->wrong++;
		return 1;
	}
	__u32 psn = ntohl(h->psn) & PSN_MASK;
	if (h->psn & htonl(1U << 31))
		last->asked++;
	if (last->psn != PSN_NONE && (psn == last->psn || ((psn - last->psn) & PSN_MASK) > PSN_MASK / 2)) {
		s->again++;
		return 1;
	}
	s->good++;
	last->psn = psn;
	return 1;
}

SEC("tc")
int sink_tc(struct __sk_buff *skb)
{
	void *data = (void *)(unsigned long)skb->data;
	void *end = (void *)(unsigned long)skb->data_end;

	return count(data, end, skb->len) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

SEC("xdp")
int sink_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;

	if (!count(data, end, end - data))
		return XDP_PASS;
	__u32 key = leg;
	struct last *last = bpf_map_lookup_elem(&arrived, &key);
	return last && last->pass ? XDP_PASS : XDP_DROP;
}

/* ---- sent frames ---- */

/* The interfaces that frames leave by: 0 the source's, 1... the receivers'. */
struct {
	UINT(type, BPF_MAP_TYPE_DEVMAP);
	TYPE(key, __u32);
	TYPE(value, __u32);
	UINT(max_entries, MAX_LEGS);
} out SEC(".maps");

/*
 * The contribution of a PSN to the ICRC, by its bytes from the highest one: of the
 * data packet in entry 0, of an ACK in entry 1.
 */
struct psn_table {
	__u32 of[3][256];
};

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct psn_table);
	UINT(max_entries, 2);
} psn_tables SEC(".maps");

/* The first 64 bytes of a frame with PSN 0, and its ICRC, by group: 0 is data, 1... ACKs. */
struct template {
	__u64 words[8];
	__u32 icrc;
	__u32 acked; /* the PSN acknowledged last */
	__u32 patience;	/* rounds until this receiver is checked again */
	__u32 asked;	/* packets with AckReq that it has answered */
};

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct template);
	UINT(max_entries, MAX_LEGS * MAX_GROUPS);
} templates SEC(".maps");

#define ACK_LEN 62
#define MAX_GAP 20000 /* ns; a batch of calls that send nothing takes some 6000 */

const volatile __u32 frame_len = 0;
const volatile __u32 receivers = 0;

/* User space sets these before a run, and reads them after it. */
struct control {
	__u64 interval;	/* ns from one burst to the next; 0: as fast as it goes */
	__u64 due;	/* of the next burst, on the monotonic clock */
	__u64 sent;	/* data frames */
	__u64 acks;	/* ACKs sent */
	__u64 waited;	/* ns between calls that sent nothing: it was not time yet */
	__u64 idle;	/* when the last call was one of these; 0 if it was not */
	__u32 burst;	/* frames */
	__u32 left;	/* ... of the current burst */
	__u32 psn;	/* of the next data frame */
	__u32 ack_every; /* packets per ACK of a receiver; 0: no ACKs */
	__u32 ack_jump;	/* unacknowledged packets beyond which it acknowledges at once */
	__u32 turn;	/* the receiver that is checked next */
	__u32 window;	/* data packets of a group without an ACK of the switch; 0: any number */
	__u32 group;	/* of the next data frame: each PSN goes to all groups, one after the other */
	__u32 turn_group; /* ... whose receiver is checked next */
	__u32 rest;
};

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct control);
	UINT(max_entries, 1);
} control SEC(".maps");

INLINE __u32 icrc_of(struct psn_table *t, __u32 icrc, __u32 psn)
{
	return icrc ^ t->of[0][psn >> 16 & 0xFF] ^ t->of[1][psn >> 8 & 0xFF] ^ t->of[2][psn & 0xFF];
}

/*
 * Checks one receiver: sends the ACK that is due there. Negative if none is. A
 * receiver without a due ACK is skipped for some rounds: its counter is in the cache
 * of the CPU that sends to it, which would have to fetch it back for every packet.
 *
 * The frame's headers are written anew each time, since the kernel recycles the
 * pages with the switch's changes.
 */
INLINE int acknowledge(struct xdp_md *ctx, struct control *c)
{
	__u32 who = c->turn % MAX_LEGS, group = c->turn_group % MAX_GROUPS, one = 1;

	if (who < 1 || who > receivers) {
		who = 1;
		group = group + 1 < groups ? group + 1 : 0;
	}
	c->turn = who + 1;
	c->turn_group = group;
	__u32 which = at(who, group);
	struct template *t = bpf_map_lookup_elem(&templates, &which);
	struct last *last = bpf_map_lookup_elem(&arrived, &which);
	struct psn_table *table = bpf_map_lookup_elem(&psn_tables, &one);
	if (!t || !last || !table)
		return -1;
	if (t->patience) {
		t->patience--;
		return -1;
	}
	__u32 asked = *(volatile __u32 *)&last->asked, has = *(volatile __u32 *)&last->psn, behind = (has - t->acked) & PSN_MASK;
	if (has == PSN_NONE || behind > PSN_MASK / 2 || (asked == t->asked && (behind == 0 || behind < c->ack_every))) {
		t->patience = c->ack_every;
		return -1;
	}
	__u32 psn = asked != t->asked || behind > c->ack_jump ? has : (t->acked + c->ack_every) & PSN_MASK;
	t->asked = asked;
	if (bpf_xdp_adjust_tail(ctx, ACK_LEN - (int)frame_len))
		return -1;
	void *data = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;
	if (data + ACK_LEN > end)
		return XDP_ABORTED;
	__u64 *words = data;
#pragma unroll
	for (int i = 0; i < 7; i++)
		words[i] = t->words[i];
	*(__u16 *)(data + 56) = (__u16)t->words[7];
	*(__u32 *)(data + 50) = htonl(psn);
	*(__u32 *)(data + ACK_LEN - 4) = icrc_of(table, t->icrc, psn);
	t->acked = psn;
	c->acks++;
	c->idle = 0;
	return bpf_redirect_map(&out, who, XDP_ABORTED);
}

/* Whether the switch has acknowledged so much that another packet may be sent. */
INLINE int in_window(struct control *c)
{
	__u32 source = at(0, c->group % MAX_GROUPS);
	struct last *last = bpf_map_lookup_elem(&arrived, &source);

	return !c->window || !last || last->psn == PSN_NONE || ((c->psn - last->psn - 1) & PSN_MASK) < c->window;
}

/* Counts the time from one call that sent nothing to the next. */
INLINE int wait(struct control *c, __u64 now)
{
	/* A longer gap is one in which the thread did not run. */
	if (c->idle && now - c->idle < MAX_GAP)
		c->waited += now - c->idle;
	c->idle = now;
	return XDP_DROP;
}

SEC("xdp")
int generate(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct control *c = bpf_map_lookup_elem(&control, &zero);
	struct psn_table *table = bpf_map_lookup_elem(&psn_tables, &zero);

	if (!c || !table)
		return XDP_ABORTED;
	if (c->ack_every) {
		int action = acknowledge(ctx, c);
		if (action >= 0)
			return action;
	}
	if (c->left == 0) {
		if (c->interval) {
			__u64 now = bpf_ktime_get_ns();
			if (now < c->due)
				return wait(c, now);
			c->due += c->interval;
			if (c->due + 1000000 < now)
				c->due = now; /* what was missed for a millisecond is not made up for */
		}
		c->left = c->burst;
	}
	if (!in_window(c))
		return wait(c, bpf_ktime_get_ns());
	__u32 data_of = at(0, c->group % MAX_GROUPS);
	struct template *t = bpf_map_lookup_elem(&templates, &data_of);
	if (!t)
		return XDP_ABORTED;
	c->left--;
	c->idle = 0;
	void *data = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;
	__u32 len = frame_len;
	if (len < 64 || len > 4096 || data + 64 > end || data + len > end)
		return XDP_ABORTED;
	__u64 *words = data;
#pragma unroll
	for (int i = 0; i < 8; i++)
		words[i] = t->words[i];
	__u32 psn = c->psn;
	*(__u32 *)(data + 50) = htonl(psn);
	*(__u32 *)(data + len - 4) = icrc_of(table, t->icrc, psn);
	if (++c->group >= groups) {
		c->group = 0;
		c->psn = (psn + 1) & PSN_MASK;
	}
	c->sent++;
	return bpf_redirect_map(&out, 0, XDP_ABORTED);
}

/* ---- methods to replicate ---- */

struct {
	UINT(type, BPF_MAP_TYPE_XSKMAP);
	TYPE(key, __u32);
	TYPE(value, __u32);
	UINT(max_entries, 1);
} xsks SEC(".maps");

INLINE int steer(struct xdp_md *ctx)
{
	struct headers *h = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;

	if (!is_rocev2(h, end))
		return XDP_PASS;
	return bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_DROP);
}

SEC("xdp")
int to_socket(struct xdp_md *ctx)
{
	return steer(ctx);
}

/* The same for ports whose frames may be in several buffers. */
SEC("xdp.frags")
int to_socket_frags(struct xdp_md *ctx)
{
	return steer(ctx);
}

/*
 * The ports of the switch, each with its instance of egress. Its size is set to
 * their number before it is made: a broadcast looks at every entry.
 */
struct {
	UINT(type, BPF_MAP_TYPE_DEVMAP);
	TYPE(key, __u32);
	TYPE(value, struct bpf_devmap_val);
	UINT(max_entries, MAX_LEGS);
} ports SEC(".maps");

SEC("xdp")
int broadcast(struct xdp_md *ctx)
{
	struct headers *h = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;

	if (!is_rocev2(h, end))
		return XDP_PASS;
	return bpf_redirect_map(&ports, 0, BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS);
}

const volatile __u64 egress_dst = 0; /* MAC addresses, in the lower six bytes as they are in memory */
const volatile __u64 egress_src = 0;

SEC("xdp/devmap")
int egress(struct xdp_md *ctx)
{
	void *data = (void *)(unsigned long)ctx->data;
	void *end = (void *)(unsigned long)ctx->data_end;
	__u64 dst = egress_dst, src = egress_src;

	if (data + 14 > end)
		return XDP_DROP;
	*(__u32 *)data = (__u32)dst;
	*(__u32 *)(data + 4) = (__u32)(dst >> 32 & 0xFFFF) | (__u32)(src << 16);
	*(__u32 *)(data + 8) = (__u32)(src >> 16);
	return XDP_PASS;
}

/* A receiver's copy: its port, its headers up to the PSN, and the change of its ICRC. */
struct copy {
	__u32 ifindex;
	__u32 icrc; /* XORed */
	__u8 head[52];
};

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct copy);
	UINT(max_entries, MAX_LEGS);
} copies SEC(".maps");

#define KEPT 256
#define LONGEST 4352

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, __u8[LONGEST]);
	UINT(max_entries, KEPT);
} kept SEC(".maps");

SEC("tc")
int clone(struct __sk_buff *skb)
{
	struct headers h;
	__u32 tail = skb->len - 4, psn, was, leg;

	if (bpf_skb_load_bytes(skb, 0, &h, sizeof(h)) || !is_rocev2(&h, &h + 1))
		return TC_ACT_UNSPEC;
	psn = ntohl(h.psn) % KEPT;
	void *slot = bpf_map_lookup_elem(&kept, &psn);
	if (!slot || frame_len < sizeof(h) || frame_len > LONGEST || skb->len != frame_len)
		return TC_ACT_SHOT;
	if (bpf_skb_load_bytes(skb, 0, slot, frame_len) || bpf_skb_load_bytes(skb, tail, &was, 4))
		return TC_ACT_SHOT;
#pragma unroll
	for (__u32 i = 0; i < MAX_LEGS; i++) {
		leg = i;
		struct copy *c = bpf_map_lookup_elem(&copies, &leg);
		if (!c)
			return TC_ACT_SHOT;
		__u32 icrc = was ^ c->icrc;
		if (bpf_skb_store_bytes(skb, 0, c->head, 50, 0) || bpf_skb_store_bytes(skb, tail, &icrc, 4, 0))
			return TC_ACT_SHOT;
		if (i + 1 >= receivers)
			return bpf_redirect(c->ifindex, 0);
		bpf_clone_redirect(skb, c->ifindex, 0);
	}
	return TC_ACT_SHOT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
