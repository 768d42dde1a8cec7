// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package fastpath has the maps of the fast path: the XDP programs by which the packets of
// a group's source that come in order are replicated in the kernel, and stored there for
// repair. User space decides which groups take it, and from which PSN on; everything else
// goes to the AF_XDP sockets.
//
// The programs are ../fast.c: ../fast.h has the layout of the maps and who may write which
// word, ../fast_in.h the conditions for a packet, ../fast_out.h the rewriting of a copy.
//
// The words that user space and the programs share are in mapped memory, and are accessed
// by atomic operations only. A group's constants (addresses, ring, legs) change only while
// the group is not FAST, and so late after [Group.Revoke] that no packet that was claimed
// before is on its way through the programs.
//
// Needs Linux 5.18, ports in native mode whose frames are in one buffer, and far ends that
// take redirected frames (a veth's needs GRO, or an XDP program).
package fastpath

//go:generate ../../scripts/bpf ../fast.c fast.o v3
//go:generate ../../scripts/bpf ../transmit.c transmit.o v3
