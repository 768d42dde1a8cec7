// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Switches of a tree that disagree on the source: a neighbour that may have the token sends data of
// one member, and that of another one is not complete here. The rules of R84 to R101 are to make that
// impossible. A group in which it lasts stands still, so the control plane is told.

// conflictTime is how long a disagreement lasts before it is reported.
const conflictTime = time.Second

// conflict is a disagreement on the source. It decides nothing.
type conflict struct {
	since    time.Duration // 0: there is none
	with     MemberID      // whose data a neighbour sends
	source   int32         // the present source
	acked    rocev2.PSN    // of source
	reported bool
}

// noteConflict notes that a neighbour sends data of member k, while that of the present source is not
// complete. It reports whether the packet has to be verified first.
func (g *group) noteConflict(now time.Duration, k MemberID, verified bool, out *Output) bool {
	c := &g.decided().conflict
	switch {
	case c.since == 0 || c.with != k || c.source != g.src.member || c.acked != g.agg.acked:
		*c = conflict{since: max(now, 1), with: k, source: g.src.member, acked: g.agg.acked}
	case c.reported || now-c.since < conflictTime:
	case !verified:
		return true
	default:
		c.reported = true
		g.emitEvent(out, Event{Kind: SourceConflict, Group: g.id, Member: k, PSN: g.agg.acked.Next()})
	}
	return false
}

// conflictsWith returns the member whose data a neighbour sends, if that has been reported and
// nothing has changed since.
func (g *group) conflictsWith() (k MemberID, ok bool) {
	if g.outcomes == nil {
		return 0, false
	}
	c := &g.outcomes.conflict
	return c.with, c.reported && c.source == g.src.member && c.acked == g.agg.acked
}
