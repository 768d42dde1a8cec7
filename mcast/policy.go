// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// policyParams is how many receivers an ACK stands for, and how many have to remain. Only
// Apply changes it.
type policyParams struct {
	kind         Policy
	replies      bool  // extra.replies is set
	stored       bool  // GroupSpec.Stored
	quorum       int32 // receivers that must have the acknowledged data; 0: all
	minReceivers int32 // receivers that must remain after an eviction; under Strict more than there are
}

// canEvict reports whether the group can go on without receiver i: enough others
// remain that have got, or will get, all that is in flight.
func (g *group) canEvict(i int) bool {
	n := g.recv.count - g.recv.joinedInFlight
	if g.acks[i].flags&joinedInFlight == 0 {
		n--
	}
	return n >= g.policy.minReceivers
}

// isKept reports whether receiver i is not removed for its silence or its lag (R108): under
// Evict a leg toward the root of the tree. The master hears of removals from the root.
func (g *group) isKept(i int) bool {
	return g.policy.kind == Evict && g.legs[i].neighbor != 0 && g.extra.tree != nil && g.legs[i].neighbor == g.extra.tree.place.Parent
}

func (g *group) setPolicy(spec *GroupSpec) {
	switch spec.Policy {
	case Strict:
		g.policy.minReceivers = math.MaxInt32
	case Evict:
		g.policy.minReceivers = 1
	case Quorum:
		g.policy.quorum, g.policy.minReceivers = int32(spec.Quorum), int32(spec.Quorum)
	}
	g.setReceivers(0)
	g.turn.sourceTimeout, g.turn.time = orDefault(spec.SourceTimeout, DefaultSourceTimeout), orDefault(spec.TurnTime, DefaultTurnTime)
	g.live.deadAfter, g.live.deadAfterMax = spec.DeadAfter, spec.DeadAfterMax
	g.live.setAllDeadAfter(spec.AllDeadAfter)
	g.lag.time, g.lag.psns = spec.LagTime, int32(spec.LagPSNs)
	if g.policy.quorum != 0 && g.lag.psns == 0 {
		g.lag.psns = maxBehind // circular comparison would take a leg that is further behind for one ahead (R61)
	}
	g.live.period = g.live.deadAfter / livenessChecks
	if g.lag.time != 0 && (g.live.period == 0 || g.lag.time/2 < g.live.period) {
		g.live.period = max(g.lag.time/2, time.Millisecond)
	}
}

// orDefault returns d; the default if d is 0, and 0, which means any time, if d is below 0.
func orDefault(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return max(d, 0)
}

// removeOrFail evicts receiver i if the group can go on without it. If not, and the
// group's acked waits for it, the group fails.
func (g *group) removeOrFail(i int, why rocev2.Syndrome, out *Output) {
	switch {
	case g.canEvict(i):
		g.evict(i, why, out)
	case g.acks[i].acked.LessEq(g.agg.acked):
		g.failBecauseOf(g.legs[i].member, why, out)
	}
}
