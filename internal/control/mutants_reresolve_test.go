// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to find a host that has another MAC address. reresolve.go begins with
// the rule.
var _ = []mutant.Mutant{
	mutant.New("the entries of members are given up", "Places", mutant.In((*control).reresolve,
		"h.isPinned() || !h.location.Known()",
		"!h.location.Known()")),
	mutant.New("a host that does not answer is not resolved anew", "Places", mutant.In((*control).sendProofs,
		"p.timesSent == reresolveAfter",
		"p.timesSent == -reresolveAfter")),
	mutant.New("each request from elsewhere has the kernel ask", "Places", mutant.In((*control).reresolve,
		"now-h.reresolvedAt < reresolveInterval",
		"now-h.reresolvedAt < -reresolveInterval")),
	mutant.New("requests from where the kernel has the host have it ask", "Places", mutant.In((*control).askedFromElsewhere,
		"(at.Port != from.Port || at.MAC != from.MAC)",
		"(at.Port != from.Port || at.MAC != from.MAC || at.Port >= 0)")),
	mutant.New("a lookup does not have the kernel ask anew", "Places", mutant.In((*lookupQueue).run,
		"if q.anew {",
		"if q.anew && !q.anew {")),
}
