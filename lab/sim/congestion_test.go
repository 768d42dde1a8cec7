// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
)

// incast is a program in which hosts 1 to n send bytes to host 0.
func incast(n int, bytes int64) *script {
	s := &script{}
	for i := range n {
		s.flows = append(s.flows, workload.Flow{Source: topology.Node(i + 1), To: 0, Group: workload.None, Bytes: bytes})
	}
	return s
}

// total adds the counters of all ports.
func total(s *Simulation) (sum PortStats) {
	for n := range s.firstPort {
		for _, p := range s.PortStats(topology.Node(n)) {
			sum.Dropped += p.Dropped
			sum.Marked += p.Marked
			sum.Pauses += p.Pauses
			sum.Longest = max(sum.Longest, p.Longest)
		}
	}
	return sum
}

// TestPFC: eight hosts send to one. With PFC nothing is dropped and the receiver's link is never
// idle; without, the same queue drops.
func TestPFC(t *testing.T) {
	fabric := build(t, topology.LeafSpine(3, 2, 4))
	const bytes = 200 * 4096
	for _, on := range []bool{true, false} {
		var first Result
		for i := range 2 {
			c := Config{Topology: fabric, Program: incast(8, bytes), Queue: 1_500_000, Host: Host{Timeout: time.Millisecond}}
			if on {
				c.PFC = PFC{XOff: 100_000, XOn: 80_000}
			}
			s := run(t, c)
			r, ports := s.Result(), total(s)
			if r.Completed != 8 || r.Failed != 0 || on != (ports.Dropped == 0) || on != (ports.Pauses > 0) {
				t.Errorf("PFC %v: %+v, %+v", on, r, ports)
			}
			// All bytes over one link, and the first ones over the path to it.
			if low := onPath(1, 8*bytes); on && (r.LastDelivered < low || r.LastDelivered > low+10*topology.Microsecond) {
				t.Errorf("the last flow was delivered at %d ps; want %d to 10 us more", r.LastDelivered, low)
			}
			if i == 1 && r != first {
				t.Errorf("PFC %v: %+v: the first run had %+v", on, r, first)
			}
			first = r
		}
	}
}

// TestPFCHoldsGroupsBack: a receiver's link carries a unicast, too. The multicast slows down to what
// is left, and nothing is dropped.
func TestPFCHoldsGroupsBack(t *testing.T) {
	fabric := build(t, topology.LeafSpine(3, 2, 4))
	program := broadcast(400*4096, 0, 2, 5, 8, 9)
	program.flows = append(program.flows, workload.Flow{Source: 4, To: 8, Group: workload.None, Bytes: 400 * 4096})
	s := run(t, Config{Topology: fabric, Program: program, Queue: 1_500_000, PFC: PFC{XOff: 100_000, XOn: 80_000}})
	if r, ports := s.Result(), total(s); r.Completed != 2 || r.Delivered != 5 || r.Failed != 0 || ports.Dropped != 0 || ports.Pauses == 0 || r.LastDelivered < onPath(1, 800*4096) {
		t.Errorf("%+v, %+v", r, ports)
	}
}

// fast is DCQCN as in NICs for 200 Gbit/s.
var fast = dcqcn.Config{
	LineRate: rate, G: 1. / 256, AlphaTimer: 50 * time.Microsecond, IncreaseTimer: 50 * time.Microsecond, AI: 400e6, HAI: 4e9,
	Burst: time.Microsecond, CNPInterval: 50 * time.Microsecond,
}

// TestCongestionControl: two flows, and a flow and a group, share a receiver's link. With DCQCN
// its queue is much shorter than without, and the link is well used all the same.
func TestCongestionControl(t *testing.T) {
	fabric := build(t, topology.LeafSpine(3, 2, 4))
	const bytes = 2000 * 4096
	unicasts := incast(2, bytes)
	unicasts.flows[0].Source, unicasts.flows[1].Source = 4, 8
	group := broadcast(bytes, 4, 0, 1, 9)
	group.flows = append(group.flows, workload.Flow{Source: 8, To: 0, Group: workload.None, Bytes: bytes})
	for name, program := range map[string]*script{"unicasts": unicasts, "group": group} {
		t.Run(name, func(t *testing.T) {
			c := Config{Topology: fabric, Program: program, ECN: ECN{Min: 100_000, Max: 400_000, Probability: 0.2}}
			without := total(run(t, c))
			c.Host.Congestion = &fast
			s := run(t, c)
			r, with := s.Result(), total(s)
			if r.Completed != 2 || r.Failed != 0 || with.Marked == 0 || with.Dropped != 0 || with.Longest > without.Longest/3 {
				t.Errorf("%+v, %+v; without DCQCN %+v", r, with, without)
			}
			if ideal := onPath(4, 2*bytes); r.LastDelivered > ideal*5/4 {
				t.Errorf("both were delivered at %d ps; want at most a quarter more than %d", r.LastDelivered, ideal)
			}
			t.Logf("queue %.1f us, without DCQCN %.1f us; %.3f of the ideal time", with.Longest.Seconds()*1e6, without.Longest.Seconds()*1e6, r.LastDelivered.Seconds()/onPath(4, 2*bytes).Seconds())
		})
	}
}

