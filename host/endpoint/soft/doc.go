// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package soft is an [endpoint.Device] in user space: queue pairs of package
// rc on a packet socket. It needs CAP_NET_RAW and CAP_NET_ADMIN, and an
// interface with an address, in the network namespace of the calling thread.
//
// One goroutine owns the socket and all queue pairs. In each iteration it reads a batch
// of frames, feeds each to its queue pair, fires the timers that are due, lets every
// queue pair send up to a budget, and writes a batch. When it is idle it sleeps in Go's
// network poller, so that many devices in one process do not hold a thread each.
//
// Received frames are checked as in Linux soft-RoCE (RC.md §4; rxe_recv.c): own MAC and
// IP address, a queue pair of that number whose peer has the source address, P_Key, ICRC.
// Other frames are dropped and counted, see [Stats].
//
// A packet socket only sees copies: the kernel gets the same UDP packets and would answer
// them with ICMP port unreachable. The device therefore holds UDP port 4791 with sockets
// that drop all packets.
//
// It is no AF_XDP socket: an XDP program at the far end of a veth costs the switch more, by the conversion of each
// skb, than it saves here. For less than a millisecond it sleeps in ppoll: Go's poller knows whole milliseconds, and
// bursts of one would be marked as congestion.
package soft
