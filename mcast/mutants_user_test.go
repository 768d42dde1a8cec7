// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to tell operators and users what is going on.
var _ = []mutant.Mutant{
	mutant.New("stale feedback is shown as a loss", "user", mutant.In(reasons,
		`{name: "feedback_stale", normal: true,`,
		`{name: "feedback_stale", normal: false,`)),
	mutant.New("a wrong QPN is shown as normal", "user", mutant.In(Reason.Normal,
		"return reasons[min(r, NumReasons)].normal",
		"return reasons[min(r, NumReasons)].normal || r == 3")),
	mutant.New("a failure for silence is told as the NAK that the source got", "user", mutant.In((*group).failBecauseOf,
		"g.fail(m, una, code, why, out)",
		"g.fail(m, una, code, code, out)")),
	mutant.New("one stray packet is a wrong number", "R72", mutant.In(mismatchThreshold,
		"const mismatchThreshold = 4",
		"const mismatchThreshold = 1")),
	mutant.New("a first packet that got through at last does not settle it", "R72", mutant.In((*group).recheckMismatch,
		`case psn == m.Registered || m.Registered.LessEq(g.agg.acked):
		m.Count = 0`,
		"")),
	mutant.New("the latest PSN is named, not the lowest", "R72", mutant.In((*group).noteMismatch,
		"n == SendPSN && m.Observed.Less(seen)",
		"n == SendPSN && seen.Less(m.Observed)")),
	mutant.New("a stranger's packets are a member's", "R72", mutant.In((*group).noteWrongQPN,
		"ok && g.members[k].live {",
		"ok || g.members[k].live {")),
	mutant.New("a stall is another member's at each look", "user", mutant.In(Group.AwaitedMember,
		"int(was) < len(g.members) && g.members[was].live && g.isAwaited(int(g.members[was].leg))",
		"false")),
}
