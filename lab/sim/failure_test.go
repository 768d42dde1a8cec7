// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
)

// TestFailure: a spine fails in the middle of a message, and the message goes on by the other one. The
// result does not depend on the number of partitions.
func TestFailure(t *testing.T) {
	tree, err := topology.FatTree(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	fabric := build(t, tree)
	const bytes = 1000 * 4096
	program := func() *script {
		return &script{flows: []workload.Flow{{Source: 0, To: 15, Group: workload.None, Bytes: bytes}, {Source: 4, To: 5, Group: workload.None, Bytes: bytes}}}
	}
	c := Config{Topology: fabric, Program: program(), Host: Host{Personality: rc.Strict, Timeout: 500 * time.Microsecond}, Detect: 200 * topology.Microsecond}
	s := run(t, c)
	if r, want := s.Result(), onPath(6, bytes); r.LastDelivered != want {
		t.Fatalf("without a failure %+v: want the last delivery at %d ps", r, want)
	}
	used := topology.Node(-1) // the core on the path
	for n := fabric.Hosts; n < fabric.Hosts+fabric.Switches; n++ {
		for _, p := range s.PortStats(topology.Node(n)) {
			if fabric.Tier(topology.Node(n)) == 3 && p.Packets >= 1000 {
				used = topology.Node(n)
			}
		}
	}
	if used < 0 {
		t.Fatal("no core has forwarded the flow")
	}
	fabric.Failures = []topology.Failure{{At: 100 * topology.Microsecond, Link: -1, Node: used}, {At: 3 * topology.Millisecond, Link: -1, Node: used, Up: true}}
	var first Result
	for _, n := range []int{1, 2, 4} {
		c.Program, c.Partitions = program(), n
		s := run(t, c)
		r := s.Result()
		if n == 1 {
			first = r
		}
		// The queue pair resends when its timeout has passed, over the routes that are there then.
		low := onPath(6, bytes) + 500*topology.Microsecond - 100*topology.Microsecond
		if r != first || r.Completed != 2 || r.Failed != 0 || r.LastDelivered < low || r.LastDelivered > low+200*topology.Microsecond {
			t.Errorf("%d partitions: %+v: want the last delivery between %d ps and 200 us later, and as with one: %+v", n, r, low, first)
		}
	}
}

// TestWayBack: the only spine fails, and comes back. The message goes on when the switches know it.
func TestWayBack(t *testing.T) {
	fabric := build(t, topology.LeafSpine(2, 1, 1))
	const bytes, back, detect = 1000 * 4096, 2 * topology.Millisecond, 900 * topology.Microsecond
	spine := topology.Node(fabric.Hosts + 2)
	fabric.Failures = []topology.Failure{{At: 50 * topology.Microsecond, Link: -1, Node: spine}, {At: back, Link: -1, Node: spine, Up: true}}
	program := &script{flows: []workload.Flow{{Source: 0, To: 1, Group: workload.None, Bytes: bytes}}}
	s := run(t, Config{Topology: fabric, Program: program, Host: Host{Personality: rc.RXE, Timeout: 50 * time.Microsecond, Retries: 7}, Detect: detect})
	low := back + detect
	if r := s.Result(); r.Completed != 1 || r.LastDelivered < low || r.LastDelivered > low+300*topology.Microsecond {
		t.Errorf("%+v: want one flow, delivered between %d ps and 300 us later", r, low)
	}
}

// TestLossInOneDirection: what comes the other way is not lost.
func TestLossInOneDirection(t *testing.T) {
	fabric := build(t, topology.LeafSpine(1, 1, 4))
	fabric.Links[1].LossToA = 0.1
	s := run(t, Config{Topology: fabric, Program: broadcast(1000*4096, every(1, 4)...), Repair: mcast.RepairSpec{Bytes: 1 << 20, Timeout: 1e5, Tries: 4}})
	for n := range fabric.Hosts + fabric.Switches {
		for i, p := range s.PortStats(topology.Node(n)) {
			if to := fabric.Ports(topology.Node(n))[i].Peer; p.Lost > 0 != (to == 1) {
				t.Errorf("%d packets of %d were lost between node %d and node %d", p.Lost, p.Packets, n, to)
			}
		}
	}
	if r := s.Result(); r.Delivered != 3 || r.Completed != 1 || r.Failed != 0 {
		t.Errorf("%+v: want one flow to 3 receivers", r)
	}
}
