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

// judge decides on leg i, of which cause is true: it is evicted, the group fails because of it, or it stays.
// It reports whether one of the first two is so.
//
//	cause                      a leg toward the root    if too few others would be left
//	Lagging                    stays (R108)             stays
//	Silent, Stranded, a NAK    evicted                  fails, if acked waits for the leg
//	Misnumbered                evicted                  fails
func (g *group) judge(i int, cause rocev2.Syndrome, out *Output) bool {
	switch spare := g.canEvict(i); {
	case g.ackStateOf(i).flags&isReceiver == 0:
		return g.judgeUnproven(i, cause, spare, out)
	case cause == Lagging && (!spare || g.isKept(i)):
		return false
	case spare:
		g.evict(i, cause, out)
	case cause == Misnumbered || g.acks[i].acked.LessEq(g.agg.acked):
		g.failBecauseOf(g.legs[i].member, cause, out)
	default:
		return false
	}
	return true
}

// judgeUnproven is judge for a leg that is not verified: a message may wait for it, or a file may have named it that
// is older than what its member has had. Without a source such a file is older than the last turn, and fits no member.
func (g *group) judgeUnproven(i int, cause rocev2.Syndrome, spare bool, out *Output) bool {
	l, source := &g.legs[i], g.presentSource()
	waits := g.is(blocked) && l.joining
	fromFile := g.numbering.checks[i].restored && (cause == Misnumbered || g.is(learning))
	switch {
	case spare && (waits || fromFile && source != none && int32(i) != source):
		g.evict(i, cause, out)
	case waits && g.src.member != none && g.agg.acked == g.fwd.nxt.Prev(): // all before the message that waits is complete
		g.failBecauseOf(l.member, cause, out)
	case fromFile:
		g.failResume(l.member, cause, out)
	default:
		return false
	}
	return true
}

// canEvict reports whether the group can go on without leg i: enough others remain that have got, or will get, all
// that is in flight. For a leg that is not verified all others count, receiving or not.
func (g *group) canEvict(i int) bool {
	b, n := g.ackStateOf(i), g.recv.count-g.recv.joinedInFlight
	if b.flags&isReceiver == 0 {
		n = 0
		for j := range g.legs {
			if j != i && int32(j) != g.presentSource() && g.legs[j].members > 0 {
				n++
			}
		}
	} else if b.flags&joinedInFlight == 0 {
		n--
	}
	return n >= g.policy.minReceivers
}

// presentSource returns the leg of the source, also after a restart.
func (g *group) presentSource() int32 {
	if g.is(learning) {
		return int32(g.members[g.extra.resume.source].leg)
	}
	return g.src.leg
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
