// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestR99_ConflictIsShown: the state of a group shows a disagreement on the source from its report on,
// until data of the present source is acknowledged or another one is the source.
func TestR99_ConflictIsShown(t *testing.T) {
	for _, c := range []struct {
		change func(g *group)
		want   bool
	}{
		{func(*group) {}, true},
		{func(g *group) { g.agg.acked++ }, false},
		{func(g *group) { g.src.member = 1 }, false},
		{func(g *group) { g.outcomes.resetMember(2) }, false},
	} {
		s, _ := outcomeGroup(t, 1)
		serve(s, ipOf("A"), rocev2.SendFirst, 0, 0)
		g := s.groups[0]
		var out Output
		shown := func() bool {
			var st GroupStatus
			s.Group(0).Snapshot(&st)
			return st.InConflict && st.Conflict == 2
		}
		for i, at := range []time.Duration{1, 2, conflictTime, conflictTime + 1} {
			if shown() {
				t.Errorf("shown before packet %d", i)
			}
			if g.noteConflict(at, 2, true, &out) {
				t.Errorf("packet %d has to be verified once more", i)
			}
		}
		if c.change(g); shown() != c.want {
			t.Errorf("shown: %v, want %v", shown(), c.want)
		}
		var o Outcomes
		if s.Group(0).Outcomes(&o); o.Conflicts != 1 || o.LastConflict.Member != 2 || o.LastConflict.PSN != 0 {
			t.Errorf("%+v", o)
		}
		// What has moved on begins anew.
		if out.reset(); g.noteConflict(2*conflictTime, 1, true, &out) || g.noteConflict(3*conflictTime-1, 1, true, &out) || len(out.Events) != 0 {
			t.Errorf("with another member: %+v", out.Events)
		}
	}
}
