// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim simulates networks of many hosts and switches, packet by packet, with the code
// that runs in production: the switches' groups are those of package mcast, the hosts' queue
// pairs those of package rc with the congestion control of package dcqcn, and a group's tree
// is chosen by package envelope.
//
// Time is an integer number of picoseconds. A packet is one event for each link that it
// passes: a port is first in, first out, so it is enough to know when the port is free.
// Of a payload only the length is there.
//
// A Simulation has partitions, each with its own nodes and its own events. Packets between
// partitions take at least Lookahead, so all partitions may be run up to the same time at once, by
// as many goroutines; then each collects what the others have sent to it. Events are ordered by what
// they are and random numbers are counted by port, so the result is the same for any number of
// partitions. Package sim itself starts no goroutines.
package sim
