// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// outcomeGroup is a group of three members under Evict. Member i begins at PSN 1000*i.
func outcomeGroup(t *testing.T, generation uint64) (*Switch, *GroupSpec) {
	s := New(Limits{})
	spec := &GroupSpec{IP: ipOf("G"), Generation: generation, GroupParams: GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: Evict}}
	for i, name := range []string{"A", "B", "C"} {
		spec.Legs = append(spec.Legs, LegSpec{Port: Port(i)})
		spec.Members = append(spec.Members, MemberSpec{
			MemberRecord: MemberRecord{IP: ipOf(name), QPN: rocev2.QPN(0x100 + i), SQPSN: rocev2.PSN(1000 * i), RQPSN: rocev2.PSN(1000 * i)}, Leg: LegID(i),
		})
	}
	var out Output
	if err := s.Apply(0, PutGroup{Spec: *spec}, &out); err != nil {
		t.Fatal(err)
	}
	return s, spec
}

func serve(s *Switch, from netip.Addr, op rocev2.Opcode, psn rocev2.PSN, syn rocev2.Syndrome) {
	var out Output
	s.Input(0, &Packet{Group: ipOf("G"), Src: from, Op: op, DestQP: 0x4711, PSN: psn, AckReq: true, Syndrome: syn, Verified: true}, &out)
}

// TestOutcomesOutliveEvents: the decisions of a group can be read after any number of
// events, whether the driver has read the events or not.
func TestOutcomesOutliveEvents(t *testing.T) {
	s, _ := outcomeGroup(t, 7)
	a, b, c := ipOf("A"), ipOf("B"), ipOf("C")
	serve(s, a, rocev2.SendOnly, 0, 0)
	serve(s, b, rocev2.Acknowledge, 1000, rocev2.SyndromeACK)
	serve(s, c, rocev2.Acknowledge, 2000, rocev2.SyndromeNAKOpErr) // acknowledges 1999, and is evicted
	const turns = 3000
	p := [2]rocev2.PSN{1, 1000}
	for i := range turns {
		src, other, at := a, b, rocev2.PSN(1001)
		if i%2 == 0 {
			src, other, at = b, a, 0
		}
		k := (i + 1) % 2
		serve(s, src, rocev2.SendOnly, p[k], 0)
		serve(s, other, rocev2.Acknowledge, at.Add(int32(i/2)), rocev2.SyndromeACK)
		p[k] = p[k].Next()
	}
	var o Outcomes
	if !s.Group(0).Outcomes(&o) || o.Generation != 7 || o.Turns != turns+1 || o.LastSource.Member != 0 || o.Failure.Kind != 0 {
		t.Errorf("%+v", o)
	}
	if len(o.Evicted) != 3 || o.Evicted[0].Kind != 0 || o.Evicted[1].Kind != 0 {
		t.Fatalf("evicted: %+v", o.Evicted)
	}
	if e := o.Evicted[2]; e.Kind != MemberEvicted || e.Member != 2 || e.Syndrome != rocev2.SyndromeNAKOpErr || e.PSN != rocev2.PSN(0).Prev() {
		t.Errorf("the outcome of C is %+v", e)
	}
}

// TestOutcomesEndWithTheirSubject: a member's outcome ends when another member takes over
// its MemberID, and all outcomes end when the group is put anew.
func TestOutcomesEndWithTheirSubject(t *testing.T) {
	s, spec := outcomeGroup(t, 1)
	serve(s, ipOf("A"), rocev2.SendOnly, 0, 0)
	serve(s, ipOf("B"), rocev2.Acknowledge, 1000, rocev2.SyndromeNAKOpErr)
	serve(s, ipOf("C"), rocev2.Acknowledge, 2000, rocev2.SyndromeACK)
	var o Outcomes
	var out Output
	if s.Group(0).Outcomes(&o); o.Evicted[1].Kind != MemberEvicted {
		t.Fatalf("B was not evicted: %+v", o)
	}
	add := AddMember{Member: MemberSpec{MemberRecord: MemberRecord{IP: ipOf("D"), QPN: 0x777}, Leg: 1}}
	if err := s.Apply(0, add, &out); err != nil {
		t.Fatal(err)
	}
	if s.Group(0).Outcomes(&o); o.Evicted[1].Kind != 0 {
		t.Errorf("D has the outcome of B: %+v", o.Evicted[1])
	}
	serve(s, ipOf("C"), rocev2.Acknowledge, 2001, rocev2.SyndromeNAKOpErr)
	spec.Generation = 2
	if err := s.Apply(0, PutGroup{Spec: *spec}, &out); err != nil {
		t.Fatal(err)
	}
	if s.Group(0).Outcomes(&o); o.Generation != 2 || o.Turns != 0 || o.LastSource.Kind != 0 || len(o.Evicted) != 0 {
		t.Errorf("the new group begins with %+v", o)
	}
	if err := s.Apply(0, DeleteGroup{}, &out); err != nil {
		t.Fatal(err)
	}
	if s.Group(0).Outcomes(&o) || len(o.Evicted) != 0 || o.Generation != 0 {
		t.Errorf("a deleted group has outcomes %+v", o)
	}
}
