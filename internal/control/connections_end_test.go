// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/rocev2"
)

// A dialled group whose registration was refused once can be deleted, and its address is free then:
// for a group that members connect to, for one by hand, and that one is kept over a restart.
func TestRefusedSessionIsForgotten(t *testing.T) {
	f := newFakeSwitchWith(t, 4, 1, "state: "+t.TempDir()+"\n")
	other := f.register(5, 2, 0x100, api.PolicyStrict) // has the dialler's queue pair already
	g := &api.CreateGroup{
		Group: fakeGroup(0), Port: 7471, Policy: api.PolicyStrict, From: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/32")}, WaitMS: 60_000,
		Listeners: []netip.AddrPort{netip.AddrPortFrom(fakeHost(1), 9), netip.AddrPortFrom(fakeHost(2), 9)}, Replies: api.RepliesSource, Sessions: 1,
	}
	if err := f.CreateGroup(g); err != nil {
		t.Fatal(err)
	}
	f.request(0, 0, 0, rocev2.QPN(other.Members[0].QPN))
	f.answerREQs(0, 2, 0x200)
	f.eventually("the registration is refused", func() bool { return len(f.events(0, api.EventRejected)) > 0 })
	if err := f.Delete(fakeGroup(0)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := f.CreateGroup(f.create(0, 3))
		if err == nil {
			break
		}
		t.Errorf("created again after its end: %v", err)
		if err := f.Delete(fakeGroup(0)); err != nil {
			t.Errorf("and deleted, as that says: %v", err)
		}
	}
	f.control.do(func() {
		if len(f.control.connections.groups) == 0 && len(f.control.connections.reserved) > 0 {
			t.Errorf("no group is left that members connect to, and reserved are %v", f.control.connections.reserved)
		}
		if f.control.dir.isSession(fakeGroup(0)) {
			t.Error("no session is left, and the directory has one")
		}
	})
	f.end()
}
