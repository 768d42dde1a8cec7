// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A host that moves is asked for once, and moves in all its groups; those that it
// leaves do not keep it in memory.
func TestAHostMovesInAllGroups(t *testing.T) {
	f := newFakeSwitch(t, 4, 2)
	f.register(0, 3, 0x100, "evict")
	f.register(1, 3, 0x200, "evict")
	before := f.locator.questions(4)
	f.locator.set(2, 4, 9, nil)
	f.changes.Neighbour(fakeHost(2), locate.Neighbour{MAC: locate.MAC{2, 0, 0, 0, 0, 9}, Usable: true})
	for n := range 2 {
		f.eventually("host 2 has moved", func() bool {
			g, err := f.Group(fakeGroup(n))
			return err == nil && g.Members[2].Port == "f3" && g.Members[2].MAC == "02:00:00:00:00:09"
		})
		f.eventually("the worker takes its packets from there", func() bool {
			s, err := f.plane.Stats()
			if err != nil {
				t.Fatal(err)
			}
			f.feed(n, answer(2, 1999, rocev2.SyndromeACK))
			after, err := f.plane.Stats()
			return err == nil && after.Drops["source_guard"] == s.Drops["source_guard"]
		})
	}
	after := f.locator.questions(4)
	if want := []int{before[0], before[1], before[2] + 1, before[3]}; !slices.Equal(after, want) {
		t.Errorf("questions: %v, then %v, want %v", before, after, want)
	}
	// Its route goes, and comes back.
	f.locator.set(2, 4, 9, net.ErrClosed)
	f.changes.Route(netip.PrefixFrom(fakeHost(2), 32))
	f.eventually("host 2 is nowhere", func() bool { g, _ := f.Group(fakeGroup(0)); return g.Members[2].Port == "" })
	f.locator.set(2, 3, 2, nil)
	f.changes.Link(3)
	f.eventually("host 2 is back", func() bool { g, _ := f.Group(fakeGroup(0)); return g.Members[2].Port == "f2" })
	for n := range 2 {
		if err := f.Delete(fakeGroup(n)); err != nil {
			t.Fatal(err)
		}
	}
	f.control.do(func() {
		x := f.control.dir.hosts
		if x.Len() > 3 {
			t.Errorf("%d hosts, when their groups have gone", x.Len())
		}
		if x.Advance(f.control.now() + time.Minute); x.Len() != 0 {
			t.Errorf("%d hosts without groups are left", x.Len())
		}
	})
}

// Changes that do not end are looked at ever more rarely; those of links are not
// put off.
func TestPaceOfChanges(t *testing.T) {
	var p changePacer
	looks := 0
	for now := time.Duration(0); now < 10*time.Second; now += time.Millisecond {
		p.noteChange(now, false)
		if p.due(now) {
			looks++
		}
	}
	if looks < 10 || looks > 25 {
		t.Errorf("%d looks in 10 s of changes", looks)
	}
	now := 10 * time.Second
	p.noteChange(now, false)
	p.noteChange(now, true)
	if at, ok := p.next(); !ok || at > now+settleTime {
		t.Errorf("a link is looked at after %v, %v", at-now, ok)
	}
	p.due(now + settleTime)
	if p.noteChange(now+time.Minute, false); p.at != now+time.Minute+settleTime {
		t.Errorf("after a pause, changes wait for %v", p.at-now-time.Minute)
	}
}

// Groups go by the MTU that a port has now: one whose copies do not fit any more
// says so, as does one whose member moves behind a narrow port, until they fit again.
func TestMTUAtRunTime(t *testing.T) {
	for _, workers := range []int{1, 2} {
		f := newFakeSwitch(t, 4, workers)
		f.register(0, 3, 0x100, "evict")
		f.register(1, 2, 0x200, "evict")
		tooLong := func(n int) string {
			g, err := f.Group(fakeGroup(n))
			if err != nil {
				t.Fatal(err)
			}
			return g.MTUText
		}
		f.locator.setMTU(3, 900)
		f.changes.Link(3)
		f.eventually("group 0 does not fit", func() bool { return tooLong(0) != "" })
		const why = "packets of up to 1088 bytes do not fit port f2, whose MTU is 900: longer copies to 10.77.0.3 are dropped (frame_too_long); raise the MTU, or register the group with a path MTU of 512"
		if got := tooLong(0); got != why {
			t.Errorf("too long: %q, want %q", got, why)
		}
		if got := tooLong(1); got != "" {
			t.Errorf("group 1 has no member there: %q", got)
		}
		if es := f.events(0, api.EventMTU); len(es) != 1 || es[0].Reason != why {
			t.Errorf("the journal has %+v", es)
		}
		if ports, err := f.Ports(); err != nil || ports[2].MTU != 900 {
			t.Errorf("the workers have %+v, %v", ports, err)
		}
		r := &api.Register{Group: fakeGroup(2), QPN: 0x4711, PMTU: 1024, Policy: "evict", Members: []api.RegisterMember{f.record(0, 0x300), f.record(2, 0x301)}}
		if err := f.Register(r); err == nil {
			t.Error("a group is registered whose packets do not fit")
		}
		r.PMTU = 512
		if err := f.Register(r); err != nil {
			t.Error(err)
		}
		f.locator.setMTU(3, 9000)
		f.changes.Link(3)
		f.eventually("group 0 fits again", func() bool { return tooLong(0) == "" })
		if es := f.events(0, api.EventMTU); len(es) != 2 {
			t.Errorf("the journal has %+v", es)
		}
		r.Group, r.PMTU = fakeGroup(3), 1024
		r.Members[0].QPN, r.Members[1].QPN = 0x400, 0x401
		if err := f.Register(r); err != nil {
			t.Errorf("with the larger MTU: %v", err)
		}
		// A member moves behind a narrow port.
		f.locator.setMTU(4, 1000)
		f.changes.Link(4)
		f.locator.set(1, 4, 1, nil)
		f.changes.Learn(locate.MAC{2, 0, 0, 0, 0, 1}, true)
		f.eventually("group 1 does not fit", func() bool { return tooLong(1) != "" })
		f.locator.set(1, 2, 1, nil)
		f.changes.Learn(locate.MAC{2, 0, 0, 0, 0, 1}, true)
		f.eventually("group 1 fits again", func() bool { return tooLong(1) == "" })
	}
}

// 32 members of one group move, as when their port changes: the group is looked at once.
func BenchmarkMembersMove(b *testing.B) {
	const hosts = 32
	f := newFakeSwitch(b, hosts, 1)
	var members []*location.Host
	f.control.do(func() {
		f.know(hosts)
		f.register1(0, hosts)
		for i := range hosts {
			members = append(members, f.control.dir.hosts.Of(fakeHost(i)))
		}
		f.control.dir.notify = func(bool, string, ...any) {}
		f.control.dir.hosts.FollowKernel(true)
		d := f.control.dir
		for n := range b.N {
			for i, h := range members {
				port := (i+n)%hosts + 1
				d.hosts.Answered(h, locate.Location{Ifindex: port, MAC: h.At().MAC, Hop: h.IP(), Links: []int{1, port}}, nil, d.now())
			}
			d.refreshTables()
		}
	})
	if len(f.control.dir.groups) != 1 {
		b.Fatal("the group is not there")
	}
}
