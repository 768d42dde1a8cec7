// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// lagLimit is how far a receiver may be behind another one (R38). No receiver's acked is
// below floor, if psns is set.
type lagLimit struct {
	psns  int32         // limit in PSNs; 0: none
	floor rocev2.PSN    // a lower bound, so that the legs are scanned rarely
	time  time.Duration // limit in time; 0: none
}

// evictLaggards evicts the receivers that are more than lagPSNs behind best, which another
// receiver has (R38). It is called when best is more than lagPSNs above lagFloor, and
// makes lagFloor exact, so that the scans are rare.
func (g *group) evictLaggards(best rocev2.PSN, out *Output) {
	least := best
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		if best.Sub(b.acked) > g.lag.psns && g.canEvict(i) {
			g.evict(i, Lagging, out)
		} else if b.acked.Less(least) {
			least = b.acked
		}
	}
	g.lag.floor = least
}

// exceedsLagTime reports whether leg i still lacks what another receiver had lagTime ago,
// and the group can go on without it. best is the highest acked of all receivers.
func (g *group) exceedsLagTime(i int, now time.Duration, best rocev2.PSN) bool {
	l := &g.activity[i]
	if g.lag.time == 0 {
		return false
	}
	if !g.acks[i].acked.Less(l.lagPSN) {
		l.lagPSN, l.lagSince = best, now
	}
	return g.acks[i].acked.Less(l.lagPSN) && now-l.lagSince >= g.lag.time && g.canEvict(i)
}
