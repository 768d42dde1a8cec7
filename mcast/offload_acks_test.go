// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// ackPair is a group on the fast path at two switches: one is given each ACK, the other hears of the words
// that the fast path has counted them in.
type ackPair struct {
	tb       *rapid.T
	rng      func(int) int
	now      time.Duration
	each, of *Switch
	out      [2]Output

	first rocev2.PSN // the first PSN of the source
	psn   rocev2.PSN // the next one
	words []LegACK   // words by leg; those with Count 0 have not moved
	sent  SentACK    // the word of the ACK to the source
	got   [2]rocev2.PSN
	late  int // how often the fast path does not answer, of 8

	// exact: words are told before a leg's next ACK, and before packets that came after it. Else the
	// timer of repair, which begins with the first ACK of those and not the last, may fire at another time.
	exact bool

	covers   bool      // true: packets are reported when something else is, but for those that all have by then
	pending  []*Packet // packets that are to be reported
	skipped  int       // packets that were told of at once
	advances int       // calls of InputCovered
}

// TestPropertyACKsAtOnce: a group that hears of the ACKs of the fast path at once is in the same state as
// one that has had them one by one, whatever the receivers send, and the source has the same ACK.
func TestPropertyACKsAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &ackPair{tb: t, rng: random(rapid.Uint64().Draw(t, "seed"))}
		x.begin()
		for range 60 {
			x.step()
		}
		x.settle()
	})
}

func (x *ackPair) begin() {
	x.first = rocev2.PSN(0xFFFFF0+x.rng(0x20)) & rocev2.PSNMask
	x.late, x.exact = x.rng(4), x.rng(2) == 0 && !x.covers
	receivers := 1 + x.rng(5)
	spec := GroupSpec{
		IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024, Policy: []Policy{Strict, Evict}[x.rng(2)]},
		Repair:   RepairSpec{Bytes: 1 << 20, Timeout: 4 * time.Millisecond, Tries: 4},
		FastPath: FastPathSpec{Slots: 1 << 8, Drain: 1, Backoff: time.Hour},
	}
	if x.rng(2) == 0 && !x.covers { // silence may begin at another time
		spec.DeadAfter, spec.AllDeadAfter = 40*time.Millisecond, time.Second
	}
	if x.rng(2) == 0 {
		spec.AckEvery = 8
	}
	for i := range receivers + 1 {
		spec.Legs = append(spec.Legs, LegSpec{Port: Port(i)})
		m := MemberSpec{MemberRecord: MemberRecord{IP: ipOf(nameOf(MemberID(i))), QPN: 0x100}, Leg: LegID(i)}
		m.SQPSN, m.RQPSN = x.first, rocev2.PSN(x.rng(1<<24))
		spec.Members = append(spec.Members, m)
	}
	x.psn, x.words = x.first.Next(), make([]LegACK, receivers+1)
	for i, s := range []**Switch{&x.each, &x.of} {
		*s = New(Limits{})
		if err := (*s).Apply(0, PutGroup{spec}, &x.out[i]); err != nil {
			x.tb.Fatal(err)
		}
		(*s).Input(0, x.data(x.first, true), &x.out[i])
		if _, ok := (*s).Offload(0, 0, &x.out[i]); !ok {
			x.tb.Fatal("not granted")
		}
		x.got[i] = x.first.Prev()
	}
	x.open()
}

// open has the fast path begin with what the core has.
func (x *ackPair) open() {
	g := x.of.group(0)
	for i := range x.words {
		x.words[i] = LegACK{Leg: LegID(i), Acked: g.acks[i].acked}
	}
	x.sent = SentACK{PSN: g.agg.acked}
}

func (x *ackPair) data(psn rocev2.PSN, ask bool) *Packet {
	p := dataOf(psn)
	p.AckReq, p.Op = ask, rocev2.SendOnly
	switch x.count(psn) % 5 { // some messages have several packets
	case 1:
		p.Op, p.Payload = rocev2.SendFirst, 1024
	case 2:
		p.Op, p.Payload = rocev2.SendMiddle, 1024
	case 3:
		p.Op = rocev2.SendLast
	}
	return p
}

func (x *ackPair) count(psn rocev2.PSN) int { return int(psn.Sub(x.first)) }

