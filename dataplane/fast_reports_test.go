// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// reportBench is a worker with a group on the fast path, whose ring the test fills.
type reportBench struct {
	*testing.T
	*bench
	f      *fastGroup
	status mcast.GroupStatus
}

// newReportBench makes a group that the programs have from PSN 1 on.
func newReportBench(t *testing.T) *reportBench {
	s, b := newFastStream(t, 16, 1, 2), newBench(t, 3)
	w := b.w
	b.spec.FastPath = mcast.FastPathSpec{Slots: 16, Drain: time.Millisecond}
	if err := w.putGroup(b.spec, w.groups[0]); err != nil {
		t.Fatal(err)
	}
	b.round(0, nil)
	w.fast.shared = &fastShared{targets: &fastTargets{ports: make([]fastTarget, 3), transmitted: func(int) fastpath.Transmitted { return fastpath.Transmitted{} }}}
	f := &fastGroup{id: 0, ring: s.g, spec: s.spec, legs: []int{-1, 0, 1}, at: []mcast.LegID{1, 2}}
	w.fast.groups = []*fastGroup{f}
	if w.grant(f); f.step != fastGranted {
		t.Fatalf("not granted: %+v", w.out)
	}
	return &reportBench{T: t, bench: b, f: f}
}

// forward has the programs forward packet psn.
func (x *reportBench) forward(psn rocev2.PSN, damaged bool) {
	x.Helper()
	frame := x.build(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, nil)
	if damaged {
		frame[len(frame)-1]++
	}
	if !x.f.ring.Store(psn, frame) {
		x.Fatal("the ring does not take the packet")
	}
	x.f.ring.Grant(psn.Next(), false, psn.Add(16))
	for k := range x.f.gates {
		x.f.ring.Open(k, psn.Next())
	}
}

// nxt is what the core knows to be forwarded.
func (x *reportBench) nxt() rocev2.PSN {
	x.w.core.Group(0).Snapshot(&x.status)
	return x.status.Nxt
}

// What was forwarded is reported once for the packets of a batch, and again for the next batch.
func TestFastReportsOncePerBatch(t *testing.T) {
	x := newReportBench(t)
	x.w.receivePort(1)
	x.forward(1, false)
	x.w.reportBefore(0)
	x.forward(2, false)
	if x.w.reportBefore(0); x.nxt() != 2 {
		t.Errorf("the core is at %d within a batch, want 2", x.nxt())
	}
	x.w.receivePort(1)
	if x.w.reportBefore(0); x.nxt() != 3 {
		t.Errorf("the core is at %d in the next batch, want 3", x.nxt())
	}
}

// A packet that another worker has received is newer than the batch before.
func TestFastReportsForHandedPackets(t *testing.T) {
	w := newPair(t, 3, "").w
	before := w.fast.taken
	if w.drainHandoff(); w.fast.taken == before {
		t.Error("packets of another worker are part of the batch before")
	}
}

// The ICRC of a reported packet is checked if it may have come after a pause of the source, as
// R64 has it for those that the worker forwards.
func TestFastReportAfterAPause(t *testing.T) {
	x := newReportBench(t)
	x.f.movedFrom, x.f.clock = x.w.elapsed()+time.Hour, 0 // the core does not see a pause
	x.forward(1, true)
	x.forward(2, false)
	if x.w.reportGroup(x.f); x.nxt() != 3 || x.f.step != fastGranted {
		t.Errorf("a packet right behind another one is checked: the core is at %d, want 3; step %d", x.nxt(), x.f.step)
	}
	looked := x.f.lookedAt
	x.w.readClock()
	x.forward(3, false)
	if x.w.reportGroup(x.f); x.f.movedFrom != looked || x.f.lookedAt <= looked {
		t.Errorf("the last packet came at %v or later, want %v; looked at %v", x.f.movedFrom, looked, x.f.lookedAt)
	}
	x.f.movedFrom = x.w.elapsed() - time.Hour
	x.forward(4, true)
	if x.w.reportGroup(x.f); x.nxt() != 4 || x.f.step == fastGranted || x.w.count.drop[dropBadICRC] != 1 {
		t.Errorf("a damaged packet after a pause: the core is at %d, want 4; step %d, drops %d", x.nxt(), x.f.step, x.w.count.drop[dropBadICRC])
	}
}

// claim has the programs claim packet psn, and nothing of the rest.
func (x *reportBench) claim(psn rocev2.PSN) { x.f.ring.Grant(psn.Next(), false, psn.Add(16)) }

