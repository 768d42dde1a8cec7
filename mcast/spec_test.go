// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestSpecBounds: a group is accepted at the bounds of each of its values, and refused
// beyond them. A refused group is not there.
func TestSpecBounds(t *testing.T) {
	repair := func(bytes int64, timeout time.Duration, tries int) func(*GroupSpec) {
		return func(s *GroupSpec) { s.Repair = RepairSpec{Bytes: bytes, Timeout: timeout, Tries: tries} }
	}
	const wrong = "repair with"
	members := func(n int) func(*GroupSpec) {
		return func(s *GroupSpec) {
			s.Legs, s.Members = s.Legs[:0], s.Members[:0]
			ip := ipOf("A")
			for i := range n {
				if i > 0 {
					ip = ip.Next()
				}
				s.Legs = append(s.Legs, LegSpec{})
				s.Members = append(s.Members, MemberSpec{MemberRecord: MemberRecord{IP: ip, QPN: 0x11}, Leg: LegID(i)})
			}
		}
	}
	quorum := func(s *GroupSpec) {
		members(3)(s)
		s.Policy, s.Quorum = Quorum, 2
	}
	for i, c := range []struct {
		set  func(*GroupSpec)
		want string // text of the error; "": accepted
	}{
		{func(s *GroupSpec) { s.ID = 9 }, ""},
		{func(s *GroupSpec) { s.ID = 10 }, "the limit is 10 groups"},
		{repair(0, 0, 0), ""},
		{repair(0, -1, -1), ""},
		{repair(-1, 1, 1), wrong},
		{repair(1, 1, 1), ""},
		{repair(1, 0, 1), wrong},
		{repair(1, -1, 1), wrong},
		{repair(1, 1, 0), wrong},
		{repair(1, 1, 255), ""},
		{repair(1, 1, 256), wrong},
		{func(s *GroupSpec) { s.DeadAfter, s.DeadAfterMax = 1, 1 }, ""},
		{func(s *GroupSpec) { s.DeadAfter, s.DeadAfterMax = 0, 0 }, ""},
		{func(s *GroupSpec) { s.DeadAfter, s.AllDeadAfter = 2, 1 }, "all dead after 1ns"},
		{func(s *GroupSpec) { s.AllDeadAfter = 1 }, "all dead after 1ns"},
		{func(s *GroupSpec) { s.Policy, s.DeadAfter, s.AllDeadAfter = Evict, 1, 1 }, ""},
		{func(s *GroupSpec) { s.DeadAfter, s.DeadAfterMax = 0, 1 }, "dead_after 0s, at most 1ns"},
		{func(s *GroupSpec) { s.DeadAfter, s.DeadAfterMax = 1, -1 }, "dead_after 1ns, at most -1ns"},
		{func(s *GroupSpec) { s.PSNProbe = 1 }, ""},
		{func(s *GroupSpec) { s.PSNProbe = -1 }, "psn_probe -1ns"},
		{quorum, ""},
		{func(s *GroupSpec) { quorum(s); s.Quorum = 3 }, "there are 2 receivers beside the source"},
		{func(s *GroupSpec) { quorum(s); s.TargetKey = 5 }, "a target key with a quorum"},
		{func(s *GroupSpec) { quorum(s); s.Legs[1] = LegSpec{Kind: Forwarded, Neighbor: 1} }, "leg 1: a quorum counts members"},
		{func(s *GroupSpec) { s.TargetKey = 5 }, ""},
		{func(s *GroupSpec) { s.TargetKey, s.Window = 5, Window{0, 8, 6} }, ""},
		{func(s *GroupSpec) { s.TargetKey, s.Window = 5, Window{0, 8, 5} }, "the target key is the window's R_Key"},
		{func(s *GroupSpec) { s.Window = Window{0, 8, 0} }, ""},
		{members(2), ""},
		{members(1), "1 members: must be 2 to 20"},
		{members(20), ""},
		{members(21), "21 members: must be 2 to 20"},
		{func(s *GroupSpec) { s.Legs, s.Members[3].Leg = make([]LegSpec, maxIndex), 3 }, "leg 4: nobody is behind it"},
		{func(s *GroupSpec) { s.Legs = make([]LegSpec, maxIndex+1) }, "65536 legs: must be 1 to 65535"},
		{func(s *GroupSpec) {
			s.Legs = append(s.Legs, LegSpec{Kind: Forwarded, Neighbor: 2})
			s.Members[3].Leg = 3
		}, ""},
		{func(s *GroupSpec) { s.Legs[1].Kind = Forwarded + 1 }, "leg 1: unknown kind 2"},
		{func(s *GroupSpec) { s.IP = netip.IPv4Unspecified() }, "unspecified address"},
		{func(s *GroupSpec) { s.Members[2].IP = netip.IPv6Unspecified() }, "member 2 (::): :: is the unspecified address"},
		{func(s *GroupSpec) { s.Members[2].IP = netip.Addr{} }, "no IP address"},
		{func(s *GroupSpec) { s.Members[1].IP = netip.MustParseAddr("::ffff:10.9.9.9") }, "has the group's address"},
		{func(s *GroupSpec) { s.Members[1].SQPSN = 1<<24 - 1 }, ""},
		{func(s *GroupSpec) { s.Members[1].SQPSN = 1 << 24 }, "sq_psn"},
		{func(s *GroupSpec) { s.Members[1].RQPSN = 1<<24 - 1 }, ""},
		{func(s *GroupSpec) { s.Members[1].RQPSN = 1 << 24 }, "rq_psn"},
		{func(s *GroupSpec) { s.Window, s.Members[1].Window = Window{0, 100, 1}, Window{0, 100, 1} }, ""},
		{func(s *GroupSpec) { s.Window, s.Members[1].Window = Window{0, 100, 1}, Window{0, 99, 1} }, "shorter than the group's"},
		{func(s *GroupSpec) { s.Members[1].Window = Window{0, 99, 1} }, ""},
		{func(s *GroupSpec) { s.Members[1].Window = Window{0, 0, 1} }, "member 1 (10.0.0.2): window: has an address"},
		{func(s *GroupSpec) { s.Members[1].Window = Window{1, 0, 0} }, "has an address or R_Key but no length"},
		{func(s *GroupSpec) { s.Window = Window{-8 & (1<<64 - 1), 8, 1} }, ""},
		{func(s *GroupSpec) { s.Window = Window{-7 & (1<<64 - 1), 8, 1} }, "exceed the address space"},
		{func(s *GroupSpec) { s.Window = Window{0, 1<<64 - 1, 1} }, ""},
	} {
		s, spec := New(Limits{Groups: 10, Members: 20}), goodSpec()
		c.set(&spec)
		var out Output
		err := s.Apply(0, PutGroup{spec}, &out)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("case %d: %v, want %q", i, err, c.want)
		}
		if _, ok := s.Lookup(spec.IP); ok != (err == nil) {
			t.Errorf("case %d: after %v the group is there: %v", i, err, ok)
		}
	}
	if got := New(Limits{Members: 1 << 20}).maxMembers(); got != maxIndex {
		t.Errorf("%d members, more than there are numbers for", got)
	}
}

