// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
)

// script is a program that emits a list of flows at the start.
type script struct {
	groups [][]topology.Node
	flows  []workload.Flow
}

func (s *script) Groups() [][]topology.Node { return s.groups }
func (s *script) Flows() int64              { return int64(len(s.flows)) }
func (s *script) Start(emit func(workload.Flow)) {
	for i, f := range s.flows {
		f.Key = uint64(i) + 1
		emit(f)
	}
}
func (s *script) Delivered(workload.Flow, topology.Node, func(workload.Flow)) {}
func (s *script) Completed(workload.Flow, func(workload.Flow))                {}

const (
	rate  = 200_000_000_000 // bit/s, of links in tests
	psOf  = 8_000_000_000_000 / rate
	delay = topology.Microsecond
)

// build returns a fabric with links of rate and delay.
func build(t testing.TB, c topology.Clos) *topology.Topology {
	t.Helper()
	c.HostRate, c.FabricRate, c.HostDelay, c.FabricDelay = rate, rate, delay, delay
	n, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// run runs a simulation to its end.
func run(t testing.TB, c Config) *Simulation {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.run(10 * topology.Second)
	if at, ok := s.Next(); ok {
		t.Fatalf("there are events left after 10 s, the next at %d ps", at)
	}
	return s
}

// broadcast is a program with one group, whose first member sends bytes to the others.
func broadcast(bytes int64, members ...topology.Node) *script {
	return &script{
		groups: [][]topology.Node{members},
		flows:  []workload.Flow{{Source: members[0], To: workload.None, Bytes: bytes}},
	}
}

// every returns n hosts, the first of which is 0, that are step apart.
func every(step, n int) (hosts []topology.Node) {
	for i := range n {
		hosts = append(hosts, topology.Node(i*step))
	}
	return hosts
}

// onPath returns the time in which a message comes to the end of a path of links that nothing
// else uses: whole packets, one behind the other.
func onPath(links int, bytes int64) Time {
	packets := (bytes + 4095) / 4096
	return (Time(packets)+Time(links)-1)*(4096+frameBytes)*psOf + Time(links)*delay
}

// back returns the time of an ACK on the way back.
func back(links int) Time { return Time(links) * (delay + (frameBytes+4)*psOf) }

// TestGroupTakesTheTimeOfItsLongestPath compares one multicast with the closed form. It is exact: the
// tree's links carry nothing else.
func TestGroupTakesTheTimeOfItsLongestPath(t *testing.T) {
	leafSpine := build(t, topology.LeafSpine(16, 4, 16))
	for _, c := range []struct {
		name    string
		members []topology.Node
		links   int
	}{
		{"4 members at one leaf", every(1, 4), 2},
		{"64 members at 4 leaves", every(1, 64), 4},
		{"16 members at 16 leaves", every(16, 16), 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			const bytes = 256 * 4096
			s := run(t, Config{Topology: leafSpine, Program: broadcast(bytes, c.members...)})
			r := s.Result()
			if r.Delivered != int64(len(c.members)-1) || r.Completed != 1 || r.Failed != 0 {
				t.Fatalf("%+v: want one flow to %d receivers", r, len(c.members)-1)
			}
			if want := onPath(c.links, bytes); r.LastDelivered != want {
				t.Errorf("delivered after %d ps; want %d", r.LastDelivered, want)
			}
			if want := onPath(c.links, bytes) + back(c.links); r.LastCompleted != want {
				t.Errorf("completed after %d ps; want %d", r.LastCompleted, want)
			}
		})
	}
}

// TestGroupAcrossPods is the same in the paper's fabric of 16,384 hosts.
func TestGroupAcrossPods(t *testing.T) {
	fabric := build(t, topology.Paper())
	const bytes = 64 * 4096
	s := run(t, Config{Topology: fabric, Program: broadcast(bytes, every(16384/64, 64)...)})
	r := s.Result()
	if r.Delivered != 63 || r.Completed != 1 || r.Failed != 0 {
		t.Fatalf("%+v: want one flow to 63 receivers", r)
	}
	if want := onPath(6, bytes); r.LastDelivered != want {
		t.Errorf("delivered after %d ps; want %d", r.LastDelivered, want)
	}
	if want := onPath(6, bytes) + back(6); r.LastCompleted != want {
		t.Errorf("completed after %d ps; want %d", r.LastCompleted, want)
	}
}

