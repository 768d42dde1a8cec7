// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

func goodSpec() GroupSpec {
	return GroupSpec{
		ID: 3, IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024},
		Legs: []LegSpec{{}, {}, {Kind: Forwarded, Neighbor: 1}},
		Members: []MemberSpec{
			{MemberRecord: MemberRecord{IP: ipOf("A"), QPN: 0x11}, Leg: 0}, {MemberRecord: MemberRecord{IP: ipOf("B"), QPN: 0x11}, Leg: 1},
			{MemberRecord: MemberRecord{IP: ipOf("C"), QPN: 0x11}, Leg: 2}, {MemberRecord: MemberRecord{IP: ipOf("D"), QPN: 0x11}, Leg: 2},
		},
	}
}

func TestPutGroupRefusesBadSpecs(t *testing.T) {
	for _, c := range []struct {
		name string
		bad  func(*GroupSpec)
		want string
	}{
		{"id", func(s *GroupSpec) { s.ID = 1024 }, "limit is 1024 groups"},
		{"no address", func(s *GroupSpec) { s.IP = netip.Addr{} }, "no IP address"},
		{"class D", func(s *GroupSpec) { s.IP = netip.MustParseAddr("239.1.1.1") }, "multicast address"},
		{"zone", func(s *GroupSpec) { s.IP = netip.MustParseAddr("fe80::1%eth0") }, "zone"},
		{"QPN of the GSI", func(s *GroupSpec) { s.QPN = 1 }, "virtual QPN 0x1"},
		{"path MTU", func(s *GroupSpec) { s.PathMTU = 1500 }, "path MTU 1500"},
		{"policy", func(s *GroupSpec) { s.Policy = 9 }, "policy 9 is unknown"},
		{"dead-after", func(s *GroupSpec) { s.DeadAfter = -1 }, "negative"},
		{"group window wraps", func(s *GroupSpec) { s.Window = Window{^uint64(0), 2, 1} }, "exceed the address space"},
		{"window without length", func(s *GroupSpec) { s.Window = Window{RKey: 1} }, "no length"},
		{"one member", func(s *GroupSpec) { s.Members = s.Members[:1] }, "1 members: must be 2 to 1024"},
		{"no legs", func(s *GroupSpec) { s.Legs = nil }, "0 legs"},
		{"leg kind", func(s *GroupSpec) { s.Legs[0].Kind = 7 }, "leg 0: unknown kind 7"},
		{"no neighbour", func(s *GroupSpec) { s.Legs[2].Neighbor = 0 }, "needs a neighbour"},
		{"neighbour of a host", func(s *GroupSpec) { s.Legs[0].Neighbor = 4 }, "has no neighbour"},
		{"neighbour twice", func(s *GroupSpec) { s.Legs = append(s.Legs, s.Legs[2]) }, "leg 2 already goes to neighbour 1"},
		{"leg of a member", func(s *GroupSpec) { s.Members[1].Leg = 3 }, "member 1 (10.0.0.2): leg 3 does not exist"},
		{"two on a connected leg", func(s *GroupSpec) { s.Members[3].Leg = 1 }, "leg 1: a connected leg has one member"},
		{"empty leg", func(s *GroupSpec) { s.Members = s.Members[:2] }, "leg 2: nobody is behind it"},
		{"same address", func(s *GroupSpec) { s.Members[1].IP = netip.MustParseAddr("::ffff:10.0.0.1") }, "member 0 has the same address"},
		{"family", func(s *GroupSpec) { s.Members[1].IP = netip.MustParseAddr("fd00::1") }, "address family"},
		{"group's address", func(s *GroupSpec) { s.Members[1].IP = groupIP }, "has the group's address"},
		{"member QPN", func(s *GroupSpec) { s.Members[1].QPN = 0xFFFFFF }, "QPN 0xffffff"},
		{"sq_psn", func(s *GroupSpec) { s.Members[1].SQPSN = 1 << 24 }, "sq_psn 0x1000000 exceeds"},
		{"rq_psn", func(s *GroupSpec) { s.Members[1].RQPSN = 1 << 24 }, "rq_psn 0x1000000 exceeds"},
		{"short window", func(s *GroupSpec) {
			s.Window = Window{0, 100, 1}
			s.Members[1].Window = Window{0, 99, 1}
		}, "window of 99 bytes is shorter than the group's, 100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, spec := New(Limits{}), goodSpec()
			c.bad(&spec)
			var out Output
			err := s.Apply(0, PutGroup{spec}, &out)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "group ") {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if _, ok := s.Lookup(spec.IP); ok {
				t.Error("the refused group is there")
			}
		})
	}
}

