// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Times and numbers at which the answer of the switch changes: one below, at, and above
// them.

func TestR17_Strangers(t *testing.T)          { runTranscript(t) }
func TestR19_WhichNakOfSeveral(t *testing.T)  { runTranscript(t) }
func TestR37_NobodyElseHasIt(t *testing.T)    { runTranscript(t) }
func TestR46_HowLong(t *testing.T)            { runTranscript(t) }
func TestR64_HowLong(t *testing.T)            { runTranscript(t) }
func TestR65_HowLong(t *testing.T)            { runTranscript(t) }
func TestR68_HowLong(t *testing.T)            { runTranscript(t) }
func TestR77_DrainedAndReserved(t *testing.T) { runTranscript(t) }

// TestTimesOfAGroup: what a specification says, and leaves to the defaults, becomes the
// group's times and limits. Receivers are looked after at least as often as the shorter
// of an eighth of DeadAfter and half of LagTime asks for.
func TestTimesOfAGroup(t *testing.T) {
	const ms, us = time.Millisecond, time.Microsecond
	for _, c := range []struct{ dead, lag, period time.Duration }{
		{0, 0, 0}, {160 * ms, 0, 20 * ms}, {0, 10 * ms, 5 * ms}, {160 * ms, 10 * ms, 5 * ms}, {32 * ms, 10 * ms, 4 * ms},
		{0, ms, ms}, {0, 3 * ms, 3 * ms / 2}, {4000 * us, ms, 500 * us}, {4008 * us, ms, ms},
	} {
		g := &group{}
		if g.setPolicy(&GroupSpec{GroupParams: GroupParams{Policy: Evict, DeadAfter: c.dead, LagTime: c.lag}}); g.live.period != c.period || g.live.deadAfter != c.dead || g.lag.time != c.lag {
			t.Errorf("DeadAfter %v, LagTime %v: looked after each %v, want %v", c.dead, c.lag, g.live.period, c.period)
		}
	}
	for _, c := range []struct{ set, stall, turn time.Duration }{
		{0, DefaultSourceTimeout, DefaultTurnTime}, {-1, 0, 0}, {1, 1, 1}, {time.Hour, time.Hour, time.Hour},
	} {
		g := &group{}
		if g.setPolicy(&GroupSpec{SourceTimeout: c.set, TurnTime: c.set}); g.turn.sourceTimeout != c.stall || g.turn.time != c.turn {
			t.Errorf("%v: a source may be silent for %v, a turn lasts %v; want %v and %v", c.set, g.turn.sourceTimeout, g.turn.time, c.stall, c.turn)
		}
	}
	for _, c := range []struct {
		spec          GroupSpec
		psns, quorum  int32
		needs, behind int32
	}{
		{GroupSpec{GroupParams: GroupParams{Policy: Strict}}, 0, 0, 1<<31 - 1, 0},
		{GroupSpec{GroupParams: GroupParams{Policy: Evict, LagPSNs: 7}}, 7, 0, 1, 0},
		{GroupSpec{GroupParams: GroupParams{Policy: Evict}}, 0, 0, 1, 0},
		{GroupSpec{GroupParams: GroupParams{Policy: Quorum, Quorum: 3}}, maxBehind, 3, 3, -3},
		{GroupSpec{GroupParams: GroupParams{Policy: Quorum, Quorum: 2, LagPSNs: 9}}, 9, 2, 2, -2},
	} {
		g := &group{}
		if g.setPolicy(&c.spec); g.lag.psns != c.psns || g.policy.quorum != c.quorum || g.policy.minReceivers != c.needs || g.agg.allowedBehind != c.behind {
			t.Errorf("%+v: lag %d, quorum %d, needs %d, behind %d", c.spec, g.lag.psns, g.policy.quorum, g.policy.minReceivers, g.agg.allowedBehind)
		}
	}
}