// finish has the programs do the rest of a packet that was claimed: it is stored, and copies leave
// through the gates that are open.
func (x *reportBench) finish(psn rocev2.PSN) {
	x.Helper()
	if !x.f.ring.Store(psn, x.build(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, nil)) {
		x.Fatal("the ring does not take the packet")
	}
	for k := range x.f.gates {
		if g := x.f.ring.Gate(k); !g.Shut && g.Next == psn {
			x.f.ring.Open(k, psn.Next())
		}
	}
}

// A program that goes on when the worker has given its packet up sends no copy of it: the core does
// not know of the packet, and an acknowledgement of it would end a member (R54).
func TestFastStoredTooLate(t *testing.T) {
	x := newReportBench(t)
	x.w.fast.shared.notify = func(bool, string, ...any) { x.finish(1) }
	x.claim(1)
	x.w.reportGroup(x.f)
	for k := range x.f.gates {
		if g := x.f.ring.Gate(k); g.Next != 1 {
			t.Errorf("a copy of packet 1 has left through gate %d, and the core is at %d", k, x.nxt())
		}
	}
	if x.nxt() != 1 || x.w.count.drop[dropNotStored] != 1 {
		t.Errorf("the core is at %d, want 1; %d packets are counted as not stored, want 1", x.nxt(), x.w.count.drop[dropNotStored])
	}
	if x.f.step != fastUnset || !x.f.awaitsPrograms {
		t.Errorf("step %d: the group may be granted before the program has ended", x.f.step)
	}
}

// A packet that is stored in the last moment, of which copies may have left, is reported.
func TestFastStoredInTheLastMoment(t *testing.T) {
	x := newReportBench(t)
	x.claim(1)
	x.finish(1)
	if _, _, ok := x.w.storedLast(x.f, 1); !ok || x.w.count.drop[dropNotStored] != 0 {
		t.Errorf("the packet is given up: %d counted", x.w.count.drop[dropNotStored])
	}
	if x.w.reportGroup(x.f); x.nxt() != 2 || x.f.step == fastGranted {
		t.Errorf("the core is at %d, want 2; step %d", x.nxt(), x.f.step)
	}
}

// A damaged packet behind one that is not stored does not hide that a program has not ended.
func TestFastNotStoredBeforeDamage(t *testing.T) {
	x := newReportBench(t)
	x.w.fast.shared.notify = func(bool, string, ...any) {}
	x.claim(1)
	x.w.storedLast(x.f, 1)
	x.w.refuseReport(x.f, &mcast.Packet{})
	if x.w.takeBack(x.f, x.f.damaged); x.f.step != fastUnset || !x.f.awaitsPrograms {
		t.Errorf("step %d: the group may be granted before the program has ended", x.f.step)
	}
}

// counts has the programs raise the words of both legs to psn, and that of the ACK to the source to sent.
func (x *reportBench) counts(psn, sent rocev2.PSN) {
	x.f.ring.OpenACKs([]rocev2.PSN{psn, psn}, sent, 1, 0, 0)
}

func (x *reportBench) acked() rocev2.PSN {
	x.w.core.Group(0).Snapshot(&x.status)
	return x.status.Acked
}

// The core is told of ACKs after the packets that they are of, and is not told of the ACKs of a group whose words
// are closed.
func TestFastACKsAreTold(t *testing.T) {
	x := newReportBench(t)
	x.w.judgeACKs(x.f)
	if x.f.acks.why != "" || !x.f.acks.counting || !x.f.ring.CountsACKs() {
		t.Fatalf("no ACKs are counted: %q", x.f.acks.why)
	}
	x.forward(1, false)
	x.counts(1, 0)
	if x.w.reportGroup(x.f); x.acked() != 1 || x.nxt() != 2 {
		t.Errorf("the core has ACKs of %d, and is at %d; want 1 and 2", x.acked(), x.nxt())
	}
	if n := x.w.count.core[mcast.FeedbackAhead]; n != 0 {
		t.Errorf("%d ACKs were told before their packets", n)
	}
	x.f.spec.Legs = append(x.f.spec.Legs, x.f.spec.Legs[0]) // the group has fewer receivers than the maps
	if x.w.judgeACKs(x.f); x.f.acks.why != "members" || x.f.acks.counting || x.f.ring.CountsACKs() {
		t.Errorf("%q, counting %v, open %v", x.f.acks.why, x.f.acks.counting, x.f.ring.CountsACKs())
	}
}

// What was counted until a group is taken back is told before the core has it, and nothing is counted after.
func TestFastACKsEnd(t *testing.T) {
	x := newReportBench(t)
	x.w.judgeACKs(x.f)
	x.forward(1, false)
	x.counts(1, 0)
	if x.w.takeBack(x.f, whyChange); x.acked() != 1 || x.f.ring.CountsACKs() || x.f.acks.counting {
		t.Errorf("the core has ACKs of %d, want 1; words are open: %v", x.acked(), x.f.ring.CountsACKs())
	}
}
