// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to tell operators and users what is going on.
var _ = []mutant.Mutant{
	mutant.New("a master's group is replaced by hand", "user", mutant.In(replaceConflict,
		"!old.Master.IsValid() && sameGroup(*old, *reg)",
		"sameGroup(*old, *reg)")),
	mutant.New("any group is replaced by hand", "user", mutant.In(replaceConflict,
		"reg.Base != 0 ||",
		"reg.Base >= 0 ||")),
	mutant.New("an update by hand is a conflict", "user", mutant.In(replaceConflict,
		"reg.Base != 0 ||",
		"")),
	mutant.New("the events do not say why a group failed", "user", mutant.In(failureText,
		"why := envelope.Cause(e.Cause)",
		"why := envelope.Cause(e.$1)", mcast.Event{}.Syndrome)),
	mutant.New("a group that has gone is not mentioned", "user", mutant.In((*control).endOf,
		"if c.endedGroups[i].IP == ip {",
		"if c.endedGroups[i].IP != ip {")),
	mutant.New("what a member has cost before a trace counts", "CostsSince|TraceCosts", mutant.In(costsSince,
		"if b := before[key(m)]; b != nil {",
		"if b := before[key(m)]; b != nil && false {")),
	mutant.New("costs that have begun anew are below those of before", "CostsSince", mutant.In(costSince,
		"return now\n\t}\n\tnow.NAKs",
		"}\n\tnow.NAKs")),
	mutant.New("a trace has the costs of the registration that has ended", "TraceCosts", mutant.In((*traceRun).costs,
		"return costsSince(nil, &list[n-1])",
		"return costsSince(nil, &list[0*n])")),
	mutant.New("the control loop does not hear of wrong numbers", "R72", mutant.In((*group).newMismatches,
		"if o.MismatchesReported == g.applied.mismatches {",
		"if o.MismatchesReported >= g.applied.mismatches {")),
	mutant.New("a wrong QPN is told as a wrong PSN", "R72", mutant.In(mismatchText,
		`if n == mcast.VirtualQPN {
		return fmt.Sprintf("wrong_qpn: packets for QPN 0x%06x, the group's virtual QPN is 0x%06x: connect the queue pair to that, or register the group with --qpn", uint32(seen), uint32(want))`,
		`if n != mcast.VirtualQPN {
		return fmt.Sprintf("wrong_qpn: packets for QPN 0x%06x, the group's virtual QPN is 0x%06x: connect the queue pair to that, or register the group with --qpn", uint32(seen), uint32(want))`)),
}
