// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Command gleam-lab has the commands of gleam that need no switch: the demo, the benchmarks, the
// simulator and reports of hardware. gleam runs it for them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/cmd/gleam-lab/command"
	"github.com/gleam-rdma/gleam/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	env := &cli.Env{Stdout: os.Stdout, Stderr: os.Stderr, Socket: api.DefaultSocket, Remote: cli.DefaultRemote(), Build: api.Build(time.Now())}
	code := cli.RunLab(ctx, env, os.Args[1:], command.Commands...)
	stop()
	os.Exit(code)
}
