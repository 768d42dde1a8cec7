// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"slices"
	"testing"
)

// A group that ends may take completions with it: writes that its replicas have applied are complete when the next
// group begins, also if no other write follows.
func TestWritesThatWereAppliedAreCompleteInTheNextGroup(t *testing.T) {
	const size = 1 << 20
	g := &Gateway{cfg: GatewayConfig{Size: size, Ring: 1 << 16}, ctx: context.Background(), started: true, seq: 7, completed: 5}
	g.changed.L = &g.mu
	l := &lane{g: g}
	m := &member{g: g, lane: l, link: &link{}, role: current, joined: true, applied: 7, dirty: newExtents(size)}
	g.members, g.lanes, l.members = []*member{m}, []*lane{l}, []*member{m}
	for seq := uint64(6); seq <= 7; seq++ {
		g.entries = append(g.entries, &entry{header: header{seq: seq, op: opWrite}, done: make(chan struct{})})
	}
	g.waiting = append(g.waiting, g.entries...)
	entries := slices.Clone(g.entries)
	l.begin(&session{}, []*member{m}, []*link{m.link})
	for _, e := range entries {
		if !e.finished {
			t.Errorf("entry %d is not complete", e.seq)
		}
	}
	if l.next != 8 || l.completed != 7 || len(g.waiting) > 0 {
		t.Errorf("next %d, completed %d, %d wait", l.next, l.completed, len(g.waiting))
	}
}
