// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package dataplane moves the packets of a switch: ports, workers, egress queues and the
// rings between workers. Package control opens it (Open), runs it, says by which ports
// groups have members and what ports may do (Plane, Group), and reads its reports
// (envelopes, sightings, changed groups, counters). It never decides what a group is or
// where a host is, talks to no kernel table but those of its ports, and does not know the
// control plane.
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
// the same way as data. The worker checks the ICRC before the core sees feedback, and that
// of data where the core asks (inputGroup). Feedback for the source is built as a new packet
// (stageFeedback) and staged like a copy; of the ACKs of a batch only the last is sent.
//
// # Several workers
//
// A single worker owns all groups, sockets and ports. Several workers divide them
// (workers.go): packets that one receives for another's group go to the owner by a
// handoff ring (handoff.go), and packets that it sends by another's port by a remote TX
// ring (remote_tx.go), as descriptors.
//
// # The parts
//
// A worker is made of components, each in a file of its own with the rule that it keeps:
// clock, mailbox (closures of other goroutines), frameSupply (free frames, fill rings),
// retention (packets that the core retains), pauses, handoffRings and remoteConsumers. So
// is a port: egress (staging, queue and marker), txRing (what the kernel has), portPolicers.
// A worker reaches AF_XDP by xsk.Queue and xsk.Poller; tests give it those of
// test/xsktest, which need neither root nor a kernel.
//
// # The rest
//
// The worker answers ARP requests and neighbour solicitations for group addresses.
// Envelopes go, by a fixed number of slots, to the control plane (slow_path.go), whose
// changes of the workers' tables are closures that run between batches (mailbox.do).
package dataplane
