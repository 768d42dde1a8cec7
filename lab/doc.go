// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package lab makes networks out of Linux network namespaces: hosts, switches
// and the veth pairs between them, by netlink, without any outside command. The
// demo, the tests and the benchmarks run in labs.
//
// An anonymous lab exists only through file descriptors of this process. The
// kernel takes it down, links and all, when the process ends, however it ends;
// there is nothing to clean up by construction.
//
// A named lab (Options.Name) can outlive the process: its namespaces are bind mounts
// under /run/netns, as `ip netns` makes them, so that `ip netns exec NAME-h1 …` works
// in it. A record under /run/gleam-lab names its owner (process id and start time), its
// namespaces and its processes. Each entry is written before its object is made, so
// CleanStale finds all that a dead owner left, and Remove takes down a lab that was
// kept (Lab.Keep).
//
// Everything here needs CAP_SYS_ADMIN and CAP_NET_ADMIN; see Supported.
// Signals are the caller's job.
//
// What the kernel surprises with: after a veth comes up it swallows frames until the change of carrier is processed,
// and IPv6 addresses answer no solicitation before their multicast groups are joined; a lab waits for both. Functions
// of package netlink without a handle open a socket in the calling thread's namespace. A packet socket finds the
// 802.1Q tag in the auxiliary data: the kernel has taken it off the frame.
package lab
