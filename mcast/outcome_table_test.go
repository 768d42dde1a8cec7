// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"reflect"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestR72_MismatchCounts: a number that differs is reported once, when it was seen
// mismatchThreshold times in a row. Of PSNs the lowest counts; a later one says nothing.
func TestR72_MismatchCounts(t *testing.T) {
	type seen struct {
		n    Number
		seen rocev2.PSN
		want rocev2.PSN
	}
	psn := func(p rocev2.PSN) seen { return seen{SendPSN, p, 100} }
	qpn := func(q rocev2.PSN) seen { return seen{VirtualQPN, q, 100} }
	for i, c := range []struct {
		seen  []seen
		n     Number
		want  Mismatch
		event bool
	}{
		{[]seen{psn(7)}, SendPSN, Mismatch{7, 100, 1, false}, false},
		{[]seen{psn(7), psn(7), psn(7)}, SendPSN, Mismatch{7, 100, 3, false}, false},
		{[]seen{psn(7), psn(7), psn(7), psn(7)}, SendPSN, Mismatch{7, 100, 4, true}, true},
		{[]seen{psn(7), psn(7), psn(7), psn(7), psn(7)}, SendPSN, Mismatch{7, 100, 5, true}, true},
		{[]seen{psn(7), psn(8), psn(7)}, SendPSN, Mismatch{7, 100, 2, false}, false},
		{[]seen{psn(7), psn(6)}, SendPSN, Mismatch{6, 100, 1, false}, false},
		{[]seen{psn(7), psn(7), psn(7), psn(7), psn(6)}, SendPSN, Mismatch{6, 100, 1, true}, true},
		{[]seen{psn(7), {SendPSN, 7, 101}}, SendPSN, Mismatch{7, 101, 1, false}, false},
		{[]seen{psn(7), {SendPSN, 8, 101}}, SendPSN, Mismatch{8, 101, 1, false}, false},
		{[]seen{qpn(7), qpn(7), qpn(8), qpn(8), qpn(8)}, VirtualQPN, Mismatch{8, 100, 3, false}, false},
		{[]seen{qpn(7), qpn(8)}, VirtualQPN, Mismatch{8, 100, 1, false}, false},
		{[]seen{qpn(7), psn(7), psn(7)}, VirtualQPN, Mismatch{7, 100, 1, false}, false},
		{nil, VirtualQPN, Mismatch{}, false},
	} {
		s, _ := outcomeGroup(t, 1)
		g := s.groups[0]
		var out Output
		if g.mismatch(1, c.n) != nil {
			t.Fatal("a mismatch before any")
		}
		for _, x := range c.seen {
			g.noteMismatch(1, x.n, x.seen, x.want, &out)
		}
		var o Outcomes
		s.Group(0).Outcomes(&o)
		var got Mismatch
		if len(o.Mismatches) > 0 {
			got = o.Mismatches[1][c.n]
		} else if m := g.mismatch(1, c.n); m != nil {
			got = *m
		}
		if got != c.want || got.Confirmed() != c.event {
			t.Errorf("case %d: %+v, confirmed %v; want %+v", i, got, got.Confirmed(), c.want)
		}
		if n := len(out.Events); n != int(o.MismatchesReported) || c.event != (n == 1) || n > 1 {
			t.Errorf("case %d: %d events, reported %d", i, n, o.MismatchesReported)
		}
		if c.event {
			e := out.Events[0]
			if e.Kind != NumberMismatch || e.Member != 1 || e.Number != c.n || e.PSN != 7 || e.Registered != 100 {
				t.Errorf("case %d: %+v", i, e)
			}
		}
	}
	s, _ := outcomeGroup(t, 1)
	g, out := s.groups[0], new(Output)
	g.noteMismatch(1, VirtualQPN, 7, 100, out)
	m := g.mismatch(1, VirtualQPN)
	m.Count = math.MaxUint32 - 1
	for range 3 {
		if g.noteMismatch(1, VirtualQPN, 7, 100, out); m.Count != math.MaxUint32 {
			t.Fatalf("counted %d", m.Count)
		}
	}
	if m.Count = 0; m.Confirmed() {
		t.Error("a mismatch that has ended is confirmed")
	}
	// After its end a mismatch begins anew, with any number, and is none before.
	g.noteMismatch(1, SendPSN, 7, 100, out)
	m = g.mismatch(1, SendPSN)
	m.Count = 0
	out.Events = nil
	if g.reportMismatch(1, SendPSN, out); len(out.Events) > 0 {
		t.Errorf("a mismatch that has ended is reported: %+v", out.Events)
	}
	if g.noteMismatch(1, SendPSN, 9, 100, out); *m != (Mismatch{9, 100, 1, false}) {
		t.Errorf("after its end: %+v", *m)
	}
}

// TestR72_RecheckOfTheSource: a PSN that the source has sent before ends a mismatch if it
// is the registered one, or if that one is acknowledged. It counts if it is not above the
// PSN that was seen.
func TestR72_RecheckOfTheSource(t *testing.T) {
	for i, c := range []struct {
		registered, acked, psn rocev2.PSN
		want                   Mismatch
	}{
		{100, 50, 100, Mismatch{110, 100, 0, false}},
		{100, 99, 105, Mismatch{105, 100, 1, false}},
		{100, 100, 105, Mismatch{110, 100, 0, false}},
		{100, 99, 110, Mismatch{110, 100, 2, false}},
		{100, 99, 111, Mismatch{110, 100, 1, false}},
	} {
		s, _ := outcomeGroup(t, 1)
		g, out := s.groups[0], new(Output)
		g.src.member = 0
		g.recheckMismatch(c.psn, out) // there is none
		g.noteMismatch(0, SendPSN, 110, c.registered, out)
		g.agg.acked = c.acked
		if g.recheckMismatch(c.psn, out); *g.mismatch(0, SendPSN) != c.want {
			t.Errorf("case %d: %+v, want %+v", i, *g.mismatch(0, SendPSN), c.want)
		}
		m := g.mismatch(0, SendPSN)
		m.Count = 0
		if g.recheckMismatch(110, out); m.Count != 0 {
			t.Errorf("case %d: a mismatch that has ended counts again", i)
		}
	}
}

