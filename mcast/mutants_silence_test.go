// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Mistakes in asking those whose silence counts.
var _ = []mutant.Mutant{
	mutant.New("who waits for the source is not asked", "R57", mutant.In((*group).recoveryTimer,
		"g.isNAKVain(b)\n\tif !serves && g.live.deadAfter == 0 {",
		"g.isNAKVain(b)\n\tif !serves && (b.$1 != $2 || g.live.deadAfter == 0) {", ackState{}.pending, sevNone)),
	mutant.New("a member is asked by what nobody has", "R57", mutant.In((*group).livenessProbe,
		`(g.numbering.checks != nil || !g.hadNothing(i)):
		return b.acked`,
		`(g.numbering.checks != nil || !g.hadNothing(i)):
		return b.acked.$1()`, rocev2.PSN.Next)),
	mutant.New("a switch is asked by what it has", "R57", mutant.In((*group).livenessProbe,
		"return b.acked\n\t}\n\treturn g.fwd.nxt.Prev()",
		"return b.acked\n\t}\n\treturn b.acked")),
	mutant.New("without local repair the source's repeat does not ask", "R57", mutant.In((*group).forward,
		"again && d == 1 && g.live.period != 0",
		"false")),
	mutant.New("no switch answers for its receivers", "R57", mutant.In((*group).handleRequest,
		"(again || r != None) && g.isProbe(now, p, out)",
		"again && r != None && g.isProbe(now, p, out)")),
	mutant.New("a switch answers what it has just taken", "R57", mutant.In((*group).handleRequest,
		"(again || r != None) && g.isProbe(now, p, out)",
		"(again || r != None || !again) && g.isProbe(now, p, out)")),
	mutant.New("a member is asked by what was sent before it joined", "R57", mutant.In((*group).sendLivenessProbe,
		"&& g.hadNothing(i) {",
		"&& false {")),
	mutant.New("a strict group all of whose receivers are dead waits for ever", "R39", mutant.In((*group).isAllDead,
		"silent >= g.live.allDeadAfter()",
		"silent >= g.live.allDeadAfter() && false")),
	mutant.New("a switch far from the source ends the group of all", "R39", mutant.In((*group).givesUpAll,
		"g.policy.kind == Strict || g.src.neighbor == 0",
		"g.policy.kind == Strict || true")),
	mutant.New("the root leaves its dead receivers to a switch that keeps it", "R108", mutant.In((*group).givesUpAll,
		"|| g.isRoot()",
		"")),
	mutant.New("the root ends the group of those behind the source's switch", "R108", mutant.In((*group).checkLiveness,
		"if g.servesOthers() {",
		"if false {")),
	mutant.New("the root keeps its last receiver for the others' sake", "R108", mutant.In((*group).canEvict,
		"if g.servesOthers() {",
		"if false {")),
	mutant.New("the root removes the last receiver of all", "R108", mutant.In((*group).servesOthers,
		"g.legs[source].members > 1",
		"g.legs[source].members > 0")),
	mutant.New("the root removes a receiver of strict", "R108", mutant.In((*group).servesOthers,
		"g.policy.kind == Evict",
		"g.policy.kind <= Evict")),
	mutant.New("strict takes a receiver for dead that nobody has asked", "R23", mutant.In((*group).wasAsked,
		"g.policy.kind != Strict",
		"g.policy.kind != Strict || true")),
}
