// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A member's answer counts if it has the nonce of the spot that it comes from.
func TestInquiries(t *testing.T) {
	x := newInquiries(3)
	ip := fakeHost(1)
	at, home := dataplane.Origin{Port: 2, MAC: rocev2.MAC{2, 2}, VLAN: 7}, dataplane.Origin{Port: 0, MAC: rocev2.MAC{2, 1}, VLAN: 0}
	there, here := envelope.Nonce{1}, envelope.Nonce{2}
	q := &inquiry{ip: ip, newOrigin: at, oldOrigin: home, parts: []inquiryPart{{key: 3, nonce: there, nonceAtOld: here}}}
	if !x.mayStart(ip, 2) {
		t.Error("a host may not be asked")
	}
	x.start(q)
	if x.mayStart(ip, 2) || !x.mayStart(ip, 1) || !x.mayStart(fakeHost(2), 2) {
		t.Error("a host is asked once at each port")
	}
	other := func(change func(*dataplane.Origin)) dataplane.Origin { s := at; change(&s); return s }
	for _, c := range []struct {
		what  string
		ip    netip.Addr
		n     envelope.Nonce
		s     dataplane.Origin
		want  bool
		moved bool
	}{
		{"from there", ip, there, at, true, true},
		{"from its old place", ip, here, home, true, false},
		{"from its old place, tagged otherwise", ip, here, dataplane.Origin{Port: 0, MAC: rocev2.MAC{2, 1}, VLAN: 9}, true, false},
		{"of another host", fakeHost(2), there, at, false, false},
		{"with another nonce", ip, envelope.Nonce{3}, at, false, false},
		{"without a nonce", ip, envelope.Nonce{}, at, false, false},
		{"passed on, by the old port", ip, there, home, false, false},
		{"by a third port", ip, there, other(func(s *dataplane.Origin) { s.Port = 1 }), false, false},
		{"from another MAC address", ip, there, other(func(s *dataplane.Origin) { s.MAC[5] = 9 }), false, false},
		{"in another VLAN", ip, there, other(func(s *dataplane.Origin) { s.VLAN = 8 }), false, false},
		{"the old place's nonce, from there", ip, here, at, false, false},
	} {
		got, a, moved := x.answered(c.ip, c.n, c.s)
		if (got != nil) != c.want || moved != c.moved || c.want && a.key != 3 {
			t.Errorf("%s: %v, moved %v", c.what, got != nil, moved)
		}
	}
	var stages []int
	for now := time.Duration(0); now <= 2*time.Second; now += 10 * time.Millisecond {
		for q, stage := x.take(now); q != nil; q, stage = x.take(now) {
			stages = append(stages, stage)
			if at, ok := x.next(); ok && at <= now {
				t.Errorf("next is %v at %v", at, now)
			}
		}
	}
	if fmt.Sprint(stages) != "[0 1 2 3]" || !x.mayStart(ip, 2) {
		t.Errorf("stages %v; may be asked again: %v", stages, x.mayStart(ip, 2))
	}
	if _, _, moved := x.answered(ip, there, at); moved {
		t.Error("an answer counts after its time")
	}
	if _, ok := x.next(); ok || len(x.open) != 0 {
		t.Error("something is left")
	}
	for i := range maxInquiries {
		x.start(&inquiry{ip: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), newOrigin: dataplane.Origin{Port: 1}})
	}
	if x.mayStart(ip, 1) || !x.mayStart(ip, 2) {
		t.Error("a port's questions are not bounded, or those of another port are")
	}
}

