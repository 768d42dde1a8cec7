// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench is `gleam bench`: the commands that measure a switch.
package bench

import (
	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/copies"
	"github.com/gleam-rdma/gleam/lab/bench/groups"
	"github.com/gleam-rdma/gleam/lab/bench/loss"
	"github.com/gleam-rdma/gleam/lab/bench/replicate"
	"github.com/gleam-rdma/gleam/lab/bench/switchbench"
)

// subcommands are the benchmarks, each in a package of its own.
var subcommands = []cli.Command{copies.Command, groups.Command, loss.Command, replicate.Command, switchbench.Command}

// Command is `gleam bench`.
func Command(env *cli.Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure a switch, in a lab on this machine",
	}
	for _, sub := range subcommands {
		c.AddCommand(sub(env))
	}
	return c
}
