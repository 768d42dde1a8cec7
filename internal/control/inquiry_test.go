// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/rocev2"
)

// suspectSwitch is a fake switch in which host i is behind a bridge's port i.
func suspectSwitch(t *testing.T, hosts int, more ...string) *fakeSwitch {
	f := newFakeSwitchWith(t, hosts, 1, "psn_probe: 0s\n"+strings.Join(more, ""))
	f.control.do(func() {
		for _, p := range f.control.ports {
			p.Bridge = bridgeIndex
		}
	})
	f.locator.mu.Lock()
	defer f.locator.mu.Unlock()
	for i := range hosts {
		at := f.locator.at[fakeHost(i)]
		at.Links, at.Learnt = []int{bridgeIndex, i + 1}, locate.Learnt{Bridge: bridgeIndex, Port: i + 1}
		f.locator.at[fakeHost(i)] = at
	}
	return f
}

// here has the host answer what it is asked at spot s under the key of a group, by a datagram from spot by.
func (f *fakeSwitch) here(host, group int, s, by dataplane.Origin, claimed int) {
	f.t.Helper()
	f.control.do(func() {
		c := f.control
		for _, q := range c.dir.inquirer.InquiriesOf(fakeHost(host)) {
			if q.Group == fakeGroup(group) && q.Origin.Port == s.Port {
				c.dir.inquirer.Here(by, &envelope.Event{
					Group: fakeGroup(claimed), Member: envelope.MemberKey{IP: fakeHost(host)}, Nonce: q.Nonce,
				})
				return
			}
		}
		f.t.Errorf("nothing is asked under the key of group %d", group)
	})
}

// place returns the port of a member in a group.
func (f *fakeSwitch) placeIn(group, member int) string {
	f.t.Helper()
	g, err := f.Group(fakeGroup(group))
	if err != nil {
		f.t.Fatal(err)
	}
	return g.Members[member].Port + " " + g.Members[member].MAC
}

// underKey makes a group one of another key.
func (f *fakeSwitch) underKey(group int, key envelope.KeyID) {
	f.control.do(func() {
		d := f.control.dir
		g := d.groups[fakeGroup(group)]
		d.setMembers(g, g.slots, nil)
		g.key = key
		d.setMembers(g, nil, g.slots)
	})
}

// twoKeys is a registrar whose group 0 has key 3, and all others key 5.
type twoKeys struct{ location.Registrar }

func (twoKeys) Key(group netip.Addr) (envelope.KeyID, bool) {
	return map[bool]envelope.KeyID{true: 3, false: 5}[group == fakeGroup(0)], true
}

// Nothing that the kernel has learnt moves a member, a changed route does. A confirmation
// moves it in the groups of its key, and by hand it moves in all.
func TestAnAnswerCountsForItsKey(t *testing.T) {
	f := suspectSwitch(t, 4)
	f.register(0, 3, 0x100, "evict")
	f.register(1, 3, 0x200, "evict")
	f.underKey(0, 3)
	f.underKey(1, 5)
	f.control.do(func() {
		f.control.setupMoves(f.cfg, twoKeys{f.control.registrar})
		f.control.loop.timed = f.control.timedWork()
	})
	at := dataplane.Origin{Port: 3, MAC: rocev2.MAC{2, 0, 0, 0, 0, 2}}
	home := dataplane.Origin{Port: 2, MAC: rocev2.MAC{2, 0, 0, 0, 0, 2}}
	f.locator.mu.Lock()
	loc := f.locator.at[fakeHost(2)]
	loc.Ifindex, loc.Links, loc.Learnt.Port = 4, []int{bridgeIndex, 4}, 4
	f.locator.at[fakeHost(2)] = loc
	f.locator.mu.Unlock()
	f.changes.Learn(locate.MAC{2, 0, 0, 0, 0, 2}, true)
	f.eventually("the member is asked", func() bool { s, _ := f.Stats(); return s.Moves.Inquiries == 1 })
	if got := f.placeIn(0, 2); got != "f2 02:00:00:00:00:02" {
		t.Errorf("by what a bridge has learnt, the member is at %s", got)
	}
	f.here(2, 0, at, home, 0) // passed on
	f.here(2, 0, at, at, 1)   // in another group's name
	if got := f.placeIn(0, 2); got != "f2 02:00:00:00:00:02" {
		t.Errorf("by an answer from elsewhere, the member is at %s", got)
	}
	f.here(2, 0, at, at, 0)
	f.here(2, 0, at, at, 0)
	if got := f.placeIn(0, 2); got != "f3 02:00:00:00:00:02" {
		t.Errorf("after its answer the member is at %s", got)
	}
	if got := f.placeIn(1, 2); got != "f2 02:00:00:00:00:02" {
		t.Errorf("in a group of another key it is at %s", got)
	}
	if s, _ := f.Stats(); s.Moves.Confirmed != 1 || s.Moves.Stray != 2 {
		t.Errorf("%+v", s.Moves)
	}
	f.here(2, 1, at, at, 1)
	if got := f.placeIn(1, 2); got != "f3 02:00:00:00:00:02" {
		t.Errorf("after its answer under the other key, it is at %s", got)
	}
	if es := f.events(1, api.EventMoved); len(es) != 1 || es[0].Member != fakeHost(2) {
		t.Errorf("the journal has %+v", es)
	}
}

