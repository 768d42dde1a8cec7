// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// guardMutants take bricks out of the port guard, as far as it is in Go.
var _ = []mutant.Mutant{
	mutant.New("two members behind one isolated port split a group", "guard", mutant.In((*groupTable).noteIsolation,
		"|| l.port == first:",
		":")),
	mutant.New("members that have gone split a group", "guard", mutant.In((*groupTable).noteIsolation,
		"case !l.isActive() || !ports",
		"case !ports")),
}
