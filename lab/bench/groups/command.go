// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/options"
)

// Command is `gleam bench groups`.
func Command(env *cli.Env) *cobra.Command {
	o := defaults()
	var res *Result
	b := &options.Bench{
		Use:   "groups",
		Short: "Measure what many groups cost one gleamd: time, memory, speed",
		Long: `groups registers many groups of the same hosts at a gleamd in a lab on this machine, by
envelopes, and prints how long that takes and how much memory. --parallel is the number
of registrations under way at once. Then the command sends packets into one of the
groups, and into all of them in turn, as fast as gleamd takes them without a loss. With
--fast-path it counts the groups that XDP has replicated, too. With several numbers of
groups or members each pair is a row. The command needs root, and nothing else should
run on the machine.`,
		Example: `  gleam bench groups --groups 100 --members 4 -o json
  gleam bench groups --groups 1,100,1000,10000,100000 --members 4,16 --parallel 64 --svg groups.svg`,
		Args: cobra.NoArgs, Common: &o.Common, Flags: []string{"fast-path"},
		Read: func(*cobra.Command) error { return o.check() },
		Run: func(ctx context.Context, here machine.Machine, say io.Writer) (_ any, _ func(io.Writer) error, err error) {
			res, err = Run(ctx, o, here, say)
			return res, res.writeTable, err
		},
		Draw: func() error { return res.draw(o.SVG) },
	}
	c := b.Command(env)
	f := c.Flags()
	f.IntSliceVar(&o.Groups, "groups", o.Groups, "groups; several numbers are measured one after the other")
	f.IntSliceVar(&o.Members, "members", o.Members, "members of each group, the source included; likewise")
	f.IntVar(&o.Payload, "payload", o.Payload, "bytes in a packet")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "measure speed so often, and take medians")
	f.DurationVar(&o.Duration, "duration", o.Duration, "of one measurement of speed")
	f.IntVar(&o.Parallel, "parallel", o.Parallel, "groups that are registered at once")
	f.StringVar(&o.SVG, "svg", "", "draw memory, registrations and time by groups into this file")
	_ = c.MarkFlagFilename("svg", "svg")
	return c
}
