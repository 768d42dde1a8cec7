/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The few parts of the kernel's BPF interface that steer.c needs, written out,
 * so that the object is a function of this directory and of clang alone:
 * neither libbpf's headers nor the kernel's have to be installed, and no change
 * of theirs can change the object. All of it is fixed kernel ABI
 * (include/uapi/linux/bpf.h).
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

/* Map definitions in BTF: a number is the length of an array type. */
#define UINT(name, value) int(*name)[value]
#define TYPE(name, value) typeof(value) *name

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LPM_TRIE 11
#define BPF_MAP_TYPE_ARRAY_OF_MAPS 12
#define BPF_MAP_TYPE_DEVMAP 14
#define BPF_MAP_TYPE_XSKMAP 17
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE (1 << 10)

/* Flags of bpf_redirect_map. */
#define BPF_F_BROADCAST (1 << 3)
#define BPF_F_EXCLUDE_INGRESS (1 << 4)

enum xdp_action {
	XDP_ABORTED = 0,
	XDP_DROP = 1,
	XDP_PASS = 2,
	XDP_TX = 3,
	XDP_REDIRECT = 4,
};

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

/* The beginning of struct __sk_buff, and its metadata. */
struct __sk_buff {
	__u32 len;
	__u32 rest[18];
	__u32 data;
	__u32 data_end;
	__u32 rest2[14];
	__u32 data_meta;
};

enum tc_action {
	TC_ACT_UNSPEC = -1,
	TC_ACT_SHOT = 2,
};

/* Helpers, by their number in enum bpf_func_id. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_clone_redirect)(struct __sk_buff *skb, __u32 ifindex, __u64 flags) = (void *)13;
static long (*const bpf_skb_change_tail)(struct __sk_buff *skb, __u32 len, __u64 flags) = (void *)38;
static long (*const bpf_skb_pull_data)(struct __sk_buff *skb, __u32 len) = (void *)39;
static long (*const bpf_xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static long (*const bpf_redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;
static long (*const bpf_xdp_adjust_meta)(struct xdp_md *ctx, int delta) = (void *)54;
static long (*const bpf_xdp_adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;
static long (*const bpf_loop)(__u32 count, void *function, void *argument, __u64 flags) = (void *)181; /* Linux 5.17 */
static long (*const bpf_ringbuf_output)(void *ring, void *data, __u64 size, __u64 flags) = (void *)130;
static __u64 (*const bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188; /* Linux 5.18 */
static long (*const bpf_xdp_load_bytes)(struct xdp_md *ctx, __u32 offset, void *to, __u32 len) = (void *)189; /* likewise */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "steer.c is compiled for little-endian machines (-target bpfel)"
#endif
#define ntohs(x) __builtin_bswap16(x)
#define htons(x) __builtin_bswap16(x)
