// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
)

// outcome is what two runs have in common that behaved the same: all but the number of events.
func outcome(s *Simulation) Result {
	r := s.Result()
	r.Events = 0
	return r
}

// TestTrainsAreExact compares trains of several lengths with packets: all completions, deliveries and
// counters of ports, to the picosecond.
func TestTrainsAreExact(t *testing.T) {
	leafSpine := build(t, topology.LeafSpine(8, 4, 8))
	fast := topology.LeafSpine(4, 2, 4)
	fast.HostRate, fast.FabricRate, fast.HostDelay, fast.FabricDelay = 100e9, 400e9, delay, 2*delay
	mixed, err := fast.Build()
	if err != nil {
		t.Fatal(err)
	}
	slow := topology.LeafSpine(4, 2, 4)
	slow.HostRate, slow.FabricRate, slow.HostDelay, slow.FabricDelay = 200e9, 100e9, delay, delay
	narrow, err := slow.Build()
	if err != nil {
		t.Fatal(err)
	}
	messages := func(sizes ...int64) (flows []workload.Flow) {
		for _, n := range sizes {
			flows = append(flows, workload.Flow{Source: 0, To: workload.None, Bytes: n})
		}
		return flows
	}
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"a group", Config{Topology: leafSpine, Program: broadcast(1<<20+5, every(1, 40)...)}},
		{"a group with repair", Config{Topology: leafSpine, Program: broadcast(1<<20, every(5, 12)...), Repair: mcast.RepairSpec{Bytes: 1 << 20, Timeout: 4e6, Tries: 4}}},
		{"messages of a group", Config{Topology: leafSpine, Program: &script{groups: [][]topology.Node{every(3, 20)}, flows: messages(1<<20, 1, 4096, 4097, 1<<20, 0, 70_000)}}},
		{"an ACK for each packet", Config{Topology: leafSpine, Program: broadcast(1<<20, every(1, 40)...), Host: Host{AckEvery: 1}}},
		{"few ACKs", Config{Topology: leafSpine, Program: broadcast(1<<20, every(1, 40)...), Host: Host{AckEvery: 50}}},
		{"a small window", Config{Topology: leafSpine, Program: broadcast(1<<20, every(1, 40)...), Host: Host{Window: 100}}},
		{"a window of less than a round trip", Config{Topology: leafSpine, Program: broadcast(1<<20, every(1, 40)...), Host: Host{Window: 45}}},
		{"few ACKs and a window of a round trip", Config{Topology: leafSpine, Program: broadcast(1<<20, every(1, 40)...), Host: Host{Window: 60, AckEvery: 16}}},
		{"a slower fabric", Config{Topology: narrow, Program: broadcast(1<<20, every(1, 16)...)}},
		{"a slower fabric that marks", Config{Topology: narrow, Program: broadcast(1<<20, every(1, 16)...), ECN: ECN{50_000, 100_000, 0.5}}},
		{"slower hosts", Config{Topology: mixed, Program: broadcast(1<<20, every(1, 16)...)}},
		{"a connection", Config{Topology: leafSpine, Program: &script{flows: []workload.Flow{{Source: 1, To: 60, Group: workload.None, Bytes: 1 << 20}, {Source: 2, To: 3, Group: workload.None, Bytes: 1 << 20}}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := run(t, c.cfg)
			for _, n := range []int{2, 5, 16, maxTrain} {
				cfg := c.cfg
				cfg.Train = n
				got := run(t, cfg)
				if outcome(got) != outcome(want) || total(got) != total(want) {
					t.Errorf("trains of %d: %+v; want, as with packets, %+v", n, outcome(got), outcome(want))
				}
				if few, many := got.Result().Events, want.Result().Events; few > many || few == many && c.cfg.Host.Window == 0 {
					t.Errorf("trains of %d: %d events; %d without", n, few, many)
				}
			}
		})
	}
}

// TestTrainsEndWithAnACK: a train ends with a packet that asks for an ACK, so a host serves it at once: of a
// train there is one event for each link, one for each ACK and one for the source's port.
func TestTrainsEndWithAnACK(t *testing.T) {
	const members, packets, n = 9, 4096, 16
	s := run(t, Config{Topology: build(t, topology.LeafSpine(1, 1, members)), Program: broadcast(packets*4096, every(1, members)...), Train: n, Host: Host{AckEvery: n}})
	each := uint64(1 + (members - 1) + (members - 1) + 1 + 1)
	if got, most := s.Result().Events, each*packets/n*11/10; got > most {
		t.Errorf("%d events; want at most %d, a tenth more than %d for each train", got, most, each)
	}
}

