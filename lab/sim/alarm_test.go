// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "testing"

// TestAlarm: one event is made for a deadline, however often it is asked for, and one more for each
// earlier deadline. The registration of groups sets deadlines at the program's very start, too.
func TestAlarm(t *testing.T) {
	for _, at := range []Time{-setup, -1, 0, 1, setup} {
		var a alarm
		if !a.set(at) || a.set(at) || a.set(at+1) {
			t.Errorf("deadline at %d ps: want one event", at)
		}
		if at == -setup {
			continue
		}
		if !a.set(at-1) || a.set(at-1) || a.set(at) {
			t.Errorf("deadline at %d ps, then one before it: want one event for each", at)
		}
		a.rang(at - 1)
		if a.set(at) {
			t.Errorf("deadline at %d ps after that before it has come: want the event that is there", at)
		}
		a.rang(at)
		if !a.set(at) {
			t.Errorf("deadline at %d ps after its event has come: want another one", at)
		}
	}
}
