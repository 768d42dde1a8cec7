// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// A port with members is removed by force alone; one whose hosts are no members, by itself.
// Limits of the file count for what is registered from then on.
func TestReconfigure(t *testing.T) {
	f := newFakeSwitch(t, 5, 1)
	f.register(0, 3, 0x100, "strict")
	f.register(1, 2, 0x200, "strict")
	now := f.cfg
	without := func(ports ...string) *config.Config {
		c := *now
		c.Ports = slices.DeleteFunc(slices.Clone(now.Ports), func(p config.Port) bool { return slices.Contains(ports, p.Name) })
		return &c
	}
	apply := func(next *config.Config, force bool, want int, problem string) {
		t.Helper()
		lost, err := f.Reconfigure(now, next, force)
		if problem == "" && (err != nil || lost.Members != want) || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Fatalf("%+v lost, %v; want %d, %q", lost, err, want, problem)
		}
		if err == nil {
			now = next
		}
		if ps, err := f.Ports(); err != nil || len(ps) != len(now.Ports) {
			t.Fatalf("%d ports, %v, want %d", len(ps), err, len(now.Ports))
		}
	}
	apply(without("f4"), false, 0, "")
	apply(without("f0", "f3"), false, 0, "ports[f0]: 1 members of 2 groups are behind this port")
	apply(without("f0", "f3"), true, 1, "")
	if g, err := f.Group(fakeGroup(0)); err != nil || len(g.Members) != 3 || g.Members[0].Port != "" {
		t.Errorf("the member behind the removed port: %+v, %v", g, err)
	}
	next := *now
	next.Limits.Groups = 2
	apply(&next, false, 0, "")
	apply(&next, false, 0, "")
	if err := f.Register(&api.Register{
		Group: fakeGroup(2), QPN: 0x4711, PMTU: 1024, Policy: "strict", Members: []api.RegisterMember{f.record(1, 0x301), f.record(2, 0x302)},
	}); err == nil || !strings.Contains(err.Error(), "2") {
		t.Error("a group beyond the lowered limit is registered")
	}
	if gs, err := f.Groups(nil); err != nil || len(gs) != 2 {
		t.Errorf("%d groups, %v", len(gs), err)
	}
}

// Group prefixes of the file replace those of before: groups of the others need force, and
// end with the reason; a member's address is in no prefix. Nothing is said of prefixes that
// stay, in whatever order.
func TestReconfigurePrefixes(t *testing.T) {
	f := newFakeSwitch(t, 3, 2)
	f.register(0, 3, 0x100, "strict")
	f.register(1, 2, 0x200, "strict")
	now := f.cfg
	apply := func(force bool, ended int, problem string, prefixes ...string) {
		t.Helper()
		next := *now
		next.GroupPrefixes = nil
		for _, p := range prefixes {
			next.GroupPrefixes = append(next.GroupPrefixes, netip.MustParsePrefix(p))
		}
		lost, err := f.Reconfigure(now, &next, force)
		if problem == "" && (err != nil || len(lost.Groups) != ended) || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Fatalf("%v: %+v lost, %v; want %d, %q", prefixes, lost, err, ended, problem)
		}
		if err == nil {
			now = &next
		}
	}
	said := func() (n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, l := range f.log {
			if strings.HasPrefix(l, "the group prefixes have changed") {
				n++
			}
		}
		return n
	}
	first, second := fakeGroup(0).String()+"/32", fakeGroup(1).String()+"/32"
	apply(false, 0, "", first, second)
	apply(false, 0, "", second, first)
	if n := said(); n != 1 {
		t.Errorf("%d changes are reported, want 1", n)
	}
	apply(false, 0, "1 groups are in none of these prefixes: 10.77.254.2: end them first", first, "10.9.0.0/24")
	apply(true, 0, "10.77.0.2, a member of group", first, second, fakeHost(1).String()+"/32")
	if gs, err := f.Groups(nil); err != nil || len(gs) != 2 {
		t.Fatalf("after refusals: %d groups, %v", len(gs), err)
	}
	apply(true, 1, "", first, "10.9.0.0/24")
	if gs, err := f.Groups(nil); err != nil || len(gs) != 1 || gs[0].IP != fakeGroup(0) {
		t.Errorf("groups %+v, %v", gs, err)
	}
	if gs, err := f.EndedGroups(); err != nil || len(gs) != 1 || gs[0].IP != fakeGroup(1) || gs[0].Ended.Reason != envelope.Withdrawn.String() {
		t.Errorf("ended groups %+v, %v", gs, err)
	}
	for ip, want := range map[string]bool{"10.9.0.1": true, second[:len(second)-3]: false} {
		err := f.Register(&api.Register{
			Group: netip.MustParseAddr(ip), QPN: 0x4711, PMTU: 1024, Policy: "strict", Members: []api.RegisterMember{f.record(1, 0x301), f.record(2, 0x302)},
		})
		if (err == nil) != want {
			t.Errorf("register %s: %v", ip, err)
		}
	}
	if got := someOf(slices.Repeat([]netip.Addr{fakeGroup(0)}, maxListed+2)); !strings.HasSuffix(got, " and 2 more") || strings.Count(got, fakeGroup(0).String()) != maxListed {
		t.Errorf("many addresses as text: %s", got)
	}
}

