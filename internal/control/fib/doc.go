// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package fib has the usable next hops of destinations, from the kernel's forwarding
// information base (FIB), and reports when they change.
//
// The kernel is the authority: each destination's next hops are the answer to a FIB match
// (RTM_GETROUTE with RTM_F_FIB_MATCH), which takes tens of microseconds for a FIB of
// any size. A copy of the FIB made from notifications would be wrong: the kernel removes
// routes and next hops without any, when a link goes down, when a nexthop object is deleted, or
// when a group of them loses a member. So a notification only says which destinations are
// matched again, and all of them are matched again, at a bounded rate, after a notification
// that may concern any, and every SweepInterval.
//
// Table is pure: notifications and answers go in, destinations to match and those whose next
// hops have changed come out. Watcher feeds it from netlink.
//
// Matches are those of packets that this host sends itself, without a mark, in the VRFs that the
// ports are in: policy rules apply as they do to these. The most specific route counts.
//
// A next hop is a link and a gateway: with unnumbered BGP all IPv4 gateways may be 169.254.0.1. Whether a gleamd is
// there, package hello knows.
package fib