// TestLimits: a limit of 0 or below is the default, any other one is taken as it is.
func TestLimits(t *testing.T) {
	for given, want := range map[Limits]Limits{
		{}:                 {1024, 1024, 64 << 20},
		{-1, -1, -1}:       {1024, 1024, 64 << 20},
		{1, 1, 1}:          {1, 1, 1},
		{2000, 3000, 4000}: {2000, 3000, 4000},
	} {
		if s := New(given); s.limits != want || s.repair.limit != want.RepairBytes {
			t.Errorf("%+v: %+v, %d bytes for repair", given, s.limits, s.repair.limit)
		}
	}
}

// TestGroupsByAddress: many groups and members of both families are found by their
// addresses, and no others.
func TestGroupsByAddress(t *testing.T) {
	s := New(Limits{Groups: 200})
	var out Output
	addr := func(id, host int) netip.Addr {
		if id%2 == 0 {
			return netip.AddrFrom4([4]byte{10, byte(host), byte(id), 1})
		}
		return netip.MustParseAddr(fmt.Sprintf("fd00::%x:%x:1", host, id))
	}
	rng := random(4)
	in := map[int]bool{}
	for range 2000 {
		id := rng(200)
		if in[id] {
			if err := s.Apply(0, DeleteGroup{GroupID(id)}, &out); err != nil {
				t.Fatal(err)
			}
			delete(in, id)
		} else {
			spec := GroupSpec{ID: GroupID(id), IP: addr(id, 0), GroupParams: GroupParams{QPN: groupQPN, PathMTU: 256}}
			for i := range 3 {
				spec.Legs = append(spec.Legs, LegSpec{})
				spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: addr(id, i+1), QPN: 0x11}, Leg: LegID(i)})
			}
			if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
				t.Fatal(err)
			}
			in[id] = true
		}
		id = rng(200)
		got, ok := s.Lookup(addr(id, 0))
		if ok != in[id] || ok && got != GroupID(id) {
			t.Fatalf("group %d: found %v, as %d", id, ok, got)
		}
		for i := range 4 {
			m, ok := s.Group(GroupID(id)).Member(addr(id, i+1))
			if ok != (in[id] && i < 3) || ok && m != MemberID(i) {
				t.Fatalf("member %d of group %d: found %v, as %d", i, id, ok, m)
			}
		}
	}
}
