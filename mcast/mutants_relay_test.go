// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to pass on the question where a source is.
var _ = []mutant.Mutant{
	mutant.New("a switch between others repeats what it was told", "R105", mutant.In((*tree).joinNeeded,
		"t.passOn(now, k, out)\n		return\n	}",
		"return\n	}")),
	mutant.New("a switch with members answers for them", "R105", mutant.In((*tree).passOn,
		"l.members != 0 && l.connected()",
		"false")),
	mutant.New("one answer counts for all switches below", "R105", mutant.In((*tree).takeRelayed,
		"case !r.said[o].known:\n			return",
		"case !r.said[o].known:")),
	mutant.New("the highest answer counts", "R105", mutant.In((*tree).takeRelayed,
		"r.said[o].psn.Less(low)",
		"low.Less(r.said[o].psn)")),
	mutant.New("an answer below the known position counts", "R105", mutant.In((*tree).takeRelayed,
		"d > 0 && d <= maxAhead",
		"d <= maxAhead")),
	mutant.New("the switch that has asked is not told", "R105", mutant.In((*tree).takeRelayed,
		"t.poll(now, m.leg, out)",
		"")),
	mutant.New("a question is passed on for ever", "R105", mutant.In((*tree).noteRelay,
		"t.endRelay()",
		"")),
	mutant.New("the switch that has asked is asked", "R105", mutant.In((*tree).relays,
		"m.leg != l && ",
		"")),
}
