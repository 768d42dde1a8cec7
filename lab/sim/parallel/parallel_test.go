// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package parallel

import (
	"testing"

	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
)

// relay is a program of messages that go on from host to host: each that has come to its end goes on
// to another host, a number of times.
type relay struct {
	hosts, hops int
	seen        []uint64 // messages that came to a host, by host
}

func (*relay) Groups() [][]topology.Node {
	return [][]topology.Node{{0, 3, 17, 33, 60, 90, 127}, {40, 41, 45, 100}}
}
func (r *relay) Flows() int64 { return int64(r.hosts*r.hops) + 2 }

func (r *relay) Start(emit func(workload.Flow)) {
	for h := range r.hosts {
		emit(r.flow(topology.Node(h), 0))
	}
	emit(workload.Flow{Key: 1 << 40, Source: 0, To: workload.None, Group: 0, Bytes: 500_000})
	emit(workload.Flow{Key: 1 << 41, Source: 40, To: workload.None, Group: 1, Bytes: 500_000})
}

// flow returns the flow of step n of a host.
func (r *relay) flow(h topology.Node, n int) workload.Flow {
	to := topology.Node((int(h)*31 + n*17 + 1) % r.hosts)
	if to == h {
		to = topology.Node((int(h) + 1) % r.hosts)
	}
	return workload.Flow{Key: uint64(h)<<16 | uint64(n), Source: h, To: to, Group: workload.None, Bytes: int64(1000 * (n + 1))}
}

func (r *relay) Delivered(_ workload.Flow, at topology.Node, _ func(workload.Flow)) { r.seen[at]++ }

func (r *relay) Completed(f workload.Flow, emit func(workload.Flow)) {
	if n := int(f.Key&0xffff) + 1; f.Group == workload.None && n < r.hops {
		emit(r.flow(f.Source, n))
	}
}

// TestSameResult compares runs with one partition and with several, with losses, of packets and of trains.
func TestSameResult(t *testing.T) {
	c, err := topology.FatTree(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.HostRate, c.FabricRate, c.HostDelay, c.FabricDelay, c.Loss = 200e9, 200e9, topology.Microsecond, topology.Microsecond, 1e-4
	fabric, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, train := range []int{1, 16} {
		var first sim.Result
		for _, n := range []int{1, 2, 5, 8} {
			program := &relay{hosts: fabric.Hosts, hops: 8, seen: make([]uint64, fabric.Hosts)}
			s, err := sim.New(sim.Config{Topology: fabric, Program: program, Partitions: n, Seed: 1, Train: train})
			if err != nil {
				t.Fatal(err)
			}
			Run(s, topology.Second, func() bool { return true })
			r := s.Result()
			if n == 1 {
				first = r
			}
			if r != first || r.Completed != program.Flows() || r.Failed != 0 || (r.Displaced > 0) != s.Trains() {
				t.Errorf("trains of %d, %d partitions: %+v; want %d flows, and as with one: %+v", train, n, r, program.Flows(), first)
			}
		}
	}
}

// TestProgress: progress ends the run.
func TestProgress(t *testing.T) {
	c := topology.LeafSpine(2, 1, 8)
	c.HostRate, c.FabricRate, c.HostDelay, c.FabricDelay = 200e9, 200e9, topology.Microsecond, topology.Microsecond
	fabric, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, min(2, fabric.Pods)} {
		s, err := sim.New(sim.Config{Topology: fabric, Program: &long{}, Partitions: n})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		Run(s, topology.Second, func() bool { calls++; return calls < 2 })
		if r := s.Result(); calls != 2 || r.Events < progressEvery || r.Completed != 0 {
			t.Errorf("%d partitions: %d calls of progress, %+v: want 2 calls, and no flow completed", n, calls, r)
		}
	}
}

// long is a program with one long flow.
type long struct{}

func (*long) Groups() [][]topology.Node { return nil }
func (*long) Flows() int64              { return 1 }
func (*long) Start(emit func(workload.Flow)) {
	emit(workload.Flow{Source: 0, To: 12, Group: workload.None, Bytes: 1 << 30})
}
func (*long) Delivered(workload.Flow, topology.Node, func(workload.Flow)) {}
func (*long) Completed(workload.Flow, func(workload.Flow))                {}
