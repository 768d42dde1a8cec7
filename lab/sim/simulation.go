// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
)

// Simulation is a network and what its hosts do. New makes one.
type Simulation struct {
	cfg        Config
	partitions []*Partition
	part       []int32 // the partition by node
	lookahead  Time
	train      int              // most packets of a train; 1: there are none
	routes     *topology.Routes // the routes without failures
	groups     [][]topology.Node

	failures    []topology.Failure // failures in the order of time
	routesAfter []*topology.Routes // routes by failure
	installs    []install
	groupsAt    [][]int32 // the groups at each node, by number; with taps

	// The ports of node n are ports[firstPort[n]:firstPort[n+1]].
	ports     []port
	at        []portAt // ports by number, as who receives a packet knows them
	firstPort []uint32
	hosts     []host
	switches  []*groupSwitch // switches by node, from the first switch on; nil: it serves no group
}

// New returns a simulation at time 0, with all groups registered and the program started.
func New(cfg Config) (*Simulation, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	s := &Simulation{cfg: cfg, groups: cfg.Program.Groups(), routes: cfg.Topology.Routes(nil)}
	s.train = 1
	if s.cfg.trainsPossible() {
		s.train = s.cfg.Train
	}
	if err := s.checkHost(); err != nil {
		return nil, err
	}
	s.build()
	if err := s.setTaps(); err != nil {
		return nil, err
	}
	s.routeFailures()
	if err := s.register(); err != nil {
		return nil, err
	}
	for _, p := range s.partitions {
		p.Collect()
	}
	s.run(0)
	for _, p := range s.partitions {
		p.reports.shrink() // all groups send them at once in the registration, and not after it
	}
	s.startTaps()
	s.planFailures()
	s.cfg.Program.Start(func(f workload.Flow) {
		p := s.partitionOf(int32(f.Source))
		p.queue.push(&event{at: f.After, in: s.timerOf(int32(f.Source), flowTimer), key: f.Key, aux: p.flows.add(f), kind: flowTimer})
	})
	return s, nil
}

// checkHost makes a queue pair, for the error that its configuration has.
func (s *Simulation) checkHost() error {
	h := &s.cfg.Host
	_, err := rc.New(rc.Config{
		Personality: h.Personality, PMTU: s.cfg.PathMTU, LocalQPN: hostQPN, DestQPN: groupQPN, Timeout: h.Timeout, RetryCnt: h.Retries,
		MaxUnacked: h.Window, AckReqEvery: h.AckEvery, SendDepth: h.Depth, Congestion: h.Congestion, MaxRate: h.Rate,
	})
	if err != nil {
		return fmt.Errorf("sim: hosts: %w", err)
	}
	return nil
}

// build makes ports, nodes and partitions.
func (s *Simulation) build() {
	t := s.cfg.Topology
	nodes := t.Hosts + t.Switches
	s.part = make([]int32, nodes)
	s.ports = make([]port, 0, 2*len(t.Links))
	kinds := classes{}
	for n := range s.part {
		s.part[n] = int32(int(t.Pod(topology.Node(n))) * s.cfg.Partitions / t.Pods)
		s.firstPort = append(s.firstPort, uint32(len(s.ports)))
		for _, at := range t.Ports(topology.Node(n)) {
			s.ports = append(s.ports, newPort(&s.cfg, kinds.of(&s.cfg, &t.Links[at.Link], at.Peer), int32(n), uint32(len(s.ports))))
		}
	}
	s.lookahead = math.MaxInt64
	for n := range nodes {
		for i, at := range t.Ports(topology.Node(n)) {
			p := &s.ports[s.firstPort[n]+uint32(i)]
			p.peer = s.firstPort[at.Peer] + uint32(at.PeerPort)
			p.partition = s.part[at.Peer]
			if p.partition != s.part[n] {
				s.lookahead = min(s.lookahead, p.delay+p.timeOf(frameBytes))
			}
		}
	}
	s.at = make([]portAt, len(s.ports))
	for n := range s.at {
		x := portAt{node: s.ports[n].node}
		if !s.isHost(s.ports[n].peer) {
			x.neighbor = mcast.Neighbor(uint32(n)-s.firstPort[x.node]) + 1
		}
		s.at[n] = x
	}
	s.hosts = make([]host, t.Hosts)
	for h := range s.hosts {
		s.hosts[h].port = s.firstPort[h]
	}
	s.switches = make([]*groupSwitch, t.Switches)
	for i := range s.cfg.Partitions {
		p := &Partition{s: s, index: int32(i), queue: newQueue(-setup), now: -setup, routes: s.routes, taps: len(s.cfg.Taps) > 0, sent: make([]outbox, s.cfg.Partitions)}
		p.coreOut.PortRoom = p.portRoom
		p.memory = rc.NewMemory(0)
		mr, err := p.memory.RegisterLength(rc.MaxMessage, 0, rc.RemoteWrite)
		if err != nil {
			panic(fmt.Sprintf("sim: memory of the greatest length of a message: %v", err))
		}
		p.key = mr.RKey
		p.emit = func(f workload.Flow) { p.emitted = append(p.emitted, f) }
		s.partitions = append(s.partitions, p)
	}
}

// Partitions returns the parts that may be run at the same time.
func (s *Simulation) Partitions() []*Partition { return s.partitions }

// Trains reports whether events may stand for several packets.
func (s *Simulation) Trains() bool { return s.train > 1 }

// Lookahead returns how much later than the first event of all partitions each may be run,
// before it must collect.
func (s *Simulation) Lookahead() Time { return s.lookahead }

// run runs all partitions up to a time, one after the other: the registration.
func (s *Simulation) run(until Time) {
	for {
		first, ok := s.Next()
		if !ok || first >= until {
			return
		}
		end := until
		if len(s.partitions) > 1 {
			end = min(end, first+s.lookahead)
		}
		for _, p := range s.partitions {
			p.Run(end)
		}
		for _, p := range s.partitions {
			p.Collect()
		}
	}
}

// Next returns the time of the first event of all partitions; false if there is none.
func (s *Simulation) Next() (first Time, ok bool) {
	for _, p := range s.partitions {
		if at, some := p.Next(); some && (!ok || at < first) {
			first, ok = at, true
		}
	}
	return first, ok
}

// Now returns the time of the last event that was served.
func (s *Simulation) Now() (last Time) {
	for _, p := range s.partitions {
		last = max(last, p.now)
	}
	return last
}

func (s *Simulation) partitionOf(n int32) *Partition { return s.partitions[s.part[n]] }

// timerOf returns the number of the timers of a kind at a node, in the place of a port.
func (s *Simulation) timerOf(n int32, kind eventKind) uint32 {
	return uint32(len(s.ports)) + uint32(n)*timerKinds + uint32(kind-flowTimer)
}

// portTimerOf returns the number of the timer of a port.
func (s *Simulation) portTimerOf(n uint32) uint32 {
	return s.timerOf(int32(len(s.part)), flowTimer) + n
}

// linkTimerOf returns the number of the timer of a port's link.
func (s *Simulation) linkTimerOf(n uint32) uint32 {
	return s.portTimerOf(uint32(len(s.ports))) + n
}

// nodeOfTimer returns the node of a timer.
func (s *Simulation) nodeOfTimer(in uint32) int32 {
	return int32((in - uint32(len(s.ports))) / timerKinds)
}

const timerKinds = uint32(coreTimer-flowTimer) + 1
