// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Mistakes about what delays groups, and about the looks that find it. Their rule is the section
// of docs/ARCHITECTURE.md.
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
		"!ok || at > w.now",
		"!ok || at < 0")),
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
	mutant.New("during a stall no member is asked for", "Looks", mutant.In((*worker).lookAt,
		"a.Alone || stalled >= api.StallTime*time.Second && a.Legs > 0",
		"a.Alone")),
	mutant.New("a group that has ended keeps its delay", "Looks", mutant.In((*delays).forget,
		"*d = delayed{queued: d.queued}",
		"d.queued = d.queued")),
	mutant.New("a member is slow after half of the looks", "Looks", mutant.In((*delayed).look,
		"d.Kind == NoDelay && n >= slowFrom",
		"d.Kind == NoDelay && n >= 10")),
	mutant.New("a member stays slow", "Looks", mutant.In((*delayed).look,
		"n <= slowUntil",
		"n < 0")),
	mutant.New("a stall is not over", "Looks", mutant.In((*delayed).look,
		"case d.Kind == Stalled, d.Kind == Slow",
		"case d.Kind == Slow")),
	mutant.New("a stall tells of speed", "Looks", mutant.In((*delayed).look,
		"d.alone = 0",
		"")),
	mutant.New("another member stalls the group, and nobody hears of it", "Looks", mutant.In((*delayed).look,
		"was.Kind != Stalled || was.Member != a.Member",
		"was.Kind != Stalled")),
	mutant.New("each member counts for the first one", "Looks", mutant.In((*delayed).note,
		"a.Alone && a.Member == d.suspect",
		"a.Alone")),
	mutant.New("the first member is suspected forever", "Looks", mutant.In((*delayed).note,
		"case a.Alone && bits.OnesCount32(d.alone) <= slowUntil && bits.TrailingZeros32(d.alone) > looksKept/4:",
		"case false:")),
	mutant.New("a member that has gone stays suspected", "Looks", mutant.In((*worker).lookAtDelays,
		"int(d.suspect) >= len(g.members) || g.members[d.suspect].gone",
		"int(d.suspect) >= len(g.members)")),
	mutant.New("a stopped look stays due", "Looks", mutant.In((*delays).stop,
		"x.head, x.count = 0, 0",
		"")),
}
