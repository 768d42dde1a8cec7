// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/mcast"
)

// A network of many hosts is larger than the processor's caches, and an event touches some ten places of
// it, one behind the other. The places of several events are independent: read beforehand, together, they
// cost about as much as those of one.

// prefetchBatch is the number of events whose state is read together.
const prefetchBatch = 16

// prefetch reads the state that the next events will touch. It changes nothing that counts.
func (p *Partition) prefetch() {
	q, s := p.queue, p.s
	for _, o := range q.order[q.next:min(q.next+prefetchBatch, len(q.order))] {
		switch e := &q.today[o.i]; e.kind {
		case unicast:
			if s.ports[e.in].node != int32(e.dst) {
				break
			}
			ends := endsID(topology.Node(e.src), topology.Node(e.dst), e.channel) | fromHost
			if e.isFeedback() {
				ends = endsID(topology.Node(e.dst), topology.Node(e.src), e.channel)
			}
			if n, ok := p.byEnds.get(ends); ok {
				p.touched += p.conns[n].qp.Prefetch()
			}
		case toSwitch:
			n := s.ports[e.in].node
			sw := s.switches[int(n)-s.cfg.Topology.Hosts]
			p.touched += sw.core.Group(mcast.GroupID(e.dst)).Prefetch(e.isFeedback())
			if g := &sw.groups[e.dst]; len(g.legs) > 0 {
				p.touched += uint64(s.ports[g.legs[0].port].freeAt)
				p.touched += uint64(g.legOf[0])
			}
		case toMember:
			c := p.conns[e.dst]
			p.touched += c.qp.Prefetch()
		}
	}
}
