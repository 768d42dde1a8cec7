/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The ports of the fast path, and what becomes of the frames that are sent to them. All
 * programs of the fast path have these maps.
 */
#pragma once

#include "kernel.h"

/* The port with an interface, by the lowest bits of its index. */
struct fast_port {
	__u32 ifindex;
	__u32 port;
};

#define FAST_PORTS 4096

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct fast_port);
	UINT(max_entries, FAST_PORTS);
	UINT(map_flags, BPF_F_MMAPABLE);
} fast_ports SEC(".maps");

/* Frames of a DEVMAP for a port. Those that a driver lost are unsent - withheld. */
struct fast_sent {
	__u64 sent;	/* taken by the driver; by transmit.c */
	__u64 unsent;	/* not; by transmit.c */
	__u64 withheld;	/* of unsent: dropped by the program for copies (fast_out.h) */
	__u64 error;	/* errno with which the driver refused a batch last; by transmit.c */
	__u64 rest[4];
};

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	TYPE(key, __u32);
	TYPE(value, struct fast_sent);
	UINT(max_entries, 1);
	UINT(map_flags, BPF_F_MMAPABLE);
} fast_sent SEC(".maps");

/* The number of the port with an interface; -1: none. */
INLINE int port_of(__u32 ifindex)
{
	__u32 key = ifindex % FAST_PORTS;
	struct fast_port *port = bpf_map_lookup_elem(&fast_ports, &key);

	return port && port->ifindex == ifindex ? (int)port->port : -1;
}

/* What became of the frames for a port; 0: there is none. */
INLINE struct fast_sent *sent_to(__u32 ifindex)
{
	__u32 key = port_of(ifindex);

	return bpf_map_lookup_elem(&fast_sent, &key);
}
