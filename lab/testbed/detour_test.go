// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// detourWithin is the hold time of hellos, and a second for the new tree.
const detourWithin = time.Second + time.Second

// TestSwitchIsLostBesideAnother: the gleamd of the spine that a group uses is killed, and does not
// come back, while its links stay up. The group goes on by the other spine.
func TestSwitchIsLostBesideAnother(t *testing.T) {
	labtest.Require(t)
	f := leafSpine(t, 3, 2, 2)
	group := fabric.GroupsIPv4.Addr().Next()
	groups, memories := join(t, f, len(f.Hosts), group, lostMessages*lostSize)
	spine := spineOf(t, f, group)
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

// spineOf returns the spine that a group uses.
func spineOf(t *testing.T, f *Fabric, group netip.Addr) string {
	t.Helper()
	for _, s := range []string{"s1", "s2"} {
		if _, err := f.Gleamds[s].Client.Group(t.Context(), group); err == nil {
			return s
		}
	}
	t.Fatal("no spine has the group")
	return ""
}

// TestFarLinkIsLost: the link between the spine that a group uses and a leaf that is not the
// root's goes down, with static routes: the root's still lead by that spine, which has none
// left. The group goes on by the other spine, in both address families.
func TestFarLinkIsLost(t *testing.T) {
	labtest.Require(t)
	f := leafSpine(t, 4, 2, 2)
	for i, group := range []netip.Addr{fabric.GroupsIPv4.Addr().Next(), fabric.GroupsIPv6.Addr().Next()} {
		groups, memories := join(t, f, len(f.Hosts), group, lostMessages*lostSize)
		spine, leaf := spineOf(t, f, group), []string{"l3", "l4"}[i]
		machine := labtest.Watch()
		done, waited, err := sendAndFail(t, func() error { return f.SetLink(leaf, spine, false) }, groups, memories)
		if err != nil {
			t.Fatalf("%s-%s, after %d messages and %v: %v\n%s", leaf, spine, done, waited, err, f.Gleamds["l1"].Output())
		}
		t.Logf("%s-%s: the source waited for %v", leaf, spine, waited)
		complete(t, done, memories)
		for _, g := range groups {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(f.SetLink(leaf, spine, true), f.WaitRouted(t.Context())); err != nil {
			t.Fatal(err)
		}
		if waited > detourWithin {
			machine.Timing(t, "%s-%s: the source waited for %v, want at most %v", leaf, spine, waited, detourWithin)
		}
	}
}
