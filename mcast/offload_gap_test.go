// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestBehindGap: what is dropped behind a gap before an offloaded group is data that the source will
// send again anyway; for everything else the group is taken back.
func TestBehindGap(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Switch, *Packet)
		drop   Reason
		revoke bool
		verify bool
	}{
		"a gap":                    {func(s *Switch, p *Packet) {}, BehindGap, false, false},
		"the farthest packet":      {func(s *Switch, p *Packet) { p.PSN = 8 }, BehindGap, false, false},
		"too far":                  {func(s *Switch, p *Packet) { p.PSN = 9 }, None, true, false},
		"the next packet":          {func(s *Switch, p *Packet) { p.PSN = 1 }, None, true, false},
		"a repeated packet":        {func(s *Switch, p *Packet) { p.PSN = 0 }, None, true, false},
		"a source behind a switch": {func(s *Switch, p *Packet) { p.Neighbor = 3; s.group(0).src.neighbor = 3 }, None, true, false},
		"a wrong length":           {func(s *Switch, p *Packet) { p.Payload = 2000 }, None, true, false},
		"a READ":                   {func(s *Switch, p *Packet) { p.Op = rocev2.ReadRequest }, None, true, false},
		"targets":                  {func(s *Switch, p *Packet) { s.group(0).fwd.targets = newTargets(3) }, None, true, false},
		"a joining leg":            {func(s *Switch, p *Packet) { s.group(0).set(joiners, true) }, None, true, false},
		"an unverified packet":     {func(s *Switch, p *Packet) { p.Verified = false }, None, false, true},
	} {
		s, out := offloaded(t, nil)
		p := dataOf(3)
		c.change(s, p)
		s.Input(1, p, out)
		if out.Drop != c.drop || out.NeedRevoke != c.revoke || out.NeedVerify != c.verify {
			t.Errorf("%s: drop %v, revoke %v, verify %v; want %v, %v, %v", name, out.Drop, out.NeedRevoke, out.NeedVerify, c.drop, c.revoke, c.verify)
		}
		if gap := s.group(0).is(lostNxt); gap != (c.drop == BehindGap) {
			t.Errorf("%s: gap %v", name, gap)
		}
	}
}

// TestGapIsOver: a gap is closed by the missing packet, which serves the NAK of it, and is
// forgotten when the group is taken back.
func TestGapIsOver(t *testing.T) {
	begin := func() (*Switch, *group, *Output) {
		s, out := offloaded(t, nil)
		for _, n := range []string{"B", "C"} {
			s.Input(1, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf(n), Op: rocev2.Acknowledge, PSN: 0, Verified: true}, out)
		}
		s.Input(1, dataOf(3), out)
		g := s.group(0)
		if !g.is(lostNxt) || g.agg.request != (request{psn: 1, severity: sevSequence}) {
			t.Fatalf("gap %v, NAK %+v", g.is(lostNxt), g.agg.request)
		}
		return s, g, out
	}
	s, g, out := begin()
	s.InputForwarded(2, 0, dataOf(1), out)
	if g.is(lostNxt) || !g.agg.request.served {
		t.Errorf("after the missing packet: gap %v, NAK served %v", g.is(lostNxt), g.agg.request.served)
	}
	s, g, out = begin()
	if s.Revoked(2, 0, out); g.is(lostNxt) {
		t.Error("a gap before a group that is not offloaded")
	}
}

// TestGapAsksWhoOwesAnAnswer: only legs in sync that have not acknowledged the last packet before the
// gap are sent it again, and they are probed later if that was not possible.
func TestGapAsksWhoOwesAnAnswer(t *testing.T) {
	ack := &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf("B"), Op: rocev2.Acknowledge, PSN: 0, Verified: true}
	for name, c := range map[string]struct {
		change func(*Switch, *Output)
		copies []LegID
	}{
		"both":              {func(*Switch, *Output) {}, []LegID{1, 2}},
		"one has it":        {func(s *Switch, out *Output) { s.Input(1, ack, out) }, []LegID{2}},
		"one recovers":      {func(s *Switch, _ *Output) { s.group(0).acks[2].flags |= recovering }, []LegID{1}},
		"one has sent NAKs": {func(s *Switch, _ *Output) { s.group(0).setPending(&s.group(0).acks[1], sevSequence, 0) }, []LegID{2}},
		"no memory":         {func(_ *Switch, out *Output) { out.MaxResends = -1 }, nil},
		"not retained":      {func(s *Switch, out *Output) { s.group(0).repair.store.reset(1, out) }, nil},
		"a full port": {func(_ *Switch, out *Output) {
			out.PortRoom = func(_ GroupID, l LegID) (int, time.Duration) { return int(l) - 1, 1 }
		}, []LegID{2}},
	} {
		s, out := offloaded(t, nil)
		c.change(s, out)
		s.Input(1, dataOf(3), out)
		var legs []LegID
		for _, x := range out.Copies {
			if x.PSN != 0 || x.Flags&SetAckReq == 0 {
				t.Errorf("%s: %+v", name, x)
			}
			legs = append(legs, x.Leg)
		}
		if !slices.Equal(legs, c.copies) {
			t.Errorf("%s: legs %v are asked, want %v", name, legs, c.copies)
		}
		if at, ok := s.NextDeadline(); !ok || at > time.Second {
			t.Errorf("%s: nobody is probed", name)
		}
	}
}
