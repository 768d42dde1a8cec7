// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package commands has the command line of gleam: the program executes it, the manual pages and
// completions are made of it, and the documents are checked by it.
package commands

import (
	"github.com/gleam-rdma/gleam/cmd/gleamd/command"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/tools/bench"
	"github.com/gleam-rdma/gleam/internal/tools/cp"
	"github.com/gleam-rdma/gleam/internal/tools/demo"
	"github.com/gleam-rdma/gleam/internal/tools/doctor"
	"github.com/gleam-rdma/gleam/internal/tools/perf"
	"github.com/gleam-rdma/gleam/internal/tools/simulate"
	"github.com/gleam-rdma/gleam/internal/tools/top"
)

// OfGleam are gleam's commands with more to them than asking the daemon.
var OfGleam = []cli.Command{demo.Command, perf.Command, bench.Command, cp.Command, simulate.Command, doctor.Command(command.ConfigFile), top.Command}
