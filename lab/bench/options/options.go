// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package options has the options that the benchmarks of `gleam bench` have in common, and the command
// of a benchmark.
package options

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Common are options that several benchmarks have.
type Common struct {
	Rounds   int
	Duration time.Duration // the time of one measurement
	Rate     linkrate.Rate // the rate of each host's link, for what the host sends
	MTU      int           // path MTU in bytes
	FastPath bool          // true: gleamd's fast path is on: XDP replicates
	Gleamd   string        // path; "": found
}

// addTo adds the flags that a benchmark has, by name, and --gleamd. Rate is a text first.
func (o *Common) addTo(c *cobra.Command, rate *string, names []string) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "measure everything so often, and take medians")
	f.DurationVar(&o.Duration, "duration", o.Duration, "of one measurement")
	f.StringVar(rate, "rate", *rate, "of each host's link, for what the host sends")
	f.IntVar(&o.MTU, "mtu", o.MTU, "path MTU: "+rocev2.PathMTUText)
	f.BoolVar(&o.FastPath, "fast-path", o.FastPath, "turn gleamd's fast path on (XDP replicates), at hosts that take redirected frames")
	f.StringVar(&o.Gleamd, "gleamd", o.Gleamd, "the daemon to run [the one beside this program]")
	for _, name := range append([]string{"gleamd"}, names...) {
		c.Flags().AddFlag(f.Lookup(name))
	}
	if slices.Contains(names, "mtu") {
		Complete(c, "mtu", "256", "512", "1024", "2048", "4096")
	}
}

// Complete has the shell complete a flag by some values.
func Complete(c *cobra.Command, flag string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// Check reports the first of the named options that cannot be.
func (o *Common) Check(names ...string) error {
	for _, name := range names {
		switch {
		case name == "rounds" && (o.Rounds < 1 || o.Rounds > 1000):
			return fmt.Errorf("--rounds %d: want 1 to 1000", o.Rounds)
		case name == "duration" && (o.Duration < 10*time.Millisecond || o.Duration > time.Hour):
			return fmt.Errorf("--duration %v: want 10ms to 1h", o.Duration)
		case name == "rate" && (o.Rate == linkrate.None || o.Rate.Validate() != nil):
			return fmt.Errorf("--rate %v: want the rate of a link, such as 100mbit", o.Rate)
		case name == "mtu" && !rocev2.ValidPathMTU(o.MTU):
			return fmt.Errorf("--mtu %d: want %s (the path MTU, in bytes of payload)", o.MTU, rocev2.PathMTUText)
		}
	}
	return nil
}

// noArguments checks that a command has none.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.UsageErrorf("%q: %s takes no arguments", args[0], c.CommandPath())
	}
	return nil
}

// SetQuick sets the values of --quick, by name of flag, for flags that are not given.
func SetQuick(c *cobra.Command, quick map[string]string) error {
	for name, value := range quick {
		if f := c.Flags().Lookup(name); !f.Changed {
			if err := f.Value.Set(value); err != nil {
				return fmt.Errorf("--quick: --%s: %w", name, err)
			}
		}
	}
	return nil
}

// RequireRoot returns an error if the user is not root, or if this machine can have no network namespaces. The error
// names the next step.
func RequireRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("the benchmark needs root: type `sudo %s`", strings.Join(os.Args, " "))
	}
	if err := lab.Supported(); err != nil {
		return fmt.Errorf("the benchmark makes network namespaces: %w", err)
	}
	return nil
}

// Duplicates reports whether a value is in a list twice.
func Duplicates[T comparable](list []T) bool {
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			return true
		}
	}
	return false
}
