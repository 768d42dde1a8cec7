// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/mcast"
)

// Moved returns how many flows are completed and delivered so far. It changes whenever a flow moves.
func (s *Simulation) Moved() (flows int64) {
	for _, p := range s.partitions {
		flows += p.result.Completed + p.result.Delivered
	}
	return flows
}

// UnderWay returns what has been sent of the flows that queue pairs have, in flows.
func (s *Simulation) UnderWay() (flows float64) {
	mtu := int64(s.cfg.PathMTU)
	for _, p := range s.partitions {
		for _, c := range p.conns {
			if len(c.posted) == 0 {
				continue
			}
			packets := int64(0)
			for i := range c.posted {
				packets += max((c.posted[i].flow.Bytes+mtu-1)/mtu, 1)
			}
			st := c.qp.Stats()
			unsent := c.sent - int64(st.PacketsSent-st.Retransmitted)
			flows += float64(len(c.posted)) * (1 - float64(unsent)/float64(packets))
		}
	}
	return flows
}

// Stalled says for groups with a message under way who waits for whom: from the switch of the source to the
// receiver, the switch or the link that is behind. most bounds the number of lines.
func (s *Simulation) Stalled(most int) (lines []string) {
	for g := range s.groups {
		for _, h := range s.groups[g] {
			c := s.partitionOf(int32(h)).member(int32(g), h)
			if c == nil || len(c.posted) == 0 {
				continue
			}
			if len(lines) == most {
				return append(lines, "and others")
			}
			lines = append(lines, s.stalled(g, h, c))
		}
	}
	return lines
}

// stalled is the line of a group with a source.
func (s *Simulation) stalled(g int, source topology.Node, c *conn) string {
	var b strings.Builder
	name := s.cfg.Topology.Name
	fmt.Fprintf(&b, "group %d: %d messages of %s are not completed, the first since %.3f ms", g, len(c.posted), name(source), c.posted[0].start.Seconds()*1e3)
	node, from := int32(s.cfg.Topology.Leaf(source)), topology.Node(-1)
	var st mcast.GroupStatus
	for range maxDepth {
		sw := s.switchAt(node)
		id := s.numberAt(sw, g)
		if id < 0 || !sw.core.Group(mcast.GroupID(id)).Snapshot(&st) {
			fmt.Fprintf(&b, "; %s has not got the group", name(topology.Node(node)))
			break
		}
		if st.InTree && from < 0 && !st.Token.Serving {
			fmt.Fprintf(&b, "; %s has not the right to send (%v)", name(topology.Node(node)), st.Token.State)
		}
		if to := s.lostLeg(&sw.groups[id]); to >= 0 {
			fmt.Fprintf(&b, "; the link from %s to %s is down", name(topology.Node(node)), name(to))
			break
		}
		i := behind(&st)
		if i < 0 {
			fmt.Fprintf(&b, "; %s waits for nobody: the source has to send", name(topology.Node(node)))
			break
		}
		m := &st.Members[i]
		l := &sw.groups[id].legs[sw.groups[id].legOf[i]]
		to := s.ports[s.ports[l.port].peer].node
		fmt.Fprintf(&b, "; %s waits for %s, %d packets behind", name(topology.Node(node)), name(topology.Node(to)), m.Lag)
		if !l.forwarded {
			break
		}
		node, from = to, topology.Node(node)
	}
	return b.String()
}

// lostLeg returns the node at the other end of a leg with members whose link is down, below 0 if there is none.
func (s *Simulation) lostLeg(t *groupTable) topology.Node {
	for _, id := range t.legOf {
		if o := &s.ports[t.legs[id].port]; o.down {
			return topology.Node(s.ports[o.peer].node)
		}
	}
	return -1
}

// numberAt returns the number of a group at a switch, below 0 if it is not there.
func (s *Simulation) numberAt(sw *groupSwitch, g int) int {
	if sw == nil {
		return -1
	}
	if id, ok := sw.core.Lookup(groupAddr(int32(g))); ok {
		return int(id)
	}
	return -1
}

// behind returns the member that a group's ACK waits for, below 0 if there is none.
func behind(st *mcast.GroupStatus) int {
	worst := -1
	for i := range st.Members {
		m := &st.Members[i]
		if !m.Live || m.Source || !m.HoldsACK && m.Lag == 0 && !m.Unplaced {
			continue
		}
		if worst < 0 || m.HoldsACK && !st.Members[worst].HoldsACK || m.HoldsACK == st.Members[worst].HoldsACK && m.Lag > st.Members[worst].Lag {
			worst = i
		}
	}
	return worst
}
