// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
)

// TestQueueBound: no packet waits longer than a queue with that packet in it takes, as single packets and in trains.
func TestQueueBound(t *testing.T) {
	const queue = 100_000
	fabric := build(t, topology.LeafSpine(1, 1, 8))
	slow := topology.LeafSpine(2, 1, 2)
	slow.HostRate, slow.FabricRate, slow.HostDelay, slow.FabricDelay = 200e9, 100e9, delay, delay
	narrow, err := slow.Build()
	if err != nil {
		t.Fatal(err)
	}
	one := &script{flows: []workload.Flow{{Source: 0, To: 3, Group: workload.None, Bytes: 1 << 20}}}
	for name, cfg := range map[string]Config{
		"incast": {Topology: fabric, Program: incast(4, 1<<20)},
		"trains": {Topology: narrow, Program: one, Train: 16},
	} {
		cfg.Queue = queue
		s := run(t, cfg)
		dropped := uint64(0)
		for i := range s.ports {
			o := &s.ports[i]
			dropped += o.stats.Dropped
			if most := o.timeOf(queue - frameBytes - 4096); o.stats.Longest > most {
				t.Errorf("%s: a packet waited %d ps at a port of node %d; want at most %d", name, o.stats.Longest, o.node, most)
			}
		}
		if dropped == 0 {
			t.Errorf("%s: nothing was dropped", name)
		}
	}
}

// TestFeedbackIsNotMarked: ACKs wait behind data of the other direction, and data waits behind nothing.
func TestFeedbackIsNotMarked(t *testing.T) {
	flow := func(from, to topology.Node) workload.Flow {
		return workload.Flow{Source: from, To: to, Group: workload.None, Bytes: 1 << 20}
	}
	s := run(t, Config{Topology: build(t, topology.LeafSpine(1, 1, 2)), Program: &script{flows: []workload.Flow{flow(0, 1), flow(1, 0)}}, ECN: ECN{0, 1, 1}, Host: Host{AckEvery: 1}})
	waited := Time(0)
	for i := range s.ports {
		waited = max(waited, s.ports[i].stats.Longest)
	}
	if n := total(s).Marked; n != 0 || waited == 0 {
		t.Errorf("%d packets were marked, and the longest waited %d ps; want none, and ACKs that wait", n, waited)
	}
}

// TestDraw: the random numbers of a port depend on the seed, on the port and on how many there were.
func TestDraw(t *testing.T) {
	cfg := Config{Seed: 1}
	other := Config{Seed: 2}
	a, again, b, c := newPort(&cfg, nil, 0, 1), newPort(&cfg, nil, 0, 1), newPort(&cfg, nil, 0, 2), newPort(&other, nil, 0, 1)
	first := a.draw()
	if first != again.draw() || first == b.draw() || first == c.draw() || first == a.draw() {
		t.Error("two ports, two seeds or two draws have the same number, or the same have not")
	}
}
