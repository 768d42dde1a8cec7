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

// TestR83_StoredAfterTheMemoryHasGone: a group whose source is behind another switch may have given its memory
// for data to others while it waited for the file.
func TestR83_StoredAfterTheMemoryHasGone(t *testing.T) {
	r := newRepairRig(t, nil)
	r.data(0, 0, 1000)
	g := r.sw.group(0)
	g.policy.stored, g.activity = true, nil
	g.set(awaitsFile, true)
	r.sw.PositionsStored(r.now, 0, g.storage.number, &Positions{HasSource: true, Members: make([]Position, 3)}, &r.out)
	if g.activity == nil {
		t.Error("the group has no memory")
	}
}
