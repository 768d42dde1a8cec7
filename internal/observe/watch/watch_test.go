// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

var group, member = netip.MustParseAddr("10.77.254.1"), netip.MustParseAddr("10.77.0.2")

// Rates survive the end of the PSNs, and are none over two registrations or two sources.
func TestBetween(t *testing.T) {
	at := func(epoch, in uint64, source netip.Addr, acked api.PSN) *api.Group {
		return &api.Group{
			Epoch: epoch, Source: source, Counters: api.Counters{DataIn: in, Copies: 2 * in}, Repair: &api.Repair{Copies: in / 10},
			Members: []api.Member{{IP: member, AckPSN: acked, Role: "receiver"}},
		}
	}
	r := Between(at(1, 100, group, 0xfffff0), at(1, 300, group, 0x10), 2*time.Second)
	if r == nil || r.DataIn != 100 || r.Copies != 200 || r.Repairs != 10 || r.Progress[member.String()] != 16 {
		t.Errorf("%+v", r)
	}
	if r := Between(at(1, 100, group, 5), at(1, 300, member, 9), time.Second); r == nil || r.DataIn != 200 || len(r.Progress) != 0 {
		t.Errorf("another source: %+v", r)
	}
	for _, r := range []*Rates{
		Between(at(1, 100, group, 0), at(2, 300, group, 0), time.Second), Between(at(1, 100, group, 0), at(1, 50, group, 0), time.Second), Between(at(1, 1, group, 0), at(1, 2, group, 0), 0),
	} {
		if r != nil {
			t.Errorf("%+v", r)
		}
	}
	if Per(5, 3, time.Second) != 0 || Per(3, 5, 0) != 0 || Per(1, 5, 2*time.Second) != 2 {
		t.Error("a counter that began anew has a rate")
	}
}

// What keeps a port from its work stands before its link's state.
func TestPortState(t *testing.T) {
	for want, p := range map[string]api.Port{
		"up": {State: api.PortOpen, Up: true}, "down": {State: api.PortOpen}, "blocked": {State: api.PortOpen, Blocked: true},
		"unheard": {State: api.PortOpen, Up: true, Unheard: "none has arrived"}, "lost": {State: "lost", Unheard: "none has arrived", Blocked: true},
	} {
		if got := PortState(&p); got != want {
			t.Errorf("%+v: %s, want %s", p, got, want)
		}
	}
}

func TestRank(t *testing.T) {
	g := &api.Group{WaitsFor: member}
	for i, m := range []api.Member{{Live: true}, {Live: true, Role: "source"}, {Live: true, Diagnosis: "x"}, {IP: member, Live: true}} {
		if got := Rank(&m, g); got != i {
			t.Errorf("%+v: %d, want %d", m, got, i)
		}
	}
	if Rank(&api.Member{}, g) != 2 {
		t.Error("a dead member is nothing to look at")
	}
}
