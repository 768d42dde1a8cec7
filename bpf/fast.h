/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The maps of the fast path, which all ports share. User space has most of them mapped
 * (bpf/fastpath): it stores and reads words of them with atomic operations.
 *
 *   word        of a group    hi, ends, open, FAST, incarnation   this program while FAST is set, else user space
 *   limit       of a group    the first PSN not to forward        fast_ack.h while MOVES is set, else user space
 *   gate        of a leg      next, copies, SHUT                  fast_out.h while not SHUT and next is hi, else user space
 *   header      of a slot     PSN, length, incarnation, VALID     who writes the slot
 *
 * A packet whose PSN is hi is claimed: one cmpxchg on word moves hi on. A copy leaves for
 * a leg only if the gate's next is its PSN; one cmpxchg moves next on. So a leg gets
 * consecutive PSNs, or nothing.
 */
#pragma once

#include "fast_ports.h"

#define ntohl(x) __builtin_bswap32(x)
#define htonl(x) __builtin_bswap32(x)
#define ntohll(x) __builtin_bswap64(x)
#define htonll(x) __builtin_bswap64(x)

#define PSN_BITS 24
#define PSN_MASK 0xFFFFFF

#define WORD_ENDS (1ULL << 24)	/* 24 bits: packets since the grant that ended a message */
#define WORD_OPEN (1ULL << 48)	/* hi - 1 did not end one */
#define WORD_FAST (1ULL << 49)
#define WORD_INCARNATION 50	/* 14 bits */

#define LIMIT_MOVES (1ULL << 24)
#define LIMIT_COUNT (1ULL << 25) /* 39 bits: changes, so that none is as it was before */

#define GATE_COPIES (1ULL << 24) /* 39 bits */
#define GATE_SHUT (1ULL << 63)

#define SLOT_LEN 24		/* 16 bits */
#define SLOT_INCARNATION 40	/* 14 bits */
#define SLOT_VALID (1ULL << 63)

/* Flags of a group. */
#define GROUP_WINDOW 1		/* WRITEs go to the window, and are rewritten */
#define GROUP_NO_WRITE 2	/* no WRITE of bytes is forwarded here */
#define GROUP_TARGETS 4		/* nor is one with target_key */
#define GROUP_NOT_BACK 8	/* no leg is behind the port of the source */
#define GROUP_RING 16		/* packets are stored in ring */
#define GROUP_LARGE 32		/* in ring_large instead */
#define GROUP_CLONES 64		/* copies are clones of the skb (fast_clone.h) */

/* Flags of a leg. */
#define LEG_REWRITE 1	/* a member is behind it, not a switch */
#define LEG_TAGGED 2

#define ACK_EVERY 32	/* members are sent PSNs that are 31 modulo 32 with AckReq; Go: mcast.DefaultAckEvery */
#define MAX_PORT_LEGS 32 /* of one group behind one port */
#define SLOT_BYTES 2048
#define LARGE_BYTES 4352
#define SLOT_HEADER 24
#define MAX_WORDS 1034	/* from a PSN to the ICRC, of a packet of 4096 bytes */
#define MAX_CLONES 32	/* legs of a group whose copies are clones */

struct fast_group {
	__u64 word;
	__u64 bytes;	/* payload that was forwarded; in the line that each packet writes */
	__u64 rest[6];
	__u64 limit;	/* in a line of its own: it is read for each packet */
	__u64 rest2[7];
	__u8 source[16];	/* address as in the packet; IPv4: the first four bytes */
	__u8 source_mac[6];
	__u16 flags;
	__u32 ifindex;		/* where the source is */
	__u32 qpn;		/* the group's; as in the packet, with the first byte 0 */
	__u32 pmtu;
	__u32 window_rkey;	/* host order, as target_key */
	__u32 target_key;
	__u64 window_base;
	__u64 window_len;
	__u32 ring_first;
	__u32 ring_mask;
	__u32 first_leg;	/* in legs, of num_legs */
	__u32 num_legs;
	__u64 rest3[6];
};

/* The legs of a group behind a port: some that follow each other in legs. */
struct fast_path {
	__u32 first;
	__u32 count;
};

