/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Copyright 2026 The Gleam Authors */

/*
 * The wire formats that steer.c reads. Multi-byte fields are in network
 * byte order. Frames have no particular alignment after a VLAN tag, so every
 * struct is packed.
 */
#pragma once

#include "kernel.h"

#define PACKED __attribute__((packed))

#define ETHERTYPE_FIRST 0x0600 /* less is the length of a frame with LLC */
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_RARP 0x8035 /* laid out as ARP is */
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_IPV6 0x86DD
#define ETHERTYPE_QINQ 0x88A8

struct eth_header {
	__u8 dst[6];
	__u8 src[6];
	__u16 type;
} PACKED;

struct vlan_tag {
	__u16 tci;
	__u16 type;
} PACKED;

#define LLC_IP 0x06
#define LLC_SNAP 0xAA
#define LLC_UI 0x03	  /* unnumbered information */
#define SNAP_BRIDGED 0xF8 /* 00-00-F8, IEEE 802.1H; IP has 00-00-00 */

/* IEEE 802.2 LLC, and SNAP in it (RFC 1042). */
struct snap_header {
	__u8 dsap;
	__u8 ssap;
	__u8 control;
	__u8 organization[3];
	__u16 type;
} PACKED;

#define ARP_HARDWARE_ETHERNET 1
#define ARP_REQUEST 1

struct arp_ipv4 {
	__u16 hardware;
	__u16 protocol;
	__u8 hardware_len;
	__u8 protocol_len;
	__u16 operation;
	__u8 sender_mac[6];
	__u8 sender_ip[4];
	__u8 target_mac[6];
	__u8 target_ip[4];
} PACKED;

#define IP_FRAGMENT 0x3FFF /* more fragments, and the offset */
#define IP_OFFSET 0x1FFF

struct ipv4_header {
	__u8 version_ihl;
	__u8 tos;
	__u16 total_len;
	__u16 id;
	__u16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u16 checksum;
	__u8 src[4];
	__u8 dst[4];
} PACKED;

struct ipv6_header {
	__u32 version_class_flow;
	__u16 payload_len;
	__u8 next_header;
	__u8 hop_limit;
	__u8 src[16];
	__u8 dst[16];
} PACKED;

#define PROTO_HOP_BY_HOP 0
#define PROTO_ICMP 1
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_ROUTING 43
#define PROTO_FRAGMENT 44
#define PROTO_AH 51
#define PROTO_DEST_OPTIONS 60
#define PROTO_ICMPV6 58
#define PROTO_MOBILITY 135
#define PROTO_HIP 139
#define PROTO_SHIM6 140

/* The part that the IPv6 extension headers but Fragment have; len is in units of
 * 8 bytes beyond the first 8, that of AH in units of 4 beyond the first 8. */
struct extension_header {
	__u8 next_header;
	__u8 len;
} PACKED;

struct fragment_header {
	__u8 next_header;
	__u8 reserved;
	__u16 offset; /* and the flags, in the lowest 3 bits */
	__u32 id;
} PACKED;

#define IPV6_OFFSET 0xFFF8

struct udp_header {
	__u16 sport;
	__u16 dport;
	__u16 len;
	__u16 checksum;
} PACKED;

#define ND_NEIGHBOR_SOLICITATION 135
#define ND_NEIGHBOR_ADVERTISEMENT 136
#define ND_REDIRECT 137

/* The part of an ICMP or ICMPv6 message that all types have. */
struct icmp_header {
	__u8 type;
	__u8 code;
	__u16 checksum;
} PACKED;

#define ICMP_ECHO_REQUEST 8
#define ICMPV6_ECHO_REQUEST 128

/* ICMP messages that quote the packet that they are about. */
#define ICMP_UNREACHABLE 3
#define ICMP_SOURCE_QUENCH 4
#define ICMP_REDIRECT 5
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETER_PROBLEM 12
#define ICMPV6_LAST_ERROR 127 /* all up to here are errors */

struct icmp_quote4 {
	struct icmp_header icmp;
	__u32 rest;
	struct ipv4_header quoted;
} PACKED;

struct icmp_quote6 {
	struct icmp_header icmp;
	__u32 rest;
	struct ipv6_header quoted;
} PACKED;

struct neighbor_solicitation {
	__u8 type;
	__u8 code;
	__u16 checksum;
	__u32 reserved;
	__u8 target[16];
} PACKED;

/* Advertisement and redirect begin as a solicitation does. */
struct nd_redirect {
	struct neighbor_solicitation nd;
	__u8 destination[16];
} PACKED;
