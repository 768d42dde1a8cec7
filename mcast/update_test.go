// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// newcomer is a new member on a leg of its own, unless leg says otherwise.
func newcomer(name string, leg LegID) AddMember {
	return AddMember{Member: MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: 0x11}, Number: 100 + uint32(name[0]), Leg: leg}}
}

// replacing lets a new member have the MemberID of one that has gone.
func replacing(id MemberID, m AddMember) AddMember {
	m.Replaces = uint32(id) + 1
	return m
}

// forwarded is a new member behind a neighbour.
func forwarded(name string, leg LegID, n Neighbor) AddMember {
	m := newcomer(name, leg)
	m.Leg = LegSpec{Kind: Forwarded, Neighbor: n}
	return m
}

// TestR35_UpdatesAllOrNothing: an update does all that it says, or nothing. The group has
// A and B on legs 0 and 1, and C and D behind neighbour 1 on leg 2.
func TestR35_UpdatesAllOrNothing(t *testing.T) {
	type ids = []MemberID
	withWindow := func(s *GroupSpec) {
		s.Window = Window{0, 8, 1}
		for i := range s.Members {
			s.Members[i].Window = Window{0, 8, 2}
		}
	}
	windowed := newcomer("E", 3)
	windowed.Member.Window = Window{0, 8, 3}
	quorum := func(s *GroupSpec) {
		s.Policy, s.Quorum, s.Legs = Quorum, 1, s.Legs[:2]
		s.Members = s.Members[:2]
	}
	sent := func(name string, psn rocev2.PSN) AddMember {
		m := newcomer(name, 3)
		m.Member.SQPSN = psn
		return m
	}
	for i, c := range []struct {
		remove ids
		add    []AddMember
		want   string // the error, or the members: in capitals the live ones, with their legs
		spec   func(*GroupSpec)
	}{
		{nil, nil, "A0 B1 C2 D2", nil},
		{ids{1}, nil, "A0 b1 C2 D2", nil},
		{ids{3, 2}, nil, "A0 B1 c2 d2", nil},
		{ids{4}, nil, "has no live member 4", nil},
		{ids{1, 1}, nil, "has no live member 1", nil},
		{nil, []AddMember{newcomer("E", 3)}, "A0 B1 C2 D2 E3", nil},
		{nil, []AddMember{newcomer("E", 4)}, "leg 4 does not exist; the next free one is 3", nil},
		{nil, []AddMember{newcomer("E", 3), newcomer("F", 4)}, "A0 B1 C2 D2 E3 F4", nil},
		{nil, []AddMember{newcomer("E", 3), newcomer("F", 5)}, "leg 5 does not exist; the next free one is 4", nil},
		{nil, []AddMember{newcomer("E", 3), newcomer("F", 3)}, "leg 3 is another new member's", nil},
		{nil, []AddMember{newcomer("E", 3), newcomer("E", 4)}, "new member 0 has the same address", nil},
		{nil, []AddMember{newcomer("B", 3)}, "member 1 has the same address", nil},
		{ids{1}, []AddMember{newcomer("B", 3)}, "A0 b1 C2 D2 B3", nil},
		{ids{1}, []AddMember{newcomer("B", 1)}, "A0 B1 C2 D2", nil},
		{ids{1}, []AddMember{newcomer("E", 1)}, "A0 E1 C2 D2", nil},
		{nil, []AddMember{newcomer("E", 1)}, "leg 1 is connected to another member", nil},
		{ids{0}, []AddMember{newcomer("E", 1)}, "leg 1 is connected to another member", nil},
		{ids{1}, []AddMember{newcomer("E", 1), newcomer("F", 1)}, "leg 1 is connected to another member", nil},
		{ids{1}, []AddMember{forwarded("E", 1, 2)}, "leg 1 is a connected one", nil},
		{ids{1}, []AddMember{{Member: newcomer("E", 1).Member, Leg: LegSpec{Neighbor: 2}}}, "leg 1 is a connected one", nil},
		{nil, []AddMember{newcomer("E", 2)}, "A0 B1 C2 D2 E2", nil},
		{ids{2, 3}, []AddMember{newcomer("E", 2)}, "A0 B1 c2 d2 E2", nil},
		{ids{2, 3}, []AddMember{replacing(2, newcomer("E", 2))}, "A0 B1 E2 d2", nil},
		{ids{2, 3}, []AddMember{replacing(3, newcomer("E", 2)), replacing(2, newcomer("F", 2))}, "A0 B1 F2 E2", nil},
		{ids{3}, []AddMember{replacing(3, forwarded("E", 3, 2)), forwarded("F", 3, 2)}, "A0 B1 C2 E3 F3", nil},
		{ids{3}, []AddMember{replacing(3, newcomer("D", 2))}, "A0 B1 C2 D2", nil},
		{ids{2}, []AddMember{replacing(3, newcomer("E", 2))}, "there is no member 3 that has gone", nil},
		{ids{2}, []AddMember{replacing(4, newcomer("E", 2))}, "there is no member 4 that has gone", nil},
		{ids{2}, []AddMember{replacing(2, newcomer("E", 2)), replacing(2, newcomer("F", 2))}, "there is no member 2 that has gone", nil},
		{ids{1}, []AddMember{replacing(1, newcomer("E", 2))}, "member 1 can be replaced by one at the same place alone", nil},
		{ids{2}, []AddMember{replacing(2, newcomer("E", 3))}, "member 2 can be replaced by one at the same place alone", nil},
		{ids{2, 3}, []AddMember{newcomer("E", 3), newcomer("F", 4), newcomer("G", 5), newcomer("H", 6)}, "A0 B1 c2 d2 E3 F4 G5 H6", nil},
		{nil, []AddMember{forwarded("E", 3, 1)}, "leg 2 already goes to neighbour 1", nil},
		{nil, []AddMember{forwarded("E", 3, 2)}, "A0 B1 C2 D2 E3", nil},
		{nil, []AddMember{forwarded("E", 3, 0)}, "a forwarded leg needs a neighbour", nil},
		{nil, []AddMember{{Member: newcomer("E", 3).Member, Leg: LegSpec{Neighbor: 2}}}, "a connected leg has no neighbour", nil},
		{nil, []AddMember{{Member: newcomer("E", 3).Member, Leg: LegSpec{Kind: 3}}}, "unknown kind 3", nil},
		{nil, []AddMember{newcomer("E", 3), newcomer("F", 4), newcomer("G", 5)}, "the limit is 6 members", nil},
		{nil, []AddMember{newcomer("E", 3), newcomer("F", 4)}, "A0 B1 C2 D2 E3 F4", nil},
		{nil, []AddMember{newcomer("E", 2), newcomer("F", 2), newcomer("G", 2)}, "the limit is 6 members", nil},
		{ids{0, 1}, []AddMember{newcomer("E", 0), newcomer("F", 1), newcomer("G", 3), newcomer("H", 4)}, "E0 F1 C2 D2 G3 H4", nil},
		{nil, []AddMember{newcomer("E", 3)}, "has no window, but the group has one", withWindow},
		{nil, []AddMember{newcomer("E", 2)}, "A0 B1 C2 D2 E2", withWindow},
		{nil, []AddMember{windowed}, "A0 B1 C2 D2 E3", withWindow},
		{nil, []AddMember{windowed}, "A0 B1 C2 D2 E3", nil},
		{nil, []AddMember{forwarded("E", 2, 2)}, "a quorum counts members", quorum},
		{nil, []AddMember{newcomer("E", 2)}, "A0 B1 E2", quorum},
		{nil, []AddMember{sent("E", 1<<24)}, "new member 10.0.0.5: sq_psn", nil},
		{nil, []AddMember{newcomer("E", 3), sent("F", 1<<24)}, "new member 10.0.0.6: sq_psn", nil},
	} {
		for _, verify := range []time.Duration{0, time.Millisecond} {
			s, spec := New(Limits{Members: 6}), goodSpec()
			if spec.PSNProbe = verify; c.spec != nil {
				c.spec(&spec)
			}
			var out Output
			if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
				t.Fatal(err)
			}
			before := s.AppendState(nil, 0)
			err := s.Apply(0, UpdateMembers{Group: spec.ID, Remove: c.remove, Add: c.add}, &out)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "group 3") {
					t.Errorf("case %d: %v, want %q", i, err, c.want)
				}
				if !bytes.Equal(s.AppendState(nil, 0), before) {
					t.Errorf("case %d: the group has changed, in spite of %v", i, err)
				}
				continue
			}
			var st GroupStatus
			s.Group(spec.ID).Snapshot(&st)
			var got []string
			for k, m := range st.Members {
				name := nameOf(MemberID(m.IP.As4()[3] - 1))
				if !m.Live {
					name = strings.ToLower(name)
				}
				got = append(got, fmt.Sprint(name, m.Leg))
				if id, ok := s.Group(spec.ID).Member(m.IP); m.Live && (!ok || int(id) != k) {
					t.Errorf("case %d: %s is found as member %d, %v, not %d", i, name, id, ok, k)
				}
			}
			if list := strings.Join(got, " "); list != c.want {
				t.Errorf("case %d: %s, want %s", i, list, c.want)
			}
			checkInvariants(t, s.groups[spec.ID])
			checkMembership(t, s.groups[spec.ID])
			for k := range c.add {
				leg := c.add[k].Member.Leg
				g, w := s.groups[spec.ID], c.add[k].Member.Window
				if l := &g.legs[leg]; l.connected() && (l.windowed != (w != Window{}) || l.base != w.Base || l.rkey != w.RKey) {
					t.Errorf("case %d: the window of new member %d is %+v", i, k, *l)
				}
				if verify > 0 && g.legs[leg].connected() && !g.unproven(int(leg)) {
					t.Errorf("case %d: new member %d does not have to show its numbering", i, k)
				}
			}
		}
	}
}

