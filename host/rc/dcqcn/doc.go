// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package dcqcn is the host's half of congestion control for RoCEv2: the
// reaction point (RP) at the sender and the notification point (NP) at the
// receiver of DCQCN, as in Zhu et al., "Congestion Control for Large-Scale RDMA
// Deployments", SIGCOMM 2015. The congestion point is the
// switch, which marks packets CE.
//
//	       data, ECT(0)            CE above a threshold
//	RP ───────────────────► switch ─────────────────────► NP
//	▲                                                      │
//	└──────────────────────── CNP ◄────────────────────────┘
//
// A [ReactionPoint] is a rate and a pacer that keeps to it. It knows nothing of
// packets: OnSent takes bytes, OnCNP the arrival of a congestion notification
// packet, or of an ACK with BECN, which means the same. Nobody who never calls
// OnCNP gets anything but the line rate: that is a plain pacer.
//
// All time is passed in, as a time.Duration since a moment that the caller
// chooses, and never runs backwards. A ReactionPoint needs no timer of its own:
// what its timers would have done is made up for when it is asked. Nothing
// allocates after New.
//
// # What differs from the paper
//
//   - CNPs within one AlphaTimer count once: the first cuts the rate and raises
//     alpha, the others mean the same queue. The paper gets this from the
//     notification point, whose interval (50 µs) is nearly its alpha timer
//     (55 µs). Here the alpha timer is longer, and CNPs may come from many
//     receivers by way of a switch.
//   - A rate that is back at the line rate is as if there never had been a CNP, as
//     in NICs: alpha is 1 for the next one.
//   - Defaults: see [Config]. The paper's are for 40 Gbit/s, where a queue at its
//     marking threshold is worth tens of microseconds. In software, at some
//     10 Mbit/s to some Gbit/s, the same queue is worth milliseconds, and so is a
//     sleep: the clocks are slower, and rates relative to the line rate.
//
// The additive step is a share of the line rate too, so paths that are slower
// than the line rate by a factor of some tens have long queues for a while; a
// sender's window bounds them.
package dcqcn
