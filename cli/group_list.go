// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func groupListCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "All groups, one a line",
		Args:    noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			groups, err := env.client().Groups(c.Context())
			if err != nil {
				return err
			}
			return out.print(env.Stdout, groups, func(w *tabwriter.Writer) { groupTable(w, groups) })
		},
	}
	out.addTo(c)
	return c
}

func groupTable(w *tabwriter.Writer, groups []api.Group) {
	fmt.Fprintln(w, "GROUP\tQPN\tSTATE\tMEMBERS\tSOURCE\tACK\tNEXT\tHELD BY\tPATH MTU\tPOLICY\tORIGIN\tLEASE")
	for i := range groups {
		g := &groups[i]
		ack, next := "-", "-"
		if g.Source.IsValid() {
			ack, next = number24(g.AckPSN), number24(g.NextPSN)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n",
			g.IP, number24(g.QPN), g.State, len(g.Members), addr(g.Source), ack, next, addr(g.HeldBy),
			g.PMTU, g.Policy, g.Origin, lease(g.LeaseLeft))
	}
}

// lease shows how long a group has left unless its master renews it.
func lease(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
