// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to go on after a restart where nobody shows how far a turn has come.
var _ = []mutant.Mutant{
	mutant.New("a switch whose members have left goes on from the file", "R104", mutant.In((*group).endProbes,
		"if g.lacksWitness() {\n		g.forgetTurn(out)\n		return\n	}",
		"")),
	mutant.New("the switch of the source forgets the turn", "R104", mutant.In((*group).lacksWitness,
		"if g.legs[source].connected() {\n		return false\n	}",
		"")),
	mutant.New("what was stored of a turn that nobody shows is forgotten", "R104", mutant.In((*group).forgetTurn,
		"t.edges.unknown[k] && low[k]",
		"false && low[k]")),
	mutant.New("a neighbour that says less than was stored is right", "R104", mutant.In((*tree).learn,
		"if t.isLow(k) && psn.Less(m.sqPSN) {\n		psn = m.sqPSN\n	}",
		"")),
	mutant.New("a member that joins has its registered numbers after a restart", "R83", mutant.In((*group).positions,
		"at.Known, at.Joining = true, p.HasSource",
		"at.Known = !p.HasSource")),
}
