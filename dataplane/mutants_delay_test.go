// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Mistakes about what delays groups, and about the looks that find it. delay.go
// and blame.go begin with the rules.
var _ = []mutant.Mutant{
	mutant.New("each packet has a look due", "Looks", mutant.In((*delays).watch,
		"!d.queued",
		"d != nil")),
	mutant.New("a look is due at once", "Looks", mutant.In((*delays).watch,
		"nextLook{id, now + lookInterval}",
		"nextLook{id, now}")),
	mutant.New("all groups that are due are looked at between two batches", "Looks", mutant.In((*worker).lookAtDelays,
		"for range lookBatch {",
		"for {")),
	mutant.New("groups are looked at before it is time", "Looks", mutant.In((*worker).lookAtDelays,
		"!ok || at > w.now ||",
		"!ok || at < 0 ||")),

	mutant.New("a group is looked at forever", "Looks", mutant.In((*worker).lookAtDelays,
		"m.outstanding || !d.quiet()",
		"true")),
	mutant.New("a worker sleeps beyond a look", "Looks", mutant.In((*worker).sleepTime,
		`if at, ok := w.core.NextDeadline(); ok {
		until = min(until, at)
	}
	if at, ok := w.delays.next(); ok {
		until = min(until, at)
	}`,
		`if at, ok := w.core.NextDeadline(); ok {
		until = min(until, at)
	}`)),
	mutant.New("a group that has ended keeps its delay", "Looks", mutant.In((*delays).forget,
		"*d = delayed{queued: d.queued}",
		"d.queued = d.queued")),
	mutant.New("one judgement names a member", "Looks", mutant.In((*history).judged,
		"slices.Contains(h.before, v.Member)",
		"(true || slices.Contains(h.before, v.Member))")),
	mutant.New("what was read is never forgotten", "Looks", mutant.In((*worker).judge,
		"first.Busy == h.samples[h.last].Busy",
		"false")),
}
