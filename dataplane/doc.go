// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package dataplane is the running switch: ports, the worker that moves the
// packets, and the control loop beside it.
//
// # The path of a data packet
//
// The XDP program on the port redirects packets for group addresses to the port's AF_XDP
// socket; by then the kernel has copied the frame into the UMEM. The worker takes a batch
// of descriptors from each socket in turn (receive), and loads their first bytes from the
// other CPU's cache all together (prefetch). It decodes each frame once (rocev2.Decode),
// reserves room for everything that the core could emit (reserve), and passes the headers
// to the core (mcast.Switch.Input). The core answers with copies. For each copy, the
// frame's bytes from the IP header on are copied into a free frame, except that the last
// copy reuses the received frame; then the addresses, QPN, PSN and RETH are overwritten
// for the leg's member (leg.rewrite). The ICRC is patched by the contributions of the
// fields' differences, in a few loads, so that damage done before this switch is still
// detected behind it. Copies are staged per port and sent with one system call per port
// and batch (flush).
//
// A packet that is longer than a frame has several descriptors, and keeps as many buffers
// on its whole path (chain.go).
//
// # The path of feedback
//
// Members send ACK, NAK and CNP to their peer, the GroupIP, so that feedback arrives in
// the same way as data. Before the core relies on a packet, the worker checks its ICRC
// (mcast.Output.NeedVerify). Feedback for the source is built as a new packet
// (stageFeedback) and staged like a copy; of the ACKs of a batch only the last is sent.
//
// # Several workers
//
// A single worker owns all groups, sockets and ports. Several workers divide them
// (workers.go): packets that one receives for another's group go to the owner by a
// handoff ring (handoff.go), and packets that it sends by another's port by a remote TX
// ring (remote_tx.go), as descriptors.
//
// # The rest
//
// The worker answers ARP requests and neighbour solicitations for group addresses.
// Envelopes go, by a fixed number of slots, to the control loop, which drives
// envelope.Registrar, locates the members (package locate) and changes the workers'
// tables by closures that run between batches.
package dataplane
