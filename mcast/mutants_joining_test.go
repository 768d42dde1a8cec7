// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to go on with legs that wait for their first message.
var _ = []mutant.Mutant{
	mutant.New("a leg with a receiver is joining", "R101", mutant.In((*group).holdJoining,
		"joining = joining && (",
		"joining = joining || (")),
	mutant.New("a message begins before a neighbour has said whether it is joining", "R101", mutant.In((*group).mayBeginMessage,
		"if g.awaitsJoining() {\n		return false\n	}",
		"")),
	mutant.New("receivers that move to a leg that is joining wait for the next message", "R101", mutant.In((*group).moveMembers,
		"from == fromJoining && (g.legs[m.To].joining || g.legs[m.To].members == 0)",
		"from == fromJoining || g.legs[m.To].joining")),
	mutant.New("the positions do not say who is joining", "R101", mutant.In((*group).positions,
		"at.Known, at.Joining = !g.tree().isUnknown(MemberID(i)), g.legs[m.leg].joining",
		"at.Known = !g.tree().isUnknown(MemberID(i))")),
	mutant.New("a switch that is asked for more does not join the turn", "R101", mutant.In((*tree).joinNeeded,
		"was != positionLearnt || !t.machine.Accepts(leg) || !t.mayFollow()",
		"was != $1", positionKnown)),
	mutant.New("the first member of a switch is not stored", "R83", mutant.In((*Switch).updateMembers,
		"if op.Stored && !g.policy.stored && g.numbering.interval > 0 {",
		"if false {")),
	mutant.New("data goes on before the position of the first member is durable", "R83", mutant.In((*group).beginStoring,
		"g.src.member != none && !g.is(failed)",
		"false")),
}