// checkMembership: each leg knows how many live members are behind it, and the first one.
func checkMembership(t *testing.T, g *group) {
	t.Helper()
	for i := range g.legs {
		n, first := 0, -1
		for k := range g.members {
			if m := &g.members[k]; m.live && int(m.leg) == i {
				if n++; first < 0 {
					first = k
				}
			}
		}
		l := &g.legs[i]
		if int(l.members) != n || n > 0 && int(l.member) != first {
			t.Errorf("leg %d has %d members, the first is %d; want %d, %d", i, l.members, l.member, n, first)
		}
	}
	found := 0
	for k := range g.members {
		if m, ok := g.memberAt(g.members[k].ip.Addr()); ok && int(m) == k {
			found++
		}
	}
	if int(g.byIP.used) != found {
		t.Errorf("%d members are found by address, %d are listed", found, g.byIP.used)
	}
}

// TestR35_NewMemberHasNoPast: the new member of a leg inherits nothing of the former one.
func TestR35_NewMemberHasNoPast(t *testing.T) {
	s, spec := New(Limits{}), goodSpec()
	spec.TargetKey = 9
	var out Output
	apply := func(op Op) {
		t.Helper()
		if err := s.Apply(time.Second, op, &out); err != nil {
			t.Fatal(err)
		}
	}
	apply(PutGroup{spec})
	g := s.groups[spec.ID]
	g.activate(time.Second)
	g.noteMismatch(1, VirtualQPN, 1, 2, &out)
	*g.newHistory(1) = memberHistory{quarantinedUntil: time.Minute, waits: 1, refusalReported: true}
	*g.newHistory(0) = memberHistory{waits: 2}
	for i := range 2 {
		g.activity[i].recovery.rtt, g.activity[i].cnpWeight, g.members[i].ackedCount, g.members[i].messages = 5, 6, 7, 8
		g.fwd.targets.acked[i] = target{1, 2, true}
		g.fwd.targets.insert(5).legs[i] = target{3, 4, true}
	}
	apply(RemoveMember{spec.ID, 1})
	op := AddMember{spec.ID, newcomer("E", 1).Member, LegSpec{Port: 7}, 0}
	op.Member.SQPSN, op.Member.RQPSN, op.Member.QPN, op.Member.ReceiveOnly = 11, 12, 0x99, true
	apply(op)
	if g.activity[1] != (legActivity{}) || g.activity[0].recovery.rtt != 5 {
		t.Errorf("activity %+v", g.activity)
	}
	if g.historyOf(1) != (memberHistory{}) || g.historyOf(0).waits != 2 {
		t.Errorf("history %+v", g.extra.history)
	}
	if x := g.fwd.targets; x.find(1, 9).set || !x.find(0, 9).set {
		t.Errorf("targets %+v, %+v", x.find(0, 9), x.find(1, 9))
	}
	if m := g.outcomes.Mismatches[1]; m != (Mismatches{}) {
		t.Errorf("mismatches %+v", m)
	}
	want := member{ip: rocev2.KeyOf(ipOf("E")), qpn: 0x99, leg: 1, live: true, role: receivesOnly, sqPSN: 11, ePSN: 12}
	if g.members[1] != want || g.legs[1].port != 7 || g.legs[1].member != 1 || !g.legs[1].joining && g.src.member != none {
		t.Errorf("member %+v, leg %+v", g.members[1], g.legs[1])
	}
	checkMembership(t, g)
}

