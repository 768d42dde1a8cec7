// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Mistakes in selective NAKs, and in when a leg that waits for its port is probed.
var _ = []mutant.Mutant{
	mutant.New("a selective NAK names the packet that has come too", "R106", mutant.In((*group).nakGap,
		"n := psn.Sub(g.fwd.nxt); n <= maxMissing",
		"n := psn.Sub(g.fwd.nxt) + 1; n <= maxMissing")),
	mutant.New("a selective NAK may be about what was never sent", "R106", mutant.In((*group).selectiveNAKReceived,
		"if g.fwd.nxt.LessEq(next) {",
		"if false && g.fwd.nxt.LessEq(next) {")),
	mutant.New("what is acknowledged is sent again", "R106", mutant.In((*group).selectiveNAKReceived,
		"q := rocev2.MaxPSN(psn, b.acked.Next())",
		"q := psn")),
	mutant.New("a packet on its way is sent again", "R106", mutant.In((*group).selectiveNAKReceived,
		", next.Less(e.passedAt):",
		":")),
	mutant.New("a wait in the store is part of the round trip", "R45", mutant.In((*group).rttStart,
		"max(g.rtt.sentAt, g.activityOf(i).recovery.rttFrom)",
		"max(g.rtt.sentAt, 0*g.activityOf(i).recovery.rttFrom)")),
	mutant.New("a leg that waits for its port again and again is not probed", "R45", mutant.In((*group).recoveryTimer,
		"if !m.owesACK(b) {",
		"if !m.owesACK(b) || true {")),
}
