// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
)

// A port with members is removed by force alone; one whose hosts are no members, by itself.
// Limits of the file count for what is registered from then on.
func TestReconfigure(t *testing.T) {
	f := newFakeSwitch(t, 5, 1)
	f.register(0, 3, 0x100, "strict")
	f.register(1, 2, 0x200, "strict")
	now := f.cfg
	without := func(ports ...string) *config.Config {
		c := *now
		c.Ports = slices.DeleteFunc(slices.Clone(now.Ports), func(p config.Port) bool { return slices.Contains(ports, p.Name) })
		return &c
	}
	apply := func(next *config.Config, force bool, want int, problem string) {
		t.Helper()
		lost, err := f.Reconfigure(now, next, force)
		if problem == "" && (err != nil || lost != want) || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Fatalf("%d members lost, %v; want %d, %q", lost, err, want, problem)
		}
		if err == nil {
			now = next
		}
		if ps, err := f.Ports(); err != nil || len(ps) != len(now.Ports) {
			t.Fatalf("%d ports, %v, want %d", len(ps), err, len(now.Ports))
		}
	}
	apply(without("f4"), false, 0, "")
	apply(without("f0", "f3"), false, 0, "ports[f0]: 1 members of 2 groups are behind this port")
	apply(without("f0", "f3"), true, 1, "")
	if g, err := f.Group(fakeGroup(0)); err != nil || len(g.Members) != 3 || g.Members[0].Port != "" {
		t.Errorf("the member behind the removed port: %+v, %v", g, err)
	}
	next := *now
	next.Limits.Groups = 2
	apply(&next, false, 0, "")
	apply(&next, false, 0, "")
	if err := f.Register(&api.Register{
		Group: fakeGroup(2), QPN: 0x4711, PMTU: 1024, Policy: "strict", Members: []api.RegisterMember{f.record(1, 0x301), f.record(2, 0x302)},
	}); err == nil || !strings.Contains(err.Error(), "2") {
		t.Error("a group beyond the lowered limit is registered")
	}
	if gs, err := f.Groups(); err != nil || len(gs) != 2 {
		t.Errorf("%d groups, %v", len(gs), err)
	}
}
