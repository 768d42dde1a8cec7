// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"reflect"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestSnapshotShows: a group's status is all of what its registration, its data and its
// members' feedback have made of it.
func TestSnapshotShows(t *testing.T) {
	s := New(Limits{})
	spec := GroupSpec{ID: 3, IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024, Policy: Evict}, PSNProbe: time.Millisecond,
		Repair: RepairSpec{Bytes: 8 * minFrameBytes, Timeout: time.Millisecond, Tries: 3}}
	for i, name := range []string{"A", "B", "C", "D", "E"} {
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: rocev2.QPN(0x20 + i), RQPSN: rocev2.PSN(100 * i)}, Leg: LegID(i)})
	}
	spec.Legs = append(spec.Legs, LegSpec{Kind: Forwarded, Neighbor: 9})
	for i, name := range []string{"F", "G"} {
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: rocev2.QPN(0x25 + i)}, Leg: 5})
	}
	var out Output
	out.MaxResends = -1 // the caller has no memory for copies of retained frames
	must := func(op Op) {
		t.Helper()
		if err := s.Apply(0, op, &out); err != nil {
			t.Fatal(err)
		}
	}
	in := func(p Packet) {
		p.Group, p.DestQP, p.Verified, p.RetainBytes = groupIP, groupQPN, true, minFrameBytes
		s.Input(0, &p, &out)
	}
	aeth := func(name string, psn rocev2.PSN, syn rocev2.Syndrome) {
		in(Packet{Src: ipOf(name), Op: rocev2.Acknowledge, PSN: psn, Syndrome: syn})
	}
	send := func(psn rocev2.PSN) {
		in(Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: psn, Payload: 8, AckReq: true, Frame: Handle(psn) + 1})
	}
	var st GroupStatus
	if s.Group(3).Snapshot(&st) {
		t.Error("a group that was not put has a status")
	}
	must(PutGroup{spec})
	joinTree(t, s, 3)
	s.Advance(0, &out)
	if !s.Group(3).Snapshot(&st) || st.HasSource || st.Source != 0 || st.Failed || st.Retained+st.RetainedMax != 0 {
		t.Errorf("before any data: %+v", st)
	}
	for i, name := range []string{"B", "C", "D", "E"} {
		if m := st.Members[i+1]; !m.Unverified || m.RegisteredPSN != rocev2.PSN(100*(i+1)) || m.HoldsACK || m.Source || m.Joining {
			t.Errorf("%s before any data: %+v", name, m)
		}
		if name != "E" {
			aeth(name, rocev2.PSN(100*(i+1)).Prev(), rocev2.SyndromeACK)
		}
	}
	if m := st.Members[6]; m.Unverified || m.Leg != 5 {
		t.Errorf("a member behind a switch: %+v", m)
	}
	must(RemoveMember{3, 4}) // E has not shown its numbering
	send(0)
	send(1)
	send(2)
	aeth("B", 102, rocev2.SyndromeACK)
	aeth("C", 201, rocev2.SyndromeNAKSequence) // served from the store
	aeth("D", 300, rocev2.SyndromeACK)
	must(AddMember{3, MemberSpec{MemberRecord: MemberRecord{IP: ipOf("H"), QPN: 0x30, RQPSN: 7}, Number: 8, Leg: 6}, LegSpec{}, 0})
	for range mismatchThreshold {
		p := Packet{Group: groupIP, Src: ipOf("B"), Op: rocev2.SendOnly, DestQP: 0x99}
		s.Input(0, &p, &out)
	}
	old := st.Members[:1]
	s.Group(3).Snapshot(&st)
	if &old[0] != &st.Members[0] && cap(old) >= len(st.Members) {
		t.Error("the slice of members was not used again")
	}
	last := rocev2.PSN(2)
	want := []MemberStatus{
		{Leg: 0, Live: true, Source: true, Unverified: true},
		{Leg: 1, Live: true, Acked: last},
		{Leg: 2, Live: true, Acked: 0, Lag: 2, Recovering: true},
		{Leg: 3, Live: true, Acked: 0, Lag: 2},
		{Leg: 4},
		{Leg: 5, Live: true, Acked: 0xFFFFFF, Lag: 3, HoldsACK: true},
		{Leg: 5, Live: true, Acked: 0xFFFFFF, Lag: 3, HoldsACK: true},
		{Leg: 6, Live: true, Joining: true, Unverified: true, RegisteredPSN: 7},
	}
	for i := range want {
		w, name := &want[i], string(rune('A'+i))
		w.IP, w.QPN = ipOf(name), rocev2.QPN(0x20+i)
		if i == 7 {
			w.QPN = 0x30
		} else if i < 5 && w.RegisteredPSN == 0 {
			w.RegisteredPSN = s.groups[3].members[i].ePSN // that of a receiver is not current
		}
		w.Mismatches = st.Members[i].Mismatches
		if got := st.Members[i]; got != *w {
			t.Errorf("%s: %+v, want %+v", name, got, *w)
		}
	}
	if a := s.Group(3).Awaited(); a != (Awaited{Legs: 1, Alone: true, PSN: 0}) {
		t.Errorf("the leg of F and G is awaited alone: %+v", a)
	}
	for was, want := range map[MemberID]MemberID{0: 5, 2: 5, 5: 5, 6: 6, 1000: 5} {
		if m, ok := s.Group(3).AwaitedMember(was); m != want || !ok {
			t.Errorf("after member %d: member %d, %v; want %d, behind the leg of F and G", was, m, ok, want)
		}
	}
	s.groups[3].policy.quorum = 1
	if a := s.Group(3).Awaited(); a.Alone {
		t.Errorf("under a quorum nobody is awaited alone: %+v", a)
	}
	s.groups[3].policy.quorum = 0
	if m := st.Members[1].Mismatches[VirtualQPN]; m.Observed != 0x99 || m.Registered != groupQPN || !m.Confirmed() {
		t.Errorf("B's virtual QPN: %+v", m)
	}
	st.Members, st.InTree, st.Token = nil, false, TokenStatus{}
	counters := st.Counters
	st.Counters = Counters{}
	if w := (GroupStatus{ID: 3, IP: groupIP, QPN: groupQPN, Policy: Evict, HasSource: true, Acked: 0xFFFFFF, Nxt: 3, Retained: 3 * minFrameBytes, RetainedMax: 3 * minFrameBytes}); !reflect.DeepEqual(st, w) {
		t.Errorf("%+v, want %+v", st, w)
	}
	if counters.DataIn != 3 || counters.NAKsServed != 1 || counters.Drops[WrongQPN] != mismatchThreshold {
		t.Errorf("%+v", counters)
	}

	// A member that has left shows nothing of its leg, which goes on for another one.
	must(AddMember{3, MemberSpec{MemberRecord: MemberRecord{IP: ipOf("I"), QPN: 0x31}, Number: 9, Leg: 7}, LegSpec{Kind: Forwarded, Neighbor: 10}, 0})
	must(AddMember{3, MemberSpec{MemberRecord: MemberRecord{IP: ipOf("J"), QPN: 0x32}, Number: 10, Leg: 7}, LegSpec{}, 0})
	must(UpdateMembers{Group: 3, Remove: []MemberID{5, 8}})
	s.Group(3).Snapshot(&st)
	for _, i := range []int{5, 8} {
		w := MemberStatus{IP: st.Members[i].IP, QPN: st.Members[i].QPN, Leg: st.Members[i].Leg}
		if st.Members[i] != w || !st.Members[i+1].Live {
			t.Errorf("member %d has left: %+v", i, st.Members[i])
		}
	}
	if m, ok := s.Group(3).AwaitedMember(5); m != 6 || !ok {
		t.Errorf("F has left, and member %d is awaited, %v; want G, behind the same leg", m, ok)
	}
	if !st.Members[9].Joining || st.Members[6].Lag != 3 {
		t.Errorf("%+v, %+v", st.Members[6], st.Members[9])
	}

	// All is acknowledged but for the leg of F and G, whose NAK ends the group when D has gone.
	in(Packet{Src: ipOf("A"), Neighbor: 9, Op: rocev2.Acknowledge, PSN: 1, Syndrome: rocev2.SyndromeACK, MSN: s.groups[3].tagOf(0)})
	s.Group(3).Snapshot(&st)
	if st.Acked != 0 || st.Retained != 2*minFrameBytes || st.RetainedMax != 3*minFrameBytes || !st.Members[3].HoldsACK || st.Members[6].HoldsACK {
		t.Errorf("%+v", st)
	}
	if a := s.Group(3).Awaited(); a != (Awaited{Legs: 2, PSN: 1}) {
		t.Errorf("C and D are awaited: %+v", a)
	}
	for was, want := range map[MemberID]MemberID{1: 2, 2: 2, 3: 3, 5: 2} { // member 5 has left
		if m, ok := s.Group(3).AwaitedMember(was); m != want || !ok {
			t.Errorf("after member %d: member %d, %v; want %d of C and D", was, m, ok, want)
		}
	}
	s.groups[3].policy.minReceivers = 100 // nobody can be evicted
	aeth("D", 301, rocev2.SyndromeNAKOpErr)
	aeth("C", 202, rocev2.SyndromeACK)
	s.Group(3).Snapshot(&st)
	if !st.Failed || st.FailPSN != 1 || st.FailSyndrome != rocev2.SyndromeNAKOpErr || st.FailCause != rocev2.SyndromeNAKOpErr || st.FailMember != 3 || st.Retained != 0 || st.Members[3].Pending != rocev2.SyndromeNAKOpErr {
		t.Errorf("%+v", st)
	}
	if a := s.Group(3).Awaited(); a != (Awaited{}) {
		t.Errorf("a failed group awaits %+v", a)
	}
	if m, ok := s.Group(4).AwaitedMember(0); ok {
		t.Errorf("a group that does not exist awaits member %d", m)
	}
	s.groups[3].outcomes = nil // as after SetState
	if s.Group(3).Snapshot(&st); !st.Failed || st.FailCause != 0 {
		t.Errorf("%+v", st)
	}
}

