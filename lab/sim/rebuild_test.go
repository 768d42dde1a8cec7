// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// receipts is a script that counts the bytes that come to hosts.
type receipts struct {
	script
	bytes []int64
}

func (r *receipts) Delivered(f workload.Flow, at topology.Node, _ func(workload.Flow)) {
	r.bytes[at] += f.Bytes
}

// TestTreesAfterAFailure: what a group's tree goes over fails in the middle of a message, and the message
// goes on over another tree, as soon as that is installed.
func TestTreesAfterAFailure(t *testing.T) {
	shape, err := topology.FatTree(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	const bytes, at, detect = 1500 * 4096, 50 * topology.Microsecond, 150 * topology.Microsecond
	for name, tier := range map[string]int{"core": 3, "aggregation": 2} {
		for repair, spec := range map[string]mcast.RepairSpec{"go-back-N": {}, "with repair": {Bytes: 16 << 20, Timeout: 100 * time.Microsecond, Tries: 4}} {
			t.Run(name+" "+repair, func(t *testing.T) {
				fabric := build(t, shape)
				program := func() *receipts {
					return &receipts{*broadcast(bytes, every(1, 16)...), make([]int64, 16)}
				}
				c := Config{Topology: fabric, Program: program(), Repair: spec, Host: Host{Personality: rc.Strict}, Detect: detect}
				used := topology.Node(-1)
				whole := run(t, c)
				for n := fabric.Hosts; n < fabric.Hosts+fabric.Switches; n++ {
					for _, p := range whole.PortStats(topology.Node(n)) {
						if fabric.Tier(topology.Node(n)) == tier && p.Packets >= 1500 {
							used = topology.Node(n)
						}
					}
				}
				fabric.Failures = []topology.Failure{{At: at, Link: -1, Node: used}, {At: 5 * topology.Millisecond, Link: -1, Node: used, Up: true}}
				var first Result
				for _, n := range []int{1, 4} {
					program := program()
					c.Program, c.Partitions = program, n
					s := run(t, c)
					r := s.Result()
					if n == 1 {
						first = r
					}
					low := onPath(6, bytes) + detect
					if spec.Bytes == 0 { // the switch of the source has answered it by an RNR NAK while it was frozen (R86)
						low += Time(rocev2.RNRCode(14).Duration()) * topology.Nanosecond
					}
					if r != first || r.Completed != 1 || r.Delivered != 15 || r.Failed != 0 || r.LastDelivered < low || r.LastDelivered > low+100*topology.Microsecond {
						t.Errorf("%d partitions: %+v: want 15 deliveries, the last between %d ps and 100 us later, and as with one: %+v", n, r, low, first)
					}
					// The request and its answer pass the four links between switches twice, after a report that passes fewer.
					registration, link := -at-detect, delay+prepareBytes*psOf
					for i := range s.installs {
						if s.installs[i].branch == 0 {
							registration += s.installs[i].at
						}
					}
					if low := 4 * 4 * link; registration < low || registration > low+4*link {
						t.Errorf("%d partitions: the root installs the tree %d ps after the failure is known; want %d ps, and at most %d", n, registration, low, low+4*link)
					}
					for h, got := range program.bytes {
						if want := int64(bytes); h > 0 && got != want {
							t.Errorf("%d partitions: host %d has got %d bytes; want %d", n, h, got, want)
						}
					}
					t.Logf("%d partitions: %d ps after the failure is known", n, r.LastDelivered-low)
				}
			})
		}
	}
}

// TestSecondRebuild: what the new tree of a group goes over fails, too, and the next rebuild waits until 200 ms have
// passed since the first one. Nothing comes back.
func TestSecondRebuild(t *testing.T) {
	shape, err := topology.FatTree(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	fabric := build(t, shape)
	const bytes, detect = 1500 * 4096, 50 * topology.Microsecond
	c := Config{Topology: fabric, Repair: mcast.RepairSpec{Bytes: 16 << 20, Timeout: 100 * time.Microsecond, Tries: 4}, Host: Host{Personality: rc.RXE}, Detect: detect}
	var s *Simulation
	for i := range 2 {
		c.Program = broadcast(bytes, every(1, 16)...)
		s = run(t, c)
		core := topology.Node(-1) // that of the tree
		for n := fabric.Hosts; n < fabric.Hosts+fabric.Switches; n++ {
			for _, p := range s.PortStats(topology.Node(n)) {
				if fabric.Tier(topology.Node(n)) == 3 && p.Packets >= 600 && (len(fabric.Failures) == 0 || topology.Node(n) != fabric.Failures[0].Node) {
					core = topology.Node(n)
				}
			}
		}
		if core < 0 {
			t.Fatal("no core has forwarded the message")
		}
		fabric.Failures = append(fabric.Failures, topology.Failure{At: Time(50+100*i) * topology.Microsecond, Link: -1, Node: core})
	}
	for _, n := range []int{1, 4} {
		c.Program, c.Partitions = broadcast(bytes, every(1, 16)...), n
		s = run(t, c)
		low := 50*topology.Microsecond + detect + rebuildInterval
		if r := s.Result(); r.Completed != 1 || r.Delivered != 15 || r.Failed != 0 || r.LastDelivered < low || r.LastDelivered > low+topology.Millisecond {
			t.Errorf("%d partitions: %+v: want 15 deliveries, the last between %d ps and 1 ms later", n, r, low)
		}
	}
}

// TestRandomFailures: links and switches fail and come back, some of them shortly after another one and
// some so that a member cannot be reached. All messages come to all members in the end, once, and the
// result does not depend on the number of partitions.
func TestRandomFailures(t *testing.T) {
	shape, err := topology.FatTree(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	rebuilt := 0
	for seed := range uint64(8) {
		fabric := build(t, shape)
		rng := rand.New(rand.NewPCG(seed, 7))
		for range 1 + rng.IntN(4) {
			f := topology.Failure{At: Time(rng.IntN(200)) * topology.Microsecond, Link: -1, Node: topology.Node(fabric.Hosts + rng.IntN(fabric.Switches))}
			if rng.IntN(2) == 0 {
				f.Node, f.Link = -1, int32(rng.IntN(len(fabric.Links)))
			}
			back := f
			back.At, back.Up = f.At+Time(1+rng.IntN(3000))*topology.Microsecond, true
			fabric.Failures = append(fabric.Failures, f, back)
		}
		program := func() *receipts {
			r := &receipts{bytes: make([]int64, 16)}
			order := rand.New(rand.NewPCG(seed, 8)).Perm(16)
			for g := range 4 {
				var members []topology.Node
				for _, h := range order[4*g : 4*g+4] {
					members = append(members, topology.Node(h))
				}
				r.groups = append(r.groups, members)
				for range 3 {
					r.flows = append(r.flows, workload.Flow{Source: members[0], To: workload.None, Group: int32(g), Bytes: 100 * 4096})
				}
			}
			return r
		}
		var first Result
		for _, n := range []int{1, 4} {
			p := program()
			c := Config{Topology: fabric, Program: p, Host: Host{Personality: rc.RXE}, Detect: 150 * topology.Microsecond, Seed: seed, Partitions: n}
			if seed%2 == 0 {
				c.Repair = mcast.RepairSpec{Bytes: 16 << 20, Timeout: 100 * time.Microsecond, Tries: 4}
			}
			s := run(t, c)
			r := s.Result()
			if n == 1 {
				first = r
				rebuilt += len(s.installs)
			}
			if r != first || r.Completed != 12 || r.Delivered != 36 || r.Failed != 0 {
				t.Errorf("seed %d, %d partitions: %+v: want 12 flows, and as with one: %+v", seed, n, r, first)
			}
			for g, members := range p.groups {
				for _, h := range members[1:] {
					if p.bytes[h] != 3*100*4096 {
						t.Errorf("seed %d: host %d of group %d has got %d bytes; want %d", seed, h, g, p.bytes[h], 3*100*4096)
					}
				}
			}
		}
	}
	if rebuilt == 0 {
		t.Error("no tree was rebuilt")
	}
}
