// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/rocev2"
)

const strangerMAC = "02:00:00:00:00:42"

// keptHosts changes the hosts in the state file of a switch that has ended.
func keptHosts(t *testing.T, dir string, change func(*statefile.State, *statefile.Change)) {
	t.Helper()
	file, found, err := statefile.Open(filepath.Join(dir, "groups"), statefile.Options{Report: func(err error) {
		if err != nil {
			t.Error(err)
		}
	}, Stored: func() {}})
	if err != nil || found.Damaged != nil {
		t.Fatal(err, found)
	}
	var c statefile.Change
	change(found.State, &c)
	file.Append(&c)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// bridgePorts gives a switch that does not run yet a bridge, whose tables have its hosts at home.
func bridgePorts(hosts int) func(*fakeSwitch) {
	return func(f *fakeSwitch) {
		for _, p := range f.control.ports {
			p.Bridge = bridgeIndex
		}
		f.atHome(hosts)
	}
}

// hasNoPlace checks that host 2 has no place in group 0, and that nothing speaks in its name there.
func (f *fakeSwitch) hasNoPlace(what string) {
	f.t.Helper()
	f.looked(2)
	if at := f.placeIn(0, 2); at != " " {
		f.t.Errorf("%s: the member is at %s", what, at)
	}
	f.control.do(func() {
		d := f.control.dir
		d.cameFrom = dataplane.Origin{Port: 1, MAC: rocev2.MAC{2, 0, 0, 0, 0, 66}}
		if d.FromMember(fakeGroup(0), fakeHost(2), 0, false) {
			f.t.Errorf("%s: anybody speaks in the member's name", what)
		}
	})
}

// A member whose port is missing after a restart keeps its place by the port's name: no frame moves
// it, nobody speaks for it, and it is there when the port is. The operator may say otherwise.
func TestPortIsMissingAfterRestart(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, "state: "+dir+"\n")
	f.register(0, 3, 0x100, api.PolicyStrict)
	home := f.placeIn(0, 2)
	f.end()

	f = newFakeSwitchWith(t, 2, 1, "state: "+dir+"\n", bridgePorts(3), func(f *fakeSwitch) { f.spoof(2, 1, 66) })
	f.hasNoPlace("without its port")
	f.mu.Lock()
	warnings := strings.Join(f.warnings, "\n")
	f.mu.Unlock()
	if !strings.Contains(warnings, "a member's location of before the restart is not known yet") {
		t.Errorf("the operator hears %q", warnings)
	}
	if g, err := f.Group(fakeGroup(0)); err != nil || !strings.Contains(g.Members[2].Diagnosis, "is missing, so it gets nothing") || strings.Contains(g.Members[1].Diagnosis, "is missing") {
		t.Errorf("the members are shown as %+v, %v", g.Members, err)
	}
	f.end()

	f = newBridgedSwitch(t, 4, "state: "+dir+"\n")
	if at := f.placeIn(0, 2); at != home {
		t.Errorf("with its port again the member is at %s, and was at %s", at, home)
	}
	f.end()

	f = newFakeSwitchWith(t, 2, 1, "state: "+dir+"\n", bridgePorts(3), func(f *fakeSwitch) { f.spoof(2, 1, 66) })
	f.looked(2)
	if err := f.MoveMember(fakeGroup(0), fakeHost(2), &api.MoveMember{Port: "f1", MAC: "02:00:00:00:00:07"}); err != nil {
		t.Error(err)
	}
	if at := f.placeIn(0, 2); at != "f1 02:00:00:00:00:07" {
		t.Errorf("moved by the operator, it is at %s", at)
	}
	f.end()
}

// A place whose port or route comes while the switch runs is taken up then, whatever the kernel's
// tables have of the host.
func TestWayComesAfterRestart(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, "state: "+dir+"\n")
	f.register(0, 3, 0x100, api.PolicyStrict)
	home := f.placeIn(0, 2)
	f.end()
	f = newFakeSwitchWith(t, 4, 1, "state: "+dir+"\n", bridgePorts(4), func(f *fakeSwitch) {
		f.spoof(2, 3, 66)
		f.control.ports[2].Ifindex = 0 // the interface is not there yet
	})
	f.hasNoPlace("without its interface")
	f.control.do(func() { f.control.ports[2].Ifindex = 3 })
	f.changes.Link(3)
	f.eventually("the member is at home", func() bool { return f.placeIn(0, 2) == home })
	f.control.do(func() {
		if at := f.control.dir.hosts.Of(fakeHost(2)).Pinned(); at.Ifindex != 3 || at.Check() != nil {
			t.Errorf("it is pinned at %+v", at)
		}
	})
	f.end()
}