// TestHistoryGrows: a member has a history when it needs one, also if it joined after
// others had theirs.
func TestHistoryGrows(t *testing.T) {
	s, spec := New(Limits{}), goodSpec()
	var out Output
	if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
		t.Fatal(err)
	}
	g := s.groups[spec.ID]
	if g.extra.history != nil || g.historyOf(3) != (memberHistory{}) {
		t.Errorf("history %+v", g.extra)
	}
	g.newHistory(1).waits = 5
	if err := s.Apply(0, AddMember{spec.ID, newcomer("E", 3).Member, LegSpec{}, 0}, &out); err != nil {
		t.Fatal(err)
	}
	if g.historyOf(4) != (memberHistory{}) || g.historyOf(1).waits != 5 || len(g.extra.history) != 4 {
		t.Errorf("history %+v", g.extra.history)
	}
	if g.newHistory(4).waits = 6; g.historyOf(4).waits != 6 || g.historyOf(1).waits != 5 || len(g.extra.history) != 5 {
		t.Errorf("history %+v", g.extra.history)
	}
	if got := g.forwardedLegs(); len(got) != 1 || got[0] != 2 {
		t.Errorf("forwarded legs %v", got)
	}
	if x := (&group{}); x.forwardedLegs() != nil || x.historyOf(0) != (memberHistory{}) {
		t.Error("a group without extras has some")
	}
}

