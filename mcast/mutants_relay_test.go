// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to pass on the question where a source is.
var _ = []mutant.Mutant{
	mutant.New("a switch with members answers for them", "R105", mutant.In((*tree).passOn,
		"l.members != 0 && l.connected()",
		"false")),
	mutant.New("the highest answer counts", "R105", mutant.In((*tree).takeRelayed,
		"r.said[o].psn.Less(low)",
		"low.Less(r.said[o].psn)")),
	mutant.New("a question is passed on after its answer", "R105", mutant.In((*tree).takeRelayed,
		"m := &g.members[r.member]\n\tt.endRelay()",
		"m := &g.members[r.member]")),
	mutant.New("an answer about the present source is one to a question of before", "R89_Trees", mutant.In((*tree).takePosition,
		"case int32(k) == t.edges.relay.member && t.relays(l):",
		"case int32(k) == t.edges.relay.member:")),
}