// A member of whose place the file has nothing has to confirm the one where the kernel finds it; by hand, the
// operator has to say it.
func TestPlacesThatTheFileLacks(t *testing.T) {
	dir := t.TempDir()
	forget := func(_ *statefile.State, c *statefile.Change) { c.PutHost(fakeHost(2), &statefile.Host{}) }
	f := newBridgedSwitch(t, 4, "state: "+dir+"\n")
	f.register(0, 3, 0x100, api.PolicyStrict)
	home := f.placeIn(0, 2)
	f.end()
	keptHosts(t, dir, forget)

	f = newFakeSwitchWith(t, 4, 1, "state: "+dir+"\n", bridgePorts(4), func(f *fakeSwitch) { f.spoof(2, 3, 66) })
	f.eventually("the others are at home", func() bool { return f.placeIn(0, 1) == "f1 02:00:00:00:00:01" })
	f.hasNoPlace("poisoned meanwhile")
	s := dataplane.Origin{Port: 3, MAC: rocev2.MAC{2, 0, 0, 0, 0, 66}}
	f.control.do(func() {
		if q := f.control.dir.inquirer.InquiriesOf(fakeHost(2)); len(q) != 2 || q[0].Origin != s || q[1].Origin.Port >= 0 {
			t.Errorf("the member gets the inquiry %+v", q)
		}
	})
	f.here(2, 0, s, dataplane.Origin{Port: 1, MAC: s.MAC}, 0)
	if at := f.placeIn(0, 2); at != " " {
		t.Errorf("by an answer from elsewhere, it is at %s", at)
	}
	f.here(2, 0, s, s, 0)
	if at := f.placeIn(0, 2); at != "f3 "+strangerMAC {
		t.Errorf("after its answer it is at %s", at)
	}
	f.end()
	keptHosts(t, dir, func(s *statefile.State, c *statefile.Change) {
		h := s.Hosts[fakeHost(2)]
		if h.Pinned.Port != "f3" || h.Locations[0] != h.Pinned || h.Pinned.Hop != fakeHost(2) {
			t.Errorf("the file has %+v", h)
		}
		forget(s, c)
	})
	f = newBridgedSwitch(t, 4, "state: "+dir+"\n")
	f.hasNoPlace("without a place in the file")
	if err := f.MoveMember(fakeGroup(0), fakeHost(2), &api.MoveMember{Port: "f2"}); err == nil {
		t.Error("moved by the operator to the MAC address that the kernel has")
	}
	if err := f.MoveMember(fakeGroup(0), fakeHost(2), &api.MoveMember{Port: "f2", MAC: "02:00:00:00:00:02"}); err != nil || f.placeIn(0, 2) != home {
		t.Errorf("moved by the operator: %v, at %s", err, f.placeIn(0, 2))
	}
	f.end()
}

// A host in groups of several keys, of which the file has no place: it is nowhere, until the
// host has answered under each key.
func TestPlacesOfSeveralKeysThatTheFileLacks(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, tenantsConfig()+"state: "+dir+"\n")
	home := f.claim(t)
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
		h := s.Hosts[fakeHost(2)]
		if h.Locations[1].Port != "f0" || h.Locations[2].Port != "f2" || len(h.Locations) != 2 || h.Pinned.Port != "f0" {
			t.Errorf("the file has %+v", h)
		}
		h.Locations, h.Pinned.Hop = nil, netip.Addr{}
		c.PutHost(fakeHost(2), h)
	})
	f = newFakeSwitchWith(t, 4, 1, tenantsConfig()+"state: "+dir+"\n", bridgePorts(4), func(f *fakeSwitch) { f.spoof(2, 0, 66) })
	f.looked(2)
	claimed := dataplane.Origin{Port: 0, MAC: rocev2.MAC{2, 0, 0, 0, 0, 66}}
	if one, two := f.placeIn(0, 1), f.placeIn(1, 1); one != " " || two != " " {
		t.Errorf("the member is at %q and %q", one, two)
	}
	f.here(2, 0, claimed, claimed, 0)
	if one, two := f.placeIn(0, 1), f.placeIn(1, 1); one != "f0 "+strangerMAC || two != " " {
		t.Errorf("after an answer under key 1 the member is at %q and %q", one, two)
	}
	f.end()
}

