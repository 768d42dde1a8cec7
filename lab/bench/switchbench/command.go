// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/options"
)

// Command is `gleam bench switch`.
func Command(env *cli.Env) *cobra.Command {
	o := Default()
	var quick, overhead bool
	var out cli.Output
	var svg, against string
	seconds := o.Duration.Seconds()
	c := &cobra.Command{
		Use:   "switch",
		Short: "Packets a second that this machine replicates, by gleamd and by other means",
		Long: `switch measures how many packets a second gleamd takes in and puts out, what they
cost in CPU time, and what it loses just below its limit; and beside it, in turn
in the same run, other methods to send a packet to several receivers:

` + rowHelp() + `
Each has a lab of its own, of network namespaces; it needs root, and nothing else
should run on the machine. Offered is somewhat more than a row can take; its loss
is measured at 0.9 of what it takes in. The targets are ratios of this run. The
whole table takes some 20 minutes.

With --overhead it measures instead what it costs gleamd to be observed, in turn in
one gleamd, each time between two measurements without observation:

` + observationHelp() + `
That takes some 10 minutes.

With --against it runs two programs in turns, and fails if a row takes in less than
` + fmt.Sprintf("%g", leastOfOther) + ` of the other's packets a second, in the median of the rounds.`,
		Example: `  gleam bench switch --quick
  gleam bench switch --payload 64,1024 --legs 3 --rows bare,gleamd -o json
  gleam bench switch --overhead --rounds 100
  gleam bench switch --quick --rows gleamd,gleamd-w2 --against /tmp/gleam-lab-before`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if quick {
				if c.Flags().Changed("payload") || c.Flags().Changed("legs") {
					return cli.UsageErrorf("--quick chooses --payload and --legs itself")
				}
				o.Quick()
			}
			if overhead {
				for _, name := range []string{"quick", "rows", "latency", "svg", "against"} {
					if c.Flags().Changed(name) {
						return cli.UsageErrorf("--overhead has no --%s", name)
					}
				}
				o.overhead(c.Flags().Changed)
			}
			o.Duration = time.Duration(seconds * float64(time.Second))
			if err := o.check(); err != nil {
				return cli.UsageErrorf("%w", err)
			}
			if overhead && len(o.Payloads)*len(o.Legs) > 1 {
				return cli.UsageErrorf("--overhead: want one --payload and one number of --legs")
			}
			if err := options.RequireRoot(); err != nil {
				return err
			}
			say := func(f string, a ...any) { fmt.Fprintf(env.Stderr, f+"\n", a...) }
			if overhead {
				res, err := RunOverhead(c.Context(), o, say)
				if err != nil {
					return err
				}
				return out.Print(env.Stdout, res, res.writeTable)
			}
			if against != "" {
				self, err := os.Executable()
				if err != nil {
					return err
				}
				return o.compare(c.Context(), self, against, env.Stdout)
			}
			res, err := Run(c.Context(), o, say)
			if err != nil {
				return err
			}
			if svg != "" {
				if err := res.saveChart(svg); err != nil {
					return err
				}
			}
			return out.Print(env.Stdout, res, res.writeTable)
		},
	}
	f := c.Flags()
	f.BoolVar(&quick, "quick", false, fmt.Sprintf("only %s receivers, which the targets are about", targetCase))
	f.BoolVar(&overhead, "overhead", false, fmt.Sprintf("what it costs gleamd to be observed, in %d rounds if there are no --rounds", overheadRounds))
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "report the median of so many measurements of each row")
	f.Float64Var(&seconds, "seconds", seconds, "length of a measurement")
	f.IntSliceVar(&o.Payloads, "payload", o.Payloads, "bytes in a packet")
	f.IntSliceVar(&o.Legs, "legs", o.Legs, "receivers")
	f.StringSliceVar(&o.Rows, "rows", nil, "what to measure [all]")
	f.BoolVar(&o.Latency, "latency", o.Latency, "measure the latency of gleamd and the bridge too")
	f.StringVar(&svg, "svg", "", "draw a chart into this file")
	f.StringVar(&against, "against", "", "another program to compare with: gleam-lab, or gleam where that has the benchmarks itself")
	out.AddTo(c)
	_ = c.RegisterFlagCompletionFunc("rows", cobra.FixedCompletions(rowNames(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func rowHelp() string {
	var b strings.Builder
	for _, r := range allRows {
		fmt.Fprintf(&b, "  %-20s %s\n", r.name, r.what)
	}
	return b.String()
}

func observationHelp() string {
	var b strings.Builder
	for _, o := range observations {
		fmt.Fprintf(&b, "  %-14s %s\n", o.name, o.what)
	}
	return b.String()
}
