// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"testing"
	"time"
)

// Limits that are lowered below what is registered keep that, and refuse what is new; raised
// again, they admit it.
func TestLimitsAreLowered(t *testing.T) {
	a := newAsker(t, RegistrarConfig{MaxGroups: 4, MaxMembers: 8})
	reg := sample(1, 4)
	if r := a.reason(a.register(epoch(reg, 5))); r != NoReason {
		t.Fatal(r)
	}
	a.register(epoch(sample(2, 2), 5))
	a.w.sw.SetLimits(Limits{MaxGroups: 1, MaxMembers: 3, MaxLease: 30 * time.Second, LocateTimeout: time.Second})
	for _, ip := range []Registration{reg, sample(2, 2)} {
		if _, _, ok := a.w.sw.Group(ip.Group); !ok {
			t.Errorf("group %s has ended", ip.Group)
		}
	}
	if r := a.reason(a.register(epoch(sample(3, 2), 5))); r != TableFull {
		t.Errorf("a group beyond the limit: %v", r)
	}
	if r := a.reason(a.register(epoch(sample(2, 4), 6))); r != TooManyMembers {
		t.Errorf("a group of too many members: %v", r)
	}
	a.w.sw.SetLimits(Limits{MaxGroups: 3, MaxMembers: 8, MaxLease: 30 * time.Second, LocateTimeout: time.Second})
	if r := a.reason(a.register(epoch(sample(3, 2), 7))); r != NoReason {
		t.Errorf("below the raised limit: %v", r)
	}
	if _, until, _ := a.w.sw.Group(sample(3, 2).Group); until > a.w.now+30*time.Second {
		t.Errorf("a lease until %v at %v", until, a.w.now)
	}
	a.w.books()
}
