// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

// versions is the output of `gleam version -o json`.
type versions struct {
	Gleam  build        `json:"gleam"`
	Gleamd *api.Version `json:"gleamd"` // null if it was not reached
}

// build is this program: api.Version without the daemon's fields.
type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

func versionCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "version",
		Short: "The versions of this program and of the daemon",
		Long: `Prints the versions of this program and of the daemon. Without a daemon it says
so on standard error and still succeeds.`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			v := versions{Gleam: build{env.Build.Version, env.Build.Go}}
			var err error
			if v.Gleamd, err = env.client().Version(c.Context()); err != nil {
				v.Gleamd = nil
				fmt.Fprintf(env.Stderr, "gleam: gleamd's version is unknown: %s\n", err)
			}
			return out.print(env.Stdout, v, func(w io.Writer) { versionTable(w, &v) })
		},
	}
	out.addTo(c)
	return c
}

func versionTable(w io.Writer, v *versions) {
	fmt.Fprintln(w, "PROGRAM\tVERSION\tGO\tPID\tSTARTED")
	fmt.Fprintf(w, "gleam\t%s\t%s\t-\t-\n", v.Gleam.Version, v.Gleam.Go)
	if d := v.Gleamd; d != nil {
		fmt.Fprintf(w, "gleamd\t%s\t%s\t%d\t%s\n", d.Version, d.Go, d.Pid, localTime(d.Started))
	}
}
