// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The same registration again leaves a live group as it is, whoever has sent
// meanwhile. With the numbers of the first time it would begin anew, and receivers
// would acknowledge unread what they take for duplicates.
func TestIdenticalRegistrationGoesOn(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	r := f.register(0, 3, 0x100, "strict")
	f.feed(0, turns(20, 0)...)
	before, err := f.Group(r.Group)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Register(r); err != nil {
		t.Fatal(err)
	}
	g, err := f.Group(r.Group)
	if err != nil || g.Epoch != before.Epoch || g.Counters.DataIn != 20 || g.Source != fakeHost(1) || g.NextPSN != 1010 {
		t.Errorf("the group is %+v, %v", g, err)
	}
	f.feed(0, turns(2, 10)...)
	if g, _ = f.Group(r.Group); g.AckPSN != 1010 {
		t.Errorf("the next turn ends at %d, want 1010: %+v", g.AckPSN, g)
	}
	if len(f.events(0, api.EventRegistered, api.EventUpdated)) != 1 {
		t.Error("the journal has the registration twice")
	}
}

// A member does not come back with the numbers of its first time: after it was
// removed, after it was evicted, and after updates in between.
func TestUsedNumbersAreRefused(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	r := f.register(0, 3, 0x100, "evict")
	back := func(what string, m api.RegisterMember) {
		t.Helper()
		err := f.AddMember(r.Group, &api.AddMember{RegisterMember: m})
		if err == nil || !strings.Contains(err.Error(), "ibv_query_qp") || !strings.Contains(err.Error(), m.IP.String()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := f.RemoveMember(r.Group, fakeHost(2)); err != nil { // nothing has been sent
		t.Fatal(err)
	}
	if err := f.AddMember(r.Group, &api.AddMember{RegisterMember: r.Members[2]}); err != nil {
		t.Errorf("before any traffic: %v", err)
	}
	f.feed(0, evicts(0)...)
	f.eventually("the journal has the eviction", func() bool { return len(f.events(0, api.EventEvicted)) == 1 })
	back("evicted", r.Members[2])
	if err := f.AddMember(r.Group, &api.AddMember{RegisterMember: f.record(3, 0x103)}); err != nil {
		t.Fatal(err)
	}
	f.feed(0, send(0, 1), answer(1, 1001, rocev2.SyndromeACK), answer(3, 3000, rocev2.SyndromeACK))
	if err := f.RemoveMember(r.Group, fakeHost(3)); err != nil {
		t.Fatal(err)
	}
	back("removed", f.record(3, 0x103))
	back("evicted two updates ago", r.Members[2])
	fresh := f.record(3, 0x103)
	fresh.RQPSN = 3001
	if err := f.AddMember(r.Group, &api.AddMember{RegisterMember: fresh}); err != nil {
		t.Errorf("with the PSN that it expects: %v", err)
	}
	r.Replace = true
	if err := f.Register(r); err == nil || !strings.Contains(err.Error(), "ibv_query_qp") {
		t.Errorf("the first registration again: %v", err)
	}
}