// TestHoldsACK: a receiver holds the ACK of its group while it is as low as the group's
// and something is in flight.
func TestHoldsACK(t *testing.T) {
	for i, c := range []struct {
		acked, group, nxt rocev2.PSN
		want              bool
	}{
		{4, 4, 6, true},
		{3, 4, 6, true},
		{5, 4, 6, false},
		{5, 5, 6, false},
		{4, 5, 6, false}, // behind a quorum that has all
	} {
		s, _ := outcomeGroup(t, 1)
		serve(s, ipOf("A"), rocev2.SendOnly, 0, 0)
		g := s.groups[0]
		g.acks[1].acked, g.agg.acked, g.fwd.nxt = c.acked, c.group, c.nxt
		g.agg.numAtAcked = 0
		if g.isAwaited(1) {
			g.agg.numAtAcked = 1
		}
		var st GroupStatus
		s.Group(0).Snapshot(&st)
		if m, ok := s.Group(0).AwaitedMember(0); s.Group(0).Awaited().Legs > 0 != c.want || c.want && (m != 1 || !ok) {
			t.Errorf("case %d: %+v, member %d, %v", i, s.Group(0).Awaited(), m, ok)
		}
		if m := st.Members[1]; m.HoldsACK != c.want || m.Lag != c.nxt.Prev().Sub(c.acked) {
			t.Errorf("case %d: %+v", i, m)
		}
	}
}
