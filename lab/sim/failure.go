// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// Failures. What is on a link when it fails, or is sent on it while it is down, is lost. The switches
// have other routes some time later, all at once.

// routeFailures computes the routes after each failure of the topology.
func (s *Simulation) routeFailures() {
	s.failures = slices.Clone(s.cfg.Topology.Failures)
	slices.SortStableFunc(s.failures, func(a, b topology.Failure) int { return cmp.Compare(a.At, b.At) })
	down := map[int32]bool{}
	for i := range s.failures {
		for _, link := range s.failing(&s.failures[i]) {
			down[link] = !s.failures[i].Up
		}
		was := maps.Clone(down)
		s.routesAfter = append(s.routesAfter, s.cfg.Topology.Routes(func(link int32) bool { return was[link] }))
	}
}

// planFailures makes the events of failures, and those of the trees that are rebuilt after them.
func (s *Simulation) planFailures() {
	for i := range s.failures {
		f := &s.failures[i]
		for _, n := range s.failingPorts(f) {
			e := event{at: f.At, key: uint64(i), in: s.linkTimerOf(n), dst: n, kind: linkTimer}
			if f.Up {
				e.aux = 1
			}
			s.partitionOf(s.ports[n].node).queue.push(&e)
		}
		for _, p := range s.partitions {
			// After all else of that time, so that the order of events is that of any partitions.
			p.queue.push(&event{at: f.At + s.cfg.Detect, key: uint64(i), in: math.MaxUint32, aux: uint32(i), kind: routesTimer})
		}
	}
	for i := range s.installs {
		x := &s.installs[i]
		s.partitionOf(x.node).queue.push(&event{at: x.at, key: uint64(i), in: math.MaxUint32 - 1, aux: uint32(i), kind: installTimer})
	}
}

// failing returns the links of a failure.
func (s *Simulation) failing(f *topology.Failure) (links []int32) {
	if f.Node < 0 {
		return []int32{f.Link}
	}
	for _, at := range s.cfg.Topology.Ports(f.Node) {
		links = append(links, at.Link)
	}
	return links
}

// failingPorts returns both ends of the links of a failure.
func (s *Simulation) failingPorts(f *topology.Failure) (ports []uint32) {
	for _, link := range s.failing(f) {
		l := &s.cfg.Topology.Links[link]
		ports = append(ports, s.firstPort[l.A]+uint32(l.APort), s.firstPort[l.B]+uint32(l.BPort))
	}
	return ports
}

// linkTimer is called when the link of a port fails, or is back.
func (p *Partition) linkTimer(e *event) {
	o := &p.s.ports[e.dst]
	if down := e.aux == 0; down != o.down {
		o.down = down
		if down {
			p.downPorts++
		} else {
			p.downPorts--
		}
	}
	if w := o.wait; w != nil { // nobody is paused across a link that was down
		if w.paused {
			w.paused = false
			o.stats.Paused += p.now - w.pausedAt
		}
		w.xoff = false
		p.sendNext(e.dst)
		p.hostMayTransmit(e.dst)
	}
}

// cameTooLate reports whether a packet was on a link that has failed, and loses it.
func (p *Partition) cameTooLate(e *event) bool {
	if e.isPacket() {
		if o := &p.s.ports[e.in]; o.down {
			p.lose(o, e)
			return true
		}
	}
	return false
}
