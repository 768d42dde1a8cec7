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
// # Who owns what
//
// A worker is one goroutine, locked to one thread, that alone uses its rings, free frames, core and tables: the data
// path takes no lock. Others give it closures, which it runs between two batches (mailbox.do); there is no other way
// in. Its output to others leaves through bounded rings and slots, without waiting.
//
// A frame of the UMEM has one owner at a time: pool, fill ring, worker, TX ring, or a group's repair store
// (Output.Retained to Output.Freed). Frames are reserved before the first side effect, so the core gets no packet for
// whose copies and feedback frames are missing. Room at ports is not reserved: a full port concerns its own legs
// (R70). Lengths are checked once, in rocev2.Decode, against those of IP and UDP.
//
// Of the UMEM the fill rings take half, egress queues and TX rings a quarter, repair stores an eighth. An eighth
// is always left to copy into.
//
// # Several workers
//
// A single worker owns all groups, sockets and ports. Several workers divide them (workers.go), and each is as if it
// were alone; package mcast knows of one. Packets that one receives for another's group go to the owner by a handoff
// ring (handoff.go), and packets that it sends by another's port by a remote TX ring (remote_tx.go), as descriptors.
// A full remote TX ring is a full port to the worker that stages, so nothing is dropped behind it. Each worker's
// groups share an equal part of repair.total: one budget would be a counter that all workers write.
//
// # Ports that come and go
//
// A port is a slot for as long as the process lives, open or closed (port_slots.go). A leg names the slot, and outlives
// the interface. Calls that wait are made by the port thread (port_thread.go): a socket that is closed waits for an RCU
// grace period of 8 to 70 ms, which would stop all groups of a worker. At the end all are closed together.
//
// # Other switches
//
// A frame is a neighbour's if it came by the neighbour's port with the neighbour's MAC address (neighbour.go). Data
// between switches keeps its addresses, PSN and ICRC. Feedback goes to the GroupIP in the name of the source, so the
// next switch's XDP program takes it like any other packet; as a group's packet it would be dropped by the port guard.
// Reports (report.go) go from core to core. A neighbour stands for all hosts behind it: limits of one host do not
// count for it.
//
// # The fast path
//
// XDP programs forward what needs no decision; the core is the one judge. It gets every packet that they have
// forwarded before anything that came later (fast_report.go). fast_path.go begins the chapter, with a file for each
// part: grants, gates, reports, plans, rings, and ports that lose copies.
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
//
// # Other ways
//
//   - Locked tables, or a language of commands to workers: closures are one way in, and need neither.
//   - Larger frames for long packets: the kernel's frames are a page at most, and every ACK would take as much.
//   - More TX rings on a queue, one for each worker: they share one completion ring. So a port has one worker that
//     transmits, and its queue, rate and marker are that one's.
//   - An ACK for each advance: the ACKs of one batch leave together, so only the last is sent (feedback.go).
//   - Rings of 512: they take in 2 to 5 % more at saturation, and lose packets when a worker does not run for 2 ms.
//     Rings have 2048 entries unless the configuration says otherwise.
//   - Without effect beyond 1 %: sending the received frame as the last copy though the store retains it; returning
//     the store's frames to fill rings; copies at different offsets of a page; frames without a note of their owner.
//     The prefetch of a batch is worth 3 %.
package dataplane
