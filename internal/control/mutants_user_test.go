// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to tell operators and users what is going on.
var _ = []mutant.Mutant{
	mutant.New("any group is replaced by hand", "user", mutant.In(replaceConflict,
		"reg.Base != 0 ||",
		"reg.Base >= 0 ||")),
	mutant.New("the events do not say why a group failed", "user", mutant.In(failureText,
		"why := envelope.Cause(e.Cause)",
		"why := envelope.Cause(e.$1)", mcast.Event{}.Syndrome)),
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
		"if o.MismatchesReported == g.applied().mismatches {",
		"if o.MismatchesReported >= g.applied().mismatches {")),
}
