// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func prefixes(text ...string) (list []netip.Prefix) {
	for _, p := range text {
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
}

// Prefixes are replaced: groups of the others end, and all their members are told why; a
// registration that waits for a location is refused; the rest goes on. What is refused
// changes nothing.
func TestSetPrefixes(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	stays, ends, waits, fresh := sample(1, 2), sample(2, 3), sample(3, 2), sample(4, 2)
	fresh.Group = netip.MustParseAddr("10.50.0.7")
	for _, reg := range []Registration{stays, ends} {
		if r := a.reason(a.register(epoch(reg, 5))); r != NoReason {
			t.Fatal(r)
		}
	}
	a.w.table.verdict[waits.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation}}
	a.register(epoch(waits, 5))
	if r := a.reason(a.register(epoch(fresh, 5))); r != NotGroupPrefix {
		t.Fatalf("before: %v", r)
	}
	var out Output
	for want, list := range map[string][]netip.Prefix{
		"no group prefix":              nil,
		"must be a unicast prefix":     prefixes("10.9.0.0/16", "239.0.0.0/8"),
		"a member of group 10.9.0.1":   prefixes("10.9.0.0/16", "10.1.0.2/32"),
		"a member of group 10.9.0.3":   prefixes("10.9.0.0/16", "10.3.0.0/24"),
		"10.1.0.1, a member of group ": prefixes("10.9.0.1/32", "10.1.0.1/32"),
	} {
		if err := a.w.sw.SetPrefixes(a.w.now, list, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", list, err, want)
		}
	}
	list := prefixes("10.9.0.1/32", "10.50.0.0/24", "10.2.0.0/24") // hosts of a group that ends may be groups
	if got, err := a.w.sw.CheckPrefixes(list); err != nil || !slices.Equal(got, []netip.Addr{ends.Group, waits.Group}) {
		t.Errorf("would end: %v, %v", got, err)
	}
	if err := a.w.sw.SetPrefixes(a.w.now, list, &out); err != nil {
		t.Fatal(err)
	}
	told := map[netip.AddrPort]EndReason{}
	refused := NoReason
	for _, p := range out.Packets {
		m, err := Open(p.Data, testKeys, true)
		if err != nil {
			t.Fatal(err)
		}
		switch b := m.Body.(type) {
		case *Gone:
			if m.Group == ends.Group {
				told[p.Dst] = b.EndReason
			}
		case *Reject:
			if m.Group == waits.Group && p.Dst == masterAddr {
				refused = b.Reason
			}
		}
	}
	if len(told) != 4 || told[masterAddr] != Withdrawn || told[a.w.sw.addrOf(ends.Members[2].Key())] != Withdrawn || refused != NotGroupPrefix {
		t.Errorf("told %v, refused for %v", told, refused)
	}
	if got := a.w.sw.Groups(); !slices.Equal(got, []netip.Addr{stays.Group}) || len(a.w.table.groups) != 1 {
		t.Errorf("groups %v", got)
	}
	if r := a.reason(a.register(epoch(fresh, 6))); r != NoReason {
		t.Errorf("in a new prefix: %v", r)
	}
	if r := a.reason(a.register(epoch(ends, 6))); r != NotGroupPrefix {
		t.Errorf("in a former prefix: %v", r)
	}
	if !strings.Contains(Withdrawn.String(), "prefix") {
		t.Errorf("the reason is %q", Withdrawn)
	}
	a.w.books()
}

// A switch of a tree loses the prefix of the group, before, during or after the registration:
// the group is nowhere then, and its master knows why.
func TestTreeLosesItsPrefix(t *testing.T) {
	for at := range 4 {
		for ms := range 30 {
			f := newFabric(t, 4, [][2]int{{0, 1}, {1, 2}, {1, 3}})
			reg := sample(1, 6)
			f.members(reg, spread(len(reg.Members), 0, 2, 3))
			f.master(masterAddr, 0, reg)
			f.run(time.Duration(ms) * time.Millisecond)
			var out Output
			if err := f.switches[at].sw.SetPrefixes(f.now, prefixes("10.50.0.0/16"), &out); err != nil {
				t.Fatal(err)
			}
			f.restarted = true // the invariants of a tree do not hold while it ends
			f.switchDid(at, &out)
			f.run(10 * time.Second)
			if on := f.installed(reg.Group); len(on) > 0 {
				t.Errorf("switch %d after %d ms: the group is at %v", at, ms, on)
			}
			e := f.last(masterAddr)
			if e.Kind != GroupGone || e.EndReason != Withdrawn {
				if e.Kind != RegistrationFailed || e.Err == nil || !strings.Contains(e.Err.Error(), NotGroupPrefix.String()) {
					t.Errorf("switch %d after %d ms: %s, %v", at, ms, eventString(e), e.Err)
				}
			}
		}
	}
}
