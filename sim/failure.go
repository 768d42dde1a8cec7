// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/gleam-rdma/gleam/sim/topology"
)

// Failures. What is on a link when it fails, or is sent on it while it is down, is lost. The switches
// have other routes some time later, all at once.

// planFailures makes the events of the topology's failures.
func (s *Simulation) planFailures() {
	failures := slices.Clone(s.cfg.Topology.Failures)
	slices.SortStableFunc(failures, func(a, b topology.Failure) int { return cmp.Compare(a.At, b.At) })
	down := map[int32]bool{}
	for i, f := range failures {
		for _, link := range s.failing(&f) {
			down[link] = !f.Up
			l := &s.cfg.Topology.Links[link]
			for _, n := range [...]uint32{s.firstPort[l.A] + uint32(l.APort), s.firstPort[l.B] + uint32(l.BPort)} {
				e := event{at: f.At, key: uint64(i), in: s.linkTimerOf(n), dst: n, kind: linkTimer}
				if f.Up {
					e.aux = 1
				}
				s.partitionOf(s.nodeOf[n]).queue.push(&e)
			}
		}
		was := make(map[int32]bool, len(down))
		for link, is := range down {
			was[link] = is
		}
		s.routesAfter = append(s.routesAfter, s.cfg.Topology.Routes(func(link int32) bool { return was[link] }))
		for _, p := range s.partitions {
			// After all else of that time, so that the order of events is that of any partitions.
			p.queue.push(&event{at: f.At + s.cfg.Detect, key: uint64(i), in: math.MaxUint32, aux: uint32(i), kind: routesTimer})
		}
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
	switch e.kind {
	case unicast, toSwitch, toMember, report, pause:
		if o := &p.s.ports[e.in]; o.down {
			p.lose(o, e)
			return true
		}
	}
	return false
}
