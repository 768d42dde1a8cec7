// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// TestPropertyCoveredAtOnce: a group that hears at once of what all receivers have acknowledged is where one is that has had
// packets and ACKs one by one.
func TestPropertyCoveredAtOnce(t *testing.T) {
	cases, skipped := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		x := &ackPair{tb: t, rng: random(rapid.Uint64().Draw(t, "seed")), covers: true}
		x.begin()
		for range 60 {
			x.step()
		}
		x.settle()
		cases++
		skipped += x.skipped - x.advances
	})
	if skipped < cases { // some seven times as many are usual
		t.Errorf("%d packets were told of together with later ones in %d cases: the test shows nothing", skipped, cases)
	}
}

// reportData reports what is pending: what all receivers have is told of at once.
func (x *ackPair) reportData() {
	g := x.of.group(0)
	lowest := x.psn
	var legs []LegACK
	for i := range x.words {
		if g.acks[i].flags&isReceiver != 0 {
			lowest = rocev2.MinPSN(lowest, x.words[i].Acked)
			legs = append(legs, x.words[i])
		}
	}
	c := Covered{}
	n := 0
	for ; n < len(x.pending) && x.pending[n].PSN.LessEq(lowest); n++ {
		c.Last = *x.pending[n]
		if c.Last.Op.Is(rocev2.OpEnd) {
			c.Ends++
		}
	}
	if n != 0 {
		for i := range legs {
			legs[i].Acked = c.Last.PSN
			x.words[legs[i].Leg].Count = 0
		}
		if !x.of.InputCovered(x.now, 0, &c, legs, x.sent, &x.out[1]) {
			x.tb.Fatalf("packets up to %06x, which all have, are not skipped: %s", c.Last.PSN, x.of.Group(0).OffloadACKs(len(legs)))
		}
		x.note(1)
		x.sent.Count = 0
		x.skipped += n
		x.advances++
	}
	for _, p := range x.pending[n:] {
		x.of.InputForwarded(x.now, 0, p, &x.out[1])
	}
	x.pending = nil
}

// coveredUpTo is what is told of packets up to psn, a MIDDLE, with legs B and C having it.
func coveredUpTo(psn rocev2.PSN, op rocev2.Opcode, ends uint32) (*Covered, []LegACK) {
	c := &Covered{Last: *dataOf(psn), Ends: ends, At: 5}
	c.Last.Op = op
	return c, []LegACK{{Leg: 1, Acked: psn, Count: 1, At: 6}, {Leg: 2, Acked: psn, Count: 1, At: 6}}
}

// What may not be skipped changes nothing.
func TestR114_CoveredIsRefused(t *testing.T) {
	for name, change := range map[string]func(*group, *Covered, []LegACK){
		"a receiver lacks the last packet": func(_ *group, _ *Covered, legs []LegACK) { legs[1].Acked-- },
		"a receiver is not named":          func(g *group, _ *Covered, _ []LegACK) { g.recv.count = 3 },
		"the source is named":              func(_ *group, _ *Covered, legs []LegACK) { legs[1].Leg = 0 },
		"no such leg":                      func(_ *group, _ *Covered, legs []LegACK) { legs[1].Leg = 9 },
		"the packet was reported":          func(_ *group, c *Covered, legs []LegACK) { c.Last.PSN, legs[0].Acked, legs[1].Acked = 0, 0, 0 },
		"a leg recovers":                   func(g *group, _ *Covered, _ []LegACK) { g.repair.numRecovering = 1 },
		"a NAK is pending":                 func(g *group, _ *Covered, _ []LegACK) { g.agg.numPending = 1 },
		"the group has failed":             func(g *group, _ *Covered, _ []LegACK) { g.set(failed, true) },
		"it is not on the fast path":       func(g *group, _ *Covered, _ []LegACK) { g.repair.path = draining },
		"the source is elsewhere":          func(g *group, _ *Covered, _ []LegACK) { g.src.neighbor = 1 },
		"targets are followed":             func(g *group, _ *Covered, _ []LegACK) { g.fwd.targets = &targets{} },
		"a packet was lost before it":      func(g *group, _ *Covered, _ []LegACK) { g.set(lostNxt, true) },
	} {
		s, out := offloaded(t, nil)
		c, legs := coveredUpTo(9, rocev2.SendOnly, 9)
		change(s.group(0), c, legs)
		if s.InputCovered(7, 0, c, legs, SentACK{}, out) || s.group(0).fwd.nxt != 1 || len(out.Feedback) != 0 {
			t.Errorf("%s: nxt is %d, feedback %+v", name, s.group(0).fwd.nxt, out.Feedback)
		}
	}
	s, out := offloaded(t, nil)
	if c, legs := coveredUpTo(9, rocev2.SendOnly, 9); s.InputCovered(7, 5, c, legs, SentACK{}, out) || !s.InputCovered(7, 0, c, legs, SentACK{}, out) {
		t.Error("another group is skipped, or this one is not")
	}
}

