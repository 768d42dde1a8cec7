// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func portCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:     "port",
		Aliases: []string{"ports"},
		Short:   "The switch's ports",
	}
	c.AddCommand(portListCommand(env))
	return c
}

func portListCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "All ports, how they are attached, and what the XDP program did with their packets",
		Args:    noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			ports, err := env.client().Ports(c.Context())
			if err != nil {
				return err
			}
			return out.print(env.Stdout, ports, func(w *tabwriter.Writer) {
				portTable(w, ports)
				// Flushed, so that the tables do not share column widths.
				w.Flush()
				xdpTable(w, ports)
			})
		},
	}
	out.addTo(c)
	return c
}

func portTable(w *tabwriter.Writer, ports []api.Port) {
	fmt.Fprintln(w, "PORT\tIFINDEX\tMAC\tMTU\tSTATE\tXDP\tAF_XDP\tQUEUES\tVLAN\tRX FRAMES\tTX FRAMES")
	for i := range ports {
		p := &ports[i]
		state, afXDP := "down", "copy"
		if p.Up {
			state = "up"
		}
		if p.ZeroCopy {
			afXDP = "zero-copy"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%s\t%s\t%d\t%s\t%d\t%d\n",
			p.Name, p.Ifindex, p.MAC, p.MTU, state, p.XDPMode, afXDP, p.Queues, vlan(p.VLAN), p.RxFrames, p.TxFrames)
	}
}

// xdpTable shows the exits of the XDP program that packets have taken.
func xdpTable(w *tabwriter.Writer, ports []api.Port) {
	head := "\nPORT\tXDP EXIT\tPACKETS"
	for i := range ports {
		for _, reason := range slices.Sorted(maps.Keys(ports[i].XDP)) {
			n := ports[i].XDP[reason]
			if n == 0 {
				continue
			}
			if head != "" {
				fmt.Fprintln(w, head)
				head = ""
			}
			fmt.Fprintf(w, "%s\t%s\t%d\n", ports[i].Name, reason, n)
		}
	}
}
