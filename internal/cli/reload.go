// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func reloadCommand(env *Env) *cobra.Command {
	var out output
	var q api.Reload
	c := &cobra.Command{
		Use:   "reload",
		Short: "Have the daemon read its configuration file again",
		Long: `gleamd reads its configuration file and key files again, as at SIGHUP, and applies
what it can without a restart. The table has each key that has changed, with what
became of it: applied, or restart with the reason why a restart is needed; the key
stays as it was then. -o json has the unchanged keys, too. A file with a mistake
changes nothing: the mistakes are printed.

A port that members are behind is removed with --force alone: they are lost like those
of an interface that vanishes. So is a group prefix that groups are in: they end. Limits that are lowered below what is in use keep what
is there. Groups under a key that is no longer configured end with their leases.`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			x, err := env.client().Reload(c.Context(), q)
			if err != nil {
				return err
			}
			return out.print(env.Stdout, x, func(w io.Writer) { reloadedTable(w, x) })
		},
	}
	c.Flags().BoolVar(&q.Force, "force", false, "remove ports with members behind them, and group prefixes with groups")
	out.addTo(c)
	return c
}

func reloadedTable(w io.Writer, x *api.Reloaded) {
	if len(x.Applied)+len(x.NeedsRestart) == 0 {
		fmt.Fprintln(w, "nothing has changed")
		return
	}
	fmt.Fprintln(w, "KEY\tRELOAD\tREASON")
	for _, k := range x.Applied {
		fmt.Fprintf(w, "%s\tapplied\t\n", k)
	}
	for _, r := range x.NeedsRestart {
		fmt.Fprintf(w, "%s\trestart\t%s\n", r.Key, r.Reason)
	}
	if x.MembersLost > 0 {
		fmt.Fprintf(w, "\n%d members were behind ports that are removed now\n", x.MembersLost)
	}
	if len(x.GroupsEnded) > 0 {
		fmt.Fprintf(w, "\ngroups that have ended with their prefix: %s\n", strings.Trim(fmt.Sprint(x.GroupsEnded), "[]"))
	}
}
