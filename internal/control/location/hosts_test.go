// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// testPorts are the ports of a switch by their interfaces.
type testPorts []int

func (x testPorts) Len() int              { return len(x) }
func (x testPorts) Index(ifindex int) int { return slices.Index(x, ifindex) }
func (x testPorts) Port(i int) Port       { return Port{Name: "p", Ifindex: x[i], Up: true} }

// newTestHosts returns hosts of a switch without ports.
func newTestHosts() *Hosts { return NewHosts(testPorts{}, nil) }

func testHost(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}) }

// testGroup is a group that hosts are members of.
var testGroup = netip.MustParseAddr("10.77.254.1")

// One host that does not answer is asked for ever more rarely, though each question
// changes its neighbour entry, and nobody else is asked for at all.
func TestADeadHostIsAskedForRarely(t *testing.T) {
	x := newTestHosts()
	for i := range 4 {
		at := locate.Location{Ifindex: 1, MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}, Hop: testHost(i), Links: []int{9, 1}}
		x.Join(testGroup, 0, testHost(i), at)
	}
	asked := map[netip.Addr]int{}
	// The kernel fails to resolve host 3, tells so every 100 ms, and refreshes the
	// others' entries as often.
	const span = 10 * time.Minute
	for now := time.Duration(0); now < span; now += 100 * time.Millisecond {
		s := locate.Set{Neighbours: map[netip.Addr]locate.Neighbour{testHost(3): {}}}
		for i := range 3 {
			s.Neighbours[testHost(i)] = locate.Neighbour{MAC: locate.MAC{2, 0, 0, 0, 0, byte(i)}, Usable: true}
		}
		x.Apply(&s, now)
		x.Retry(now)
		for h := x.nextHost(now); h != nil; h = x.nextHost(now) {
			asked[h.ip]++
			h.lookupPending = false
			x.scheduleRetry(h, locate.Location{Hop: h.ip, Links: []int{9}}, now)
		}
	}
	if n := asked[testHost(3)]; len(asked) != 1 || n < int(span/lastRetry) || n > int(span/lastRetry)+6 {
		t.Errorf("asked in %v: %v; want host 3 alone, once in %v", span, asked, lastRetry)
	}
	// It answers, from where it was.
	s := locate.Set{Neighbours: map[netip.Addr]locate.Neighbour{testHost(3): {MAC: locate.MAC{2, 0, 0, 0, 0, 3}, Usable: true}}}
	if x.Apply(&s, span); len(x.queue) != 1 || x.queue[0].ip != testHost(3) {
		t.Errorf("it answers, and %d hosts are asked for", len(x.queue))
	}
}