// TestR35_FirstMemberBehindASwitch: when members behind a switch leave, one after the
// other, the leg is the first one's that is left.
func TestR35_FirstMemberBehindASwitch(t *testing.T) {
	for _, order := range [][]MemberID{{2, 3, 4}, {4, 3, 2}, {3, 2, 4}, {3, 4, 2}} {
		s, spec := New(Limits{}), goodSpec()
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf("E"), QPN: 0x11}, Leg: 2})
		var out Output
		if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
			t.Fatal(err)
		}
		for _, m := range order {
			if err := s.Apply(0, RemoveMember{Group: spec.ID, Member: m}, &out); err != nil {
				t.Fatal(err)
			}
			checkMembership(t, s.groups[spec.ID])
		}
		if err := s.Apply(0, AddMember{spec.ID, newcomer("F", 2).Member, LegSpec{}, 0}, &out); err != nil {
			t.Fatal(err)
		}
		checkMembership(t, s.groups[spec.ID])
	}
}

// TestApplyRefusals: operations on a group that is not there, or has failed, are errors.
func TestApplyRefusals(t *testing.T) {
	s, spec := New(Limits{}), goodSpec()
	var out Output
	if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
		t.Fatal(err)
	}
	for _, op := range []Op{DeleteGroup{2}, DeleteGroup{4}, RemoveMember{Group: 2}, AddMember{Group: 4}, UpdateMembers{Group: 2}, nil} {
		if err := s.Apply(0, op, &out); err == nil {
			t.Errorf("%#v is applied", op)
		}
	}
	s.groups[3].set(failed, true)
	if err := s.Apply(0, AddMember{3, newcomer("E", 3).Member, LegSpec{}, 0}, &out); err == nil || !strings.Contains(err.Error(), "the group has failed; put it anew") {
		t.Errorf("a member joins a group that has failed: %v", err)
	}
	if err := s.Apply(0, RemoveMember{3, 1}, &out); err != nil {
		t.Errorf("no member can leave a group that has failed: %v", err)
	}
}
