// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
)

// Result is what has happened so far.
type Result struct {
	Events uint64
	Hops   uint64 // packets that came to the end of a link

	Completed     int64 // flows that their sources have the completions of
	Delivered     int64 // flows that came to a host: for a group, once for each receiver
	LastCompleted Time
	LastDelivered Time
	Failed        int64  // completions with an error, failed groups and evicted members
	NoRoute       uint64 // packets for a host to which there was no way
	Damaged       uint64 // packets that were dropped because of a wrong ICRC

	// Displaced counts what may have happened in another order or at another time than without
	// trains; with 0 the result is that without.
	Displaced uint64

	// Hash is that of all completions and deliveries with their times. Two runs with the same
	// hash have had the same behaviour.
	Hash uint64
}

// add adds what has happened in another part of the network.
func (r *Result) add(x *Result) {
	r.Events += x.Events
	r.Hops += x.Hops
	r.Completed += x.Completed
	r.Delivered += x.Delivered
	r.LastCompleted = max(r.LastCompleted, x.LastCompleted)
	r.LastDelivered = max(r.LastDelivered, x.LastDelivered)
	r.Failed += x.Failed
	r.NoRoute += x.NoRoute
	r.Damaged += x.Damaged
	r.Displaced += x.Displaced
	r.Hash += x.Hash // the order of the parts does not count
}

// Result returns what has happened so far in all partitions. None of them runs meanwhile.
func (s *Simulation) Result() Result {
	var r Result
	for _, p := range s.partitions {
		r.add(&p.result)
	}
	for i := range s.ports {
		x := &s.ports[i].stats
		r.Hash += mix(mix(uint64(i)<<32^x.Packets) + mix(x.Bytes) ^ mix(x.Dropped<<32^x.Marked) + mix(x.Lost<<32^x.Corrupted) ^ uint64(x.Longest) + mix(x.Pauses<<40^uint64(x.Paused)))
	}
	return r
}

// Displaced returns Result's Displaced so far.
func (s *Simulation) Displaced() (n uint64) {
	for _, p := range s.partitions {
		n += p.result.Displaced
	}
	return n
}

// PortStats returns the counters of the ports of a node.
func (s *Simulation) PortStats(n topology.Node) []PortStats {
	var all []PortStats
	for i := s.firstPort[n]; i < s.firstPort[n]+uint32(len(s.cfg.Topology.Ports(n))); i++ {
		all = append(all, s.ports[i].stats)
	}
	return all
}

// completed is called when a source has the completion of a flow.
func (p *Partition) completed(x *posted) {
	r := &p.result
	r.Completed++
	r.LastCompleted = max(r.LastCompleted, p.now)
	r.Hash += mix(mix(x.flow.Key)+mix(uint64(x.start))) ^ mix(uint64(p.now))
	if p.s.cfg.Record != nil {
		p.s.cfg.Record(int(p.index), x.flow, x.start, p.now)
	}
	p.s.cfg.Program.Completed(x.flow, p.emit)
}

// delivered is called when a flow has come to a host.
func (p *Partition) delivered(f workload.Flow, at topology.Node) {
	r := &p.result
	r.Delivered++
	r.LastDelivered = max(r.LastDelivered, p.now)
	r.Hash += mix(mix(f.Key)^mix(uint64(at)<<32)) ^ mix(uint64(p.now)+1)
	p.s.cfg.Program.Delivered(f, at, p.emit)
}
