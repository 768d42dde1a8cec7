// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways for the control loop to learn what the core has decided.
// internal/control/doc.go has the rules.
var _ = []mutant.Mutant{
	mutant.New("a group is listed with every event", "Outcomes", mutant.In((*changedGroups).add,
		`if n.listed[id] {
		return
	}`,
		"")),
	mutant.New("the bell does not ring", "Outcomes", mutant.In((*changedGroups).add,
		"case n.bell <- struct{}{}:",
		"")),
}