// Places that are none are errors that the operator hears of, and nobody is pinned there.
func TestHostilePlaces(t *testing.T) {
	mac := rocev2.MAC{2, 0, 0, 0, 0, 2}
	for what, at := range map[string]statefile.Location{
		"a group MAC address":    {Port: "f2", MAC: rocev2.MAC{3}, Hop: fakeHost(2)},
		"no MAC address":         {Port: "f2", Hop: fakeHost(2)},
		"no VID":                 {Port: "f2", MAC: mac, VLAN: 4095, Hop: fakeHost(2)},
		"another route":          {Port: "f2", MAC: mac, Hop: fakeHost(7)},
		"the name of no port":    {Port: "f2\x00../\x1b[2J", MAC: mac, Hop: fakeHost(2)},
		"the name of free slots": {MAC: mac, Hop: fakeHost(2)},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			f := newBridgedSwitch(t, 4, "state: "+dir+"\n")
			f.register(0, 3, 0x100, api.PolicyStrict)
			f.end()
			keptHosts(t, dir, func(_ *statefile.State, c *statefile.Change) {
				c.PutHost(fakeHost(2), &statefile.Host{Pinned: at, Locations: map[envelope.KeyID]statefile.Location{0: at}})
			})
			f = newFakeSwitchWith(t, 4, 1, "state: "+dir+"\n", bridgePorts(4), func(f *fakeSwitch) {
				f.locator.err[fakeHost(2)] = fmt.Errorf("not yet: %w", locate.ErrPending)
			})
			if at := f.placeIn(0, 2); at != " " {
				t.Errorf("the member is at %s", at)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if n := strings.Count(strings.Join(f.warnings, "\n"), "a member's location of before the restart is not known yet"); n != 1 {
				t.Errorf("%d warnings in %q", n, f.warnings)
			}
		})
	}
}

// What the kernel says of a host that another key's holder has moved is about that holder's groups:
// it neither takes a member's place from it in groups of other keys nor gives it theirs. A member's
// port that is made anew is followed under each key.
func TestPlacesOfKeysAreApart(t *testing.T) {
	f := newBridgedSwitch(t, 4, tenantsConfig())
	home := f.claim(t)
	f.enrollUnder(2, 1, 1, 2)
	a := f.asked(2, 2, 0)
	f.proves(1, 2, a, home)
	a = f.asked(2, 2, 1)
	f.proves(1, 2, a, home)
	a = f.asked(1, 2, 0)
	f.proves(1, 1, a, a.Origin)
	f.eventually("the second group is there", func() bool { return f.installed(1) })
	check := func(when, one, two string) {
		t.Helper()
		f.looked(2)
		if gotOne, gotTwo := f.placeIn(0, 1), f.placeIn(1, 1); gotOne != one || gotTwo != two {
			t.Errorf("%s: at %q and %q, want %q and %q", when, gotOne, gotTwo, one, two)
		}
	}
	const at, its = "f0 " + strangerMAC, "f2 02:00:00:00:00:02"
	check("the kernel has it at home", at, its)
	f.control.do(func() {
		c := f.control
		h := c.dir.hosts.Of(fakeHost(2))
		one, two := locationIn(c.dir.groups[fakeGroup(0)], h), locationIn(c.dir.groups[fakeGroup(1)], h)
		if one.Ifindex != 1 || two.Ifindex != 3 || !location.Same(locationIn(nil, h), h.At()) || !location.Same(locationIn(&group{}, h), h.At()) {
			t.Errorf("envelopes go to %+v and %+v", one, two)
		}
		for pi, want := range []bool{true, false, true, false} {
			if _, is := c.dir.hosts.MembersAt(c.ports[pi].Ifindex)[h]; is != want {
				t.Errorf("the host is at port %d: %v", pi, is)
			}
		}
		if _, is := c.dir.hosts.MembersAt(0)[h]; is {
			t.Error("the host is at a port without an interface")
		}
	})
	f.locator.set(2, 0, 0, errors.New("its link is down"))
	check("lost", " ", its)
	f.locator.set(2, 0, 0, nil)
	f.spoof(2, 0, 66)
	check("at the claimed place again", at, its)
	f.control.do(func() {
		h := f.control.dir.hosts.Of(fakeHost(2))
		g := f.control.dir.groups[fakeGroup(1)]
		i, _ := g.hostSlot(fakeHost(2))
		shared := g.slots[i].location
		another := *shared
		if another.Links = []int{3, 33}; h.Share(g.key, another) != shared {
			t.Error("a group that has the host there by another way has a location of its own, which Rebind does not change")
		}
		f.control.dir.hosts.Rebind(3, 30)
		if at := g.slots[i].location; at != shared || at.Ifindex != 30 {
			t.Errorf("the group has the host at %+v: want one location for all groups, which is changed once", at)
		}
		one, _ := h.Place(1)
		two, _ := h.Place(2)
		if held := f.control.dir.hosts.Saved(h).Locations[2]; two.Ifindex != 30 || one.Ifindex != 1 || two.Check() != nil || held.Port != "f2" {
			t.Errorf("the interface is made anew, and the places are %+v, %+v", one, two)
		}
	})
	if err := f.Delete(fakeGroup(0)); err != nil {
		t.Fatal(err)
	}
	f.control.do(func() {
		h := f.control.dir.hosts.Of(fakeHost(2))
		_, one := h.Place(1)
		if _, two := h.Place(2); one || !two {
			t.Errorf("after the end of the first group it has a place in it: %v, and in the other: %v", one, two)
		}
	})
}

