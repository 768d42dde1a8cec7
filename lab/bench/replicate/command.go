// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package replicate is `gleam bench replicate`: the writes of a store to its replicas, through a group, by
// unicasts and by a chain, against the writes of one copy.
//
// It runs the tests of `gleam perf replicate` in a lab.Star, through a real gleamd; unicasts and
// chains pass the kernel's bridge. What each host sends has the rate of a link that
// the machine can easily do, so that the ratios are those of a network and not of a busy machine. All
// cases are measured once in each round, and compared within rounds.
package replicate

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/perf"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/options"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Command is `gleam bench replicate`.
func Command(env *cli.Env) *cobra.Command {
	o := defaults()
	rate := o.Rate.String()
	var out cli.Output
	var fast bool
	c := &cobra.Command{
		Use:   "replicate",
		Short: "Measure the writes of a store to its replicas: IOPS, latency, bytes sent",
		Long: `replicate runs the tests of "gleam perf replicate" through a switch in a lab on this
machine: writes of several sizes and queue depths, by a group, by unicasts and by a
chain, and of one copy for comparison. What each host sends has the rate of a link
that the machine can easily do, so that the ratios are those of a network and not of
a busy machine. It needs root, and 10 minutes; with --quick a minute.`,
		Example: `  gleam bench replicate --quick
  gleam bench replicate --replicas 3,8 --sizes 8192 --depths 32 --rounds 9 -o json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := options.NoArguments(c, args); err != nil {
				return err
			}
			if fast {
				if err := options.SetQuick(c, quick); err != nil {
					return err
				}
			}
			var err error
			if o.Rate, err = linkrate.Parse(rate); err != nil {
				return cli.UsageErrorf("--rate: %w", err)
			}
			if err := o.check(); err != nil {
				return cli.UsageErrorf("%w", err)
			}
			if err := options.RequireRoot(); err != nil {
				return err
			}
			res, err := Run(c.Context(), o, machine.Here(env.Build.Version), env.Stderr)
			if err != nil {
				return err
			}
			return out.Print(env.Stdout, res, res.writeTable)
		},
	}
	f := c.Flags()
	f.IntSliceVar(&o.Replicas, "replicas", o.Replicas, fmt.Sprintf("copies of each write, 1 to %d", maxReplicas))
	f.StringSliceVar(&o.Modes, "modes", o.Modes, "some of "+strings.Join(perf.Modes, ", "))
	f.IntSliceVar(&o.Sizes, "sizes", o.Sizes, "bytes of a write")
	f.IntSliceVar(&o.Depths, "depths", o.Depths, "writes under way at a time")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "measure everything so often, and take medians")
	f.DurationVar(&o.Duration, "duration", o.Duration, "of one measurement")
	f.StringVar(&rate, "rate", rate, "of each host's link, for what the host sends")
	f.IntVar(&o.MTU, "mtu", o.MTU, "path MTU: "+rocev2.PathMTUText)
	f.BoolVar(&o.FastPath, "fast-path", o.FastPath, "turn gleamd's fast path on (XDP replicates), at hosts that take redirected frames")
	f.BoolVar(&fast, "quick", fast, "less of everything that is not given")
	f.StringVar(&o.Gleamd, "gleamd", o.Gleamd, "the daemon to run [the one beside this program]")
	out.AddTo(c)
	for name, values := range map[string][]string{"mtu": {"256", "512", "1024", "2048", "4096"}, "modes": perf.Modes} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return c
}