// note records what the source was sent by switch i.
func (x *ackPair) note(i int) {
	for _, f := range x.out[i].Feedback {
		if f.Syndrome == rocev2.SyndromeACK {
			if want := x.messagesBy(f.PSN); int(f.MSN) != want {
				x.tb.Fatalf("ACK %06x has MSN %d, complete are %d messages", f.PSN, f.MSN, want)
			}
			x.got[i] = rocev2.MaxPSN(x.got[i], f.PSN)
		}
	}
}

// messagesBy returns the number of messages that end at or before psn.
func (x *ackPair) messagesBy(psn rocev2.PSN) (n int) {
	for k := 0; k <= x.count(psn); k++ {
		if d := x.data(x.first.Add(int32(k)), false); d.Op.Is(rocev2.OpEnd) {
			n++
		}
	}
	return n
}

// forgetRTT has both switches measure no round trips: where they come from differs.
func (x *ackPair) forgetRTT() {
	for _, s := range []*Switch{x.each, x.of} {
		g := s.group(0)
		g.rtt.pending = false
		for k := range g.activity {
			m := &g.activity[k].recovery
			m.rtt, m.rttVar, m.rttFrom = 0, 0, 0
		}
	}
}

func (x *ackPair) step() {
	x.forgetRTT()
	next := x.now + time.Duration(x.rng(400))*time.Microsecond
	for _, s := range []*Switch{x.each, x.of} {
		for at, ok := s.NextDeadline(); ok && at <= next; at, ok = s.NextDeadline() {
			x.now = max(x.now, at)
			x.advance()
		}
	}
	x.now = next
	switch k := x.rng(20); {
	case k < 8:
		for range 1 + x.rng(4) {
			if d := x.psn.Sub(x.each.group(0).agg.acked); d < 60 {
				p := x.data(x.psn, x.rng(3) == 0)
				if x.exact {
					x.report()
				}
				x.each.InputForwarded(x.now, 0, p, &x.out[0])
				if x.covers && x.of.Group(0).OffloadACKs(x.of.group(0).receiverCount()) == "" {
					x.pending = append(x.pending, p)
				} else {
					x.reportData()
					x.of.InputForwarded(x.now, 0, p, &x.out[1])
				}
				x.psn = x.psn.Next()
			}
		}
	case k < 17:
		x.ack(1 + x.rng(len(x.words)-1))
	case k < 18:
		x.settle()
	case k < 19:
		x.nak(1 + x.rng(len(x.words)-1))
	default:
		if at, ok := x.each.NextDeadline(); ok {
			x.now = max(x.now, at)
		}
		x.advance()
	}
}

// ack is an ACK of a leg, which may say nothing new.
func (x *ackPair) ack(leg int) {
	g := x.each.group(0)
	b := &g.acks[leg]
	n := int(x.psn.Sub(b.acked)) - 1
	if n <= 0 || b.flags&isReceiver == 0 {
		return
	}
	psn := b.acked.Add(int32(1 + x.rng(n)))
	if x.exact && x.words[leg].Count != 0 {
		x.report()
	}
	fast := x.of.Group(0).OffloadACKs(g.receiverCount()) == ""
	x.feedback(leg, psn, rocev2.SyndromeACK, fast)
	if !fast {
		return
	}
	x.words[leg].Acked, x.words[leg].At = psn, x.now
	x.words[leg].Count++
	lowest := x.psn.Prev()
	for i := range x.words[1:] {
		if g.acks[1+i].flags&isReceiver != 0 {
			lowest = rocev2.MinPSN(lowest, x.words[1+i].Acked)
		}
	}
	if x.sent.PSN.Less(lowest) && x.rng(8) >= x.late {
		x.sent.PSN = lowest
		x.sent.Count++
		x.got[1] = rocev2.MaxPSN(x.got[1], lowest)
	}
}

func (g *group) receiverCount() int { return int(g.recv.count) }

// feedback gives each switch a packet of a leg, or, if the fast path takes it, one of them.
func (x *ackPair) feedback(leg int, psn rocev2.PSN, syn rocev2.Syndrome, fast bool) {
	p := &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf(nameOf(MemberID(leg))), Op: rocev2.Acknowledge, Syndrome: syn, Verified: true}
	p.PSN = (psn + rocev2.PSN(x.each.group(0).acks[leg].delta)) & rocev2.PSNMask
	x.each.Input(x.now, p, &x.out[0])
	x.note(0)
	if !fast {
		x.report()
		x.of.Input(x.now, p, &x.out[1])
		x.note(1)
		x.open()
	}
}