// A member that confirms another place in a new group of a key is there in the key's other groups.
func TestOnePlaceForAKey(t *testing.T) {
	config := tenantsConfig() + "state: " + t.TempDir() + "\n"
	f := newBridgedSwitch(t, 4, config)
	enroll := func(n int, there *dataplane.Origin) {
		f.enrollUnder(1, n, 0, 2)
		for _, i := range []int{0, 2} {
			if i == 2 && there != nil {
				a := f.asked(2, 1, 0)
				f.proves(n, 2, a, *there)
				a = f.asked(2, 1, 1)
				f.proves(n, 2, a, *there)
			} else {
				a := f.asked(i, 1, 0)
				f.proves(n, i, a, a.Origin)
			}
		}
		f.eventually("the group is there", func() bool { return f.installed(n) })
	}
	enroll(0, nil)
	f.eventually("the group is in the file", func() bool { return !f.waits() })
	f.end()
	f = newBridgedSwitch(t, 4, config) // what members have confirmed is not kept
	enroll(1, &dataplane.Origin{Port: 3, MAC: rocev2.MAC{2, 0, 0, 0, 0, 2}})
	for n := range 2 {
		if at := f.placeIn(n, 1); at != "f3 02:00:00:00:00:02" {
			t.Errorf("in group %d it is at %s", n, at)
		}
	}
	f.control.do(func() {
		h := f.control.dir.hosts.Of(fakeHost(2))
		if at, _ := h.Place(1); h.Pinned().Ifindex != 4 || at.Ifindex != 4 {
			t.Errorf("pinned at %+v, its place is %+v", h.Pinned(), at)
		}
	})
}

// A registration asks a member also where it was seen, if the kernel holds it where the holder of
// another key has claimed it to be.
func TestMemberIsAskedWhereItWasSeen(t *testing.T) {
	f := newBridgedSwitch(t, 4, tenantsConfig())
	home := f.claim(t)
	f.spoof(2, 0, 66) // the pin
	f.control.do(func() { f.control.dir.inquirer.Sighting(dataplane.Sighting{Origin: home, IP: fakeHost(2)}) })
	f.eventually("the sighting is unconfirmed", func() bool { s, _ := f.Stats(); return s.Moves.Unconfirmed == 1 })
	f.enrollUnder(2, 1, 1, 2)
	a := f.asked(2, 2, 1)
	if a.Origin != home {
		t.Fatalf("it was seen at %+v, and is asked at %+v", home, a.Origin)
	}
	f.proves(1, 2, a, home)
	a = f.asked(1, 2, 0)
	f.proves(1, 1, a, a.Origin)
	f.eventually("the second group is there", func() bool { return f.installed(1) })
	if at := f.placeIn(1, 1); at != "f2 02:00:00:00:00:02" {
		t.Errorf("in the second group it is at %s", at)
	}
}

// A group of before a restart has to be allowed by the configuration of after it: its size, and the
// allow lists of its members' ports. A path MTU that does not fit a port any more is reported, as at
// run time.
func TestRestoredGroupIsChecked(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, "state: "+dir+"\n")
	f.register(0, 3, 0x100, api.PolicyStrict)
	f.end()
	saved := filepath.Join(dir, "groups")
	b, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, more, want string
		prepare          func(*fakeSwitch)
	}{
		{"as before", "", "", func(*fakeSwitch) {}},
		{"too many members", "limits: {members_per_group: 2}\n", "too many members", func(*fakeSwitch) {}},
		{"allow lists", "", "is not in the allow lists of port f2", func(f *fakeSwitch) {
			f.control.ports[2].allow = &config.Allow{MACs: []config.MAC{{2, 9}}}
		}},
		{"its path MTU", "", "the MTU of a member's port is too small for the group", func(f *fakeSwitch) { f.control.ports[2].mtu = 900 }},
	} {
		if err := os.WriteFile(saved, b, 0o600); err != nil {
			t.Fatal(err)
		}
		f := newFakeSwitchWith(t, 4, 1, "state: "+dir+"\n"+c.more, bridgePorts(4), c.prepare)
		f.control.do(func() {})
		f.mu.Lock()
		warnings := strings.Join(f.warnings, "\n")
		f.mu.Unlock()
		if served := f.installed(0); served != (c.want == "" || c.what == "its path MTU") || !strings.Contains(warnings, c.want) {
			t.Errorf("%s: served %v, warnings %q", c.what, served, warnings)
		}
		f.control.do(func() {
			if n := f.control.dir.hosts.Len(); n != 3 && n != 0 {
				t.Errorf("%s: %d hosts are left", c.what, n)
			}
		})
		f.end()
	}
}