// TestRate: a queue pair with a rate takes the time that its bytes take at that rate, packet by packet.
func TestRate(t *testing.T) {
	const packets, rate = 1000, 1e9
	cfg := Config{Topology: build(t, topology.LeafSpine(1, 1, 4)), Program: broadcast(packets*4096, every(1, 4)...), Host: Host{Rate: rate}, Train: 16}
	want := Time(packets*(4096+frameBytes)*8) * (topology.Second / rate)
	s := run(t, cfg)
	if r := s.Result(); s.Trains() || r.Delivered != 3 || r.LastDelivered < want-4*topology.Millisecond || r.LastDelivered > want*101/100 {
		t.Errorf("trains %v, %+v: want no trains, and the deliveries at %d ps, or up to the pacer's burst of 4 ms earlier", s.Trains(), r, want)
	}
}

// TestCNPFilter: the receivers' links are congested one after the other, and each receiver sends CNPs. Without the
// filter of the switches the source gets those of all of them.
func TestCNPFilter(t *testing.T) {
	const members = 8
	fabric := build(t, topology.LeafSpine(4, 2, 4))
	cnps := func(all bool) (n uint64) {
		program := &script{groups: [][]topology.Node{every(1, members)}, flows: []workload.Flow{{Source: 0, To: workload.None, Bytes: 8 << 20}}}
		for m := range members - 1 {
			program.flows = append(program.flows, workload.Flow{Source: topology.Node(members + m), To: topology.Node(m + 1), Group: workload.None, Bytes: 8 << 20})
		}
		s := run(t, Config{Topology: fabric, Program: program, AllCNPs: all, Host: Host{Congestion: &dcqcn.Config{LineRate: 200e9, CNPInterval: 20 * time.Microsecond, AlphaTimer: 20 * time.Microsecond}}, ECN: ECN{20000, 100000, 0.2}})
		if r := s.Result(); r.Completed != program.Flows() || r.Failed != 0 {
			t.Fatalf("%+v: want %d flows", r, program.Flows())
		}
		return s.partitionOf(0).member(0, 0).qp.Stats().CNPs
	}
	filtered, all := cnps(false), cnps(true)
	if filtered == 0 || all < 3*filtered {
		t.Errorf("the source got %d CNPs with the filter, %d without; want several times as many without", filtered, all)
	}
}

// TestPFCCountsAPacketOnce: a switch holds a few packets of a group, each with many copies, and pauses nobody.
func TestPFCCountsAPacketOnce(t *testing.T) {
	const packet = 4096 + frameBytes
	s := run(t, Config{Topology: build(t, topology.LeafSpine(1, 1, 16)), Program: broadcast(1<<20, every(1, 16)...), PFC: PFC{4 * packet, 2 * packet}})
	if n := total(s).Pauses; n != 0 || s.Result().Delivered != 15 {
		t.Errorf("%d pauses, %+v; want none", n, s.Result())
	}
}

// TestPauseEnds: a host goes on after a pause though no ACK comes.
func TestPauseEnds(t *testing.T) {
	const flows, bytes = 4, 100 * 4096
	s := run(t, Config{Topology: build(t, topology.LeafSpine(1, 1, 8)), Program: incast(flows, bytes), PFC: PFC{60_000, 40_000}, Queue: 2_000_000, Host: Host{AckEvery: 4096}})
	want := onPath(2, flows*bytes)
	if r := s.Result(); total(s).Pauses == 0 || r.Delivered != flows || r.LastDelivered > want+20*topology.Microsecond {
		t.Errorf("%d pauses, %+v: want some, and the last delivery at about %d ps", total(s).Pauses, r, want)
	}
}
