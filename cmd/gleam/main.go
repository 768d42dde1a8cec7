// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Command gleam looks at and changes a Gleam switch.
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/cmd/commands"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/doctor/kernel"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	env := &cli.Env{Stdout: os.Stdout, Stderr: os.Stderr, Socket: api.DefaultSocket, Remote: cli.DefaultRemote(), Build: api.Build(time.Now()), Release: locate.Release, Kernel: kernel.Host, Counters: commands.Counters}
	code := cli.Run(ctx, env, os.Args[1:], slices.Concat(commands.OfGleam, cli.LabCommands)...)
	stop()
	os.Exit(code)
}
