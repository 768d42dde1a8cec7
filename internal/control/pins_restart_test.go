// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/rocev2"
)

// newBridgedSwitch is newFakeSwitchWith whose hosts are behind a bridge's ports.
func newBridgedSwitch(t *testing.T, hosts int, more string) *fakeSwitch {
	t.Helper()
	return newFakeSwitchWith(t, hosts, 1, more, func(f *fakeSwitch) {
		for _, p := range f.control.ports {
			p.Bridge = bridgeIndex
		}
		f.atHome(hosts)
	})
}

// atHome has the kernel's tables say that each host is behind its own port.
func (f *fakeSwitch) atHome(hosts int) {
	for i := range hosts {
		f.spoof(i, i, byte(i))
	}
}

// spoof has the kernel's tables say that host i is behind a port of that bridge.
func (f *fakeSwitch) spoof(i, port int, mac byte) {
	f.locator.mu.Lock()
	defer f.locator.mu.Unlock()
	f.locator.at[fakeHost(i)] = locate.Location{
		Ifindex: port + 1, MAC: net.HardwareAddr{2, 0, 0, 0, 0, mac}, Hop: fakeHost(i), Links: []int{bridgeIndex, port + 1}, Learnt: locate.Learnt{Bridge: bridgeIndex, Port: port + 1},
	}
}

// looked has the switch look up host i, as a change of the kernel's tables makes it do.
func (f *fakeSwitch) looked(i int) {
	f.control.do(func() { f.control.dir.hosts.LookUp(f.control.dir.hosts.Of(fakeHost(i))) })
	n := f.locator.questions(i + 1)[i]
	f.eventually("the kernel is asked", func() bool {
		f.control.do(func() {})
		return f.locator.questions(i + 1)[i] > n-1
	})
	time.Sleep(50 * time.Millisecond)
	f.control.do(func() {})
}

// What the kernel has learnt from a stranger's frame moves no member (docs/THREATS.md, "Places of
// members"), after a restart of gleamd as before it; the kernel's entries are pinned in both.
func TestStrangersFrameAfterRestart(t *testing.T) {
	for _, by := range []string{"by hand", "by envelope"} {
		t.Run(by, func(t *testing.T) { strangersFrameAfterRestart(t, by == "by envelope") })
	}
}

func strangersFrameAfterRestart(t *testing.T, byEnvelope bool) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, "state: "+dir+"\n")
	pins := func(f *fakeSwitch) *fakePins {
		k := &fakePins{at: map[netip.Addr]locate.Location{}}
		f.control.do(func() {
			f.control.dir.hosts.SetPinner(location.NewPinner(k, noWatchlist{}, func(netip.Addr, error) {}))
		})
		return k
	}
	f.atHome(4)
	pins(f)
	if byEnvelope {
		f.enroll(0, 3, 0x100)
		for i := range 3 { // each member confirms where it is
			a := f.proving(i, 0)
			f.proves(0, i, a, a.Origin)
		}
		f.eventually("the group is registered", func() bool { return f.installed(0) })
	} else {
		f.register(0, 3, 0x100, api.PolicyStrict)
	}
	f.eventually("the group is in the file", func() bool { return !f.waits() })
	home := f.placeIn(0, 2)
	f.spoof(2, 3, 66)
	f.looked(2)
	if at := f.placeIn(0, 2); at != home {
		t.Fatalf("before the restart a stranger's frame has moved the member to %s", at)
	}
	f.spoof(2, 2, 2) // the stranger is silent
	f.end()

	f = newBridgedSwitch(t, 4, "state: "+dir+"\n")
	f.atHome(4)
	k := pins(f)
	f.control.do(func() {
		for i := range 3 {
			f.control.dir.hosts.Repin(i + 1)
		}
	})
	for i := range 3 {
		f.looked(i) // the kernel knows all about the way to the member
	}
	f.eventually("the members are at home", func() bool { return f.placeIn(0, 2) == home })
	f.control.do(func() {
		h := f.control.dir.hosts.Of(fakeHost(2))
		if len(h.At().Links) == 0 {
			t.Error("the kernel has not been asked yet")
		}
		if !h.Pinned().Hop.IsValid() || len(h.Pinned().Links) == 0 {
			t.Errorf("the member is pinned at %+v: no entry of the kernel can be made of that", h.Pinned())
		}
	})
	k.mu.Lock()
	if at := k.at[fakeHost(2)]; at.Ifindex != 0 && !(len(at.Links) > 0 && at.Hop.IsValid()) {
		t.Errorf("locate.Pins.Set gets %+v, of which it pins nothing and reports no error", at)
	}
	k.mu.Unlock()
	// Host 2's address is claimed by a frame of the stranger behind port 3.
	f.spoof(2, 3, 66)
	f.looked(2)
	f.eventually("tables are fresh", func() (ok bool) {
		f.control.do(func() { ok = len(f.control.dir.staleTables) == 0 })
		return ok
	})
	if at := f.placeIn(0, 2); at != home {
		t.Errorf("after the restart a stranger's frame has moved the member from %s to %s", home, at)
	}
	f.end()
}

