// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
)

// Bench is a benchmark that has a gleamd run in a lab. What is in brackets is for a field without a value.
type Bench struct {
	Use, Short, Long, Example string

	Args   cobra.PositionalArgs // [an error for any]
	Common *Common
	Flags  []string          // those of Common that the benchmark has
	Quick  map[string]string // flags that --quick sets unless they are given; nil: there is no --quick
	// Read reads what the benchmark's own flags say, and checks all options.
	Read func(c *cobra.Command) error
	// Run measures, and returns what -o json prints, and what prints it for people.
	Run func(ctx context.Context, here machine.Machine, say io.Writer) (result any, table func(io.Writer) error, err error)
	// Draw draws what was measured; nil: there is no picture.
	Draw func() error
}

// Command returns the benchmark's command, without its own flags.
func (b *Bench) Command(env *cli.Env) *cobra.Command {
	rate := b.Common.Rate.String()
	var out cli.Output
	var quick bool
	c := &cobra.Command{
		Use: b.Use, Short: b.Short, Long: b.Long, Example: b.Example,
		Args: b.Args, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := noArguments(c, args); err != nil {
				return err
			}
			if quick {
				if err := SetQuick(c, b.Quick); err != nil {
					return err
				}
			}
			if slices.Contains(b.Flags, "rate") {
				if b.Common.Rate, err = linkrate.Parse(rate); err != nil {
					return cli.UsageErrorf("--rate: %w", err)
				}
			}
			if err := b.Read(c); err != nil {
				return cli.UsageErrorf("%w", err)
			}
			if err := RequireRoot(); err != nil {
				return err
			}
			res, table, err := b.Run(c.Context(), machine.Here(env.Build.Version), env.Stderr)
			if err != nil {
				return err
			}
			if err := out.Print(env.Stdout, res, table); err != nil || b.Draw == nil {
				return err
			}
			return b.Draw()
		},
	}
	if c.Args == nil {
		c.Args = cobra.ArbitraryArgs // noArguments has a better error
	}
	b.Common.addTo(c, &rate, b.Flags)
	if b.Quick != nil {
		c.Flags().BoolVar(&quick, "quick", false, "less of everything that is not given")
	}
	out.AddTo(c)
	return c
}