// suspectSwitch is a fake switch in which host i is behind a bridge's port i.
func suspectSwitch(t *testing.T, hosts int) *fakeSwitch {
	f := newFakeSwitch(t, hosts, 1)
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
		q := c.moves.inquiries.open[inquiryKey{fakeHost(host), s.Port}]
		if q == nil {
			f.t.Error("nothing is asked")
			return
		}
		for i := range q.parts {
			if q.parts[i].group == fakeGroup(group) {
				c.handleHere(by, &envelope.Event{
					Group: fakeGroup(claimed), Member: envelope.MemberKey{IP: fakeHost(host)}, Nonce: q.parts[i].nonce,
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
		d.hosts.setMembers(g, nil)
		g.key = key
		d.hosts.setMembers(g, g.slots)
	})
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
		f.control.moves.keyOf = func(group netip.Addr) (envelope.KeyID, bool) {
			return map[bool]envelope.KeyID{true: 3, false: 5}[group == fakeGroup(0)], true
		}
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
		f := suspectSwitch(t, 4)
		f.control.do(func() { f.control.moves.policy = config.MoveEvict })
		f.register(0, 3, 0x100, "evict")
		s := dataplane.Origin{Port: 3, MAC: rocev2.MAC{6, 6, 6, 6, 6, 6}}
		f.control.do(func() {
			c := f.control
			c.handleSighting(dataplane.Sighting{Origin: s, IP: fakeHost(2)})
			c.handleSighting(dataplane.Sighting{Origin: s, IP: fakeHost(2)})
			q := c.moves.inquiries.open[inquiryKey{fakeHost(2), 3}]
			if q == nil || c.moves.count.Inquiries != 1 {
				t.Fatalf("%+v", c.moves.count)
			}
			if answers {
				c.handleHere(dataplane.Origin{Port: 2, MAC: rocev2.MAC{2, 0, 0, 0, 0, 2}}, &envelope.Event{
					Group: fakeGroup(0), Member: envelope.MemberKey{IP: fakeHost(2)}, Nonce: q.parts[0].nonceAtOld,
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
	p := newPinner(k, k, func(ip netip.Addr, err error) { t.Error(ip, err) })
	f.eventually("the ports' state is known", func() (ok bool) {
		f.control.do(func() { ok = !f.control.kernel.linksDue && !f.control.kernel.linksRequested })
		return ok
	})
	f.control.do(func() {
		for _, p := range f.control.ports {
			p.reportedUp = true
		}
		f.control.setPinner(p)
	})
	f.register(0, 3, 0x100, "evict")
	f.register(1, 2, 0x200, "evict")
	f.eventually("all are held", func() bool { return k.String() == "[10.77.0.1@1 10.77.0.2@2 10.77.0.3@3] watched 3 MACs, 3 addresses" })
	f.control.do(func() {
		p := f.control.ports[2]
		p.reportedUp = false
		f.control.repinPort(p)
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

// One MAC address of two hosts at two ports is not watched; a shared hop goes with its
// last host.
func TestWatchedAddresses(t *testing.T) {
	k := &fakePins{}
	w := newPinner(k, k, nil).watchedHosts
	gateway := netip.MustParseAddr("192.0.2.1")
	at := func(ifindex int, mac byte) locate.Location {
		return locate.Location{Ifindex: ifindex, MAC: net.HardwareAddr{2, 0, 0, 0, 0, mac}, Hop: gateway, Links: []int{ifindex}}
	}
	for _, c := range []struct {
		host int
		at   locate.Location
		want string
	}{
		{0, at(1, 1), "map[02:00:00:00:00:01:1] 1"},
		{1, at(1, 1), "map[02:00:00:00:00:01:1] 1"},
		{1, at(2, 1), "map[02:00:00:00:00:01:0] 1"},
		{0, at(2, 2), "map[02:00:00:00:00:01:2 02:00:00:00:00:02:2] 1"},
		{0, locate.Location{}, "map[02:00:00:00:00:01:2] 1"},
		{1, locate.Location{}, "map[] 0"},
		{1, locate.Location{}, "map[] 0"},
	} {
		if err := w.set(fakeHost(c.host), c.at); err != nil {
			t.Fatal(err)
		}
		macs := map[string]int{}
		for m, ifindex := range k.macs {
			macs[net.HardwareAddr(m[:]).String()] = ifindex
		}
		if got := fmt.Sprintf("%v %d", macs, len(k.addrs)); got != c.want {
			t.Errorf("host %d at %d: %s, want %s", c.host, c.at.Ifindex, got, c.want)
		}
	}
}
