// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to share room, so that a port that does not transmit is felt by others.
var _ = []mutant.Mutant{
	mutant.New("a new table counts members that have gone", "R70", mutant.In((*directory).makeTable,
		", Leg: slots[i].leg, Gone: slots[i].gone,",
		", Leg: slots[i].leg,")),
}