// A change concerns the hosts that it is about.
func TestChangesConcernTheirHosts(t *testing.T) {
	at := func(i, port int) locate.Location {
		return locate.Location{Ifindex: port, MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}, Hop: testHost(i), Links: []int{9, port}}
	}
	routed := at(2, 2)
	routed.Hop, routed.Links = netip.MustParseAddr("192.0.2.1"), []int{2}
	for _, c := range []struct {
		what string
		set  func(*locate.Changes)
		want string
	}{
		{"another MAC", func(c *locate.Changes) {
			c.Neighbour(testHost(0), locate.Neighbour{MAC: locate.MAC{6}, Usable: true})
		}, "[10.77.0.1]"},
		{"the same MAC", func(c *locate.Changes) {
			c.Neighbour(testHost(0), locate.Neighbour{MAC: locate.MAC{2}, Usable: true})
		}, "[]"},
		{"a gateway", func(c *locate.Changes) {
			c.Neighbour(routed.Hop, locate.Neighbour{MAC: locate.MAC{6}, Usable: true})
		}, "[10.77.0.3]"},
		{"a bridge has learnt", func(c *locate.Changes) { c.Learn(locate.MAC{2, 0, 0, 0, 0, 1}, true) }, "[10.77.0.2]"},
		{"and forgotten at the old port", func(c *locate.Changes) {
			c.Learn(locate.MAC{2, 0, 0, 0, 0, 1}, true)
			c.Learn(locate.MAC{2, 0, 0, 0, 0, 1}, false)
		}, "[10.77.0.2]"},
		{"a bridge has forgotten", func(c *locate.Changes) { c.Learn(locate.MAC{2, 0, 0, 0, 0, 1}, false) }, "[]"},
		{"a port", func(c *locate.Changes) { c.Link(2) }, "[10.77.0.3 10.77.0.4]"},
		{"the bridge", func(c *locate.Changes) { c.Link(9) }, "[10.77.0.1 10.77.0.2 10.77.0.4]"},
		{"a route to one", func(c *locate.Changes) { c.Route(netip.MustParsePrefix("10.77.0.2/32")) }, "[10.77.0.2 10.77.0.4]"},
		{"a route to some", func(c *locate.Changes) { c.Route(netip.MustParsePrefix("10.77.0.2/31")) }, "[10.77.0.2 10.77.0.3 10.77.0.4]"},
		{"strangers", func(c *locate.Changes) {
			c.Neighbour(testHost(77), locate.Neighbour{MAC: locate.MAC{6}, Usable: true})
			c.Learn(locate.MAC{7}, true)
		}, "[]"},
		{"too much", func(c *locate.Changes) {
			for i := range 2000 {
				c.Link(1000 + i)
			}
		}, "[10.77.0.1 10.77.0.2 10.77.0.3 10.77.0.4]"},
	} {
		x := newTestHosts()
		for i, at := range []locate.Location{at(0, 1), at(1, 1), routed, {Links: []int{9, 2}}} { // the last has no place
			x.Join(testGroup, 0, testHost(i), at)
		}
		changes := locate.NewChanges()
		c.set(changes)
		s := changes.Take()
		x.Apply(&s, 0)
		var got []netip.Addr
		for _, h := range x.queue {
			got = append(got, h.ip)
		}
		slices.SortFunc(got, netip.Addr.Compare)
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: asked for %v, want %s", c.what, got, c.want)
		}
		if s = changes.Take(); s.All || len(s.Neighbours)+len(s.Learnt)+len(s.Links)+len(s.Routes) > 0 {
			t.Errorf("%s: taken twice", c.what)
		}
	}
}

// A registration's hosts do not wait for those that changes are about, and these
// are asked for at a bounded rate.
func TestTheQueueDoesNotHoldUpRegistrations(t *testing.T) {
	const many = 10_000
	x := newTestHosts()
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }
	for i := range many {
		x.Join(testGroup, 0, at(i), locate.Location{Ifindex: 1})
	}
	x.Apply(&locate.Set{All: true}, 0)
	x.Apply(&locate.Set{All: true}, 0) // is the same question
	stranger := netip.MustParseAddr("192.0.2.1")
	for now := time.Second; now < 3*time.Second; now += time.Millisecond {
		if now == 2*time.Second {
			x.enqueueUrgent(x.Guest(stranger, now))
			if first, second := x.nextHost(now), x.nextHost(now); (first == nil || first.ip != stranger) && (second == nil || second.ip != stranger) {
				t.Error("a registration waits for the queue")
			}
		}
		for x.nextHost(now) != nil {
		}
		if next, ok := x.Next(now); !ok || next > now+time.Second/maxChangeLookups {
			t.Fatalf("with %d hosts to ask for, the next turn is after %v, %v", len(x.queue), next-now, ok)
		}
	}
	if n := many - len(x.queue); n < 2*maxChangeLookups || n > 2*maxChangeLookups+2*maxChangeLookups/10 {
		t.Errorf("%d questions in 2 s, want %d a second", n, maxChangeLookups)
	}
}