// A change of routes is the operator's: nobody is asked.
func TestRoutesAreFollowed(t *testing.T) {
	f := suspectSwitch(t, 4)
	f.register(0, 3, 0x100, "evict")
	f.locator.mu.Lock()
	loc := f.locator.at[fakeHost(2)]
	loc.Ifindex, loc.Links, loc.Learnt = 4, []int{4}, locate.Learnt{}
	f.locator.at[fakeHost(2)] = loc
	f.locator.mu.Unlock()
	f.changes.Route(netip.PrefixFrom(fakeHost(2), 32))
	f.eventually("host 2 has moved", func() bool { return f.placeIn(0, 2) == "f3 02:00:00:00:00:02" })
	if s, _ := f.Stats(); s.Moves.Inquiries != 0 {
		t.Errorf("%+v", s.Moves)
	}
}

// A member that answers from its old place was not away: it stays, under evict too, and
// its registrations go on with its pinned place. A silent one is evicted then.
func TestEvictionOfThoseWhoDoNotAnswer(t *testing.T) {
	for _, answers := range []bool{true, false} {
		f := suspectSwitch(t, 4, "unconfirmed_moves: evict\n")
		f.register(0, 3, 0x100, "evict")
		s := dataplane.Origin{Port: 3, MAC: rocev2.MAC{6, 6, 6, 6, 6, 6}}
		f.control.do(func() {
			c := f.control
			c.dir.inquirer.Sighting(dataplane.Sighting{Origin: s, IP: fakeHost(2)})
			c.dir.inquirer.Sighting(dataplane.Sighting{Origin: s, IP: fakeHost(2)})
			qs := c.dir.inquirer.InquiriesOf(fakeHost(2))
			if len(qs) != 2 || c.dir.inquirer.Count().Inquiries != 1 {
				t.Fatalf("%+v", c.dir.inquirer.Count())
			}
			if answers {
				c.dir.inquirer.Here(dataplane.Origin{Port: 2, MAC: rocev2.MAC{2, 0, 0, 0, 0, 2}}, &envelope.Event{
					Group: fakeGroup(0), Member: envelope.MemberKey{IP: fakeHost(2)}, Nonce: qs[1].Nonce,
				})
			}
		})
		f.eventually("the move is unconfirmed", func() bool { s, _ := f.Stats(); return s.Moves.Unconfirmed == 1 })
		g, err := f.Group(fakeGroup(0))
		if err != nil || (len(g.Members) == 3) != answers {
			t.Errorf("answers %v: %+v, %v", answers, g, err)
		}
		if es := f.events(0, api.EventEvicted); (len(es) == 0) != answers {
			t.Errorf("answers %v: the journal has %+v", answers, es)
		}
	}
}

// What is pinned follows members: not behind a port that is down, and not after the last
// group.
func TestPinsFollowMembers(t *testing.T) {
	f := suspectSwitch(t, 3)
	k := &fakePins{at: map[netip.Addr]locate.Location{}}
	p := location.NewPinner(k, k, func(ip netip.Addr, err error) { t.Error(ip, err) })
	f.eventually("the ports' state is known", func() (ok bool) {
		f.control.do(func() { ok = !f.control.kernel.linksDue && !f.control.kernel.linksRequested })
		return ok
	})
	f.control.do(func() {
		for _, p := range f.control.ports {
			p.reportedUp = true
		}
		f.control.dir.hosts.SetPinner(p)
	})
	f.register(0, 3, 0x100, "evict")
	f.register(1, 2, 0x200, "evict")
	f.eventually("all are held", func() bool { return k.String() == "[10.77.0.1@1 10.77.0.2@2 10.77.0.3@3] watched 3 MACs, 3 addresses" })
	f.control.do(func() {
		p := f.control.ports[2]
		p.reportedUp = false
		f.control.dir.hosts.Repin(p.Ifindex)
	})
	f.eventually("one is watched only", func() bool { return k.String() == "[10.77.0.1@1 10.77.0.2@2] watched 3 MACs, 3 addresses" })
	if err := f.Delete(fakeGroup(0)); err != nil {
		t.Fatal(err)
	}
	f.eventually("two are left", func() bool { return k.String() == "[10.77.0.1@1 10.77.0.2@2] watched 2 MACs, 2 addresses" })
	if err := f.Delete(fakeGroup(1)); err != nil {
		t.Fatal(err)
	}
	f.eventually("nobody is left", func() bool { return k.String() == "[] watched 0 MACs, 0 addresses" })
}

// fakePins is a kernel and its watchlist.
type fakePins struct {
	mu    sync.Mutex
	at    map[netip.Addr]locate.Location
	macs  map[[6]byte]int
	addrs map[netip.Addr]int
}

func (k *fakePins) Set(ip netip.Addr, at locate.Location) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.at, ip); at.Ifindex != 0 {
		k.at[ip] = at
	}
	return nil
}

func (k *fakePins) Close() error { return nil }

func (k *fakePins) SetMAC(mac [6]byte, ifindex int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.macs == nil {
		k.macs = map[[6]byte]int{}
	}
	k.macs[mac] = ifindex
	return nil
}

func (k *fakePins) ClearMAC(mac [6]byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.macs, mac)
	return nil
}

func (k *fakePins) SetAddr(ip netip.Addr, ifindex int, _ [6]byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.addrs == nil {
		k.addrs = map[netip.Addr]int{}
	}
	k.addrs[ip] = ifindex
	return nil
}

func (k *fakePins) ClearAddr(ip netip.Addr) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.addrs, ip)
	return nil
}

func (k *fakePins) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := []string{}
	for ip, at := range k.at {
		list = append(list, fmt.Sprintf("%s@%d", ip, at.Ifindex))
	}
	slices.Sort(list)
	return fmt.Sprintf("%v watched %d MACs, %d addresses", list, len(k.macs), len(k.addrs))
}
