// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to go on after a restart where nobody shows how far a turn has come.
var _ = []mutant.Mutant{
	mutant.New("a switch whose members have left goes on from the file", "R104", mutant.In((*group).endProbes,
		"if g.lacksWitness() {\n		g.forgetTree(out)\n		return\n	}",
		"")),
	mutant.New("the switch of the source forgets the turn", "R104", mutant.In((*group).lacksWitness,
		"if g.legs[source].connected() {\n		return false\n	}",
		"")),
	mutant.New("a member that has left shows how far the turn has come", "R104", mutant.In((*group).lacksWitness,
		"l.members != 0 && ",
		"")),
	mutant.New("a member that has joined shows how far the turn has come", "R104", mutant.In((*group).lacksWitness,
		"(!l.connected() || g.numbering.checks[i].positioned)",
		"true")),
	mutant.New("switches below show nothing", "R104", mutant.In((*group).lacksWitness,
		"(!l.connected() || g.numbering.checks[i].positioned)",
		"g.numbering.checks[i].positioned")),
}
