// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Command gleam looks at and changes a Gleam switch.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/cli"
	"github.com/gleam-rdma/gleam/control/locate"
	"github.com/gleam-rdma/gleam/tools/bench"
	"github.com/gleam-rdma/gleam/tools/demo"
	"github.com/gleam-rdma/gleam/tools/perf"
	"github.com/gleam-rdma/gleam/tools/simulate"
)

// commands are those with more to them than asking the daemon.
var commands = []cli.Command{demo.Command, perf.Command, bench.Command, simulate.Command}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	env := &cli.Env{Stdout: os.Stdout, Stderr: os.Stderr, Socket: api.DefaultSocket, Remote: cli.DefaultRemote(), Build: api.Build(time.Now()), Release: locate.Release}
	code := cli.Run(ctx, env, os.Args[1:], commands...)
	stop()
	os.Exit(code)
}
