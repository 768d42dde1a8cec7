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
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/perf"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/options"
)

// Command is `gleam bench replicate`.
func Command(env *cli.Env) *cobra.Command {
	o := defaults()
	b := &options.Bench{
		Use:   "replicate",
		Short: "Measure the writes of a store to its replicas: IOPS, latency, bytes sent",
		Long: `replicate runs the tests of "gleam perf replicate" through a switch in a lab on this
machine: writes of several sizes and queue depths, by a group, by unicasts and by a
chain, and of one copy for comparison. What each host sends has the rate of a link
that the machine can easily do, so that the ratios are those of a network and not of
a busy machine. It needs root, and 10 minutes; with --quick a minute.`,
		Example: `  gleam bench replicate --quick
  gleam bench replicate --replicas 3,8 --sizes 8192 --depths 32 --rounds 9 -o json`,
		Common: &o.Common, Flags: shared, Quick: quick,
		Read: func(*cobra.Command) error { return o.check() },
		Run: func(ctx context.Context, here machine.Machine, say io.Writer) (any, func(io.Writer) error, error) {
			res, err := Run(ctx, o, here, say)
			return res, res.writeTable, err
		},
	}
	c := b.Command(env)
	f := c.Flags()
	f.IntSliceVar(&o.Replicas, "replicas", o.Replicas, fmt.Sprintf("copies of each write, 1 to %d", maxReplicas))
	f.StringSliceVar(&o.Modes, "modes", o.Modes, "some of "+strings.Join(perf.Modes, ", "))
	f.IntSliceVar(&o.Sizes, "sizes", o.Sizes, "bytes of a write")
	f.IntSliceVar(&o.Depths, "depths", o.Depths, "writes under way at a time")
	options.Complete(c, "modes", perf.Modes...)
	return c
}
