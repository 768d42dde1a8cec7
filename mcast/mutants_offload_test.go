// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to share the work with a fast path: -run 'R9[78]'.
var _ = []mutant.Mutant{
	mutant.New("new packets do not wait for the copies of the fast path", "R97", mutant.In((*group).isDraining,
		"now < g.extra.offload.drainUntil",
		"false")),
	mutant.New("a take-back begins no drain", "R97", mutant.In((*Switch).Revoked,
		"now+x.spec.Drain, now+x.spec.Backoff",
		"now, now+x.spec.Backoff")),
	mutant.New("the gates' states outlive the fast path", "R98", mutant.In((*Switch).Revoked,
		`now+x.spec.Backoff
		g.forgetGates()`,
		"now+x.spec.Backoff")),
	mutant.New("the backoff is not kept to", "R97", mutant.In((*group).mayOffload,
		"now >= g.extra.offload.grantFrom &&",
		"")),
	mutant.New("the source's packet on the slow path is served beside the fast path", "R97", mutant.In((*group).handleRequest,
		"if g.repair.path == fastPath {",
		"if false {")),
	mutant.New("another member's turn may begin beside the fast path", "R97", mutant.In((*group).requestOfNonSource,
		"if g.repair.path == fastPath {",
		"if false {")),
	mutant.New("a source on the fast path is at rest", "R97", mutant.In((*group).isComplete,
		"g.repair.path != fastPath &&",
		"")),
	mutant.New("what the fast path has sent is sent again", "R97", mutant.In((*group).forward,
		"} else if g.repair.path == fastPath {",
		"} else if false {")),
	mutant.New("the fast path may fill more than its ring", "R97", mutant.In((*group).offloadLimit,
		"g.repair.store.first.Add(int32(g.extra.offload.spec.Slots))",
		"g.repair.store.first.Add(1<<15)")),
	mutant.New("the fast path goes beyond the stored positions", "R97", mutant.In((*group).offloadLimit,
		"if g.stored {",
		"if false {")),
	mutant.New("a report is not verified after a pause", "R97", mutant.In((*Switch).InputForwarded,
		"!p.Verified && g.mayBeDamaged(now, psn)",
		"false")),
	mutant.New("a report counts twice", "R97", mutant.In((*Switch).InputForwarded,
		"|| psn.Less(g.fwd.nxt)",
		"")),
	mutant.New("a late leg's gate stays open", "R98", mutant.In((*group).setGates,
		"open := b.flags&(isReceiver|recovering) == isReceiver",
		"open := b.flags&isReceiver != 0")),
	mutant.New("a late leg is repaired before the copies on their way arrive", "R98", mutant.In((*group).startDrain,
		"now+g.extra.offload.spec.Drain",
		"now")),
	mutant.New("a leg in sync stays off the fast path", "R98", mutant.In((*group).deliver,
		`m.probeEvery, m.untilProbe = 0, 0
		g.noteGate(m, false)`,
		"m.probeEvery, m.untilProbe = 0, 0")),
	mutant.New("a packet that is given back at the gate waits again", "R98", mutant.In((*Switch).Requeue,
		"m.gateOpen, m.shutNow = false, false",
		"m.gateOpen = false")),
	mutant.New("a gate that the driver has shut is never opened again", "R98", mutant.In((*Switch).Requeue,
		"m.gateOpen, m.shutNow = false, false",
		"m.shutNow = false")),
}
