// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
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

func topologyCommand(env *cli.Env) *cobra.Command {
	var o common
	var asFile, dot, after bool
	var group, phase int
	var svg string
	c := &cobra.Command{
		Use:   "topology FILE",
		Short: "Show the network of a file's first point, or the tree of a group",
		Long: `topology shows the network of the file's first point: its tiers, or as a topology file with
all names. With --group it shows the tree of a group of a phase, as text, for Graphviz
or as a picture.`,
		Example: `  gleam sim topology docs/simulation/panel.yaml
  gleam sim topology docs/simulation/failure.yaml --group 0 --svg tree.svg
  gleam sim topology docs/simulation/failure.yaml --group 0 --after-failures`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if group < 0 && (dot || after || svg != "" || c.Flags().Changed("phase")) {
				return cli.UsageErrorf("--dot, --svg, --after-failures and --phase are of a group's tree: want --group NUMBER, too")
			}
			points, err := o.points(args[0])
			if err != nil {
				return err
			}
			t, err := points[0].Network()
			if err != nil {
				return err
			}
			switch {
			case group >= 0:
				tree, err := treeOf(points[0], t, phase, group, after)
				if err != nil {
					return err
				}
				return tree.write(env.Stdout, dot, svg)
			case !asFile:
				return describe(env.Stdout, t)
			}
			text, err := spec.PrintTopology(t)
			if err != nil {
				return err
			}
			_, err = env.Stdout.Write(text)
			return err
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.set, "set", nil, "NAME=VALUE: this value of a variable")
	f.BoolVar(&asFile, "yaml", false, "print all nodes and links as a topology file")
	f.IntVar(&group, "group", -1, "show the tree of this group, counted from 0")
	f.IntVar(&phase, "phase", 1, "of this phase")
	f.BoolVar(&after, "after-failures", false, "show the last tree, built anew after the file's failures")
	f.BoolVar(&dot, "dot", false, "print the tree for Graphviz")
	f.StringVar(&svg, "svg", "", "draw the tree into this file")
	return c
}