// The packet behind what was skipped may be an earlier one with a damaged PSN (R64), and belongs to a message of
// unknown length (R67).
func TestAfterCovered(t *testing.T) {
	s, out := offloaded(t, nil)
	g := s.group(0)
	g.fwd.writeMessage = writeMessage{known: true, first: 0, length: 100}
	c, legs := coveredUpTo(9, rocev2.WriteMiddle, 3)
	if !s.InputCovered(6, 0, c, legs, SentACK{}, out) {
		t.Fatal("not skipped")
	}
	if fb := out.Feedback; len(fb) != 1 || fb[0].PSN != 9 || fb[0].MSN != 4 {
		t.Errorf("feedback %+v, want an ACK of 9 with 4 messages", fb)
	}
	if !g.fwd.midMessage || g.fwd.writeMessage.known || g.src.lastPSNAt != 5 || g.src.lastPSN != 9 || g.repair.ackReqPSN != 9 {
		t.Errorf("mid-message %v, length known %v, packet %d at %v, %d with AckReq; want true, false, 9 at 5 ns, 9", g.fwd.midMessage, g.fwd.writeMessage.known, g.src.lastPSN, g.src.lastPSNAt, g.repair.ackReqPSN)
	}
	now := 6 + MaxInOrderGap
	p := dataOf(10)
	p.Verified = false
	if s.InputForwarded(now, 0, p, out); !out.NeedVerify {
		t.Error("a packet more than MaxInOrderGap after the last one can have come is believed")
	}
	if n := g.counters.counters(); n.DataIn != 10 || n.Copies != 20 || n.FeedbackIn != 2 || s.Group(0).OffloadCopies() != 18 {
		t.Errorf("%d of data, %d copies, %d ACKs, %d copies by the fast path; want 10, 20, 2, 18", n.DataIn, n.Copies, n.FeedbackIn, s.Group(0).OffloadCopies())
	}
}

// The fast path goes neither beyond the stored positions nor too far beyond what was reported.
func TestOffloadCeiling(t *testing.T) {
	s, _ := offloaded(t, nil)
	g := s.group(0)
	if c := s.Group(0).OffloadCeiling(); c != 1+maxUnreported {
		t.Errorf("the ceiling is %d, want %d", c, 1+maxUnreported)
	}
	if g.policy.stored, g.fwd.limit = true, 77; s.Group(0).OffloadCeiling() != 77 {
		t.Errorf("the ceiling is %d beside stored positions, want 77", s.Group(0).OffloadCeiling())
	}
	if g.repair.path = notOffered; s.Group(0).OffloadCeiling() != 0 || s.Group(7).OffloadCeiling() != 0 {
		t.Error("a group without fast path has a ceiling")
	}
}

// Silence begins to be looked for with what was skipped, as with any packet.
func TestCoveredBeginsLiveness(t *testing.T) {
	s, out := offloaded(t, func(spec *GroupSpec) { spec.DeadAfter, spec.AllDeadAfter = 40*time.Millisecond, time.Second })
	s.group(0).due.stop(livenessCheck)
	c, legs := coveredUpTo(9, rocev2.SendOnly, 9)
	if !s.InputCovered(7, 0, c, legs, SentACK{}, out) || !s.group(0).due.armed(livenessCheck) {
		t.Error("no check is due")
	}
}
