// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong history.
var _ = []mutant.Mutant{
	mutant.New("a step without a sample keeps the value of long ago", "user", mutant.In((*history).advance,
		"n := step - passed + 1",
		"n := step")),
	mutant.New("the history of a group has that of another one whose address begins alike", "user", mutant.In((*site).history,
		`of + "/"`,
		`of`)),
	mutant.New("a lag is the newest of a step", "user", mutant.In((*series).put,
		"case p.peak:\n*at = max(*at, v)",
		"case p.peak:\n*at = v")),
	mutant.New("the history has no bound", "user", mutant.In((*history).add,
		">= maxSeries",
		">= 100*maxSeries")),
}
