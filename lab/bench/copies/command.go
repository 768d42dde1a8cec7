// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package copies is `gleam bench cp`: a file to many hosts by `gleam cp`, beside plain TCP streams to
// one host after the other, to all at once, and along a chain.
//
// It runs in a lab.Star, through a real gleamd; TCP passes the kernel's bridge. What each host
// sends has the rate of a link. All cases are measured once in each round, and compared within rounds.
// Every copy is compared with the file.
package copies

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/options"
)

// Options are the parameters of a run.
type Options struct {
	options.Common
	Hosts int
	Bytes int64  // bytes of the file
	Dir   string // holds the files, once for each host
	SCP   bool   // true: scp is measured, too
	// Without leaves out the cases whose names contain one of these.
	Without []string
}

// defaults take two minutes.
func defaults() Options {
	return Options{Common: options.Common{Rounds: 2, Rate: 100_000_000, MTU: 1024}, Hosts: 8, Bytes: 32 << 20, Dir: os.TempDir()}
}

// shared are the flags that other benchmarks have too.
var shared = []string{"rounds", "rate", "mtu"}

// quick are the flags that --quick sets, unless they are given.
var quick = map[string]string{"bytes": "8388608", "rounds": "1"}

func (o *Options) check() error {
	switch {
	case o.Hosts < 2 || o.Hosts >= lab.MaxHosts:
		return fmt.Errorf("--hosts %d: want 2 to %d", o.Hosts, lab.MaxHosts-1)
	case o.Bytes < 1 || o.Bytes > 1<<40:
		return fmt.Errorf("--bytes %d: want 1 to %d", o.Bytes, int64(1)<<40)
	case slices.Contains(o.Without, "") || !slices.Contains(o.cases(), tcpOne) || !slices.Contains(o.cases(), tcpTurns):
		return fmt.Errorf("--without %q: %q and %q are what the others are compared with", o.Without, tcpOne, tcpTurns)
	}
	return o.Common.Check(shared...)
}

// Command is `gleam bench cp`.
func Command(env *cli.Env) *cobra.Command {
	o := defaults()
	b := &options.Bench{
		Use:   "cp",
		Short: "Measure the copy of a file to many hosts, by gleam cp and by TCP",
		Long: `cp copies a file to hosts of a lab on this machine: by "gleam cp" to one host and to
all by one group, and by plain TCP streams (no encryption, no hashes) to one host, to
one after the other, to all at once, and along a chain of the hosts, of which each
writes and passes on what comes. A copy ends when all hosts have flushed it to disk.
What each host sends has the rate of a link. With --scp also by scp to one host, to one
after the other and to all at once. It needs root, and two minutes; with --quick half
of one.`,
		Example: `  gleam bench cp --quick
  gleam bench cp --bytes 1073741824 --rate 200mbit --rounds 1 --scp --without 'at once' -o json`,
		Common: &o.Common, Flags: shared, Quick: quick,
		Read: func(*cobra.Command) error { return o.check() },
		Run: func(ctx context.Context, here machine.Machine, say io.Writer) (any, func(io.Writer) error, error) {
			res, err := Run(ctx, o, here, say)
			return res, res.writeTable, err
		},
	}
	c := b.Command(env)
	f := c.Flags()
	f.IntVar(&o.Hosts, "hosts", o.Hosts, fmt.Sprintf("receivers, 2 to %d", lab.MaxHosts-1))
	f.Int64Var(&o.Bytes, "bytes", o.Bytes, "of the file")
	f.StringVar(&o.Dir, "dir", o.Dir, "`directory` that has room for the file, once for each host and the sender")
	f.BoolVar(&o.SCP, "scp", o.SCP, "by scp too (openssh-server), with an sshd and keys of this run at each host")
	f.StringSliceVar(&o.Without, "without", nil, "leave out the ways whose names contain one of these `words`, such as 'at once'")
	return c
}

// timeout bounds a copy: ten times what the link takes for all hosts.
func (o *Options) timeout() time.Duration {
	return time.Minute + time.Duration(80*float64(o.Bytes)*float64(o.Hosts)/float64(o.Rate)*float64(time.Second))
}
