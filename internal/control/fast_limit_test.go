// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/mcast"
)

// With fast_path: require a group that could never take the fast path is refused, with the
// reason. Otherwise it is served.
func TestFastPathIsRequired(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	r := &api.Register{Group: fakeGroup(0), QPN: 0x4711, PMTU: 1024, Policy: api.PolicyStrict, NoRepair: true}
	for i := range 3 {
		r.Members = append(r.Members, f.record(i, api.QPN(0x100+i)))
	}
	f.control.do(func() { f.control.dir.defaults.fastRequired = true })
	if err := f.Register(r); err == nil || !strings.Contains(err.Error(), "it needs local repair") {
		t.Errorf("without repair: %v", err)
	}
	r.NoRepair = false
	if err := f.Register(r); err != nil {
		t.Errorf("with repair: %v", err)
	}
	f.control.do(func() { f.control.dir.defaults.fastRequired = false })
	f.register(1, 3, 0x200, api.PolicyStrict)
}

// What keeps a group off the fast path for ever.
func TestNeverFast(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	f.control.do(func() {
		d := f.control.dir
		for _, tc := range []struct {
			name           string
			members, below int // below: of members, those behind one neighbour
			pmtu           int
			noRepair       bool
			targets        uint32
			port           int // the port of all members here
			want           envelope.FastLimit
		}{
			{"as it should be", 3, 0, 2048, false, 0, -1, 0},
			{"no repair", 3, 0, 1024, true, 0, -1, envelope.FastRepair},
			{"target messages", 3, 0, 1024, false, 7, -1, envelope.FastTargets},
			{"several buffers", 3, 0, 4096, false, 0, -1, 0},
			{"as many as there may be", fastpath.MaxGroupLegs + 1, 0, 1024, false, 0, -1, 0},
			{"too many", fastpath.MaxGroupLegs + 2, 0, 1024, false, 0, -1, envelope.FastReceivers},
			{"too many, behind a switch", 2 * fastpath.MaxGroupLegs, 2*fastpath.MaxGroupLegs - 1, 1024, false, 0, -1, 0},
			{"as many as there may be at a port", fastpath.MaxPortLegs + 1, 0, 1024, false, 0, 1, 0},
			{"too many at a port", fastpath.MaxPortLegs + 2, 0, 1024, false, 0, 1, envelope.FastReceivers},
		} {
			d.defaults.fastRequired = true
			r := &envelope.Registration{Group: fakeGroup(0), GroupParams: mcast.GroupParams{PathMTU: tc.pmtu}, NoRepair: tc.noRepair, TargetKey: tc.targets, Members: make([]envelope.MemberRecord, tc.members)}
			fresh := &envelope.Registration{}
			var places []locate.Location
			if tc.below > 0 {
				r.Tree = &envelope.Tree{Legs: make([]mcast.Neighbor, tc.members)}
			}
			for i := range r.Members {
				r.Members[i].IP = fakeHost(i)
				if i < tc.below {
					r.Tree.Legs[i] = 7
					continue
				}
				fresh.Members = append(fresh.Members, r.Members[i])
				places = append(places, locate.Location{Ifindex: tc.port + 1})
			}
			var is envelope.FastLimit
			if p := d.neverFast(r, fresh, places); p != nil {
				is = envelope.FastLimit(p.Value)
				if text := p.Error(); p.Reason != envelope.NeverFast || !strings.Contains(text, is.String()) || strings.Contains(text, "unknown") {
					t.Errorf("%s: %s", tc.name, text)
				}
			}
			if is != tc.want {
				t.Errorf("%s: %d, want %d", tc.name, is, tc.want)
			}
			if d.defaults.fastRequired = false; d.neverFast(r, fresh, places) != nil {
				t.Errorf("%s: refused though the fast path is not required", tc.name)
			}
		}
	})
}
