// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// unicastArrived serves a packet for a host.
func (p *Partition) unicastArrived(e *event) {
	from, to := topology.Node(e.src), topology.Node(e.dst)
	var c *conn
	if e.isFeedback() {
		c = p.end(to, from, e.channel, false, false)
	} else {
		c = p.end(from, to, e.channel, true, true)
	}
	switch {
	case c == nil:
	case e.flags&inTrain != 0:
		p.trainArrived(c, e)
	default:
		p.arrived(c, e)
	}
}

// forwardUnicast forwards a packet of a connection between two hosts, by a hash of the connection
// and its direction.
func (p *Partition) forwardUnicast(e *event) {
	s := p.s
	n := s.at[e.in].node
	hops := p.routes.NextHops(topology.Node(n), topology.Node(e.dst))
	switch len(hops) {
	case 0:
		p.result.NoRoute++
		return
	case 1:
		p.relay(s.firstPort[n]+uint32(hops[0]), e)
		return
	}
	hash := mix(endsID(topology.Node(e.src), topology.Node(e.dst), e.channel) ^ mix(s.cfg.Seed+uint64(n)))
	p.relay(s.firstPort[n]+uint32(hops[hash>>32*uint64(len(hops))>>32]), e)
}

// relay sends a packet on, the way that it was received by being what PFC counts.
func (p *Partition) relay(n uint32, e *event) {
	p.came.set(e.in)
	p.send(n, e)
	p.came.reset()
}

// connTable finds connections: open addressing, of at most half as many entries as slots.
type connTable struct {
	keys   []uint64 // plus 1; 0: free
	values []uint32
	n      int
}

func (t *connTable) get(key uint64) (uint32, bool) {
	if t.n == 0 {
		return 0, false
	}
	mask := uint64(len(t.keys) - 1)
	for i := mix(key) & mask; ; i = (i + 1) & mask {
		switch t.keys[i] {
		case key + 1:
			return t.values[i], true
		case 0:
			return 0, false
		}
	}
}

// put adds a key that is not there.
func (t *connTable) put(key uint64, value uint32) {
	if 2*t.n >= len(t.keys) {
		old := *t
		size := max(64, 2*len(old.keys))
		*t = connTable{keys: make([]uint64, size), values: make([]uint32, size)}
		for i, k := range old.keys {
			if k != 0 {
				t.put(k-1, old.values[i])
			}
		}
	}
	mask := uint64(len(t.keys) - 1)
	i := mix(key) & mask
	for t.keys[i] != 0 {
		i = (i + 1) & mask
	}
	t.keys[i], t.values[i] = key+1, value
	t.n++
}
