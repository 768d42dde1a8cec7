// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/tools/lab/fabric"
)

// detourWithin is the hold time of hellos, and a second for the new tree.
const detourWithin = time.Second + time.Second

// TestSwitchIsLostBesideAnother: the gleamd of the spine that a group uses is killed, and does not
// come back, while its links stay up. The group goes on by the other spine.
func TestSwitchIsLostBesideAnother(t *testing.T) {
	labtest.Require(t)
	f, err := BuildFabric(t.Context(), FabricConfig{Dir: t.TempDir(), Gleamd: gleamd(t), State: true, Fabric: fabric.Config{Topology: fabric.LeafSpine(3, 2, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	group := fabric.GroupsIPv4.Addr().Next()
	groups, memories := join(t, f, len(f.Hosts), group, lostMessages*lostSize)
	spine := "s1"
	if _, err := f.Gleamds[spine].Client.Group(t.Context(), group); err != nil {
		spine = "s2"
	}
	machine := labtest.Watch()
	done, waited, err := sendAndKill(t, f, spine, groups, memories)
	if err != nil {
		t.Fatalf("after %d messages and %v: %v", done, waited, err)
	}
	t.Logf("the source waited for %v", waited)
	complete(t, done, memories)
	for _, g := range groups {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	if waited > detourWithin {
		machine.Timing(t, "the source waited for %v, want at most %v", waited, detourWithin)
	}
}