// TestOutcomesOfNewMembers: members that join after the first decision have a place for
// their own, and a caller's Outcomes can be used again for any group.
func TestOutcomesOfNewMembers(t *testing.T) {
	s, _ := outcomeGroup(t, 5)
	var out Output
	var o Outcomes
	add := func(name string, leg LegID) {
		t.Helper()
		m := newcomer(name, leg)
		m.Leg.Port = Port(leg)
		if err := s.Apply(0, m, &out); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Group(0).Outcomes(&o) || !reflect.DeepEqual(o, Outcomes{Generation: 5, Evicted: o.Evicted, Mismatches: o.Mismatches}) || len(o.Evicted)+len(o.Mismatches) > 0 {
		t.Errorf("before any decision: %+v", o)
	}
	add("D", 3)
	g := s.groups[0]
	g.noteMismatch(3, VirtualQPN, 1, 2, &out)
	s.Group(0).Outcomes(&o)
	if len(o.Mismatches) != 0 {
		t.Errorf("a mismatch that was seen once is an outcome: %+v", o)
	}
	g.emitCause(&out, MemberEvicted, 1, 9, Silent)
	for range mismatchThreshold {
		g.noteMismatch(3, VirtualQPN, 1, 2, &out)
	}
	add("E", 4)
	add("F", 5)
	g.noteMismatch(5, VirtualQPN, 1, 2, &out)
	g.emitCause(&out, MemberEvicted, 5, 9, Silent)
	s.Group(0).Outcomes(&o)
	if len(o.Evicted) != 6 || o.Evicted[1].Member != 1 || o.Evicted[5].Member != 5 || o.Evicted[4] != (Event{}) {
		t.Errorf("evicted %+v", o.Evicted)
	}
	if len(o.Mismatches) != 6 || o.Mismatches[3][VirtualQPN].Count == 0 || o.Mismatches[5][VirtualQPN].Count != 1 || o.Mismatches[4] != (Mismatches{}) {
		t.Errorf("mismatches %+v", o.Mismatches)
	}
	evicted, mismatches := &o.Evicted[0], &o.Mismatches[0]
	for _, id := range []GroupID{1, 0} { // no group has ID 1
		if ok := s.Group(id).Outcomes(&o); ok != (id == 0) || o.Group != id || !ok && len(o.Evicted)+len(o.Mismatches)+int(o.MismatchesReported) > 0 {
			t.Errorf("group %d: %v, %+v", id, ok, o)
		}
	}
	if &o.Evicted[0] != evicted || &o.Mismatches[0] != mismatches {
		t.Error("the slices of the caller were not used again")
	}
	if o.Evicted[1].Member = 77; s.groups[0].outcomes.Evicted[1].Member != 1 {
		t.Error("the caller's slice is that of the group")
	}
	// The next member of a leg begins without the outcomes of the last one.
	if err := s.Apply(0, RemoveMember{Member: 3}, &out); err != nil {
		t.Fatal(err)
	}
	add("H", 3)
	s.Group(0).Outcomes(&o)
	if o.Mismatches[3] != (Mismatches{}) || o.Mismatches[5][VirtualQPN].Count != 1 {
		t.Errorf("mismatches %+v", o.Mismatches)
	}
}

// TestOutcomesCount: turns and refusals are counted, and the last of each is kept.
func TestOutcomesCount(t *testing.T) {
	s, _ := outcomeGroup(t, 1)
	var out Output
	var o Outcomes
	for i := range MemberID(3) {
		s.groups[0].emitCause(&out, SourceChanged, i, 5, 0)
		s.groups[0].emitCause(&out, SourceRefused, i, 6, rocev2.SyndromeNAKInvalid)
	}
	s.groups[0].emitCause(&out, GroupFailed, 1, 7, rocev2.SyndromeNAKOpErr)
	s.Group(0).Outcomes(&o)
	if o.Turns != 3 || o.LastSource.Member != 2 || o.Refusals != 3 || o.LastRefusal.Member != 2 || o.Failure.Member != 1 || o.Failure.Kind != GroupFailed || len(o.Evicted) > 0 {
		t.Errorf("%+v", o)
	}
	if len(out.Events) != 7 {
		t.Errorf("%d events", len(out.Events))
	}
}

// TestR72_WhoseVirtualQPN: a packet for another QPN tells about its sender, if that is a
// live member.
func TestR72_WhoseVirtualQPN(t *testing.T) {
	s, _ := outcomeGroup(t, 1)
	var out Output
	if err := s.Apply(0, RemoveMember{Member: 2}, &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Z", "C", "B"} {
		events := 0
		for range mismatchThreshold {
			s.Input(0, &Packet{Group: ipOf("G"), Src: ipOf(name), Op: rocev2.SendOnly, DestQP: 0x99, Verified: true}, &out)
			if events += len(out.Events); out.Drop != WrongQPN {
				t.Errorf("a packet of %s: %v", name, out.Drop)
			}
		}
		if want := map[string]int{"B": 1}[name]; events != want {
			t.Errorf("%d events about %s", events, name)
		}
	}
}
