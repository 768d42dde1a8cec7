// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/mcast"
	"github.com/gleam-rdma/gleam/internal/rocev2"
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
	w.fast.shared = &fastShared{targets: &fastTargets{ports: make([]fastTarget, 3)}}
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
	x.w.core.Snapshot(0, &x.status)
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
