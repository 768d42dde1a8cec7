// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package commands has the command line of gleam: the program executes it, the manual pages and
// completions are made of it, and the documents are checked by it.
package commands

import (
	"github.com/gleam-rdma/gleam/cmd/gleamd/command"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/cp"
	"github.com/gleam-rdma/gleam/internal/cli/doctor"
	"github.com/gleam-rdma/gleam/internal/cli/perf"
	"github.com/gleam-rdma/gleam/internal/cli/top"
	"github.com/gleam-rdma/gleam/lab/bench"
	"github.com/gleam-rdma/gleam/lab/demo"
	"github.com/gleam-rdma/gleam/lab/simulate"
)

// OfGleam are gleam's commands with more to them than asking the daemon.
var OfGleam = []cli.Command{demo.Command, perf.Command, bench.Command, cp.Command, simulate.Command, doctor.Command(command.ConfigFile), top.Command}