// Envelopes bring a bounded number of guests, which are forgotten when they are of no
// use any more.
func TestGuestsAreForgotten(t *testing.T) {
	x := newTestHosts()
	ip := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }
	for i := range maxGuests + 100 {
		if h := x.Guest(ip(i), time.Second); (h != nil) != (i < maxGuests) {
			t.Fatalf("guest %d: %v", i, h)
		}
	}
	for now := time.Second; now < 20*time.Second; now += time.Second {
		x.Guest(ip(7), now)
		x.Advance(now)
	}
	if len(x.byIP) != 1 || x.byIP[ip(7)] == nil {
		t.Errorf("%d guests are left, want the one that is of use", len(x.byIP))
	}
}

// A host with a connection keeps its pin when it leaves its last group, and has none after both.
func TestConnectedHostIsPinned(t *testing.T) {
	x := newTestHosts()
	pins := 0
	x.onPinChange = func(*Host) { pins++ }
	at := locate.Location{Ifindex: 1, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Hop: testHost(0), Links: []int{1}}
	x.SetConnected(testHost(0), true)
	x.setLocation(x.byIP[testHost(0)], at)
	h := x.byIP[testHost(0)]
	h.pinned = at
	x.Join(testGroup, 0, testHost(0), at)
	x.Leave(testGroup, testHost(0))
	if !Same(h.pinned, at) || !h.isKept() || h.onGuestList {
		t.Errorf("it has a connection: %+v", h)
	}
	x.SetConnected(testHost(0), false)
	if h.pinned.Ifindex != 0 || h.isKept() || !h.onGuestList || pins == 0 {
		t.Errorf("it has none: %+v", h)
	}
	x.SetConnected(testHost(1), false)
	if x.byIP[testHost(1)] != nil {
		t.Error("a host without connections is remembered")
	}
	x.Join(testGroup, 0, testHost(0), at)
	x.SetConnected(testHost(0), true)
	x.SetConnected(testHost(0), false)
	if !Same(h.pinned, at) {
		t.Error("a member that disconnects is not pinned any more")
	}
	x.Leave(testGroup, testHost(0))
	x.Advance(time.Hour)
	if x.byIP[testHost(0)] != nil {
		t.Error("it is not forgotten")
	}
}

// Hosts that have left all groups leave nothing behind.
func TestFormerMembersAreForgotten(t *testing.T) {
	x := newTestHosts()
	for i := range 3 {
		at := locate.Location{Ifindex: i + 1, MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}, Hop: testHost(i), Links: []int{9, i + 1}}
		h, _ := x.Join(testGroup, envelope.KeyID(i), testHost(i), at)
		x.scheduleRetry(h, at, 0)
	}
	x.Join(testGroup, 0, testHost(3), locate.Location{})
	for i := range 4 {
		x.Leave(testGroup, testHost(i))
	}
	if len(x.byIP) != 4 || len(x.guests) != 4 {
		t.Errorf("%d hosts, %d of them guests", len(x.byIP), len(x.guests))
	}
	x.Advance(guestTTL)
	if n := len(x.byIP) + len(x.byHop) + len(x.byMAC) + len(x.byLink) + len(x.unanswered) + len(x.unlocated); n != 0 {
		t.Errorf("%d entries are left of hosts without groups", n)
	}
	if former := x.TakeFormer(testGroup); len(former) != 4 || len(x.former) != 0 {
		t.Errorf("former members %v; of %d groups they are still to be forgotten", former, len(x.former))
	}
}

// Next hops are others if they lead elsewhere, or are known no longer.
func TestSameHops(t *testing.T) {
	at := locate.Location{Ifindex: 1, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}}
	was := []NextHop{{Gateway: testHost(8), At: at}, {Gateway: testHost(9), At: at}}
	for _, c := range []struct {
		hops []NextHop
		same bool
	}{{slices.Clone(was), true}, {was[:1], false}, {[]NextHop{was[0], {Gateway: was[1].Gateway, At: at, Err: locate.ErrPending}}, false}, {nil, false}} {
		if sameHops(was, c.hops) != c.same {
			t.Errorf("%v after %v: same %v", c.hops, was, !c.same)
		}
	}
}
