// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package xsk speaks AF_XDP: memory that the kernel receives frames into and
// sends them from, and the rings through which their addresses travel.
//
// # A frame's way
//
// A [Umem] is one piece of memory, cut into frames of equal size. A frame has
// one owner at a time:
//
//	Pool ── Take ──► worker ── Socket.Fill ──► kernel ── Socket.Receive ──► worker
//	  ▲                │ └──── Socket.Send ──► kernel ── Socket.Complete ─────┐
//	  └───── Give ─────┴◄─────────────────────────────────────────────────────┘
//
// Frames move between ports by address, never as a copy, since all sockets use
// the same memory. The Umem keeps a note of who owns each frame; to hand on a
// frame that one does not own is a bug that would corrupt somebody's packet,
// and panics.
//
// # Rules of the kernel that shape this package
//
//   - A UMEM is registered with one socket, and others join it at bind
//     (XDP_SHARED_UMEM). They take over its mode, copy or zero-copy, and the
//     socket that they name must be bound at that time. So the first socket of
//     each mode registers the memory, and later ones join any live one of their
//     mode. Registered twice, the memory is the same and so are the addresses.
//   - A socket stays bound until its descriptor is closed and its rings are
//     unmapped, and the kernel then lets go of the queue a little later, from a
//     work queue. Close unmaps, and Open waits for that moment.
//   - In copy mode the kernel sends only inside a system call, at most 32 frames
//     in one (XDP_MAX_TX_SKB_BUDGET), and completes a frame when its skb is
//     freed. Kick repeats the call until the TX ring is empty.
//   - A frame in the TX ring waits if the completion ring has no room, so TxRoom
//     counts frames that are not completed, too.
//
// Package-level names follow the kernel's Documentation/networking/af_xdp.rst.
//
// Needs CAP_NET_RAW, and Linux 5.10 or later with CONFIG_XDP_SOCKETS.
package xsk
