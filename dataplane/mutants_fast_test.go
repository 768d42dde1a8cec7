// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to drive the fast path.
var _ = []mutant.Mutant{
	mutant.NewForRoot("what was forwarded before a group is taken back is not reported", "fast path", mutant.In((*worker).takeBack,
		"w.reportUpTo(f, st.Hi)",
		"_ = st")),
	mutant.NewForRoot("the core hears of feedback before the packets that it is for", "fast path", mutant.In((*worker).serveRoCE,
		"w.reportBefore(id)\nif w.out.MaxResends",
		"if w.out.MaxResends")),
	mutant.NewForRoot("packets of a later batch are served without a report", "fast path", mutant.In((*worker).receivePort,
		"w.fast.taken++",
		"")),
	mutant.NewForRoot("packets of another worker are served without a report", "fast path", mutant.In((*worker).drainHandoff,
		"w.fast.taken++",
		"")),
	mutant.NewForRoot("a packet is reported after a pause without its ICRC", "fast path", mutant.In((*worker).reportUpTo,
		"mayPause := w.elapsed()-f.movedFrom > mcast.MaxInOrderGap",
		"mayPause := false")),
	mutant.NewForRoot("a packet is said to have come when it was reported", "fast path", mutant.In((*worker).reportUpTo,
		"mayPause := w.elapsed()-f.movedFrom > mcast.MaxInOrderGap\nf.movedFrom = f.lookedAt",
		"mayPause := w.elapsed()-f.movedFrom > mcast.MaxInOrderGap\nf.movedFrom = w.elapsed()")),
	mutant.NewForRoot("the limit does not follow the store", "fast path", mutant.In((*worker).moveLimit,
		"f.ring.SetLimit(limit)",
		"_ = limit")),
	mutant.NewForRoot("a group without data stays on the fast path", "fast path", mutant.In((*worker).tendFast,
		"w.takeBack(f, whyIdle)",
		"")),
	mutant.NewForRoot("a gate is opened although the programs have passed its PSN, and nobody looks at it", "fast path", mutant.In((*worker).lookAtGates,
		"stuck := g.behind && x.Next == g.next",
		"stuck := g.behind && x.Next != x.Next")),
	mutant.NewForRoot("a group is taken back, and what a gate has let not pass is forgotten", "fast path", mutant.In((*worker).giveBackMissed,
		"w.giveBack(f, k, x.Next, g.delta, w.readClock()+fastDrain)",
		"")),
	mutant.NewForRoot("a new source has the fast path of the one before", "fast path", mutant.In((*worker).sendFeedback,
		"f.unset()",
		"")),
	mutant.NewForRoot("a port whose kernel has not read the TX ring has sent everything", "fast path", mutant.In((*worker).hasSent,
		"p.queue.len() == 0 && p.ring.kickAt == 0",
		"p.ring.kickAt >= 0")),
	mutant.NewForRoot("a packet that is never stored leaves the group on the fast path", "fast path", mutant.In((*worker).reportGroup,
		"w.takeBack(f, f.damaged)",
		`f.damaged = ""`)),
	mutant.NewForRoot("a packet that is never stored is not counted", "fast path", mutant.In((*worker).awaitStored,
		"w.count.drop[dropNotStored]++",
		"")),
}
