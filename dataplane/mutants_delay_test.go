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

	mutant.New("a group is looked at once", "Looks", mutant.In((*worker).lookAtDelays,
		"d.queued = false",
		"")),
	mutant.New("a group is looked at forever", "Looks", mutant.In((*worker).lookAtDelays,
		"m.outstanding || !d.quiet()",
		"true")),
	mutant.New("a delay lasts until there is data again", "Looks", mutant.In((*worker).lookAtDelays,
		"m.outstanding || !d.quiet()",
		"m.outstanding")),
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
	mutant.New("nobody hears of a delay", "Looks", mutant.In((*worker).lookAt,
		"w.delays.changed.add(id)",
		"")),
	mutant.New("a group that has ended keeps its delay", "Looks", mutant.In((*delays).forget,
		"*d = delayed{queued: d.queued}",
		"d.queued = d.queued")),
	mutant.New("another member stalls the group, and nobody hears of it", "Looks", mutant.In((*delayed).look,
		"was.Kind != Stalled || was.Member != a.Member",
		"was.Kind != Stalled")),
	mutant.New("a stall is not over", "Looks", mutant.In((*delayed).look,
		"d.Delay = Delay{}",
		"")),
	mutant.New("one judgement names a member", "Looks", mutant.In((*delayed).judged,
		"slices.Contains(h.before, v.Member)",
		"(true || slices.Contains(h.before, v.Member))")),
	mutant.New("a member is named for ever", "Looks", mutant.In((*delayed).judged,
		"h.unfound[i]++",
		"")),
	mutant.New("what was read is never forgotten", "Looks", mutant.In((*worker).judge,
		"first.Busy == h.samples[h.last].Busy",
		"false")),
	mutant.New("a member that has gone stays named", "Looks", mutant.In((*delayed).dropGone,
		"int(m) < len(members) && members[m].Receives",
		"int(m) < len(members)")),
	mutant.New("a stopped look stays due", "Looks", mutant.In((*delays).stop,
		"x.head, x.count = 0, 0",
		"")),
}
