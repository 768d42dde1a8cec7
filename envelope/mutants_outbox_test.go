// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to say what becomes of a message that waits for the state file.
var _ = []mutant.Mutant{
	mutant.New("what a neighbour is asked for outlives the session", "outbox", mutant.In((*Registrar).Reseal,
		"!x.Lasts &&",
		"!x.Lasts && x.Lasts &&")),
}