// Queues differ if the lists do; all queues are no list.
func TestSameQueues(t *testing.T) {
	for i, c := range []struct {
		a, b []int
		want bool
	}{{nil, nil, true}, {[]int{0}, []int{0}, true}, {nil, []int{}, false}, {[]int{0}, nil, false}, {[]int{0, 1}, []int{1, 0}, false}, {[]int{0}, []int{0, 1}, false}} {
		if got := sameSockets(&config.Port{Queues: c.a}, &config.Port{Queues: c.b}); got != c.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}

// A port is opened again where its program or its sockets do not serve what its interface receives now, and stays open
// otherwise: in generic mode a program takes frames of all lengths, a driver that resets its device does not say how
// many queues it has, and an operator's list of queues is the operator's.
func TestOutgrown(t *testing.T) {
	const most = bpf.MaxSingleBufferMTU
	for _, c := range []struct {
		name            string
		queues          int // number of queues when the port was opened
		chosen          []int
		native, several bool
		link            locate.Link
		want            string // a part of the reason; empty: it stays open
	}{
		{"nothing", 1, nil, true, false, locate.Link{MTU: most, Queues: 1}, ""},
		{"a longer MTU", 1, nil, true, false, locate.Link{MTU: most + 1, Queues: 1}, "its MTU is 3507 now"},
		{"a longer MTU, a program of several buffers", 1, nil, true, true, locate.Link{MTU: 9000, Queues: 1}, ""},
		{"a longer MTU in generic mode", 1, nil, false, false, locate.Link{MTU: 9000, Queues: 1}, ""},
		{"more queues", 1, nil, false, false, locate.Link{MTU: 1500, Queues: 8}, "uses 8 receive queues now, and used 1"},
		{"fewer queues", 8, nil, true, true, locate.Link{MTU: 1500, Queues: 2}, "uses 2 receive queues now, and used 8"},
		{"a device that is reset", 8, nil, true, true, locate.Link{MTU: 1500}, ""},
		{"more queues than are configured", 1, []int{0}, true, true, locate.Link{MTU: 1500, Queues: 8}, ""},
	} {
		got := outgrown(&dataplane.Port{Queues: c.queues}, c.chosen, c.native, c.several, false, &c.link)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A port whose MTU has fallen is opened again where it may have a program for one buffer, natively, that it had not: once
// for each time that the MTU falls.
func TestOutgrownByAShorterMTU(t *testing.T) {
	const most = bpf.MaxSingleBufferMTU
	for _, c := range []struct {
		name                     string
		was, now                 int
		native, several, refused bool
		want                     bool
	}{
		{"one buffer is enough", 9000, most, true, true, false, true},
		{"several are needed still", 9000, most + 1, true, true, false, false},
		{"a program of one buffer", 3000, 1500, true, false, false, false},
		{"a driver that wants several at this MTU", 3000, 3000, true, true, false, false},
		{"a driver that wanted several at the MTU before", 3000, 1500, true, true, false, true},
		{"a driver that has refused both", 4200, 1500, false, true, true, true},
		{"a driver without native XDP", 1500, 1000, false, false, true, false},
		{"generic mode by configuration", 9000, 1500, false, true, false, false},
		{"an interface that is gone", 9000, 0, true, true, false, false},
	} {
		got := outgrown(&dataplane.Port{MTU: c.was}, nil, c.native, c.several, c.refused, &locate.Link{MTU: c.now})
		if want := fmt.Sprintf("its MTU is %d now, and was %d", c.now, c.was); (got != "") != c.want || c.want && !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
