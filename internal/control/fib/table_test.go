// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fib

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// through is a usable route to a prefix by links, with a gateway on each.
func through(prefix string, links ...int) Route {
	r := Route{Status: Usable, Prefix: netip.MustParsePrefix(prefix)}
	for _, l := range links {
		r.Hops = append(r.Hops, NextHop{Link: l, Gateway: addr("169.254.0.1"), Weight: 1})
		r.links = append(r.links, l)
	}
	r.arrange()
	return r
}

// next returns the destinations that the table wants to have matched, at most n.
func next(t *Table, n int) (s []string) {
	for range n {
		a, ok := t.Next()
		if !ok {
			break
		}
		s = append(s, a.String())
	}
	slices.Sort(s)
	return s
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// filled is a table with five destinations that have been matched.
func filled(t *testing.T) *Table {
	t.Helper()
	x := NewTable()
	for a, r := range map[string]Route{
		"10.1.0.1": through("10.1.0.0/24", 1, 2), "10.1.0.2": through("10.1.0.2/32", 2), "10.2.0.1": through("10.2.0.0/24", 3),
		"10.3.0.1": {Status: NoRoute}, "fd00::1": {Status: Usable, Prefix: netip.MustParsePrefix("::/0"), Hops: []NextHop{{Link: 3, Weight: 1}}, links: []int{3}, group: 9},
	} {
		x.Subscribe(addr(a))
		x.Answer(addr(a), r)
	}
	next(x, 10)
	want(t, "first", names(x.Changed()), "10.1.0.1", "10.1.0.2", "10.2.0.1", "10.3.0.1", "fd00::1")
	return x
}

func names(addrs []netip.Addr) (s []string) {
	for _, a := range addrs {
		s = append(s, a.String())
	}
	slices.Sort(s)
	return s
}

// TestEventsConcern: an event has the destinations matched first that depend on its object,
// and all others where it may concern them silently.
func TestEventsConcern(t *testing.T) {
	all := []string{"10.1.0.1", "10.1.0.2", "10.2.0.1", "10.3.0.1", "fd00::1"}
	for _, tt := range []struct {
		name          string
		event         Event
		urgent, sweep []string
	}{
		{"route to a network", Event{Prefix: netip.MustParsePrefix("10.1.0.0/24")}, []string{"10.1.0.1"}, nil},
		{"more specific route", Event{Prefix: netip.MustParsePrefix("10.1.0.1/32")}, []string{"10.1.0.1"}, nil},
		{"route to nothing here", Event{Prefix: netip.MustParsePrefix("10.9.0.0/16")}, nil, nil},
		{"default route", Event{Prefix: netip.MustParsePrefix("0.0.0.0/0")}, []string{"10.3.0.1"}, nil},
		{"default route of IPv6", Event{Prefix: netip.MustParsePrefix("::/0")}, []string{"fd00::1"}, nil},
		{"less specific route", Event{Prefix: netip.MustParsePrefix("10.0.0.0/8")}, []string{"10.3.0.1"}, nil},
		{"link", Event{Link: 2}, []string{"10.1.0.1", "10.1.0.2"}, all},
		{"link of both families", Event{Link: 3}, []string{"10.2.0.1", "fd00::1"}, all},
		{"link of none", Event{Link: 7}, nil, all},
		{"nexthop object", Event{Group: 9}, []string{"fd00::1"}, all},
		{"member of a group", Event{Group: 8}, nil, all},
		{"anything", Event{All: true}, nil, all},
		{"nothing", Event{}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := filled(t)
			x.Feed(tt.event)
			x.Feed(tt.event) // a second one adds nothing
			want(t, "urgent", next(x, len(tt.urgent)), tt.urgent...)
			if x.Urgent() {
				t.Error("more are urgent")
			}
			want(t, "sweep", next(x, 20), tt.sweep...)
		})
	}
}

