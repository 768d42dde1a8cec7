// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
)

// A host that is in no group any more is in the state file no more, however it has left: else the file, and with
// it each checkpoint, grows with every address that a key holder has had in a group.
func TestFormerHostsAreForgotten(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 5, "psn_probe: 1ms\nstate: "+dir+"\n")
	f.register(0, 4, 0x100, api.PolicyStrict)
	f.register(1, 3, 0x200, api.PolicyStrict)
	check := func(what string, want ...int) {
		t.Helper()
		f.end()
		var in []netip.Addr
		keptHosts(t, dir, func(s *statefile.State, _ *statefile.Change) {
			for ip := range s.Hosts {
				in = append(in, ip)
			}
		})
		var hosts []netip.Addr
		for _, i := range want {
			hosts = append(hosts, fakeHost(i))
		}
		if slices.SortFunc(in, netip.Addr.Compare); !slices.Equal(in, hosts) {
			t.Errorf("%s: the file has %v, want %v", what, in, hosts)
		}
		f = newBridgedSwitch(t, 5, "psn_probe: 1ms\nstate: "+dir+"\n")
	}
	if err := f.RemoveMember(fakeGroup(0), fakeHost(2)); err != nil { // it is in the other group
		t.Fatal(err)
	}
	if err := errors.Join(f.AddMember(fakeGroup(0), &api.AddMember{RegisterMember: f.record(4, 0x304)}), f.RemoveMember(fakeGroup(0), fakeHost(4))); err != nil {
		t.Fatal(err)
	}
	check("after an update", 0, 1, 2, 3)
	if err := f.Delete(fakeGroup(0)); err != nil {
		t.Fatal(err)
	}
	check("after the end of a group", 0, 1, 2)
	if err := errors.Join(f.Delete(fakeGroup(1))); err != nil {
		t.Fatal(err)
	}
	f.control.do(func() {
		for n := range 2 {
			if former := f.control.dir.hosts.TakeFormer(fakeGroup(n)); len(former) > 0 {
				t.Errorf("hosts of group %d are still to be forgotten: %v", n, former)
			}
		}
	})
	check("after the end of all")
}

// The place of a group that is not taken up after a restart leaves nothing behind at a host that is in others.
func TestPlaceOfALostGroupLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, tenantsConfig()+"state: "+dir+"\n")
	home := f.claim(t) // the host is elsewhere under key 1
	f.enrollUnder(2, 1, 1, 2)
	a := f.asked(2, 2, 0)
	f.proves(1, 2, a, home)
	a = f.asked(2, 2, 1)
	f.proves(1, 2, a, home)
	a = f.asked(1, 2, 0)
	f.proves(1, 1, a, a.Origin)
	f.eventually("the second group is there", func() bool { return f.installed(1) })
	f.end()
	keptHosts(t, dir, func(s *statefile.State, c *statefile.Change) {
		c.SetFailed(fakeGroup(0))
		h := s.Hosts[fakeHost(2)]
		h.Pinned = h.Locations[2]
		c.PutHost(fakeHost(2), h)
	})
	f = newBridgedSwitch(t, 4, tenantsConfig()+"state: "+dir+"\n")
	f.spoof(2, 2, 2)
	f.looked(2)
	f.control.do(func() {
		x := f.control.dir.hosts
		h, now := x.Of(fakeHost(2)), f.control.now()
		_, claimed := h.Place(1)
		if _, its := h.Place(2); claimed || !its {
			t.Errorf("it has the claimed place: %v, its own: %v", claimed, its)
		}
		q := location.NewLookups()
		q.SubmitHosts(now, x)
		before := q.Total()
		x.Apply(&locate.Set{Learnt: map[locate.MAC]bool{{2, 0, 0, 0, 0, 66}: true}}, now)
		if q.SubmitHosts(now, x); q.Total() != before {
			t.Error("changes at the claimed place are changes of the host, which is elsewhere")
		}
	})
	f.end()
}