// TestGroupWithLoss: all receivers get everything in spite of losses, with repair at the switches and
// without, and the same seed gives the same result.
func TestGroupWithLoss(t *testing.T) {
	lossy := topology.LeafSpine(4, 2, 4)
	lossy.Loss = 2e-3
	fabric := build(t, lossy)
	for name, repair := range map[string]mcast.RepairSpec{
		"go-back-N":  {},
		"with local": {Bytes: 16 << 20, Timeout: 100 * time.Microsecond, Tries: 4},
	} {
		t.Run(name, func(t *testing.T) {
			const bytes = 2000 * 4096
			c := Config{Topology: fabric, Program: broadcast(bytes, every(1, 16)...), Repair: repair, Host: Host{Personality: rc.Strict, Timeout: time.Millisecond}}
			var first Result
			for i := range 2 {
				s := run(t, c)
				r := s.Result()
				lost := uint64(0)
				for n := range fabric.Hosts + fabric.Switches {
					for _, p := range s.PortStats(topology.Node(n)) {
						lost += p.Lost
					}
				}
				if r.Delivered != 15 || r.Completed != 1 || r.Failed != 0 || lost == 0 {
					t.Fatalf("%+v, %d packets lost: want one flow to 15 receivers", r, lost)
				}
				t.Logf("%d lost, goodput %.3f, %d events, %d hops", lost, float64(onPath(4, bytes))/float64(r.LastDelivered), r.Events, r.Hops)
				if i == 1 && r != first {
					t.Errorf("%+v: the first run had %+v", r, first)
				}
				first = r
			}
		})
	}
}

// TestUnicast: the flows of one host take turns at its port, a single one takes the time of its
// path.
func TestUnicast(t *testing.T) {
	fabric := build(t, topology.LeafSpine(2, 2, 4))
	flow := func(from, to topology.Node, bytes int64) workload.Flow {
		return workload.Flow{Source: from, To: to, Group: workload.None, Bytes: bytes}
	}
	s := run(t, Config{Topology: fabric, Program: &script{flows: []workload.Flow{flow(0, 7, 100*4096)}}})
	if r, want := s.Result(), onPath(4, 100*4096); r.LastDelivered != want || r.LastCompleted != want+back(4) || r.Failed != 0 {
		t.Errorf("%+v: want the delivery at %d and the completion at %d ps", r, want, want+back(4))
	}
	s = run(t, Config{Topology: fabric, Program: &script{flows: []workload.Flow{flow(0, 7, 100*4096), flow(0, 1, 100*4096), flow(0, 2, 0), flow(7, 0, 1<<19)}}})
	if r, want := s.Result(), onPath(4, 200*4096+1); r.Completed != 4 || r.Delivered != 4 || r.LastDelivered > want || r.LastDelivered < want-20*topology.Microsecond {
		t.Errorf("%+v: want 4 flows, delivered at about %d ps", r, want)
	}
}

// TestPartitions: the result does not depend on the number of partitions, with losses and drops,
// and with PFC and DCQCN.
func TestPartitions(t *testing.T) {
	t.Run("with losses", func(t *testing.T) {
		comparePartitions(t, 1e-3, Config{Host: Host{Personality: rc.Strict, Timeout: time.Millisecond}, ECN: ECN{20000, 100000, 0.2}, Queue: 200000})
	})
	t.Run("with PFC", func(t *testing.T) {
		comparePartitions(t, 0, Config{Host: Host{Congestion: &fast}, ECN: ECN{50000, 200000, 0.2}, Queue: 2_000_000, PFC: PFC{60_000, 40_000}})
	})
}

