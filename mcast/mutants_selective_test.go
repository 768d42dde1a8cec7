// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Mistakes in selective NAKs, and in when a leg that waits for its port is probed.
var _ = []mutant.Mutant{
	mutant.New("a gap before a packet that is not retained is named", "R106|AFullStore", mutant.In((*group).handleData,
		"if out.Retained && g.fwd.nxt.Less(psn) {",
		"if g.fwd.nxt.Less(psn) {")),
	mutant.New("a source that is a host gets selective NAKs", "R106", mutant.In((*group).nakGap,
		" && g.src.neighbor != 0",
		"")),
	mutant.New("a gap of any length is named", "R106", mutant.In((*group).nakGap,
		"n <= maxMissing && ",
		"")),
	mutant.New("a selective NAK names the packet that has come too", "R106", mutant.In((*group).nakGap,
		"n := psn.Sub(g.fwd.nxt); n <= maxMissing",
		"n := psn.Sub(g.fwd.nxt) + 1; n <= maxMissing")),
	mutant.New("a member may send selective NAKs", "R106", mutant.In(isSelectiveNAK,
		"p.Neighbor != 0 && ",
		"")),
	mutant.New("a selective NAK may name nothing", "R106", mutant.In(isSelectiveNAK,
		" && p.Syndrome != selectiveNAK",
		"")),
	mutant.New("a selective NAK may be about what was never sent", "R106", mutant.In((*group).selectiveNAKReceived,
		"if g.fwd.nxt.LessEq(next) {",
		"if false && g.fwd.nxt.LessEq(next) {")),
	mutant.New("what is acknowledged is sent again", "R106", mutant.In((*group).selectiveNAKReceived,
		"q := rocev2.MaxPSN(psn, b.acked.Next())",
		"q := psn")),
	mutant.New("a packet on its way is sent again", "R106", mutant.In((*group).selectiveNAKReceived,
		", next.Less(e.passedAt):",
		":")),
	mutant.New("what the cursor comes to is sent twice", "R106", mutant.In((*group).selectiveNAKReceived,
		"(m.inBurst(q) || m.firstUnsent.LessEq(q))",
		"m.firstUnsent.LessEq(q)")),
	mutant.New("what was never sent overtakes the cursor", "R106", mutant.In((*group).selectiveNAKReceived,
		"(m.inBurst(q) || m.firstUnsent.LessEq(q))",
		"m.inBurst(q)")),
	mutant.New("a full port is sent more", "R106", mutant.In((*group).selectiveNAKReceived,
		" && room > 0",
		"")),
	mutant.New("named packets need no memory", "R106", mutant.In((*group).selectiveNAKReceived,
		" && !out.resendsExhausted()",
		"")),
	mutant.New("a repeat of the source is a passage to all legs", "R106|StoreIsAMap", mutant.In((*store).retain,
		`if old := s.find(psn); old != nil {
			passedAt = old.passedAt
			`,
		`if old := s.find(psn); old != nil {
			`)),
	mutant.New("a wait in the store is part of the round trip", "R45", mutant.In((*group).rttStart,
		"max(g.rtt.sentAt, g.activityOf(i).recovery.rttFrom)",
		"max(g.rtt.sentAt, 0*g.activityOf(i).recovery.rttFrom)")),
	mutant.New("a leg that waits for its port again and again is not probed", "R45", mutant.In((*group).recoveryTimer,
		"if !m.owesACK(b) {",
		"if !m.owesACK(b) || true {")),
	mutant.New("a NAK at the source does not move a cursor behind it", "R47", mutant.In((*group).unaRepeated,
		"!asked && ",
		"")),
}
