// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func groupListCommand(env *Env) *cobra.Command {
	var out output
	var gone bool
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "All groups, one a line",
		Args:    noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			ask := env.client().Groups
			if gone {
				ask = env.client().EndedGroups
			}
			groups, err := ask(c.Context())
			if err != nil {
				return err
			}
			return out.print(env.Stdout, groups, func(w io.Writer) { groupTable(w, groups) })
		},
	}
	out.addTo(c)
	c.Flags().BoolVar(&gone, "ended", false, "the last groups that are no more, as they were in the end, oldest first")
	return c
}

func groupTable(w io.Writer, groups []api.Group) {
	gone := len(groups) > 0 && groups[0].Ended != nil
	slowedBy, last := "\tSLOWED BY", "LEASE"
	if gone {
		slowedBy, last = "", "ENDED\tWHY"
	}
	// A column that says the same of all groups is not shown.
	fast := slices.ContainsFunc(groups, func(g api.Group) bool { return g.FastPath != nil })
	state := "STATE"
	if fast {
		state += "\tDATA PATH"
	}
	fmt.Fprintln(w, "GROUP\tQPN\t"+state+"\tMEMBERS\tSOURCE\tACK\tNEXT\tPAYLOAD"+slowedBy+"\tPATH MTU\tPOLICY\tORIGIN\t"+last)
	for i := range groups {
		g := &groups[i]
		ack, next := "-", "-"
		if g.Source.IsValid() {
			ack, next = number24(g.AckPSN), number24(g.NextPSN)
		}
		state := g.State
		if fast {
			state += "\t" + dataPath(g.FastPath)
		}
		slowedBy, end := "\t"+slowText(g), lease(g.LeaseLeft)
		if g.Ended != nil {
			slowedBy, end = "", localTime(g.Ended.Time)+"\t"+g.Ended.Reason
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s%s\t%d\t%s\t%s\t%s\n",
			g.IP, number24(g.QPN), state, len(g.Members), addrText(g.Source), ack, next, payload(float64(g.Counters.GoodBytes)), slowedBy,
			g.PMTU, g.Policy, g.Origin, end)
	}
}

// lease shows the rest of a group's lease.
func lease(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
