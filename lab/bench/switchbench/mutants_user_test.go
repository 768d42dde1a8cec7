// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong reports to operators and users.
var _ = []mutant.Mutant{
	mutant.New("rounds that lie apart are not named", "user", mutant.In((*Result).unsteady,
		"(high-low)/x.InPPS > spread",
		"(high-low)/x.InPPS > 3*spread")),
	mutant.New("idle time is taken for load", "user", mutant.In(cpuShare,
		"if i == 3 || i == 4 {",
		"if i == 4 {")),
}
