// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package dataplane is the running switch: ports, the worker that moves the
// packets, and the control loop beside it.
//
// # A data packet's way
//
// The XDP program on the port sends what is for a group address into the port's
// AF_XDP socket; the kernel has copied the frame into the UMEM by then. The
// worker takes a batch of descriptors from each socket in turn (receive), and has
// their bytes come from the CPU that wrote them all at once (fetch). For
// each one it decodes the frame once (rocev2.Decode), makes a value of its
// headers and asks the core (mcast.Switch.Input), having made sure before that
// there is room for everything the core could want. The core answers with
// copies: for each of them the frame's bytes from the IP header on are copied
// into a free frame, the last one reuses the received frame, and the addresses,
// QPN, PSN and RETH are written over for the leg's member (leg.rewrite). The
// ICRC is patched by what those fields' differences contribute, in a few loads,
// so that damage done before this switch is still seen behind it. Copies are
// staged per port and handed over with one system call per port and batch
// (flush).
//
// A packet that is longer than a frame comes as several descriptors, and stays in
// as many buffers all the way (chain.go).
//
// # Feedback's way
//
// Members send ACK, NAK and CNP to their peer, the GroupIP, so that they come
// by the same road. Before the core believes one it has its ICRC checked
// (mcast.Output.NeedVerify). What the core wants the source to hear is built
// from nothing (feedback) and staged like a copy; of a batch's ACKs the last.
//
// # Several workers
//
// One worker has it all. Several share out groups, sockets and ports (crew): what
// one receives for another's group, and what it sends by another's port, goes there
// as a descriptor, through a ring (mail, exit).
//
// # The rest
//
// ARP and neighbour solicitations for group addresses are answered by the
// worker. Envelopes go, by a fixed number of slots, to the control loop, which
// drives envelope.Registrar, finds the members' places (package locate) and
// changes the worker's tables by closures that run between batches.
package dataplane
