// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import "testing"

// The end of a turn is wanted no more when the neighbour that waited starts again: the next term is
// due, and the source keeps the turn until then.
func TestWantedByNobody(t *testing.T) {
	for name, goes := range map[string]func(*desk){
		"starts again": func(d *desk) { d.m.Up(0, 1, 9, &d.out) },
		"is removed":   func(d *desk) { d.m.Remove(0, 1, &d.out) },
	} {
		d := newDesk(false)
		d.sending()
		d.hear(1, func(r *Report) { r.Requests = true })
		if !d.m.Wanted() {
			t.Fatalf("a neighbour waits, and nothing is wanted: %v", d.m.queue)
		}
		goes(d)
		if d.m.Wanted() || d.m.Serving() != 11 || d.m.State() != Outdated {
			t.Errorf("the neighbour that waited %s: wanted %v, serves %d, %v", name, d.m.Wanted(), d.m.Serving(), d.m.State())
		}
	}
}