// nak is a NAK of a leg: the fast path leaves it to the core.
func (x *ackPair) nak(leg int) {
	b := &x.each.group(0).acks[leg]
	if n := int(x.psn.Sub(b.acked)) - 1; n > 0 && b.flags&isReceiver != 0 {
		x.feedback(leg, b.acked.Add(int32(1+x.rng(n))), rocev2.SyndromeNAKSequence, false)
	}
}

// report tells one switch of the words.
func (x *ackPair) report() {
	x.reportData()
	legs := slices.DeleteFunc(slices.Clone(x.words), func(a LegACK) bool {
		return a.Count == 0 && !x.covers || x.of.group(0).acks[a.Leg].flags&isReceiver == 0
	})
	slices.SortFunc(legs, func(a, b LegACK) int { return int(a.At - b.At) })
	x.of.InputAcked(x.now, 0, legs, x.sent, &x.out[1])
	if x.out[1].Drop != None {
		x.tb.Fatalf("dropped: %v", x.out[1].Drop)
	}
	x.note(1)
	for i := range x.words {
		x.words[i].Count = 0
	}
	x.sent.Count = 0
}

func (x *ackPair) advance() {
	x.report()
	x.forgetRTT()
	for i, s := range []*Switch{x.each, x.of} {
		s.Advance(x.now, &x.out[i])
		x.note(i)
	}
	x.open()
}

// settle tells one switch of the words, and compares both.
func (x *ackPair) settle() {
	x.report()
	x.forgetRTT()
	var text [2]string
	var state [2][]byte
	for i, s := range []*Switch{x.each, x.of} {
		g := s.group(0)
		n := g.counters.counters()
		text[i] = fmt.Sprintf("%+v\nacked %06x\n%d of data, %d copies, %d of feedback, %d probes, %d again, source has %06x, deadlines %v\n%+v", g.acks, g.agg.acked, n.DataIn, n.Copies, n.FeedbackIn, n.Probes, n.Resent, x.got[i], g.due, g.activity)
		if x.exact {
			state[i] = s.AppendState(nil, x.now)
			continue
		}
		state[i] = fmt.Appendf(nil, "%06x %06x %06x %v %v %d %d %d", g.agg.acked, g.fwd.nxt, g.repair.store.first, g.is(failed), g.fwd.midMessage, g.agg.messages.last(), n.DataIn, n.FeedbackIn)
		for k := range g.acks {
			state[i] = fmt.Appendf(state[i], " %06x", g.acks[k].acked)
		}
	}
	if !bytes.Equal(state[0], state[1]) || x.got[0] != x.got[1] {
		x.tb.Fatalf("one by one\n%s\nat once\n%s", text[0], text[1])
	}
}

// TestOffloadACKs: whatever makes an ACK more than a number leaves ACKs to the core.
func TestOffloadACKs(t *testing.T) {
	for _, c := range []struct {
		why    string
		change func(*group)
	}{
		{"decision", func(g *group) { g.repair.path = draining }},
		{"decision", func(g *group) { g.set(ending, true) }},
		{"decision", func(g *group) { g.set(quarantined, true) }},
		{"quorum", func(g *group) { g.policy.quorum = 1 }},
		{"tree", func(g *group) { g.src.neighbor = 1 }},
		{"tree", func(g *group) { g.newExtra().forwards = []LegID{1} }},
		{"lag", func(g *group) { g.lag.psns = 1 }},
		{"replies", func(g *group) { g.policy.replies = true }},
		{"members", func(g *group) { g.recv.count = 1 }},
		{"members", func(g *group) { g.recv.joinedInFlight = 1 }},
		{"members", func(g *group) { g.numbering.checks = []verification{{}, {}, {acceptedNothing: true}} }},
		{"gap", func(g *group) { g.numbering.gap = true }},
		{"gap", func(g *group) { g.set(lostNxt, true) }},
		{"loss", func(g *group) { g.repair.numRecovering = 1 }},
		{"loss", func(g *group) { g.agg.numPending = 1 }},
		{"loss", func(g *group) { g.agg.request = request{psn: 1, severity: sevSequence} }},
		{"congestion", func(g *group) { g.src.becnDue = true }},
		{"", func(g *group) { g.numbering.checks = []verification{{acceptedNothing: true}, {}, {}} }}, // the source
	} {
		s, _ := offloaded(t, nil)
		if why := s.Group(0).OffloadACKs(2); why != "" {
			t.Fatalf("leaves ACKs to the core anyway: %s", why)
		}
		c.change(s.group(0))
		if why := s.Group(0).OffloadACKs(2); why != c.why {
			t.Errorf("leaves ACKs to the core: %q, want %q", why, c.why)
		}
	}
	s, _ := offloaded(t, nil)
	if why := s.Group(0).OffloadACKs(MaxACKLegs + 1); why != "legs" {
		t.Errorf("too many legs: %q", why)
	}
	if why := s.Group(7).OffloadACKs(2); why != "decision" {
		t.Errorf("no group: %q", why)
	}
}

