/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The definitions that replicate.c needs of the kernel's BPF interface and of the wire
 * formats. It is a copy of a few lines of package bpf's headers on purpose:
 * a change of the switch's program does not change its measurement.
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define PACKED __attribute__((packed))

/* Map definitions in BTF: a number is the length of an array type. */
#define UINT(name, value) int(*name)[value]
#define TYPE(name, value) typeof(value) *name

#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_DEVMAP 14
#define BPF_MAP_TYPE_XSKMAP 17

#define BPF_F_BROADCAST (1ULL << 3)
#define BPF_F_EXCLUDE_INGRESS (1ULL << 4)

enum xdp_action {
	XDP_ABORTED = 0,
	XDP_DROP = 1,
	XDP_PASS = 2,
	XDP_TX = 3,
	XDP_REDIRECT = 4,
};

#define TC_ACT_SHOT 2
#define TC_ACT_UNSPEC -1

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

struct bpf_devmap_val {
	__u32 ifindex;
	int prog_fd;
};

/* The beginning of struct __sk_buff. */
struct __sk_buff {
	__u32 len;
	__u32 unused[18];
	__u32 data;
	__u32 data_end;
};

/* Helpers, by their number in enum bpf_func_id. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_skb_store_bytes)(struct __sk_buff *skb, __u32 offset, const void *from, __u32 len, __u64 flags) = (void *)9;
static long (*const bpf_clone_redirect)(struct __sk_buff *skb, __u32 ifindex, __u64 flags) = (void *)13;
static long (*const bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static long (*const bpf_skb_load_bytes)(const struct __sk_buff *skb, __u32 offset, void *to, __u32 len) = (void *)26;
static long (*const bpf_redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;
static long (*const bpf_xdp_adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "replicate.c is compiled for little-endian machines (-target bpfel)"
#endif
#define htons(x) __builtin_bswap16(x)
#define ntohl(x) __builtin_bswap32(x)
#define htonl(x) __builtin_bswap32(x)

#define ETHERTYPE_IPV4 0x0800
#define PROTO_UDP 17
#define ROCEV2_PORT 4791
#define OP_ACKNOWLEDGE 0x11
#define PSN_MASK 0xFFFFFF

/* A RoCEv2 packet's headers up to and including BTH: 54 bytes. */
struct headers {
	__u8 dst_mac[6];
	__u8 src_mac[6];
	__u16 ether_type;
	__u8 version_ihl;
	__u8 tos;
	__u16 total_len;
	__u16 id;
	__u16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u16 checksum;
	__u32 src;
	__u32 dst;
	__u16 sport;
	__u16 dport;
	__u16 udp_len;
	__u16 udp_checksum;
	__u8 opcode;
	__u8 flags;
	__u16 pkey;
	__u32 dest_qp; /* upper 8 bits: FECN, BECN and reserved */
	__u32 psn;     /* upper 8 bits: AckReq and reserved */
} PACKED;
