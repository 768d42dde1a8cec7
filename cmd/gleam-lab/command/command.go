// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package command has the commands of gleam-lab: the program executes them, and the manual pages and
// completions are made of them. gleam links nothing of them.
package command

import (
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench"
	"github.com/gleam-rdma/gleam/lab/demo"
	"github.com/gleam-rdma/gleam/lab/hardware"
	"github.com/gleam-rdma/gleam/lab/simulate"
)

// Commands are those for which gleam runs gleam-lab.
var Commands = []cli.Command{demo.Command, bench.Command, simulate.Command, hardware.Command}
