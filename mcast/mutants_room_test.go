// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to share room, so that a port that does not transmit is felt by others.
var _ = []mutant.Mutant{
	mutant.New("a leg without room stops the others' repairs", "R70", mutant.In((*group).resendToLeg,
		`g.noteFault(i, PortFull)
			g.resumeAfter(m, until)
			return true`,
		`g.noteFault(i, PortFull)
			g.resumeAfter(m, until)
			return false`)),
	mutant.New("a leg without room is not looked at again", "R70", mutant.In((*group).resumeAfter,
		`m.resumeAt = max(m.resumeAt, until, 1) // 0 is none
	g.armRecovery(m.resumeAt)`,
		"m.resumeAt = max(m.resumeAt, until, 1) // 0 is none")),
	mutant.New("a leg gets more than its port takes", "R70", mutant.In((*group).resendToLeg,
		`room--
		ask := m.untilProbe == 1`,
		"ask := m.untilProbe == 1")),
}
