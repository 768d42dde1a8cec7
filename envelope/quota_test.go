// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"testing"
	"time"
)

// A key's quota counts what is registered under it, and nothing else.
func TestQuotas(t *testing.T) {
	a := newAsker(t, RegistrarConfig{Rights: map[KeyID]Rights{7: {Quota: Quota{Groups: 2, Members: 7, Lease: 10 * time.Second}}}})
	registered := func(g byte, members int, e uint64, want Reason) {
		t.Helper()
		if got := a.reason(a.register(epoch(sample(g, members), e))); got != want {
			t.Errorf("group %d with %d members, epoch %d: %v, want %v", g, members, e, got, want)
		}
	}
	registered(1, 3, 1, NoReason)
	if reg, until, ok := a.w.sw.Group(sample(1, 3).Group); !ok || reg.Lease != 10*time.Second || until != a.w.now+10*time.Second {
		t.Errorf("asked for 30 s, granted %v", reg.Lease)
	}
	registered(2, 5, 1, QuotaExceeded) // 8 members
	registered(2, 4, 2, NoReason)
	registered(3, 2, 1, QuotaExceeded) // the third group
	registered(2, 5, 3, QuotaExceeded) // as a replacement too
	registered(2, 2, 4, NoReason)
	var out Output
	if _, err := a.w.sw.RegisterLocal(a.w.now, sample(4, 20), &out); err != nil {
		t.Errorf("a group by hand is nobody's quota: %v", err)
	}
	registered(1, 5, 2, NoReason)
	if r := a.reason(a.ask(a.head(sample(1, 5).Group, 2), &Delete{})); r != NoReason {
		t.Fatal(r)
	}
	registered(3, 5, 2, NoReason)
}

// Another key has a quota of its own, here none.
func TestQuotaOfAnotherKey(t *testing.T) {
	a := newAsker(t, RegistrarConfig{Rights: map[KeyID]Rights{8: {Quota: Quota{Groups: 1}}}})
	for g := byte(1); g < 4; g++ {
		if r := a.reason(a.register(epoch(sample(g, 2), 1))); r != NoReason {
			t.Errorf("group %d: %v", g, r)
		}
	}
}