struct fast_leg {
	__u64 gate;
	__u64 missed;	/* copies that no gate took, of the legs of this path; counted at the first one */
	__u8 eth[12];	/* destination and source */
	__u16 vid;	/* network order */
	__u16 zero;
	__u16 flags;
	__u16 incarnation;
	__u32 qpn;	/* as in the packet, with the first byte 0 */
	__u8 addresses[32];	/* of the group and the member, as in the IP header; IPv4: the first eight bytes */
	__u32 checksum;	/* added to the one's complement of an IPv4 header's checksum */
	__u32 icrc;	/* rocev2.LegDelta */
	__u32 psn_delta;
	__u32 rkey;	/* network order */
	__u64 va_delta;
	__u64 acked;	/* fast_ack.h */
	__u64 acked_at;	/* on CLOCK_MONOTONIC in ns, when acked was raised last */
	__u64 taken;	/* ACKs that were not left to user space; one that has raised acked may be */
	__u32 ifindex;
	__u32 rest;
};

struct operator {
	__u32 table[4][256];
};

struct fast_slot {
	__u64 header;
	__u64 time; /* on CLOCK_MONOTONIC in ns, of a packet whose copies have AckReq; else 0 */
	__u64 ends; /* packets since the grant that ended a message, up to this one */
	__u8 data[SLOT_BYTES - SLOT_HEADER];
};

struct fast_large_slot {
	__u64 header;
	__u64 time;
	__u64 ends;
	__u8 data[LARGE_BYTES - SLOT_HEADER];
};

/* Set by the loader before the program is verified. */
const volatile __u32 num_ports = 0;

/* AckReq as in the packet, of the copies of psn to members. */
INLINE __u32 asks(__u32 psn) { return (psn & (ACK_EVERY - 1)) == ACK_EVERY - 1 ? htonl(1U << 31) : 0; }

/* What a copy brings from the ingress program to that of its port. */
struct fast_meta {
	__u32 group;
	__u32 psn;
	__u16 incarnation;
	__u16 ip_len;
	__u8 l2_len;
	__u8 ipv6;
	__u8 reth;	/* address and key of a WRITE are rewritten */
	__u8 kind;
};

/* What a frame with a fast_meta is; nobody else's metadata begins so. */
#define META_COPY 0xC0
#define META_ACK 0xC1	/* the group's ACK, which leaves as it is */
#define META_CLONES 0xC2 /* the packet of which fast_clone.h makes the copies */

struct {
	UINT(type, BPF_MAP_TYPE_HASH);
	TYPE(key, __u32);
	TYPE(value, __u32);
	UINT(max_entries, 1);
	UINT(map_flags, BPF_F_NO_PREALLOC);
} fast4 SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_HASH);
	TYPE(key, __u8[16]);
	TYPE(value, __u32);
	UINT(max_entries, 1);
	UINT(map_flags, BPF_F_NO_PREALLOC);
} fast6 SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct fast_group);
	UINT(max_entries, 1);
	UINT(map_flags, BPF_F_MMAPABLE);
} groups SEC(".maps");

/* By group and port: group * num_ports + port. */
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct fast_path);
	UINT(max_entries, 1);
	UINT(map_flags, BPF_F_MMAPABLE);
} paths SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct fast_leg);
	UINT(max_entries, 1);
	UINT(map_flags, BPF_F_MMAPABLE);
} legs SEC(".maps");

/* By 4-byte words: rocev2.Operator. */
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct operator);
	UINT(max_entries, MAX_WORDS);
	UINT(map_flags, BPF_F_MMAPABLE);
} operators SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct fast_slot);
	UINT(max_entries, 1);
	UINT(map_flags, BPF_F_MMAPABLE);
} ring SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct fast_large_slot);
	UINT(max_entries, 1);
	UINT(map_flags, BPF_F_MMAPABLE);
} ring_large SEC(".maps");

/*
 * By group a DEVMAP with an entry for each leg, of exactly that size: a broadcast looks at
 * empty entries, too. They are made at start, and entries are changed in place.
 */
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	UINT(key_size, 4);
	UINT(value_size, 4);
	UINT(max_entries, 1);
} devmaps SEC(".maps");

/* By group and reason: group * NUM_FAST_REASONS + reason. */
struct {
	UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	TYPE(key, __u32);
	TYPE(value, __u64);
	UINT(max_entries, 1);
} fast_counters SEC(".maps");

/*
 * Why a packet for a group is left to user space. The Go names are in
 * fastpath/reason.go.
 */
enum fast_reason {
	FAST_NOT_SOURCE,	/* from another member or place than the source's */
	FAST_OPCODE,
	FAST_HEADERS,
	FAST_LENGTH,
	FAST_WINDOW,
	FAST_SLOW,		/* the group is not FAST */
	FAST_BEHIND,		/* before hi */
	FAST_AHEAD,		/* after hi */
	FAST_LIMIT,
	FAST_RACED,		/* another CPU, or user space, changed the word */
	FAST_NO_ROOM,		/* no headroom, slot or devmap */
	NUM_FAST_REASONS,
};
