// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// Command is `gleam sim`.
func Command(env *cli.Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate networks of many hosts and switches",
		Long: `sim runs the switch's core and the hosts' queue pairs in simulated time, on networks
of up to 65,536 hosts. A YAML file says what: docs/SIMULATION.md explains its keys.`,
	}
	c.AddCommand(runCommand(env), sweepCommand(env), mergeCommand(env), reportCommand(env), topologyCommand(env), paperCommand(env), weightsCommand(env), benchCommand(env))
	return c
}

// common are the flags of run and sweep.
type common struct {
	set        []string
	partitions int
	watchdog   time.Duration
	verify     bool
	silent     bool
}

func (o *common) add(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.set, "set", nil, "NAME=VALUE: this value only of a variable in the file's sweep")
	f.IntVar(&o.partitions, "partitions", runtime.GOMAXPROCS(0), "number of partitions simulated at the same time, at most one for each pod; the results do not depend on it")
	f.DurationVar(&o.watchdog, "watchdog", time.Second, "end a run in which no flow moves for so long in simulated time; 0: never")
	f.BoolVar(&o.verify, "verify-parallel", false, "run again in one part, and compare the hashes of the results")
	f.BoolVar(&o.silent, "no-progress", false, "no progress lines")
}

// points reads a file with the flags.
func (o *common) points(name string) ([]*spec.Point, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	s, err := spec.Parse(name, text)
	if err != nil {
		return nil, err
	}
	for _, v := range o.set {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return nil, cli.UsageErrorf("--set %q: want NAME=VALUE", v)
		}
		if err := s.Set(name, value); err != nil {
			return nil, cli.UsageErrorf("--set: %w", err)
		}
	}
	return s.Points()
}

func (o *common) options(env *cli.Env) options {
	return options{partitions: o.partitions, watchdog: o.watchdog, verify: o.verify, silent: o.silent, stderr: env.Stderr, build: env.Build.Version}
}

func runCommand(env *cli.Env) *cobra.Command {
	var o common
	var observe observation
	var out cli.Output
	var flows string
	var print bool
	c := &cobra.Command{
		Use:   "run FILE",
		Short: "Simulate all points of a file, one after another",
		Long: `run simulates the file's points and writes each result as soon as it is there. After
an interrupt the result of the point that was running is written, too, marked as
partial.`,
		Example: `  gleam sim run docs/simulation/panel.yaml --set n=8
  gleam sim run docs/simulation/storage.yaml -o json --flows flows.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			points, err := o.points(args[0])
			if err != nil {
				return err
			}
			opts := o.options(env)
			if !print {
				if opts.observed, err = observe.open(len(points)); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, opts.observed.close()) }()
			}
			if flows != "" {
				f, err := os.Create(flows)
				if err != nil {
					return fmt.Errorf("simulate: --flows: %w", err)
				}
				w := bufio.NewWriter(f)
				defer func() { err = errors.Join(err, w.Flush(), f.Close()) }()
				if _, err := io.WriteString(w, flowColumns); err != nil {
					return err
				}
				opts.flows = w
			}
			for i, p := range points {
				if print {
					if i > 0 {
						if _, err := io.WriteString(env.Stdout, "---\n"); err != nil {
							return err
						}
					}
					if _, err := env.Stdout.Write(p.Effective()); err != nil {
						return err
					}
					continue
				}
				res, failed := runPoint(c.Context(), p, opts)
				if res == nil {
					return failed
				}
				if err := errors.Join(failed, res.write(env.Stdout, &out, p.Names(), i == 0)); err != nil {
					return err
				}
				if res.Partial {
					return c.Context().Err()
				}
			}
			return nil
		},
	}
	o.add(c)
	observe.add(c)
	f := c.Flags()
	out.AddTo(c, formatCSV)
	f.StringVar(&flows, "flows", "", "write each flow with its times into this file")
	f.BoolVar(&print, "print-config", false, "only print the whole configuration of each point, with all defaults")
	return c
}

// write writes a result in the format of out. names are the variables: columns of CSV, and in the title
// of text.
func (r *Result) write(w io.Writer, out *cli.Output, names []string, first bool) error {
	if out.Is(formatCSV) {
		return r.writeCSV(w, names, first)
	}
	return out.PrintOne(w, r, func(w io.Writer) error { return r.writeText(w, names) })
}

// formatCSV is the format of results that no other command has: a line for each phase.
const formatCSV = "csv"
