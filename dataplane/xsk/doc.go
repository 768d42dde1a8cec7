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
// Several workers have a Pool each, which exchange frames by a [Depot], and may hand
// each other frames: the note is then written by whoever the frame belongs to, and
// goes with it.
//
// # Rules of the kernel that shape this package
//
//   - A UMEM is registered with one socket, and others join it at bind
//     (XDP_SHARED_UMEM). They take over its mode, copy or zero-copy, and whether
//     packets may be in several buffers; the socket that they name must be bound
//     at that time. So the first socket of each kind registers the memory, and
//     later ones join any live one of their kind. Registered twice, the memory
//     is the same and so are the addresses.
//   - A socket stays bound until its descriptor is closed and its rings are
//     unmapped, and the kernel then lets go of the queue a little later, from a
//     work queue. Close unmaps, and Open waits for that moment.
//   - In copy mode the kernel sends only inside a system call, at most 32 frames
//     in one (XDP_MAX_TX_SKB_BUDGET), and completes a frame when its skb is
//     freed. Kick repeats the call until the TX ring is empty.
//   - A packet in several buffers (Config.MultiBuffer) is a chain of descriptors.
//     In copy mode the kernel puts a received one into the ring whole or not at
//     all, and sends from it as it finds the buffers; drivers in zero-copy mode
//     take a chain only when it is in the TX ring to its end, and may be seen
//     in the middle of filling the RX ring. A faulty one in the TX ring costs
//     its frames, which are never completed. So Send stages whole, checked
//     packets, and Receive hands over whole ones. Every buffer of a chain is
//     filled, sent, completed and owned by itself.
//   - A frame in the TX ring waits if the completion ring has no room, so TxRoom
//     counts frames that are not completed, too.
//
// Package-level names follow the kernel's Documentation/networking/af_xdp.rst.
//
// Needs CAP_NET_RAW, and Linux 5.10 or later with CONFIG_XDP_SOCKETS; 6.6 or
// later for packets in several buffers.
package xsk