// ackedBy2 has the fast path count that B and C have acknowledged everything before PSN 2.
func ackedBy2(sent rocev2.PSN) (legs []LegACK, s SentACK) {
	return []LegACK{{Leg: 1, Acked: 1, Count: 2, At: 5}, {Leg: 2, Acked: 1, Count: 1, At: 7, SentAt: 3}}, SentACK{sent, 1}
}

// TestBECNOfAnOmittedACK: a mark for the source is in the next ACK that the core makes if the fast path's
// ACK, which has none, has gone in its place.
func TestBECNOfAnOmittedACK(t *testing.T) {
	s, out := offloaded(t, nil)
	s.InputForwarded(1, 0, dataOf(1), out)
	s.Input(2, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf("B"), Op: rocev2.Acknowledge, PSN: 0, BECN: true, Verified: true}, out)
	legs, sent := ackedBy2(1)
	if s.InputAcked(8, 0, legs, sent, out); len(out.Feedback) != 0 || !s.group(0).src.becnDue {
		t.Errorf("feedback %+v, mark due %v", out.Feedback, s.group(0).src.becnDue)
	}
}

// TestRestAfterAWord: a leg that was asked with one packet, and has more to get, gets it when a word says that it
// has that packet.
func TestRestAfterAWord(t *testing.T) {
	s, out := offloaded(t, nil)
	for psn := range rocev2.PSN(4) {
		if psn > 0 {
			s.InputForwarded(1, 0, dataOf(psn), out)
		}
	}
	g := s.group(0)
	m := &g.activity[2].recovery
	g.deliver(2, ptoExpired)
	m.state, m.cursor, m.firstUnsent, m.probeEvery, m.shutNow = probing, 2, 3, 1, false
	s.InputAcked(2, 0, []LegACK{{Leg: 2, Acked: 2, At: 2}}, SentACK{PSN: g.agg.acked}, out)
	if len(out.Copies) != 1 || out.Copies[0].PSN != 3 {
		t.Errorf("copies %+v", out.Copies)
	}
}

// TestRoundTripsOfWords: a round trip is measured where a word says when its packet went out, and not of one
// that a word has passed unseen; counters have the ACKs of both directions.
func TestRoundTripsOfWords(t *testing.T) {
	s, out := offloaded(t, nil)
	p := dataOf(1)
	p.AckReq = true
	s.InputForwarded(3, 0, p, out)
	legs, sent := ackedBy2(1)
	s.InputAcked(8, 0, legs, sent, out)
	g := s.group(0)
	if b, c := g.activity[1].recovery.rtt, g.activity[2].recovery.rtt; b != 0 || c != 4 || g.rtt.pending {
		t.Errorf("round trips %v and %v, want none and 4ns; pending %v", b, c, g.rtt.pending)
	}
	if n := g.counters; n.FeedbackIn != 3 || n.FeedbackOut != 1 || len(out.Feedback) != 0 {
		t.Errorf("%d ACKs came, %d went, and %+v", n.FeedbackIn, n.FeedbackOut, out.Feedback)
	}
	if s.InputAcked(8, 3, legs, sent, out); out.Drop != UnknownGroup {
		t.Errorf("no group: %v", out.Drop)
	}
	g.set(failed, true)
	if s.InputAcked(8, 0, legs, sent, out); out.Drop != FailedGroup {
		t.Errorf("a failed group: %v", out.Drop)
	}
}
