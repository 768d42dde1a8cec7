// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to verify the numbering of receivers.
var _ = []mutant.Mutant{
	mutant.New("an unverified receiver joins where a quorum begins", "R55", mutant.In((*group).admitJoining,
		"if g.legs[i].joining && !g.unproven(i) {",
		"if l := &g.legs[i]; l.joining {")),
	mutant.New("what came before a probe verifies", "R52", mutant.In((*group).keepaliveAnswer,
		"if v.probesSent == 0 {",
		"if v.probesSent == 0 && false {")),
	mutant.New("an unverified packet verifies a receiver's numbering", "R33", mutant.In((*group).keepaliveAnswer,
		`	}
	if !p.Verified {`,
		`	}
	if !p.Verified && false {`)),
	mutant.New("a probe has the PSN that it asks for", "R52", mutant.In((*group).sendKeepalive,
		".ePSN.Add(-probePSNOffset)",
		".ePSN")),
	mutant.New("the source is not asked for a waiting message", "R53", mutant.In((*group).unblock,
		"if g.release(blocked); g.is(asking) {",
		"if g.$1(blocked, false); g.is(asking) {", (*gates).set)),
	mutant.New("what follows a message that waits is forwarded", "R53", mutant.In((*group).mustBlock,
		"return g.is(blocked)",
		"return false")),
	mutant.New("a gap is forwarded while some wait to join", "R53", mutant.In((*group).mustBlock,
		"case psn != g.fwd.nxt && !g.is(blocked) && g.is(joiners):",
		"case false:")),
	mutant.New("the MSN of a fresh receiver is not compared", "R52", mutant.In((*group).acksUnread,
		"return p.MSN != (due-v.messagesBefore)&rocev2.PSNMask",
		"return false")),
	mutant.New("empty answers are late ones, however many", "R52", mutant.In((*group).mustNotCount,
		"return !v.acceptedNothing || int(v.emptyAnswers) <= int(v.probesSent)+maxExtraAnswers",
		"return true")),
	mutant.New("an ACK beyond what was forwarded is only dropped", "R54", mutant.In((*group).handleFeedback,
		"if p.Neighbor == 0 {",
		"if p.Neighbor == 0 && false {")),
	mutant.New("a neighbour's ACK beyond what was forwarded ends it", "R54", mutant.In((*group).handleFeedback,
		"if p.Neighbor == 0 {",
		"if !false {")),
	mutant.New("a negative wait for the answer to a probe is accepted", "R52", mutant.In(checkPolicy,
		"if spec.PSNProbe < 0 {",
		"if spec.PSNProbe == 1 {")),
	mutant.New("silence to probes is never the end", "R55", mutant.In((*group).judgeProbed,
		"case v.wrongAnswer || !g.is(blocked) || v.probesSent == 0 || patience == 0 || g.silentToProbes(now, i) < patience:",
		"case v.wrongAnswer || !g.is(blocked) || v.probesSent == 0 || patience == 0 || g.silentToProbes(now, i) < patience || !v.$1:", verification{}.positioned)),
	mutant.New("silence of all to probes removes one", "R55", mutant.In((*group).judgeProbed,
		"case !g.anyVerified() &&",
		"case false &&")),
}
