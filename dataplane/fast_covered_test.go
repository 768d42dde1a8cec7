// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/dataplane/trace"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// acks has the programs take an ACK of psn from each leg from the one named on.
func (c *ackCase) acks(t *testing.T, psn rocev2.PSN, legs ...int) {
	t.Helper()
	var b [256]byte
	for _, leg := range legs {
		c.x.taps[c.spec.Legs[leg].Port].Send(c.frame(b[:], leg, psn, nil))
		c.acked[leg] = psn
		for end := time.Now().Add(10 * time.Second); ; {
			if word, _ := c.g.Acked(leg); word.PSN == psn {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the word of leg %d does not come to %06x", leg, psn)
			}
		}
	}
	if low := c.lowest(); c.sent.Less(low) {
		c.x.taps[0].Next()
		c.sent = low
	}
}

// The programs move the limit with what all legs have, no further than the ceiling, and only while user space has them do
// so.
func TestFastLimitMoves(t *testing.T) {
	x := newFastNet(t, 3)
	w := bareWorker(t, len(x.Ports))
	c := newACKCase(t, rand.New(rand.NewPCG(3, 5)), x, w, false)
	for range 30 {
		c.data(t)
	}
	margin := int32(fastpath.LimitMargin(c.spec.Slots))
	limit := func() rocev2.PSN { // and the limit is as it was after that
		defer c.g.OpenLimit(c.first.Add(80))
		return c.g.CloseLimit()
	}
	to := func(n int32) rocev2.PSN { return c.first.Add(n) }
	was := to(int32(c.spec.Slots))
	c.acks(t, to(15), 0, 1, 2)
	if is := c.g.CloseLimit(); is != was {
		t.Errorf("the limit is %06x before the programs may move it, want %06x", is, was)
	}
	c.g.OpenLimit(to(80))
	c.acks(t, to(17), 0, 1)
	if is := limit(); is != was {
		t.Errorf("the limit is %06x although a leg has not acknowledged, want %06x", is, was)
	}
	c.acks(t, to(17), 2)
	if is, want := limit(), to(17+64-margin); is != want {
		t.Errorf("the limit is %06x, want %06x", is, want)
	}
	c.acks(t, to(18), 0, 1, 2)
	if is, want := limit(), to(17+64-margin); is != want {
		t.Errorf("the limit is %06x after one packet, want %06x", is, want)
	}
	c.acks(t, to(28), 0, 1, 2)
	if is := limit(); is != to(80) {
		t.Errorf("the limit is %06x, want that of the ceiling, %06x", is, to(80))
	}
	c.g.SetCeiling(to(200))
	c.g.CloseLimit()
	c.acks(t, to(29), 0, 1, 2)
	if c.g.CloseLimit() != to(80) {
		t.Errorf("the limit has moved although it was closed")
	}
	c.g.Grant(c.next, false, to(90))
	if c.g.OpenLimit(to(200)); c.g.CloseLimit() != to(90) {
		t.Errorf("a grant has another limit than its own")
	}
	if n, want := c.g.Payload(), uint64(0); n == want {
		t.Error("no payload is counted")
	}
}

// newCoverBench is a reportBench whose programs move the limit: all receivers have acknowledged acked, and the source
// was sent that, of the packets up to last, more than the ring has slots.
func newCoverBench(t *testing.T, last, acked rocev2.PSN) *reportBench {
	x := newReportBench(t)
	if x.w.judgeACKs(x.f); !x.f.acks.moves {
		t.Fatalf("the programs do not move the limit: %q", x.f.acks.why)
	}
	for psn := rocev2.PSN(1); psn <= last; psn++ {
		x.forward(psn, false)
	}
	x.counts(acked, acked)
	return x
}

// A look tells the core of what all receivers have, although it has left the ring, and of nothing else. When nothing
// more is acknowledged the rest is reported.
func TestFastCoversAtALook(t *testing.T) {
	x := newCoverBench(t, 40, 37)
	before := x.w.count.dataIn
	if x.w.lookAtGroup(x.f); x.nxt() != 38 || x.acked() != 37 || !x.f.acks.moves {
		t.Fatalf("the core is at %d with ACKs of %d, want 38 and 37; moves %v", x.nxt(), x.acked(), x.f.acks.moves)
	}
	if n := x.w.count.dataIn - before; n != 37 || x.f.status.Packets != 37 || x.f.acks.answered != 0 && x.w.meters.groups[0].acked != 37 {
		t.Errorf("%d packets are counted, %d of the group, want 37", n, x.f.status.Packets)
	}
	if x.w.lookAtGroup(x.f); x.nxt() != 41 || x.acked() != 37 || x.f.acks.moves || x.f.limit != 56 {
		t.Errorf("the core is at %d with ACKs of %d, want 41 and 37; moves %v, limit %d", x.nxt(), x.acked(), x.f.acks.moves, x.f.limit)
	}
	if n := x.w.count.drop[dropNotStored]; n != 0 {
		t.Errorf("%d packets were not in the ring", n)
	}
	if x.w.judgeACKs(x.f); !x.f.acks.moves {
		t.Errorf("the limit is not moved again: %q", x.f.acks.why)
	}
}

