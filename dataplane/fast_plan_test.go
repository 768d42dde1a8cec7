// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/mcast"
)

// A group whose packets the programs cannot serve stays with the worker, and says why: a port's
// rate holds for its copies, and those of frames in several buffers need a program of tc.
func TestFastStaysSlow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(x *reportBench, p *port)
		why    string
	}{
		"nothing is in the way":     {func(*reportBench, *port) {}, ""},
		"a rate":                    {func(_ *reportBench, p *port) { p.queue.rate = 1e9 }, "has a rate"},
		"ECN thresholds":            {func(_ *reportBench, p *port) { p.ownECN = true }, "has ECN thresholds"},
		"frames in several buffers": {func(_ *reportBench, p *port) { p.frags, p.noClones = true, errors.New("old kernel") }, "copies of those cannot be made: old kernel"},
		"clones at a receiver":      {func(_ *reportBench, p *port) { p.frags, p.clones = true, true }, ""},
		"clones at the source":      {func(x *reportBench, _ *port) { x.w.ports[0].frags, x.w.ports[0].clones = true, true }, ""},
		"clones for a tagged receiver": {func(x *reportBench, _ *port) {
			x.w.ports[0].frags, x.w.ports[0].clones, x.w.groups[0].legs[2].vlan = true, true, 7
		}, "is in VLAN 7"},
		"XDP in generic mode":          {func(_ *reportBench, p *port) { p.native = false }, "generic mode"},
		"a port that is down":          {func(_ *reportBench, p *port) { p.down = true }, "is down"},
		"a port that has gone":         {func(_ *reportBench, p *port) { p.vanished = true }, "is down"},
		"a path MTU beyond the port's": {func(x *reportBench, p *port) { x.w.groups[0].maxFrameBytes, p.mtu = 4200, 1500 }, "is too small for its longest packets"},
		"a port that loses copies":     {func(x *reportBench, _ *port) { x.w.fast.shared.targets.ports[2].barred.Store(true) }, "port "},
		"isolated ports":               {func(x *reportBench, _ *port) { x.w.groups[0].acrossIsolated = true }, "isolated ports"},
		"a member's place is unknown":  {func(x *reportBench, _ *port) { x.w.groups[0].legs[2].port = -1 }, "is not known"},
	} {
		x := newReportBench(t)
		for _, p := range x.w.ports {
			p.native, p.down, p.vanished, p.ownECN = true, false, false, false
		}
		x.w.takeBack(x.f, whyChange)
		c.change(x, x.w.ports[2])
		s, why := x.w.planFast(x.f)
		if why.Text() != c.why && (c.why == "" || !strings.Contains(why.Text(), c.why)) {
			t.Errorf("%s: %q, want %q", name, why.Text(), c.why)
		}
		if why == (Why{}) && s.Clones != x.w.ports[0].clones {
			t.Errorf("%s: clones %v", name, s.Clones)
		}
	}
}

// A group with target messages, or without local repair, never takes the fast path, and says so.
func TestNeverFast(t *testing.T) {
	b := newBench(t, 3)
	w := b.w
	w.enableFastPath(&fastShared{maps: newFastNet(t, 3).maps})
	b.spec.TargetKey = 7
	for _, why := range []string{"target messages", "no local repair"} {
		if err := w.putGroup(b.spec, w.groups[0]); err != nil {
			t.Fatal(err)
		}
		b.round(0, nil)
		if s := w.fastStatus(0); s.Path != PathNever || !strings.Contains(s.Why.Text(), why) {
			t.Errorf("%+v, want %s", s, why)
		}
		b.spec.TargetKey, b.spec.Repair = 0, mcast.RepairSpec{}
	}
}