func TestGroupsComeAndGo(t *testing.T) {
	s := New(Limits{Groups: 100})
	var out Output
	put := func(id GroupID, ip string) error {
		spec := goodSpec()
		spec.ID, spec.IP = id, netip.MustParseAddr(ip)
		return s.Apply(0, PutGroup{spec}, &out)
	}
	ip := netip.MustParseAddr("10.1.0.0")
	for i := range 100 {
		if err := put(GroupID(i), ip.String()); err != nil {
			t.Fatal(err)
		}
		ip = ip.Next()
	}
	if err := put(5, "10.1.0.5"); err != nil {
		t.Errorf("replacing a group: %v", err)
	}
	if err := put(5, "10.1.0.6"); err == nil || !strings.Contains(err.Error(), "belongs to group 6") {
		t.Errorf("address of another group: %v", err)
	}
	if err := put(5, "10.2.0.0"); err == nil || !strings.Contains(err.Error(), "delete it first") {
		t.Errorf("group under another address: %v", err)
	}
	for i := 0; i < 100; i += 2 {
		if err := s.Apply(0, DeleteGroup{GroupID(i)}, &out); err != nil {
			t.Fatal(err)
		}
	}
	ip = netip.MustParseAddr("10.1.0.0")
	for i := range 100 {
		id, ok := s.Lookup(ip)
		if ok != (i%2 == 1) || ok && id != GroupID(i) {
			t.Errorf("Lookup(%v) = %d, %v", ip, id, ok)
		}
		ip = ip.Next()
	}
	if err := s.Apply(0, DeleteGroup{0}, &out); err == nil {
		t.Error("deleted twice")
	}
	var st GroupStatus
	if s.Group(0).Snapshot(&st) || !s.Group(1).Snapshot(&st) {
		t.Error("Snapshot of a deleted, or not of a living group")
	}
}

func TestAddMemberRefusals(t *testing.T) {
	for _, c := range []struct {
		op   AddMember
		want string
	}{
		{AddMember{Group: 4}, "does not exist"},
		{AddMember{Group: 3, Member: MemberSpec{MemberRecord: MemberRecord{IP: ipOf("A"), QPN: 0x11}, Leg: 3}}, "member 0 has the same address"},
		{AddMember{Group: 3, Member: MemberSpec{MemberRecord: MemberRecord{IP: ipOf("E"), QPN: 0x11}, Leg: 1}}, "connected to another member"},
		{AddMember{Group: 3, Member: MemberSpec{MemberRecord: MemberRecord{IP: ipOf("E"), QPN: 0x11}, Leg: 4}}, "next free one is 3"},
		{AddMember{3, MemberSpec{MemberRecord: MemberRecord{IP: ipOf("E"), QPN: 0x11}, Leg: 3}, LegSpec{Kind: Forwarded, Neighbor: 1}, 0}, "leg 2 already goes"},
		{AddMember{Group: 3, Member: MemberSpec{MemberRecord: MemberRecord{IP: ipOf("E"), QPN: 0x11}, Leg: 3}}, "has no window"},
		{AddMember{Group: 3, Member: MemberSpec{MemberRecord: MemberRecord{IP: ipOf("E"), QPN: 0x11, Window: Window{1, 1 << 20, 3}}, Leg: 3}}, "has no number in the registration"},
		{AddMember{Group: 3, Member: MemberSpec{MemberRecord: MemberRecord{IP: ipOf("E"), QPN: 0x11, Window: Window{1, 1 << 20, 3}}, Number: 2, Leg: 3}}, "member 1 has the same number, 2"},
	} {
		s, spec := New(Limits{}), goodSpec()
		spec.Window = Window{0, 1, 1}
		var out Output
		if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(0, c.op, &out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestMessagesOverflowCountsLater(t *testing.T) {
	m := messages{spare: new(pool[messageEnd])}
	m.reset(rocev2.PSNMask - 2)
	for p := range rocev2.PSN(2 * maxEnds) {
		m.addEnd(p)
	}
	m.advance(maxEnds)
	low := m.completed
	m.advance(2*maxEnds - 1)
	if want := rocev2.MSN(rocev2.PSNMask - 2).Add(2 * maxEnds); m.completed != want {
		t.Errorf("done = %d, want %d", m.completed, want)
	}
	if want := rocev2.MSN(rocev2.PSNMask - 2).Add(maxEnds - 1); low != want {
		t.Errorf("in between %d, want %d, too low", low, want)
	}
}

func TestMessagesCorrect(t *testing.T) {
	m := messages{spare: new(pool[messageEnd])}
	m.reset(0)
	m.addEnd(2)
	m.addEnd(9)
	m.correctEnd(5, true)  // was lost before the switch the first time
	m.correctEnd(5, true)  // the same correction again
	m.correctEnd(2, false) // was a corrupted frame
	m.correctEnd(7, false)
	m.advance(4)
	if m.completed != 0 {
		t.Errorf("at 4: %d messages", m.completed)
	}
	m.advance(9)
	if m.completed != 2 {
		t.Errorf("at 9: %d messages", m.completed)
	}
}

// Each reason has a row, with a name of its own.
func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range NumReasons {
		if r.String() == "" || r.String() == NumReasons.String() || seen[r.String()] || r.Text() == "" {
			t.Errorf("reason %d is %q: %q", r, r, r.Text())
		}
		seen[r.String()] = true
	}
}

// TestWindowsPrintWithoutRKey: no way of printing a specification shows an R_Key.
func TestWindowsPrintWithoutRKey(t *testing.T) {
	spec := GroupSpec{Window: Window{1, 2, 0xDEAD1234}, Members: []MemberSpec{{MemberRecord: MemberRecord{Window: Window{3, 4, 0xDEAD1234}}}}}
	for _, f := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(f, spec); strings.Contains(strings.ToLower(s), "dead1234") || strings.Contains(s, "3735884340") {
			t.Errorf("%s prints the R_Key: %s", f, s)
		}
	}
}
