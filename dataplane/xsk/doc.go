// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package xsk implements AF_XDP: memory that the kernel receives frames into and sends
// them from, and the rings that carry their addresses.
//
// # The path of a frame
//
// A [Umem] is one piece of memory, divided into frames of equal size. A frame has one
// owner at a time:
//
//	Pool ── Take ──► worker ── Socket.Fill ──► kernel ── Socket.Receive ──► worker
//	  ▲                │ └──── Socket.Send ──► kernel ── Socket.Complete ─────┐
//	  └───── Give ─────┴◄─────────────────────────────────────────────────────┘
//
// Frames move between ports by address and are not copied, since all sockets use the same
// memory. The Umem records the owner of each frame; passing on a frame that one does not
// own is a bug that would corrupt another packet, and panics.
//
// With several workers, each has a Pool, and the pools exchange frames by a [Depot].
// Workers may pass frames to each other; the record of a frame's owner is written only by
// that owner.
//
// # Rules of the kernel that shape this package
//
//   - A UMEM is registered with one socket, and others join it at bind
//     (XDP_SHARED_UMEM). They take over its mode, copy or zero-copy, and whether
//     packets may be in several buffers; the socket that they name must be bound
//     at that time. So the first socket of each kind registers the memory, and
//     later ones join any live one of their kind. If the memory is registered
//     twice, it is the same memory, with the same addresses.
//   - A socket stays bound until its descriptor is closed and its rings are
//     unmapped; the kernel frees the queue a little later, from a work queue.
//     Close unmaps, and Open waits until the queue is free.
//   - In copy mode the kernel sends only inside a system call, at most 32 frames
//     in one (XDP_MAX_TX_SKB_BUDGET), and completes a frame when its skb is
//     freed. Kick repeats the call until the TX ring is empty.
//   - A packet in several buffers (Config.MultiBuffer) is a chain of descriptors.
//     In copy mode the kernel puts a received chain into the ring whole or not at
//     all, and sends a chain buffer by buffer; drivers in zero-copy mode take a
//     chain only when all of it is in the TX ring, and may have put only a part of
//     one into the RX ring. A faulty chain in the TX ring costs its frames, which
//     are never completed. So Send stages whole, checked packets, and Receive
//     returns whole ones. Every buffer of a chain is filled, sent, completed and
//     owned separately.
//   - A frame in the TX ring waits if the completion ring has no room, so TxRoom
//     also counts frames that are not completed.
//   - Neither poll nor an empty send reports an interface that has vanished; Socket.State asks.
//   - Memory whose sockets have all lost their interfaces is registered anew, which locks it again:
//     a user without privileges needs RLIMIT_MEMLOCK or CAP_IPC_LOCK for that.
//
// # Why these sockets are ours
//
// A switch that sends a frame by several ports needs one memory for all sockets, and packets of several buffers need
// chains. No library for Go has both:
//
//   - github.com/asavie/xdp (v0.3.3 of 2022, its last): a UMEM for each socket, so a packet for three ports is copied
//     into three memories; one sendto for each Transmit, since need_wakeup is not read (its issue 35); a panic for
//     ENOBUFS (issue 31 is one for EINVAL); ring indexes without fences; one buffer a packet; rings that stay mapped
//     after Close, so that the next bind fails with EBUSY.
//   - github.com/atoonk/go-afxdp, a fork that is maintained in 2026, has mended all but the first.
//   - github.com/binw666/xsk says that it is not for production.
//
// Package-level names follow the kernel's Documentation/networking/af_xdp.rst.
//
// Needs CAP_NET_RAW, and Linux 5.10 or later with CONFIG_XDP_SOCKETS; 6.6 or
// later for packets in several buffers.
package xsk