// An operator can move a member after a restart as before it.
func TestMoveByOperatorAfterRestart(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, "state: "+dir+"\n")
	f.atHome(4)
	f.register(0, 3, 0x100, api.PolicyStrict)
	f.eventually("the group is in the file", func() bool { return !f.waits() })
	f.end()
	f = newBridgedSwitch(t, 4, "state: "+dir+"\n")
	f.atHome(4)
	for i := range 3 {
		f.looked(i)
	}
	if err := f.MoveMember(fakeGroup(0), fakeHost(2), &api.MoveMember{Port: "f3"}); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	f.end()
}

// A completion after a stranger has taken a member's place: nobody has the bytes.
func TestFalseCompletionAfterRestart(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, "state: "+dir+"\npsn_probe: 1ms\n")
	f.atHome(4)
	f.register(0, 3, 0x100, api.PolicyStrict)
	f.eventually("the group is in the file", func() bool { return !f.waits() })
	f.end()
	f = newBridgedSwitch(t, 4, "state: "+dir+"\npsn_probe: 1ms\n")
	f.atHome(4)
	for i := range 3 {
		f.looked(i)
	}
	f.answerProbes(0, 1, 2) // from their own places
	f.spoof(2, 3, 66)
	f.looked(2)
	f.eventually("the source is served", func() bool {
		f.feed(0, send(0, 0))
		g, err := f.Group(fakeGroup(0))
		return err == nil && g.Source == fakeHost(0) && g.NextPSN == 1
	})
	f.feed(0, answer(1, 1000, rocev2.SyndromeACK))
	f.feed(0, answer(2, 2000, rocev2.SyndromeACK)) // the stranger's: from its port and MAC address
	if g, err := f.Group(fakeGroup(0)); err != nil || g.AckPSN == 0 {
		t.Errorf("FALSE COMPLETION: PSN 0 is acknowledged to the source, and %s has seen no packet of it: a stranger has acknowledged it (%v, members %+v)", fakeHost(2), err, g.Members[2])
	}
	f.end()
}

type noWatchlist struct{}

func (noWatchlist) SetMAC([6]byte, int) error              { return nil }
func (noWatchlist) ClearMAC([6]byte) error                 { return nil }
func (noWatchlist) SetAddr(netip.Addr, int, [6]byte) error { return nil }
func (noWatchlist) ClearAddr(netip.Addr) error             { return nil }

// A member whose port is down for a moment is pinned all the same: what the kernel finds elsewhere is
// a reason for an inquiry. After a restart meanwhile it is placed where any frame says.
func TestLostPlaceAfterRestart(t *testing.T) {
	dir := t.TempDir()
	f := newBridgedSwitch(t, 4, "state: "+dir+"\n")
	f.atHome(4)
	f.register(0, 3, 0x100, api.PolicyStrict)
	f.locator.set(2, 0, 0, errors.New("its link is down")) // what was learnt there is forgotten
	f.looked(2)
	f.control.do(func() {
		if at := f.control.dir.hosts.Of(fakeHost(2)); at.At().Ifindex != 0 {
			t.Errorf("it is still at %+v", at.At())
		}
	})
	f.eventually("the file has all", func() bool { return !f.waits() })
	f.locator.set(2, 0, 0, nil)
	f.spoof(2, 3, 66) // a stranger's frame
	f.looked(2)
	f.control.do(func() {
		if at := f.control.dir.hosts.Of(fakeHost(2)); at.Pinned().Ifindex != 3 {
			t.Errorf("before the restart it is pinned at %+v", at.Pinned())
		}
	})
	if at := f.placeIn(0, 2); at == "f3 02:00:00:00:00:42" {
		t.Fatalf("before the restart the stranger is the member: %s", at)
	}
	f.end()
	f = newBridgedSwitch(t, 4, "state: "+dir+"\n")
	if at := f.control.keeper.Keeper; at != nil {
		f.control.do(func() {
			h := f.control.dir.hosts.Of(fakeHost(2))
			t.Logf("restored at %+v, pinned at %+v", h.At(), h.Pinned())
		})
	}
	f.atHome(4)
	f.spoof(2, 3, 66)
	f.looked(2)
	f.eventually("tables are fresh", func() (ok bool) {
		f.control.do(func() { ok = len(f.control.dir.staleTables) == 0 })
		return ok
	})
	if at := f.placeIn(0, 2); at == "f3 02:00:00:00:00:42" {
		t.Errorf("after the restart the stranger is the member, without an inquiry: %s", at)
	}
	f.end()
}

// answerProbes feeds a group members' answers to keepalive probes until it has had enough of them: the first probe leaves when
// what was on its way at the restart has come (R83).
func (f *fakeSwitch) answerProbes(group int, members ...int) {
	f.t.Helper()
	begin := time.Now()
	f.eventually("the members have answered", func() bool {
		for _, i := range members {
			f.feed(group, answer(i, rocev2.PSN(1000*i-1)&rocev2.PSNMask, rocev2.SyndromeACK))
		}
		return time.Since(begin) > 300*time.Millisecond
	})
}