// Before any call of the core all is reported, and the limit stays.
func TestFastCoversBeforeACall(t *testing.T) {
	for name, call := range map[string]func(*reportBench){
		"a packet":       func(x *reportBench) { x.w.reportBefore(0) },
		"a question":     func(x *reportBench) { x.w.reportFast(0) },
		"a take-back":    func(x *reportBench) { x.w.takeBack(x.f, whyChange) },
		"closed words":   func(x *reportBench) { x.f.acks.never = noACKsTree; x.w.judgeACKs(x.f) },
		"a gate is late": func(x *reportBench) { x.w.reopenGate(x.f, 0) },
		"a deadline": func(x *reportBench) {
			at, _ := x.w.core.NextDeadline()
			x.w.now = at
			x.w.fireDeadlines()
		},
	} {
		x := newCoverBench(t, 40, 37)
		call(x)
		if x.nxt() != 41 || x.acked() != 37 || x.f.acks.moves || x.f.limit != 56 {
			t.Errorf("%s: the core is at %d with ACKs of %d, want 41 and 37; moves %v, limit %d, want 56", name, x.nxt(), x.acked(), x.f.acks.moves, x.f.limit)
		}
		if n := x.w.count.drop[dropNotStored]; n != 0 {
			t.Errorf("%s: %d packets were not in the ring", name, n)
		}
	}
}

// The packet behind those that all have may have come after a pause: it is not reported if its ICRC is wrong.
func TestFastCoversBeforeDamage(t *testing.T) {
	x := newCoverBench(t, 20, 19)
	x.w.lookAtGroup(x.f)
	x.f.movedFrom = x.w.elapsed()
	x.forward(20, true)
	x.counts(19, 19)
	if x.w.reportGroup(x.f); x.nxt() != 20 || x.f.step == fastGranted {
		t.Errorf("the core is at %d, want 20; step %d", x.nxt(), x.f.step)
	}
}

// The ACKs of one leg that is ahead are told as far as packets are reported, and the rest later.
func TestFastCoversALegAhead(t *testing.T) {
	x := newCoverBench(t, 40, 36)
	x.f.ring.OpenACKs([]rocev2.PSN{36, 38}, 36, 1, 0, 0)
	x.w.lookAtGroup(x.f)
	if x.nxt() != 37 || x.status.Members[2].Acked != 36 {
		t.Fatalf("the core is at %d, and a leg has %d; want 37 and 36", x.nxt(), x.status.Members[2].Acked)
	}
	x.w.reportGroup(x.f)
	if x.nxt() != 41 || x.status.Members[2].Acked != 38 || x.acked() != 36 {
		t.Errorf("the core is at %d, and the legs have %d and %d; want 41, 36 and 38", x.nxt(), x.acked(), x.status.Members[2].Acked)
	}
	if n := x.w.count.core[mcast.FeedbackAhead]; n != 0 {
		t.Errorf("%d ACKs were told before their packets", n)
	}
}

// While a trace runs, each packet is reported.
func TestFastLimitStaysInATrace(t *testing.T) {
	x := newReportBench(t)
	x.w.tracing = newTracing(trace.NewRecorder(&trace.Filter{}))
	if x.w.judgeACKs(x.f); x.f.acks.moves {
		t.Error("the programs move the limit")
	}
}

// A copy of a packet whose slot has another one is not made, and counts.
func TestFastCopyNotKept(t *testing.T) {
	x := newReportBench(t)
	x.forward(1, false)
	x.forward(17, false)
	copies := x.w.count.copies
	for range 2 {
		x.w.copyFromRing(&mcast.Copy{Group: 0, Leg: 1, PSN: 1, Frame: ringHandle | 1})
	}
	if x.w.count.copies != copies || x.w.count.drop[dropNotKept] != 2 {
		t.Errorf("%d copies, and %d packets are not kept; want none and 2", x.w.count.copies-copies, x.w.count.drop[dropNotKept])
	}
	if x.w.copyFromRing(&mcast.Copy{Group: 0, Leg: 1, PSN: 17, Frame: ringHandle | 17}); x.w.count.copies != copies+1 {
		t.Error("no copy is made of a packet in the ring")
	}
}
