// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func reloadCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "reload",
		Short: "Have the daemon read its configuration file again",
		Long: `gleamd reads its configuration file and key files again and takes over envelope.keys,
as at SIGHUP. What else has changed in the file needs a restart, and is named on
standard error. A file with a mistake changes nothing: the mistakes are printed.

Prints the ids of the keys that count now. Groups under a key that is not among them
any more end with their leases.`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			x, err := env.client().Reload(c.Context())
			if err != nil {
				return err
			}
			if len(x.NeedsRestart) > 0 {
				fmt.Fprintf(env.Stderr, "gleam: these keys have changed and need a restart of gleamd: %s\n", strings.Join(x.NeedsRestart, ", "))
			}
			return out.print(env.Stdout, x, func(w *tabwriter.Writer) { reloadedTable(w, x) })
		},
	}
	out.addTo(c)
	return c
}

func reloadedTable(w *tabwriter.Writer, x *api.Reloaded) {
	fmt.Fprintln(w, "KEY")
	for _, id := range x.Keys {
		fmt.Fprintln(w, id)
	}
}
