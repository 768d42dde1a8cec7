// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestR72_GapIsKnown: the gap spans the lowest packet that has not passed, and the highest
// one below which packets are missing. It closes when packets pass from its beginning on.
func TestR72_GapIsKnown(t *testing.T) {
	base := rocev2.PSN(0xFFFFFD)
	for i, c := range []struct {
		passed   []int // PSNs in the order in which they pass; nxt is 0 at first
		gap      bool
		from, to int
	}{
		{nil, false, 0, 0},
		{[]int{0, 1}, false, 0, 0},
		{[]int{0, 3}, true, 1, 3},
		{[]int{0, 3, 6}, true, 1, 6},
		{[]int{0, 3, 4, 5}, true, 1, 3},
		{[]int{0, 3, 2}, true, 1, 3},
		{[]int{0, 3, 1}, true, 2, 3},
		{[]int{0, 3, 1, 2}, false, 3, 3},
		{[]int{0, 3, 0}, true, 1, 3},
		{[]int{0, 3, 6, 1, 2, 3}, true, 4, 6},
		{[]int{0, 3, 6, 1, 2, 3, 4, 5}, false, 6, 6},
		{[]int{0, 2, 1, 2, 1}, false, 2, 2},
		{[]int{0, 2, 1, 5}, true, 3, 5},
		{[]int{0, 1, 2, 0}, false, 0, 0},
	} {
		var n numbering
		nxt := 0
		for _, psn := range c.passed {
			if psn != nxt {
				n.noteGap(base.Add(int32(psn)), base.Add(int32(nxt)))
			}
			nxt = max(nxt, psn+1)
		}
		if n.gap != c.gap || n.gap && (n.gapFrom != base.Add(int32(c.from)) || n.gapNext != base.Add(int32(c.to))) {
			t.Errorf("case %d: %v from %06x to %06x, want %+v", i, n.gap, uint32(n.gapFrom), uint32(n.gapNext), c)
		}
	}
}

// TestR109_GapAboveWhatAllHave: a gap of which every receiver has a part begins above that part, and is none once
// they have all of it.
func TestR109_GapAboveWhatAllHave(t *testing.T) {
	base := rocev2.PSN(0xFFFFFD)
	for una, from := range map[int]int{0: 2, 2: 2, 3: 3, 4: 4, 5: -1, 7: -1} {
		n := numbering{gap: true, gapFrom: base.Add(2), gapNext: base.Add(5)}
		n.closeGapBelow(base.Add(int32(una)))
		if n.gap != (from >= 0) || n.gap && (n.gapFrom != base.Add(int32(from)) || n.gapNext != base.Add(5)) {
			t.Errorf("all below %d is everywhere: %v from %06x to %06x, want from %d", una, n.gap, uint32(n.gapFrom), uint32(n.gapNext), from)
		}
	}
}