// TestDisplaced: what trains may have changed is counted, and everything is delivered all the same.
func TestDisplaced(t *testing.T) {
	leafSpine := build(t, topology.LeafSpine(4, 2, 8))
	lossy := topology.LeafSpine(4, 2, 8)
	lossy.Loss, lossy.HostLoss = 1e-3, 1e-3
	unicast := func(from, to topology.Node) workload.Flow {
		return workload.Flow{Source: from, To: to, Group: workload.None, Bytes: 2 << 20}
	}
	for _, c := range []struct {
		name    string
		network *topology.Topology
		flows   []workload.Flow
		queue   int64
	}{
		{"two flows to a host", leafSpine, []workload.Flow{unicast(1, 9), unicast(2, 9)}, 0},
		{"two flows of a host", leafSpine, []workload.Flow{unicast(1, 9), {Source: 1, To: 10, Group: workload.None, Bytes: 1 << 20, After: 31*topology.Microsecond + 1}}, 0},
		{"ACKs on the way of data", leafSpine, []workload.Flow{unicast(1, 9), unicast(9, 1)}, 0},
		{"full queues", leafSpine, []workload.Flow{unicast(1, 9), unicast(2, 9)}, 100_000},
		{"loss", build(t, lossy), []workload.Flow{unicast(1, 9), unicast(2, 25)}, 0},
		{"a group's loss", build(t, lossy), []workload.Flow{{Source: 0, To: workload.None, Bytes: 2 << 20}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := run(t, Config{Topology: c.network, Program: &script{groups: [][]topology.Node{every(2, 16)}, flows: c.flows}, Train: 16, Queue: c.queue, Repair: mcast.RepairSpec{Bytes: 1 << 20, Timeout: 1e5, Tries: 4}})
			if r := s.Result(); r.Displaced == 0 || r.Completed != int64(len(c.flows)) || r.Failed != 0 {
				t.Errorf("%+v: want all flows completed, and packets displaced", r)
			}
		})
	}
}

// TestNoTrains: with what trains are not for there are none.
func TestNoTrains(t *testing.T) {
	network := build(t, topology.LeafSpine(2, 1, 4))
	for name, cfg := range map[string]Config{
		"PFC":  {PFC: PFC{XOff: 1 << 20, XOn: 1 << 19}},
		"none": {},
	} {
		cfg.Topology, cfg.Program = network, broadcast(1<<20, every(1, 8)...)
		want := run(t, cfg).Result()
		if name == "PFC" {
			cfg.Train = 16
		}
		s := run(t, cfg)
		if got := s.Result(); s.Trains() || got != want {
			t.Errorf("%s: trains %v, %+v; want no trains, and %+v", name, s.Trains(), got, want)
		}
	}
}

// TestExactMeansExact: random flows of connections and of a group. Where trains displace nothing the result is that
// of packets.
func TestExactMeansExact(t *testing.T) {
	fabric := build(t, topology.LeafSpine(2, 1, 4))
	exact := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		var flows []workload.Flow
		for range 1 + r.IntN(3) {
			f := workload.Flow{Source: topology.Node(r.IntN(3)), To: topology.Node(3 + r.IntN(5)), Group: workload.None, Bytes: int64(r.IntN(400_000))}
			if r.IntN(4) == 0 {
				f = workload.Flow{Source: 0, To: workload.None, Bytes: f.Bytes}
			}
			f.After = Time(r.Int64N(int64(30 * topology.Microsecond)))
			flows = append(flows, f)
		}
		cfg := Config{Topology: fabric, Program: &script{groups: [][]topology.Node{every(2, 4)}, flows: flows}, Host: Host{AckEvery: 1 + r.IntN(8)}}
		want := run(t, cfg)
		cfg.Train = 2 + r.IntN(maxTrain-1)
		got := run(t, cfg)
		if got.Result().Displaced != 0 {
			continue
		}
		exact++
		if outcome(got) != outcome(want) {
			t.Errorf("seed %d, trains of %d, %+v: %+v; want, as with packets, %+v", seed, cfg.Train, flows, outcome(got), outcome(want))
		}
	}
	if exact < 10 {
		t.Errorf("%d of 60 runs displaced nothing; want 10 or more", exact)
	}
}
