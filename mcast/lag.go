// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// lagLimit is how far a receiver may be behind another one (R38). No receiver is further
// behind floor+psns than its limit, if psns is set.
type lagLimit struct {
	psns  int32         // limit in PSNs of a connected leg; 0: none
	floor rocev2.PSN    // a lower bound, so that the legs are scanned rarely
	time  time.Duration // limit in time of a connected leg; 0: none
}

// lagPSNsOf returns the limit in PSNs of leg i: doubled with each level of switches behind it,
// within what circular comparisons allow (R93).
func (g *group) lagPSNsOf(i int) int32 {
	return int32(min(int64(g.lag.psns)<<g.levelsBehind(i), maxBehind))
}

// lagTimeOf returns the limit in time of leg i, doubled likewise.
func (g *group) lagTimeOf(i int) time.Duration {
	return min(g.lag.time, math.MaxInt64>>(maxLevels+1)) << g.levelsBehind(i)
}

// evictLaggards evicts the receivers that are further behind best, which another receiver
// has, than their limit (R38). It is called when best is more than lag.psns above
// lag.floor, and makes that exact, so that the scans are rare.
func (g *group) evictLaggards(best rocev2.PSN, out *Output) {
	least := best
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		if best.Sub(b.acked) <= g.lagPSNsOf(i) || !g.judge(i, Lagging, out) {
			least = rocev2.MinPSN(least, b.acked.Add(g.lagPSNsOf(i)-g.lag.psns))
		}
	}
	g.lag.floor = least
}

// exceedsLagTime reports whether leg i still lacks what another receiver had lagTimeOf ago.
// best is the highest acked of all receivers.
func (g *group) exceedsLagTime(i int, now time.Duration, best rocev2.PSN) bool {
	l := &g.activity[i]
	if g.lag.time == 0 {
		return false
	}
	if !g.acks[i].acked.Less(l.lagPSN) {
		l.lagPSN, l.lagSince = best, now
	}
	return g.acks[i].acked.Less(l.lagPSN) && now-l.lagSince >= g.lagTimeOf(i)
}
