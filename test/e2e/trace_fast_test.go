// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// On the fast path a trace has packets without their copies, and says so; with --slow it has all
// of them, and the group is on the fast path again afterwards.
func TestTraceOfTheFastPath(t *testing.T) {
	r := newFastRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: 400_000})
	r.join()
	r.onFastPath(0, 100_000)
	c := r.trace(r.group.String(), "-o", "json", "--rate", "1000000")
	r.onFastPath(0, 100_000)
	list := c.packets()
	byXDP := 0
	for i := range list {
		if p := &list[i]; slices.Contains(p.Rules, "R97") {
			if byXDP++; p.Direction != api.TraceIn || p.Opcode == "" || !strings.Contains(p.Text, "not seen") {
				t.Fatalf("%+v", p)
			}
		}
	}
	if byXDP == 0 || !strings.Contains(c.stderr.String(), "--slow") {
		t.Errorf("%d of %d packets by XDP: %s", byXDP, len(list), &c.stderr)
	}

	c = r.trace(r.group.String(), "-o", "json", "--slow", "--op", "data", "--rate", "1000000")
	before := r.way().Packets
	r.fill(0)
	r.write(0, 100_000)
	if w := r.way(); w.Way != api.WaySlow || !strings.Contains(w.Reason, "traced") || w.Packets != before {
		t.Errorf("while it is traced with --slow: %+v", w)
	}
	list = c.packets()
	in, out := 0, 0
	for i := range list {
		switch p := &list[i]; {
		case slices.Contains(p.Rules, "R97"):
			t.Fatalf("XDP has forwarded a packet: %+v", p)
		case p.Direction == api.TraceIn:
			in++
		case p.Kind == api.TraceCopy, p.Kind == api.TraceRepair:
			out++
		}
	}
	const all = 400_000 / 1024 // what the source repeats comes in once more, and has no copies
	if in < all || out < 2*all || strings.Contains(c.stderr.String(), "--slow") {
		t.Errorf("%d packets and %d copies: %s", in, out, &c.stderr)
	}
	r.onFastPath(0, 100_000)
}