func comparePartitions(t *testing.T, loss float64, c Config) {
	tree, err := topology.FatTree(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	tree.Loss, tree.Corruption = loss, loss
	fabric := build(t, tree)
	var results []Result
	flows := 0
	for _, n := range []int{1, 3, 8} {
		program := broadcast(300*4096, every(3, 40)...)
		program.groups = append(program.groups, every(16, 8), every(1, 5))
		for i := range 100 {
			f := workload.Flow{Source: topology.Node(i), To: topology.Node(i * 7 % 128), Group: workload.None, Bytes: int64(i) * 5000}
			if f.Source != f.To {
				program.flows = append(program.flows, f)
			}
		}
		program.flows = append(program.flows, workload.Flow{Source: 0, To: workload.None, Group: 1, Bytes: 1 << 20}, workload.Flow{Source: 3, To: workload.None, Group: 2, Bytes: 1 << 20})
		c.Topology, c.Program, c.Partitions, c.Seed = fabric, program, n, 7
		c.Repair = mcast.RepairSpec{Bytes: 16 << 20, Timeout: 100 * time.Microsecond, Tries: 4}
		s := run(t, c)
		if ports := total(s); (c.PFC.XOff > 0) != (ports.Pauses > 0) || ports.Marked == 0 {
			t.Errorf("%+v: want pauses only with PFC, and marks", ports)
		}
		results = append(results, s.Result())
		flows = len(program.flows)
	}
	for _, r := range results {
		if r != results[0] || r.Failed != 0 || r.Completed != int64(flows) {
			t.Errorf("%+v: want %+v", r, results[0])
		}
	}
}

// TestSmallMessages: many short messages of one queue pair use its link as one long message does.
func TestSmallMessages(t *testing.T) {
	fabric := build(t, topology.LeafSpine(2, 2, 4))
	program := &script{}
	for range 500 {
		program.flows = append(program.flows, workload.Flow{Source: 0, To: 7, Group: workload.None, Bytes: 2 * 4096})
	}
	s := run(t, Config{Topology: fabric, Program: program})
	if r, want := s.Result(), onPath(4, 1000*4096); r.LastDelivered != want || r.Completed != 500 || r.Failed != 0 {
		t.Errorf("%+v: want the last delivery at %d ps", r, want)
	}
}

// TestRepairAtAFullLink: receivers lose packets on links that the source's data fills. What is sent
// again must not wait behind what has become useless, or each loss would cost more than the last
// one. No timer is needed.
func TestRepairAtAFullLink(t *testing.T) {
	lossy := topology.LeafSpine(1, 1, 16)
	lossy.HostLoss = 1e-3
	const bytes = 4000 * 4096
	s := run(t, Config{
		Topology: build(t, lossy), Program: broadcast(bytes, every(1, 16)...), Host: Host{Personality: rc.Strict},
		Repair: mcast.RepairSpec{Bytes: 4 << 20, Timeout: 2 * time.Millisecond, Tries: 4},
	})
	if r, ideal := s.Result(), onPath(2, bytes); r.Completed != 1 || r.Delivered != 15 || r.Failed != 0 || r.LastDelivered > ideal*115/100 {
		t.Errorf("%+v: want the last delivery at most 15 %% after %d ps", r, ideal)
	}
}

// TestRegistrationLosesNothing: the first member may send at once, whatever links lose.
func TestRegistrationLosesNothing(t *testing.T) {
	lossy := topology.LeafSpine(4, 2, 4)
	lossy.Loss = 0.5
	fabric := build(t, lossy)
	for seed := range uint64(4) {
		s, err := New(Config{Topology: fabric, Program: broadcast(1, every(4, 4)...), Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for n := range fabric.Hosts + fabric.Switches {
			for _, p := range s.PortStats(topology.Node(n)) {
				if p.Lost != 0 {
					t.Errorf("seed %d: %d packets were lost at %s", seed, p.Lost, fabric.Name(topology.Node(n)))
				}
			}
		}
	}
}

// TestLevels: a switch knows how many levels of switches are behind each leg, on which its timeouts
// depend.
func TestLevels(t *testing.T) {
	tree, err := topology.FatTree(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := &Simulation{cfg: Config{Topology: build(t, tree), Partitions: 1}}
	s.routes = s.cfg.Topology.Routes(nil)
	s.build()
	b := planner{s: s, over: make([]int32, len(s.ports)), here: make([]uint32, len(s.part))}
	// The root's leaf, another leaf of its pod, and a leaf of another pod.
	s.groups = [][]topology.Node{{0, 2, 5}}
	levels, err := b.plan(0, s.routes, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got [][3]int
	for i := range levels {
		x := &levels[i]
		got = append(got, [3]int{s.cfg.Topology.Tier(topology.Node(x.node)), x.height, x.above})
	}
	want := [][3]int{{1, 4, 0}, {2, 3, 1}, {1, 0, 4}, {3, 2, 2}, {2, 1, 3}, {1, 0, 4}}
	if !slices.Equal(got, want) {
		t.Errorf("tier, levels below and above of each switch: %v; want %v", got, want)
	}
}