// probedGroup returns a switch with a group of n members that are all to be probed.
func probedGroup(t *testing.T, n int) *Switch {
	t.Helper()
	s := New(Limits{})
	spec := groupOf(0, n, 0)
	spec.PSNProbe = time.Millisecond
	var out Output
	if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestR52_BurstsOfProbes: a call sends probeBurst probes at most. The next one, which is
// due at once, goes on behind them; the next round begins with the first leg again.
func TestR52_BurstsOfProbes(t *testing.T) {
	for _, members := range []int{probeBurst - 1, probeBurst, probeBurst + 1, 2 * probeBurst, 2*probeBurst + 3} {
		s := probedGroup(t, members)
		var out Output
		now := time.Duration(0)
		for round := range 4 {
			next := 0
			for next < members {
				if at, ok := s.NextDeadline(); !ok || at != now {
					t.Fatalf("%d members, round %d, leg %d: due at %v, %v", members, round, next, at, ok)
				}
				s.Advance(now, &out)
				if want := min(probeBurst, members-next); len(out.Probes) != want {
					t.Fatalf("%d members, round %d, leg %d: %d probes, want %d", members, round, next, len(out.Probes), want)
				}
				for _, p := range out.Probes {
					want := s.groups[0].members[next].ePSN.Add(-probePSNOffset)
					if int(p.Leg) != next || p.Group != 0 || p.PSN != want {
						t.Fatalf("%d members, round %d: %+v, want leg %d, PSN %06x", members, round, p, next, uint32(want))
					}
					next++
				}
			}
			now += time.Millisecond << round
		}
		if v := s.groups[0].numbering.checks[members-1]; v.probesSent != 4 {
			t.Errorf("%d members: %d probes counted", members, v.probesSent)
		}
	}
}

// TestR52_ProbesAreCountedUpTo255: and no further.
func TestR52_ProbesAreCountedUpTo255(t *testing.T) {
	s := probedGroup(t, 3)
	g := s.groups[0]
	var out Output
	for i := range 300 {
		g.restartKeepalives(0)
		g.sendKeepalives(0, &out)
		if got, want := int(g.numbering.checks[1].probesSent), min(i+1, 255); got != want {
			t.Fatalf("%d probes counted as %d", i+1, got)
		}
	}
	v := &g.numbering.checks[1]
	v.isRXE, v.pending = true, false
	p := &Packet{PSN: rocev2.PSNMask, Syndrome: rocev2.SyndromeACK}
	g.activate(0)
	for i := range 300 {
		if got := g.mustNotCount(p, 1, 0); !got || int(v.emptyAnswers) != min(i+1, 255) {
			t.Fatalf("%d empty answers counted as %d, ignored %v", i+1, v.emptyAnswers, got)
		}
	}
	for answers, want := range map[uint8]bool{9: true, 8: true, 10: false} {
		v.acceptedNothing, v.probesSent, v.emptyAnswers = true, 6, answers
		if got := g.mustNotCount(p, 1, 0); got != want {
			t.Errorf("%d answers to 6 probes before this one: ignored %v", answers, got)
		}
	}
}

// TestR52_WhoAnswersProbes: an acknowledgement is one to a probe if a live member sent it
// whose leg is to be verified, from no other switch.
func TestR52_WhoAnswersProbes(t *testing.T) {
	s := probedGroup(t, 4)
	g := s.groups[0]
	g.endVerification(2)
	g.members[3].live = false
	for i, c := range []struct {
		p    Packet
		leg  int
		want bool
	}{
		{Packet{Src: memberAddr(1)}, 1, true},
		{Packet{Src: memberAddr(1), Neighbor: 1}, 0, false},
		{Packet{Src: memberAddr(2)}, 2, false},
		{Packet{Src: memberAddr(3)}, 0, false},
		{Packet{Src: memberAddr(9)}, 0, false},
	} {
		if leg, ok := g.unverifiedLeg(&c.p); ok != c.want || ok && leg != c.leg {
			t.Errorf("case %d: leg %d, %v", i, leg, ok)
		}
	}
	for i := range 4 {
		g.endVerification(LegID(i))
		g.endVerification(LegID(i))
	}
	if g.numbering.numPending != 0 {
		t.Errorf("%d are to be verified", g.numbering.numPending)
	}
	if _, ok := g.unverifiedLeg(&Packet{Src: memberAddr(1)}); ok {
		t.Error("a verified member answers a probe")
	}
}

// TestR52_AnswersOfProbes: what an acknowledgement says about a receiver that expects
// PSN 1000, in one packet.
func TestR52_AnswersOfProbes(t *testing.T) {
	const ePSN = 1000 // the ePSN of member 1
	for i, c := range []struct {
		syn      rocev2.Syndrome
		psn      rocev2.PSN
		msn      rocev2.MSN
		verified bool // the ICRC
		pending  bool
		fresh    bool
		wrong    rocev2.PSN // 0: no wrong answer
		need     bool
	}{
		{rocev2.SyndromeACK, ePSN - 1, 3, true, false, false, 0, false},
		{rocev2.SyndromeACK, ePSN - 1, 0, true, false, false, 0, false},
		{rocev2.SyndromeACK, ePSN - 1, 3, false, true, false, 0, true},
		{rocev2.SyndromeACK, 0xFFFFFF, 0, true, false, true, 0, false},
		{rocev2.SyndromeACK, 0xFFFFFF, 1, true, true, false, 0, false},
		{rocev2.SyndromeACK, ePSN, 3, true, true, false, ePSN + 1, false},
		{rocev2.SyndromeACK, ePSN - 2, 3, true, true, false, ePSN - 1, false},
		{rocev2.SyndromeNAKSequence, ePSN, 3, true, true, false, ePSN, false},
		{rocev2.SyndromeNAKSequence, ePSN - 1, 3, true, true, false, ePSN - 1, false},
		{rocev2.SyndromeNAKSequence, 0xFFFFFF, 0, true, true, false, 0xFFFFFF, false},
	} {
		s := probedGroup(t, 3)
		g := s.groups[0]
		if got := g.members[1].ePSN; got != ePSN {
			t.Fatalf("member 1 expects %d", got)
		}
		var out Output
		s.Advance(0, &out)
		p := Packet{Group: groupAddr(0), Src: memberAddr(1), DestQP: groupQPN, Op: rocev2.Acknowledge, Syndrome: c.syn, PSN: c.psn, MSN: c.msn, Verified: c.verified}
		s.Input(0, &p, &out)
		v := g.numbering.checks[1]
		got := fmt.Sprint(v.pending, v.isRXE, v.acceptedNothing, v.wrongAnswer && v.answeredPSN != 0, v.answeredPSN, out.NeedVerify)
		wrong := c.wrong != 0
		if i == 4 {
			wrong = false // it expects PSN 0, which is wrong as well
			if !v.wrongAnswer {
				t.Errorf("case %d: PSN 0 is believed", i)
			}
		}
		if want := fmt.Sprint(c.pending, c.fresh, c.fresh, wrong, c.wrong, c.need); got != want || out.Drop != None {
			t.Errorf("case %d: %s, want %s; drop %v", i, got, want, out.Drop)
		}
		n := g.counters.FeedbackIn
		if want := uint64(1); c.need != (n == 0) || !c.need && n != want {
			t.Errorf("case %d: counted %d times", i, n)
		}
	}
}

// TestR52_ZeroIsNothingSpecial: a receiver that expects PSN 0 answers a probe with PSN
// ffffff, whether it has accepted anything or not. That proves its numbering.
func TestR52_ZeroIsNothingSpecial(t *testing.T) {
	s := probedGroup(t, 3)
	var out Output
	s.Advance(0, &out)
	s.Input(0, &Packet{Group: groupAddr(0), Src: memberAddr(0), DestQP: groupQPN, Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeACK, PSN: rocev2.PSNMask, Verified: true}, &out)
	if v := s.groups[0].numbering.checks[0]; v.pending || v.isRXE || v.acceptedNothing || v.wrongAnswer {
		t.Errorf("%+v", v)
	}
}

// TestR52_AnswersThatDoNotCount: an acknowledgement of a receiver that had accepted
// nothing counts if the switch knows which messages it covers, and if it is none of the
// answers to probes, of which networks may duplicate some.
func TestR52_AnswersThatDoNotCount(t *testing.T) {
	rng := random(2)
	base := rocev2.PSN(0xFFFFFD)
	s := probedGroup(t, 3)
	g := s.groups[0]
	g.activate(0)
	for range 20000 {
		nothing, rxe, gap, isACK, empty := rng(2) == 0, rng(2) == 0, rng(2) == 0, rng(4) > 0, rng(2) == 0
		gapFrom, had, acks, sent, answers := rng(5), rng(5), rng(5), rng(8), rng(14)
		gapLast := gapFrom + rng(3)
		g.numbering.gap, g.numbering.gapFrom, g.numbering.gapNext = gap, base.Add(int32(gapFrom)), base.Add(int32(gapLast+1))
		g.acks[1].acked = base.Add(int32(had))
		v := &g.numbering.checks[1]
		*v = verification{acceptedNothing: nothing, isRXE: rxe, probesSent: uint8(sent), emptyAnswers: uint8(answers)}
		p := &Packet{PSN: 5, Syndrome: rocev2.SyndromeNAKSequence}
		if isACK {
			p.Syndrome = rocev2.SyndromeACK
		}
		if empty {
			p.PSN = rocev2.PSNMask
		}
		unknown := nothing && gap && gapFrom <= acks && had < acks && had < gapLast
		answer := !unknown && rxe && isACK && empty
		want := unknown || answer && (!nothing || answers+1 <= sent+maxExtraAnswers)
		if got := g.mustNotCount(p, 1, base.Add(int32(acks))); got != want {
			t.Fatalf("%+v, gap %v from %d to %d, had %d, acknowledges %d by %+v: ignored %v", *v, gap, gapFrom, gapLast, had, acks, *p, got)
		}
		if counted := int(v.emptyAnswers) - answers; answer != (counted == 1) {
			t.Fatalf("%+v: %d empty answers counted", *p, counted)
		}
	}
	g.numbering.checks = nil
	if g.mustNotCount(&Packet{PSN: rocev2.PSNMask, Syndrome: rocev2.SyndromeACK}, 1, 0) {
		t.Error("an answer counts as one to a probe where nothing is verified")
	}
}

// TestR54_UnreadMessages: MSN shows whether a receiver that had accepted nothing has read
// what it acknowledges. The end of its first message decides for good.
func TestR54_UnreadMessages(t *testing.T) {
	rng := random(6)
	base := rocev2.PSN(0xFFFFFA) // PSN 0; each packet is a message
	const registered = 50        // what the receiver expects for the first one
	for range 3000 {
		s := probedGroup(t, 3)
		g := s.groups[0]
		g.activate(0)
		acked, had, nxt := rng(3), rng(4), 6
		before := rng(3)
		g.members[1].ePSN = registered
		g.agg.acked, g.acks[1].acked, g.fwd.nxt = base.Add(int32(acked)), base.Add(int32(had)), base.Add(int32(nxt))
		g.agg.messages.reset(rocev2.MSN(acked))
		for psn := acked + 1; psn < nxt; psn++ {
			g.agg.messages.addEnd(base.Add(int32(psn)))
		}
		v := &g.numbering.checks[1]
		*v = verification{acceptedNothing: rng(5) > 0, messagesBefore: rocev2.MSN(before)}
		psn := rng(8) - 1
		p := &Packet{PSN: registered + rocev2.PSN(psn), MSN: rocev2.MSN(rng(5)), Syndrome: []rocev2.Syndrome{rocev2.SyndromeACK, rocev2.SyndromeNAKSequence, rocev2.SyndromeNAKOpErr}[rng(3)]}
		kind := p.Syndrome.Kind()
		if kind == rocev2.KindACK && rng(4) == 0 {
			p.PSN, p.MSN = rocev2.PSNMask, 0
		}
		covers := psn
		if kind != rocev2.KindACK {
			covers--
		}
		was := *v
		due := covers // messages up to there: as many as PSNs
		want, decided := false, false
		switch {
		case !was.acceptedNothing:
		case kind == rocev2.KindSequence && psn < 0:
			want = true
		case isEmptyAnswer(p) && kind == rocev2.KindACK && (psn < had || psn >= nxt):
			want = true
		case !(isEmptyAnswer(p) && kind == rocev2.KindACK) && covers <= had:
		case covers < acked:
		default:
			due = max(min(due, nxt-1), acked)
			want, decided = int(p.MSN) != (due-before)&rocev2.PSNMask, true
		}
		if got := g.acksUnread(p, 1, base.Add(int32(psn))); got != want {
			t.Fatalf("%+v, %+v covers %d, had %d, acked %d: unread %v", was, *p, covers, had, acked, got)
		}
		if after := decided && due == before || !decided && was.acceptedNothing; v.acceptedNothing != after {
			t.Fatalf("%+v, %+v covers %d: then %+v", was, *p, covers, *v)
		}
	}
}

// TestR54_MessagesCountedTogether: MSN proves nothing about a PSN if the switch does not
// know how many messages end before it.
func TestR54_MessagesCountedTogether(t *testing.T) {
	s := probedGroup(t, 3)
	g := s.groups[0]
	g.activate(0)
	g.agg.acked, g.acks[1].acked, g.fwd.nxt = 0, 0, 10
	g.agg.messages.reset(0)
	g.agg.messages.addEnds(8, 3)
	g.numbering.checks[1] = verification{acceptedNothing: true}
	p := &Packet{PSN: 1005, MSN: 9, Syndrome: rocev2.SyndromeACK}
	if g.acksUnread(p, 1, 5) || !g.numbering.checks[1].acceptedNothing {
		t.Errorf("of 3 messages that end before PSN 9, 9 before PSN 6: %+v", g.numbering.checks[1])
	}
	if p.PSN = 1008; !g.acksUnread(p, 1, 8) {
		t.Error("9 messages of 3 are believed")
	}
}

// TestR55_ReportsAreCounted: a receiver that expects another PSN is reported once, and
// counted each time.
func TestR55_ReportsAreCounted(t *testing.T) {
	s := probedGroup(t, 3)
	g, out := s.groups[0], new(Output)
	for i := range uint32(3) {
		g.reportMisnumbered(1, 77, out)
		if m := g.outcomes.Mismatches[1][ReceivePSN]; m.Count != i+1 || m.Observed != 77 || m.Registered != 1000 || len(out.Events) != 1 {
			t.Errorf("%+v, %d events", m, len(out.Events))
		}
	}
}
