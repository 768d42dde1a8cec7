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

// ahead is where the state of a next event is.
type aheadOf struct {
	conn     *conn
	group    mcast.Group
	table    *groupTable // nil: the event is none of a group at a switch
	feedback bool
}

// prefetch reads the state that the next events will touch, of all of them what others refer to first.
// It changes nothing that counts.
func (p *Partition) prefetch() {
	var all [prefetchBatch]aheadOf
	q, s := p.queue, p.s
	near := q.order[q.next:min(q.next+prefetchBatch, len(q.order))]
	n := len(near)
	for i := range n {
		x := &all[i]
		switch e := &q.today[near[i].i]; e.kind {
		case unicast:
			if s.at[e.in].node != int32(e.dst) {
				break
			}
			ends := endsID(topology.Node(e.src), topology.Node(e.dst), e.channel) | fromHost
			if e.isFeedback() {
				ends = endsID(topology.Node(e.dst), topology.Node(e.src), e.channel)
			}
			if n, ok := p.byEnds.get(ends); ok {
				x.conn = p.conns[n]
			}
		case toSwitch:
			sw := s.switches[int(s.at[e.in].node)-s.cfg.Topology.Hosts]
			x.group, x.table, x.feedback = sw.core.Group(mcast.GroupID(e.dst)), &sw.groups[e.dst], e.isFeedback()
		case toMember:
			x.conn = p.conns[e.dst]
		}
	}
	var sum uint64
	for i := range all[:n] {
		if x := &all[i]; x.conn != nil {
			sum += uint64(x.conn.number) + uint64(x.conn.alarm.first)
		} else if x.table != nil {
			sum += x.group.Prefetch() + uint64(len(x.table.legs))
		}
	}
	for i := range all[:n] {
		if x := &all[i]; x.conn != nil {
			sum += x.conn.qp.Prefetch()
		} else if x.table != nil {
			sum += x.group.PrefetchParts(x.feedback)
			if g := x.table; len(g.legs) > 0 {
				sum += uint64(s.ports[g.legs[0].port].freeAt) + uint64(g.legOf[0])
			}
		}
	}
	p.touched += sum
}
