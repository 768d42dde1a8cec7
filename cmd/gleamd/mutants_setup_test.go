// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to look at the machine that the switch runs on.
var _ = []mutant.Mutant{
	mutant.New("a lack of CAP_PERFMON is not named", "Check", mutant.In(needed,
		`{"CAP_PERFMON", 1<<unix.CAP_PERFMON | 1<<unix.CAP_SYS_ADMIN, false},`,
		"")),
}