// TestBroadRouteIsASweep: a route event does not mark any number of destinations.
func TestBroadRouteIsASweep(t *testing.T) {
	x := NewTable()
	for i := range maxConcerned + 1 {
		x.Subscribe(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	next(x, 1000)
	x.Feed(Event{Prefix: netip.MustParsePrefix("0.0.0.0/0")})
	if n := len(x.urgent); n != maxConcerned {
		t.Errorf("%d are urgent, want %d", n, maxConcerned)
	}
	if got := len(slices.Compact(next(x, 2000))); got != maxConcerned+1 {
		t.Errorf("%d destinations matched of %d", got, maxConcerned+1)
	}
}

// TestChanged: only what users see is a change, and each destination is reported once.
func TestChanged(t *testing.T) {
	x := filled(t)
	a := addr("10.1.0.1")
	if x.Answer(a, through("10.1.0.0/24", 2, 1)) {
		t.Error("the order of next hops is a change")
	}
	dead := through("10.1.0.0/24", 1, 2)
	dead.links = []int{1, 2, 5}
	if x.Answer(a, dead) {
		t.Error("one more dead next hop is a change")
	}
	want(t, "changed by nothing", names(x.Changed()))
	for _, r := range []Route{
		through("10.1.0.0/24", 1), through("10.1.0.0/25", 1), {Status: Down}, {Status: NoRoute}, through("10.1.0.0/24", 1, 2),
	} {
		if !x.Answer(a, r) {
			t.Errorf("no change: %v", r)
		}
	}
	heavy := through("10.1.0.0/24", 1, 2)
	heavy.Hops[0].Weight = 2
	if !x.Answer(a, heavy) {
		t.Error("a weight is no change")
	}
	if !x.Answer(addr("fd00::1"), Route{Status: Blackhole}) {
		t.Error("no change of fd00::1")
	}
	want(t, "changed", names(x.Changed()), "10.1.0.1", "fd00::1")
	want(t, "changed since", names(x.Changed()))
	x.Answer(a, Route{Status: NoRoute})
	x.Unsubscribe(a)
	want(t, "of a removed one", names(x.Changed()))
	if x.Answer(a, Route{Status: Down}) {
		t.Error("a destination that is not subscribed has changed")
	}
}

// TestLostRouteRemembersItsLinks: a route that went with its link comes back with it,
// without a notification of its own.
func TestLostRouteRemembersItsLinks(t *testing.T) {
	x := filled(t)
	x.Answer(addr("10.2.0.1"), Route{Status: NoRoute})
	x.Feed(Event{Link: 3})
	want(t, "urgent", next(x, 2), "10.2.0.1", "fd00::1")
}

// TestUsers: a destination lives as long as its last user, and addresses that are written
// in two ways are one.
func TestUsers(t *testing.T) {
	x := NewTable()
	x.Subscribe(addr("10.1.0.1"))
	x.Subscribe(addr("::ffff:10.1.0.1"))
	if x.Len() != 1 {
		t.Errorf("%d destinations", x.Len())
	}
	if r, ok := x.Route(addr("10.1.0.1")); !ok || r.Status != Unmatched {
		t.Errorf("%v, %t before it is matched", r, ok)
	}
	x.Answer(addr("10.1.0.1"), Route{Status: Down, links: []int{3}, group: 4})
	x.Unsubscribe(addr("10.1.0.1"))
	if r, ok := x.Route(addr("10.1.0.1")); !ok || r.Status != Down {
		t.Errorf("%v, %t after the first of two users has gone", r, ok)
	}
	x.Unsubscribe(addr("::ffff:10.1.0.1"))
	if _, ok := x.Route(addr("10.1.0.1")); ok || x.Len() != 0 {
		t.Error("it is there without users")
	}
	x.Unsubscribe(addr("10.1.0.1"))
	want(t, "next", next(x, 5))
	if len(x.byLink) != 0 || len(x.byGroup) != 0 {
		t.Error("indexes are not empty")
	}
}

// TestDependencies: a route depends on what its last answer named, and on nothing else.
func TestDependencies(t *testing.T) {
	x := filled(t)
	x.Answer(addr("10.2.0.1"), through("10.2.0.0/24", 8))
	x.Feed(Event{Link: 3})
	want(t, "by its former link", next(x, 1), "fd00::1")
	x.Answer(addr("fd00::1"), Route{Status: HopsWithheld, group: 5})
	if x.Feed(Event{Group: 9}); x.Urgent() {
		t.Error("its former nexthop object concerns fd00::1")
	}
	x.Feed(Event{Group: 5})
	want(t, "by its nexthop object", next(x, 1), "fd00::1")
}

// TestSweeps: a sweep has every destination once, wherever it begins, and while others come
// and go.
func TestSweeps(t *testing.T) {
	x := NewTable()
	ip := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }
	for i := range 4 {
		x.Subscribe(ip(i))
	}
	want(t, "new ones", next(x, 9), "10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	x.Subscribe(ip(4))
	want(t, "without a sweep", next(x, 9), "10.0.0.4")
	x.Unsubscribe(ip(1)) // the last one takes its place
	next(x, 9)
	x.Sweep()
	want(t, "after a removal", next(x, 9), "10.0.0.0", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	x.Sweep()
	next(x, 1)
	x.Sweep() // begins at the second
	next(x, 1)
	x.Subscribe(ip(9))
	want(t, "with a new one", next(x, 9), "10.0.0.0", "10.0.0.2", "10.0.0.3", "10.0.0.9", "10.0.0.9")
	x.Sweep()
	next(x, 3)
	x.Unsubscribe(ip(9)) // the next of the sweep, and the last of all
	want(t, "from the beginning", next(x, 1), "10.0.0.0")
	for i := range 5 {
		x.Unsubscribe(ip(i))
	}
	want(t, "of none", next(x, 9))
}

// TestRemovalInASweep: the destination that takes a removed one's place, which the sweep has
// passed, is matched all the same.
func TestRemovalInASweep(t *testing.T) {
	x := NewTable()
	for _, a := range []string{"10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		x.Subscribe(addr(a))
	}
	next(x, 4)
	x.Sweep()
	want(t, "first half", next(x, 2), "10.0.0.0", "10.0.0.1")
	x.Unsubscribe(addr("10.0.0.1"))
	if got := next(x, 4); !slices.Contains(got, "10.0.0.2") || !slices.Contains(got, "10.0.0.3") {
		t.Errorf("second half: %v", got)
	}
}

// TestPropertyNothingIsForgotten: after random events, each destination that an event may
// concern has been matched when the table has nothing more to match.
func TestPropertyNothingIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := NewTable()
		subscribed := make(map[netip.Addr]int)
		stale := make(map[netip.Addr]bool) // to be matched
		pick := rapid.Custom(func(t *rapid.T) netip.Addr {
			return netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 12).Draw(t, "address"))})
		})
		answer := func() bool {
			a, ok := x.Next()
			if ok {
				if subscribed[a] == 0 {
					t.Fatalf("%s is to be matched and not subscribed", a)
				}
				delete(stale, a)
				link := rapid.IntRange(1, 3).Draw(t, "link")
				x.Answer(a, through(fmt.Sprintf("%s/%d", a, rapid.IntRange(24, 32).Draw(t, "bits")), link))
			}
			return ok
		}
		t.Repeat(map[string]func(*rapid.T){
			"subscribe": func(t *rapid.T) {
				a := pick.Draw(t, "a")
				if x.Subscribe(a); subscribed[a] == 0 {
					stale[a] = true
				}
				subscribed[a]++
			},
			"unsubscribe": func(t *rapid.T) {
				a := pick.Draw(t, "a")
				if x.Unsubscribe(a); subscribed[a] > 0 {
					subscribed[a]--
				}
				if subscribed[a] == 0 {
					delete(subscribed, a)
					delete(stale, a)
				}
			},
			"all": func(*rapid.T) {
				x.Feed(Event{All: true})
				for a := range subscribed {
					stale[a] = true
				}
			},
			"link": func(t *rapid.T) {
				x.Feed(Event{Link: rapid.IntRange(1, 4).Draw(t, "link")})
				for a := range subscribed {
					stale[a] = true
				}
			},
			"host route": func(t *rapid.T) {
				a := pick.Draw(t, "a")
				x.Feed(Event{Prefix: hostPrefix(a)})
				if subscribed[a] > 0 {
					stale[a] = true
				}
			},
			"answer": func(*rapid.T) { answer() },
			"": func(t *rapid.T) {
				if x.Len() != len(subscribed) {
					t.Fatalf("%d destinations, want %d", x.Len(), len(subscribed))
				}
			},
		})
		for range 200 {
			if !answer() {
				break
			}
		}
		if len(stale) > 0 {
			t.Fatalf("never matched: %v", stale)
		}
	})
}
