// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestR32_WeightAfterATime: a weight is halved in each half-life, and falls linearly in
// between.
func TestR32_WeightAfterATime(t *testing.T) {
	for _, c := range []struct {
		weight uint32
		after  time.Duration
		want   uint32
	}{
		{1000, 0, 1000},
		{1000, cnpHalfLife, 500},
		{1000, 2 * cnpHalfLife, 250},
		{1000, cnpHalfLife / 2, 750},
		{1000, 3 * cnpHalfLife / 2, 375},
		{1 << 20, cnpHalfLife - 1, 1<<19 + 1},
		{cnpMaxWeight, 24 * cnpHalfLife, 1},
		{cnpMaxWeight, 25 * cnpHalfLife, 0},
		{cnpMaxWeight, 32 * cnpHalfLife, 0},
		{cnpMaxWeight, 33 * cnpHalfLife, 0},
		{cnpMaxWeight, 64 * cnpHalfLife, 0},
		{cnpMaxWeight, time.Hour, 0},
		{0, cnpHalfLife / 2, 0},
	} {
		if got := decayedWeight(c.weight, c.after); got != c.want {
			t.Errorf("%d after %v is %d, want %d", c.weight, c.after, got, c.want)
		}
	}
}

// congestion is a group with source A and receivers B, C and D, of which some send
// signals.
func congestion(t *testing.T) (g *group, cnp func(now time.Duration, from string) bool) {
	s := New(Limits{})
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024}}
	for i, name := range []string{"A", "B", "C", "D"} {
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: 0x11}, Leg: LegID(i)})
	}
	var out Output
	if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
		t.Fatal(err)
	}
	s.Input(0, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Verified: true, Op: rocev2.SendOnly}, &out)
	return s.groups[0], func(now time.Duration, from string) bool {
		t.Helper()
		s.Input(now, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf(from), Verified: true, Op: rocev2.CNP, BECN: true}, &out)
		passes := len(out.Feedback) == 1
		if passes && out.Feedback[0] != (Feedback{Op: rocev2.CNP, BECN: true}) || passes != (out.Drop == None) || !passes && out.Drop != CNPFiltered {
			t.Fatalf("a CNP of %s: %+v, drop %v", from, out.Feedback, out.Drop)
		}
		return passes
	}
}

// TestR32_GapBetweenCNPs: two CNPs to the source are at least cnpGap apart, and the time
// of one that was filtered does not count.
func TestR32_GapBetweenCNPs(t *testing.T) {
	_, cnp := congestion(t)
	for _, c := range []struct {
		at     time.Duration
		passes bool
	}{
		{0, true}, {cnpGap - 1, false}, {cnpGap, true}, {2*cnpGap - 1, false}, {2 * cnpGap, true}, {time.Second, true}, {time.Second, false},
	} {
		if got := cnp(c.at, "B"); got != c.passes {
			t.Errorf("a CNP at %v passes: %v", c.at, got)
		}
	}
}

// TestR32_TheHeaviestLegPasses: the signals of a leg pass until another leg weighs more
// than a tenth more. Of other legs those pass that weigh as much, or all once the leg has
// been silent for longer than cnpSilence.
func TestR32_TheHeaviestLegPasses(t *testing.T) {
	const us = time.Microsecond
	type step struct {
		at    time.Duration
		leg   int
		times int
		last  bool // true: the last of them passes
		heavy int32
	}
	for name, steps := range map[string][]step{
		"the first one":              {{0, 1, 1, true, 1}},
		"as heavy":                   {{0, 1, 1, true, 1}, {0, 2, 1, true, 1}, {0, 1, 2, true, 1}, {0, 2, 1, false, 1}, {0, 2, 1, true, 1}},
		"a tenth more is not enough": {{0, 1, 10, true, 1}, {0, 2, 9, false, 1}, {0, 2, 2, true, 1}, {0, 1, 1, true, 1}},
		"more than a tenth more":     {{0, 1, 10, true, 1}, {0, 2, 12, true, 2}, {0, 1, 1, false, 2}, {0, 2, 1, true, 2}},
		"silence":                    {{0, 1, 30, true, 1}, {100 * us, 2, 1, false, 1}, {100*us + 1, 2, 1, true, 1}},
		"no silence":                 {{0, 1, 30, true, 1}, {50 * us, 1, 1, true, 1}, {150 * us, 2, 1, false, 1}, {150*us + 1, 3, 1, true, 1}},
		"the time of a takeover":     {{0, 1, 10, true, 1}, {60 * us, 2, 12, true, 2}, {120 * us, 3, 1, false, 2}, {160 * us, 3, 1, false, 2}, {160*us + 1, 3, 1, true, 2}},
		"a long time after":          {{0, 1, 30, true, 1}, {20 * time.Millisecond, 2, 1, true, 2}, {20 * time.Millisecond, 1, 1, true, 2}},
	} {
		g, _ := congestion(t)
		for _, s := range steps {
			var passes bool
			for range s.times {
				passes = g.noteSignal(s.at, s.leg)
			}
			if passes != s.last || g.cnp.leg != s.heavy {
				t.Errorf("%s: leg %d at %v passes: %v, and leg %d is the heaviest", name, s.leg, s.at, passes, g.cnp.leg)
			}
		}
	}
}

// TestR32_WeightsSaturate: a weight does not rise above cnpMaxWeight.
func TestR32_WeightsSaturate(t *testing.T) {
	g, _ := congestion(t)
	l := &g.activity[1]
	l.cnpWeight, l.cnpWeightAt = cnpMaxWeight-cnpUnit, time.Second
	for range 2 {
		if w := g.addSignal(time.Second, 1); w != cnpMaxWeight {
			t.Errorf("%d, want %d", w, cnpMaxWeight)
		}
	}
	if w := g.addSignal(time.Second+cnpHalfLife, 1); w != cnpMaxWeight/2+cnpUnit || l.cnpWeightAt != time.Second+cnpHalfLife {
		t.Errorf("%d, a half-life later", w)
	}
}

// TestR32_WeightsEndWithTheTurn: the signals of a turn do not weigh in the next one.
func TestR32_WeightsEndWithTheTurn(t *testing.T) {
	g, _ := congestion(t)
	for range 9 {
		g.noteSignal(0, 1)
	}
	var out Output
	for i := 1; i < 4; i++ {
		g.sw.Input(0, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf(string(rune('A' + i))), Verified: true, Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeACK}, &out)
	}
	g.sw.Input(0, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf("D"), Verified: true, Op: rocev2.SendOnly}, &out)
	if g.src.member != 3 || g.cnp.leg != none {
		t.Fatalf("member %d is the source, leg %d the heaviest", g.src.member, g.cnp.leg)
	}
	g.noteSignal(0, 2)
	if g.noteSignal(0, 1); g.cnp.leg != 2 {
		t.Errorf("leg %d is the heaviest after one signal each, want the first one", g.cnp.leg)
	}
}
