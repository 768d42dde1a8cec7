// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

// TestR83_OwnSwitchWaits: data that waits until the positions are durable keeps a turn from its end at the
// source's own switch alone.
func TestR83_OwnSwitchWaits(t *testing.T) {
	for _, c := range []struct {
		neighbor Neighbor
		gates    gates
		stored   bool
		want     bool
	}{
		{0, 0, true, false}, {0, awaitsFile, true, true}, {0, asking, true, true}, {0, asking, false, false},
		{1, awaitsFile, true, false}, {1, asking, true, false},
	} {
		g := newRepairRig(t, nil).sw.group(0)
		g.src.neighbor, g.policy.stored = c.neighbor, c.stored
		if g.set(c.gates, true); g.waitsForFile() != c.want {
			t.Errorf("%+v: waits %t", c, !c.want)
		}
	}
}
