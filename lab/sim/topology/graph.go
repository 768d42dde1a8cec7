// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// Graph returns a network without a known structure: hosts and switches by name, and links between
// them. Each switch with hosts is a partition with them; other switches are spread over
// the partitions. All switches must be connected.
func Graph(hosts, switches []string, links []Link) (*Topology, error) {
	g := &graph{names: append(append([]string(nil), hosts...), switches...)}
	t := &Topology{Hosts: len(hosts), Switches: len(switches), Links: links, shape: g}
	if err := t.index(); err != nil {
		return nil, err
	}
	n := t.nodes()
	t.pod, t.tier = make([]int32, n), make([]uint8, n)
	for i := range n {
		t.pod[i] = -1
	}
	for h := range t.Hosts {
		leaf := t.Leaf(Node(h))
		if t.pod[leaf] < 0 {
			t.pod[leaf], t.tier[leaf] = int32(t.Pods), 1
			t.Pods++
		}
		t.pod[h] = t.pod[leaf]
	}
	next := 0
	for i := t.Hosts; i < n; i++ {
		if t.pod[i] < 0 {
			t.pod[i] = int32(next % t.Pods)
			next++
		}
	}
	distance := make([]int32, t.Switches)
	if reached := (&Routes{t: t}).distances(t.Leaf(0), distance, nil); len(reached) < t.Switches {
		for i, d := range distance {
			if d < 0 {
				return nil, fmt.Errorf("topology: there is no path from switch %s to switch %s", t.Name(t.Leaf(0)), t.Name(Node(t.Hosts+i)))
			}
		}
	}
	t.levels()
	return t, nil
}

// levels sets the tier of switches without hosts: one more than the lowest of the neighbours.
func (t *Topology) levels() {
	var queue []Node
	for i := t.Hosts; i < t.nodes(); i++ {
		if t.tier[i] == 1 {
			queue = append(queue, Node(i))
		}
	}
	for i := 0; i < len(queue); i++ {
		for _, at := range t.Ports(queue[i]) {
			if !t.IsHost(at.Peer) && t.tier[at.Peer] == 0 {
				t.tier[at.Peer] = min(t.tier[queue[i]]+1, 255)
				queue = append(queue, at.Peer)
			}
		}
	}
}

// graph is a shape without structure.
type graph struct{ names []string }

func (g *graph) name(n Node) string          { return g.names[n] }
func (*graph) nextHops(sw, dst Node) []int32 { return nil }
