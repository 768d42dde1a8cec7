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
	"github.com/gleam-rdma/gleam/internal/cli/rank"
	"github.com/gleam-rdma/gleam/internal/cli/top"
)

// OfGleam are gleam's commands with more to them than asking the daemon, without those of gleam-lab.
var OfGleam = []cli.Command{perf.Command, cp.Command, doctor.Command(command.ConfigFile), top.Command, rank.Command}
