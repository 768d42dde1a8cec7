// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func groupListCommand(env *Env) *cobra.Command {
	var out output
	var gone bool
	var member, after string
	var q api.GroupQuery
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "Groups, one a line",
		Long:    "list prints all registered groups, or those that the flags select, which the switch sends alone.\nA group of group create is registered when its members have connected: until then group show says who has.",
		Args:    noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Example: "  gleam group list --member 10.77.0.2 --state failed\n  gleam group list --limit 100 --after 10.77.254.100",
		RunE: func(c *cobra.Command, _ []string) (err error) {
			for _, x := range []struct {
				flag, text string
				ip         *netip.Addr
			}{{"member", member, &q.Member}, {"after", after, &q.After}} {
				if x.text == "" {
					continue
				}
				if *x.ip, err = netip.ParseAddr(x.text); err != nil {
					return usageError{fmt.Errorf("--%s: %w", x.flag, err)}
				}
			}
			ask := func(ctx context.Context) ([]api.Group, error) { return env.client().SomeGroups(ctx, &q) }
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
	f := c.Flags()
	f.StringVar(&member, "member", "", "groups of this host alone")
	f.Uint16Var(&q.Key, "key-id", 0, "groups that belong to the key with this id alone")
	f.StringVar(&q.State, "state", "", "groups in this state alone: idle, running or failed")
	f.IntVar(&q.Limit, "limit", 0, "the most groups, in the order of their addresses; 0: all")
	f.StringVar(&after, "after", "", "the address before the first group")
	f.BoolVar(&gone, "ended", false, "the last groups that are no more, as they were in the end, oldest first")
	for _, name := range []string{"member", "key-id", "state", "limit", "after"} {
		c.MarkFlagsMutuallyExclusive("ended", name)
	}
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
