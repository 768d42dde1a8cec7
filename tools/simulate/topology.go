// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/sim/topology"
)

// describe writes what a network is made of, tier by tier.
func describe(w io.Writer, t *topology.Topology) error {
	type tier struct{ nodes, ports, up int }
	var tiers []tier
	for n := range t.Hosts + t.Switches {
		node := topology.Node(n)
		level := t.Tier(node)
		for len(tiers) <= level {
			tiers = append(tiers, tier{})
		}
		x := &tiers[level]
		x.nodes++
		x.ports = max(x.ports, len(t.Ports(node)))
		for _, p := range t.Ports(node) {
			if t.Tier(p.Peer) > level {
				x.up++
			}
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TIER\tNODES\tPORTS\tLINKS UPWARDS")
	for level, x := range tiers {
		name := "hosts"
		if level > 0 {
			name = fmt.Sprintf("switches %d", level)
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\n", name, x.nodes, x.ports, x.up)
	}
	first := t.Links[0]
	fmt.Fprintf(tw, "\n%d links, of hosts %v and %.3g µs; %d partitions\n", len(t.Links), linkrate.Rate(first.Rate), micro(first.Delay), t.Pods)
	return tw.Flush()
}
