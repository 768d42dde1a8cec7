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
	mutant.New("a member that has left shows how far the turn has come", "R104", mutant.In((*group).lacksWitness,
		"l.members != 0 && ",
		"")),
	mutant.New("a member that has joined shows how far the turn has come", "R104", mutant.In((*group).lacksWitness,
		"(!l.connected() || g.numbering.checks[i].positioned)",
		"true")),
	mutant.New("switches below show nothing", "R104", mutant.In((*group).lacksWitness,
		"(!l.connected() || g.numbering.checks[i].positioned)",
		"g.numbering.checks[i].positioned")),
	mutant.New("what was stored of a turn that nobody shows is forgotten", "R104", mutant.In((*group).forgetTurn,
		"t.edges.unknown[k] && low[k]",
		"false && low[k]")),
	mutant.New("a neighbour that says less than was stored is right", "R104", mutant.In((*tree).learn,
		"if t.isLow(k) && psn.Less(m.sqPSN) {\n		psn = m.sqPSN\n	}",
		"")),
	mutant.New("a switch joins a turn before it has been told where that is", "R104", mutant.In((*tree).joinNeeded,
		"case g.is(learning) || t.isUnknown(k):",
		"case g.is(learning):")),
	mutant.New("a member that joins has its registered numbers after a restart", "R83", mutant.In((*group).positions,
		"at.Known, at.Joining = true, p.HasSource",
		"at.Known = !p.HasSource")),
	mutant.New("a member that joins has a part in the turn after a restart", "R83", mutant.In((*group).startResume,
		"p.HasSource && at.Known && !at.Joining",
		"p.HasSource && at.Known")),
}