// TestR78_ReservedForHowLong: a turn is reserved for the next member up to turnReserved
// after its last request, and the next member's answer is the short wait up to
// turnReserved after the end of the turn.
func TestR78_ReservedForHowLong(t *testing.T) {
	end := func() *sharing {
		s := newSharing(t, 4, 0)
		s.asks(0)
		s.asks(1)
		if s.now += DefaultTurnTime - 1; s.asks(1) != turnRNRCode {
			t.Fatal("the turn ends too soon")
		}
		if s.now++; s.asks(1) != turnSoon {
			t.Fatal("the turn does not end")
		}
		return s
	}
	s := end()
	for range 4 { // the receivers are slow
		s.now += turnReserved / 5
		if s.asks(1) != turnSoon {
			t.Error("the next member is told to wait long")
		}
	}
	if s.now += turnReserved/5 - 1; s.asks(1) != turnSoon {
		t.Error("the next member is told to wait long, too soon")
	}
	if s.now++; s.asks(1) != turnRNRCode {
		t.Error("the next member is told to wait shortly, too long")
	}
	s = end()
	s.served()
	if s.now += turnReserved - 1; s.asks(2) == 0 || s.sw.groups[0].turn.next != 1 {
		t.Error("the turn is not reserved")
	}
	if s.now++; s.asks(2) != 0 {
		t.Error("the turn is reserved for too long")
	}
	s = end()
	if s.now += turnReserved - 1; s.asks(2) != turnRNRCode || s.sw.groups[0].turn.next != 1 {
		t.Error("another member is next, too soon")
	}
	if s.now++; s.asks(2) != turnRNRCode || s.sw.groups[0].turn.next != 2 || s.sw.groups[0].turn.misses != 1 {
		t.Errorf("another member is not next: %+v", s.sw.groups[0].turn)
	}
}

// TestR78_NothingIsReservedBeforeTheEnd: while no turn ends, any member becomes the source as
// soon as everything is acknowledged, also if another member is next. Of members that began
// to wait at the same time, the first to ask is next, and after its turn the member with the
// lowest MemberID.
func TestR78_NothingIsReservedBeforeTheEnd(t *testing.T) {
	s := newSharing(t, 4, 0)
	s.asks(0)
	for _, m := range []MemberID{3, 2, 1} {
		s.asks(m)
	}
	if next := s.sw.groups[0].turn.next; next != 3 {
		t.Errorf("member %d is next, want the first to ask", next)
	}
	s.served()
	if s.asks(3) != 0 || s.sw.groups[0].turn.next != 1 {
		t.Errorf("member 3 is not the source, or member %d is next", s.sw.groups[0].turn.next)
	}
	s.served()
	if s.asks(2) != 0 {
		t.Error("member 2 is not the source")
	}
}

// TestR43_TriesWithoutRoom: NAKs count as tries also when the caller has no memory for
// copies, so that the cursor stays.
func TestR43_TriesWithoutRoom(t *testing.T) {
	r := newRepairRig(t, nil)
	r.data(0, 0, 1000)
	r.feedback("C", rocev2.SyndromeACK, 0)
	r.out.MaxResends = -1
	for try := range 3 {
		r.feedback("B", rocev2.SyndromeNAKSequence, 0)
		if len(r.out.Feedback)+len(r.out.Copies) > 0 {
			t.Fatalf("try %d: %+v, %+v", try, r.out.Feedback, r.out.Copies)
		}
	}
	if r.feedback("B", rocev2.SyndromeNAKSequence, 0); len(r.out.Feedback) != 1 {
		t.Error("the source is not told after three tries")
	}
}

// TestR51_ProbePutOffIsAProbe: a probe that the port did not take goes out later as a
// probe, and alone.
func TestR51_ProbePutOffIsAProbe(t *testing.T) {
	r := newRepairRig(t, nil)
	for psn := range rocev2.PSN(3) {
		r.sw.Input(r.now, &Packet{
			Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Verified: true, Op: rocev2.SendOnly, PSN: psn, AckReq: psn == 2, Frame: Handle(psn), RetainBytes: 100,
		}, &r.out)
	}
	r.feedback("C", rocev2.SyndromeACK, 2)
	for n := range 3 {
		at, ok := r.sw.NextDeadline()
		if !ok {
			t.Fatal("nobody waits")
		}
		r.now = at
		r.sw.Advance(at, &r.out)
		if n == 0 && len(r.out.Copies) == 0 { // the time of the first AckReq
			continue
		}
		if len(r.out.Copies) != 1 || r.out.Copies[0].PSN != 0 || r.out.Copies[0].Flags != SetAckReq {
			t.Fatalf("at %v: %+v, want a probe", at, r.out.Copies)
		}
		if n < 2 && !r.sw.Requeue(&r.out.Copies[0], at+time.Millisecond) {
			t.Fatal("lost")
		}
	}
}

func TestR21_NotBySwitch(t *testing.T)          { runTranscript(t) }
func TestR29_WhatEndsWithATurn(t *testing.T)    { runTranscript(t) }
func TestR36_RepeatedUnderAQuorum(t *testing.T) { runTranscript(t) }
func TestR42_WhatIsNotRetained(t *testing.T)    { runTranscript(t) }
func TestR77_EndingAndRefused(t *testing.T)     { runTranscript(t) }

func TestR26_WhoLeftBefore(t *testing.T) { runTranscript(t) }
