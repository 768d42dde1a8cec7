/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The group prefixes: two tries, and the bits that all prefixes have in common. prefixes.go
 * enters and replaces them.
 */
#pragma once

#include "kernel.h"

#define MAX_PREFIXES 2048 /* those of before and those of now, while they change */

struct prefix4 {
	__u32 len;
	__u8 addr[4];
};

struct prefix6 {
	__u32 len;
	__u8 addr[16];
};

struct {
	UINT(type, BPF_MAP_TYPE_LPM_TRIE);
	TYPE(key, struct prefix4);
	TYPE(value, __u32);
	UINT(max_entries, MAX_PREFIXES);
	UINT(map_flags, BPF_F_NO_PREALLOC);
} prefixes4 SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_LPM_TRIE);
	TYPE(key, struct prefix6);
	TYPE(value, __u32);
	UINT(max_entries, MAX_PREFIXES);
	UINT(map_flags, BPF_F_NO_PREALLOC);
} prefixes6 SEC(".maps");

/*
 * The first group prefix of each family, of IPv6 its first 8 bytes, and the bits of it that all
 * prefixes have: an address that differs there is in none, and is not looked up. As in the
 * frame. A reload takes bits off the masks, and adds none before the next start. So a store
 * that is seen in part excludes no address of a prefix that was there before.
 */
const volatile __u32 common4 = 0;
const volatile __u64 common6 = 0;

struct common_masks {
	__u64 mask6;
	__u32 mask4, unused;
};

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct common_masks);
	UINT(max_entries, 1);
} common SEC(".maps");

INLINE int excluded4(__u32 addr)
{
	__u32 key = 0;
	struct common_masks *m = bpf_map_lookup_elem(&common, &key);

	return m && (addr ^ common4) & m->mask4;
}

INLINE int excluded6(__u64 first)
{
	__u32 key = 0;
	struct common_masks *m = bpf_map_lookup_elem(&common, &key);

	return m && (first ^ common6) & m->mask6;
}

INLINE int in_group4(const __u8 *addr)
{
	struct prefix4 key = {.len = 32};
	__u32 bits;

	__builtin_memcpy(&bits, addr, sizeof(bits));
	if (excluded4(bits))
		return 0;

	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	return bpf_map_lookup_elem(&prefixes4, &key) != 0;
}

INLINE int in_group6(const __u8 *addr)
{
	struct prefix6 key = {.len = 128};
	__u64 bits;

	__builtin_memcpy(&bits, addr, sizeof(bits));
	if (excluded6(bits))
		return 0;

	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	return bpf_map_lookup_elem(&prefixes6, &key) != 0;
}
