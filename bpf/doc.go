// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package bpf holds the XDP program that takes the frames of multicast groups
// out of a port's traffic, and loads it.
//
// Frames in the name of a group are dropped, for any destination: group addresses are
// the switch's, and its own frames leave by AF_XDP (guard.h, the port guard). RoCEv2
// packets and envelopes to an address in a group prefix, ARP requests and IPv6
// neighbour solicitations for one, go to the AF_XDP socket of their RX queue; every
// other frame goes on to the kernel as if the program were not there. steer.c has the
// exact rules, and a [Reason] with a counter for each of its exits. Up to two VLAN tags
// are skipped, where they are in the frame: a tag that the sender's or receiver's NIC
// has split off (VLAN offload) is not visible to XDP, and such frames look untagged.
//
// Frames that are left to the kernel are compared with the [Watchlist] of pinned hosts.
// A frame in a host's name from elsewhere is reported as a [Sighting]: at most four a second of a host and port, since
// each wakes user space. Group traffic is not compared.
//
// There are two programs, with the same rules and reasons. The plain one takes frames
// in one buffer. The other, for ports with an MTU beyond [MaxSingleBufferMTU], also
// takes frames that go on in more buffers (xdp.frags); it reads only the first one,
// where the headers have to be: a frame whose headers end later is dropped, as
// DropGuardHidden or DropGroupTruncated. In generic mode either program runs at any
// MTU; for the plain one the kernel first copies a long frame into one buffer, for the
// other into pages.
//
// One instance of each program serves all ports: the kernel's verifier takes 10 ms or more for each, in which a switch
// that starts serves nothing. A port's part of the maps goes by its slot (slots.go), and stays while its interface is
// missing. A confined process loads no program: a port that is added gets one that is there.
//
// The program is attached by a bpf_link, which the kernel removes when the last process
// that holds it ends, in whatever way. A port is then back to plain kernel forwarding.
//
// The compiled object is committed. Rebuilding it takes clang-14 and llvm-strip-14
// (Debian packages clang-14 and llvm-14) and no headers: kernel.h spells out the few
// definitions that libbpf's and the kernel's would have given. The result is the same,
// byte for byte, in every directory (scripts/bpf).
//
// Needs CAP_BPF and CAP_NET_ADMIN (or CAP_SYS_ADMIN), and Linux 5.10 or later;
// 5.18 for frames in several buffers.
package bpf

//go:generate ../scripts/bpf steer.c steer.o v2
