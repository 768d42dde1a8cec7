// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to go on after a restart.
var _ = []mutant.Mutant{
	mutant.New("members of a registered group get a DREQ after a restart", "CM", mutant.In((*Manager).Restore,
		"x == nil || reg == nil", "x == nil || reg != nil")),
	mutant.New("sessions that a restart has ended hear nothing", "CM", mutant.In((*Manager).Restore,
		"x == ended && c.state != leaving", "x == ended && c.state == leaving")),
	mutant.New("a member that was leaving before a restart stays", "CM", mutant.In((*Manager).Restore,
		"case c.state == lingering:", "case c.state == 8:")),
	mutant.New("a REP of before a restart is not repeated", "CM", mutant.In((*Manager).Restore,
		"c.state == replied || c.state == leaving", "c.state == leaving")),
	mutant.New("listeners that have not answered are not kept", "CM", mutant.In((*Manager).Connections,
		"c.state != requested", "c.state != requested && c.state != 3")),
}
