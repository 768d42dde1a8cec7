// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// refusal is a request of the source that is forwarded to nobody: the switch itself
// answers it by a fatal NAK, as if it were one more receiver (R27, R28).
type refusal struct {
	psn      rocev2.PSN
	syndrome rocev2.Syndrome // 0: nothing is refused
	reason   Reason
}

// noteNotForwarded records a packet of the source that is not forwarded.
func (g *group) noteNotForwarded(now time.Duration, psn rocev2.PSN) {
	g.counters.DataIn++
	g.noteReceived(now, psn)
	if g.agg.nakSeverity != sevNone && psn == g.agg.nakPSN {
		g.agg.nakServed = true
	}
}

func (g *group) setRefusal(r refusal) {
	g.refusal = r
	g.set(refused, r.syndrome != 0)
}
