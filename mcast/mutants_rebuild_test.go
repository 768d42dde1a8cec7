// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to go on in a tree that becomes another one. The scenarios rebuild-* of the model find
// each of them.
var _ = []mutant.Mutant{
	mutant.New("positions of another layout count", "R90", mutant.In((*tree).isNewest,
		"up && received == msg.Seq && msg.Position.Layout == t.place.layout()",
		"up && received == msg.Seq")),
	mutant.New("a leg whose members were upstream has what is acknowledged", "R90", mutant.In((*group).extendLeg,
		`case from == fromUpstream:
		g.unplace(i)
	case from == fromReceivers:`,
		"case from == fromUpstream || from == fromReceivers:")),
	mutant.New("members behind the former leg of the source are no receivers", "R90", mutant.In((*group).followSource,
		"gained[was] = fromUpstream",
		"")),
	mutant.New("a switch with an unplaced leg says what it has", "R90", mutant.In((*tree).had,
		"return g.agg.acked.Next(), !g.is(unplaced)",
		"return g.agg.acked.Next(), true")),
	mutant.New("a leg that is placed is not sent what it lacks", "R90", mutant.In((*group).startAt,
		"g.resumeLeg(i)",
		"")),
	mutant.New("acked stays where it was for members that lack it", "R90", mutant.In((*group).startAt,
		`if psn.LessEq(g.agg.acked) {
		g.lowerAcked(psn.Prev())
	}`,
		"")),
	mutant.New("a leg that has lost its members is waited for", "R90", mutant.In((*group).moveMembers,
		"case g.legs[l].members == 0:\n			g.removeLeg(i)",
		"case g.legs[l].members == 0:")),
	mutant.New("receivers that come from another leg have all that was forwarded", "R90", mutant.In((*group).extendLeg,
		"g.startAt(i, g.agg.acked.Next())",
		"g.startAt(i, g.$1.$2)", group{}.fwd, forwarding{}.nxt)),
	mutant.New("receivers that come from another leg wait for the next message", "R90", mutant.In((*group).originOf,
		"case f&isReceiver != 0:\n		return fromReceivers",
		"case f&isReceiver != 0:\n		return $1", fromJoining)),
	mutant.New("the source moves to a leg that receives", "R90", mutant.In((*group).followSource,
		"g.setUnplaced(int(l), false)\n	g.stopReceiving(int(l))",
		"g.setUnplaced(int(l), false)")),
	mutant.New("the former parent stays the parent", "R90", mutant.In((*tree).placeAt,
		"t.place.Parent = place.Parent",
		"")),
	mutant.New("a switch that was aside goes on where it was", "R90", mutant.In((*Switch).updateMembers,
		"if len(op.Add)+len(op.Move) > 0 {\n		g.returnToTree(out)\n	}",
		"")),
	mutant.New("a switch that was aside is still in the turn that it knew", "R90", mutant.In((*group).forgetTree,
		"g.endResume()\n	g.endTurn(out)",
		"g.endResume()")),
	mutant.New("a switch that was aside knows positions", "R90", mutant.In((*group).forgetTree,
		"t.forget(MemberID(k))",
		"")),
	mutant.New("the file has positions of before the switch was aside", "R90", mutant.In((*group).forgetTree,
		"if g.policy.stored {\n		g.reportPositions(out)\n	}",
		"")),
	mutant.New("a switch with members of its own is aside", "R90", mutant.In((*group).isAside,
		"if l.connected() {\n			return false\n		}",
		"if l.connected() {\n			continue\n		}")),
	mutant.New("a switch between two others is aside", "R90", mutant.In((*group).isAside,
		"return behind == 1",
		"return behind >= 1")),
	mutant.New("positions of before the switch was aside count", "R90", mutant.In((*group).startResume,
		"if g.isStale(p) {\n		p = &Positions{Members: make([]Position, len(g.members))}\n	}",
		"")),
	mutant.New("a position of before members have moved is said of them", "R90", mutant.In((*group).moveMembers,
		"g.tree().forgetLearnt()",
		"")),
}
