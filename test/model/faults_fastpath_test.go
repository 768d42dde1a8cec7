// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/mcast"
)

// offloading returns the scenario in which the faults of a fast path are searched: the source sends one
// message with the given number of packets.
func offloading(packets int) *Config {
	c := repairing()
	c.Name, c.Messages, c.FastPath, c.Repair = "fast-faults", []int{packets}, 4, 4
	return c
}

// ordered changes the orders of a call.
func ordered(change func([]mcast.Order) []mcast.Order) broken {
	do := func(_ *broken, out *mcast.Output) { out.Orders = change(out.Orders) }
	return broken{timer: do, after: func(b *broken, _ *mcast.Packet, out *mcast.Output) { do(b, out) }}
}

// fastFaults are as faults, of switches with a fast path.
var fastFaults = []struct {
	name      string
	packets   int
	invariant string
	endToEnd  string
	fault     broken
}{
	{"the fast path skips a packet when a leg is in sync again", 6, "the fast path sends packet", "", ordered(func(os []mcast.Order) []mcast.Order {
		for i := range os {
			if os[i].Kind == mcast.OpenGate {
				os[i].Next = os[i].Next.Next()
			}
		}
		return os
	})},
	{"a late leg stays on the fast path", 6, "and the leg is recovering", "", ordered(func(os []mcast.Order) []mcast.Order {
		return slices.DeleteFunc(os, func(o mcast.Order) bool { return o.Kind == mcast.ShutGate })
	})},
	// Every state is searched for a livelock: few packets.
	{"what comes the slow way is dropped", 3, "LIVELOCK|RETRY_EXC_ERR", "LIVELOCK|RETRY_EXC_ERR", broken{after: func(_ *broken, _ *mcast.Packet, out *mcast.Output) {
		out.NeedRevoke = false
	}}},
}

// TestFastPathFaultsAreFound is TestFaultsAreFound for switches with a fast path.
func TestFastPathFaultsAreFound(t *testing.T) {
	for _, f := range fastFaults {
		findBoth(t, f.name, func() *Config { return offloading(f.packets) }, f.invariant, f.endToEnd, &f.fault)
	}
}

// idleFaults are wrong ways of a driver to take back an idle fast path.
var idleFaults = []struct {
	name   string
	what   string
	chores []choreKind
}{
	{"what was taken is not reported", "a report of packet 1 is not taken", []choreKind{takeBack, callRevoked}},
	{"the switch is told before the word is back", "a report of packet 1 is not taken", []choreKind{callRevoked, takeBack, reportTaken}},
	{"what is taken after the report is not reported", "a report of packet 1 is not taken", []choreKind{reportTaken, takeBack, callRevoked}},
	{"the switch is not told", "which was not sent packet", []choreKind{takeBack, reportTaken}},
}

// TestIdleFaultsAreFound is TestFaultsAreFound for drivers.
func TestIdleFaultsAreFound(t *testing.T) {
	for _, f := range idleFaults {
		t.Run(f.name, func(t *testing.T) {
			c := offloading(6)
			c.Idle, c.idleChores = 1, f.chores
			findFault(t, c, f.what, false, &broken{})
		})
	}
}

// ackFaults are mistakes in the counting of ACKs (R113), and what the model has to say about them.
var ackFaults = []struct {
	name   string
	what   string
	faulty faultyACKs
	change func(*Config)
}{
	{"a program answers what its own receiver has", "says that", faultyACKs{own: true}, nil},
	{"a program takes a NAK for an ACK", "I1: the leg|says that", faultyACKs{nakCounts: true}, nil},
	{"a word counts for other tables", "I1: the leg|says that", faultyACKs{closed: true, open: true}, func(c *Config) { c.Changes, c.Bounds = rejoinScenarios, Bounds{} }},
	{"what has left the ring is reported", "has left the ring", faultyACKs{behind: true}, shortRing},
	{"the limit moves while the switch is called", "has left the ring|before what they acknowledge", faultyACKs{moving: true}, shortRing},
	{"what was forwarded is reported before the words are read", "before what they acknowledge", faultyACKs{late: true}, nil},
}

// shortRing is a ring that the source fills.
func shortRing(c *Config) {
	c.Receivers, c.Messages, c.FastPath, c.Bounds = 1, []int{1, 1, 1, 1}, 2, Bounds{}
}

// TestACKFaultsAreFound is TestFaultsAreFound for fast paths that count ACKs.
func TestACKFaultsAreFound(t *testing.T) {
	for _, f := range ackFaults {
		t.Run(f.name, func(t *testing.T) {
			c := offloading(3)
			c.Messages, c.ACKs, c.Idle, c.faultyACKs = []int{1, 1, 1}, true, 1, f.faulty
			if f.change != nil {
				f.change(c)
			}
			findFault(t, c, f.what, false, &broken{})
		})
	}
}
