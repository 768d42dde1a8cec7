// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// stageOne has w build a frame of its own for port pi, as the control loop's closures do.
func stageOne(w *worker, pi int) {
	if buf, ok := w.beginFrame(pi); ok {
		clear(buf[:minFrame])
		w.endFrame(pi, minFrame)
	}
}

// What a closure of the control loop stages leaves in the same step: the worker does
// not go to sleep with it.
func TestClosuresFramesLeaveBeforeTheWorkerSleeps(t *testing.T) {
	b := newBench(t, 2)
	b.w.runBatch()
	before := b.w.ports[1].ring.packets
	b.w.closures <- func() { stageOne(b.w, 1) }
	b.w.closures <- func() { b.w.removeMember(0, 1) }
	b.w.runBatch()
	p := b.w.ports[1]
	if n := p.ring.packets - before; n != 1 || p.hasStaged() {
		t.Errorf("%d frames have left, staged %v; want the closure's frame sent", n, p.hasStaged())
	}
	if d := b.w.sleepTime(); d < maxSleep/2 {
		t.Errorf("the worker may sleep for %v with nothing to do, want about %v", d, maxSleep)
	}
}

// A worker does not sleep while anything is staged, whoever forgot to send it.
func TestNobodySleepsOnStagedFrames(t *testing.T) {
	p := newPair(t, 4, "")
	w := p.crew.all[0]
	idle := func(what string) {
		t.Helper()
		w.runBatch()
		if d := w.sleepTime(); d < maxSleep/2 {
			t.Fatalf("%s: the worker may sleep for %v, want about %v", what, d, maxSleep)
		}
	}
	busy := func(what string) {
		t.Helper()
		if d := w.sleepTime(); d != 0 {
			t.Errorf("%s: the worker may sleep for %v", what, d)
		}
	}
	idle("at first")
	stageOne(w, 0)
	busy("a frame for a port of its own")
	idle("sent")
	stageOne(w, 1)
	busy("a frame for another worker's port")
	idle("published")
	d := p.take(0, &rocev2.Packet{Op: rocev2.SendOnly}, nil)
	w.handoff.out[1].Put(d)
	busy("a packet for another worker's group")
	w.handoff.out[1].Publish()
	idle("posted")
	p.crew.all[1].drainHandoff()
}

// What a closure stages for another worker's port is published, and that worker roused.
func TestClosuresFramesRouseTheSender(t *testing.T) {
	p := newPair(t, 4, "")
	staging, sending := p.crew.all[0], p.crew.all[1]
	if !sending.prepareSleep() {
		t.Fatal("it would not sleep, with nothing to do")
	}
	staging.closures <- func() { stageOne(staging, 1) }
	staging.runBatch()
	if sending.asleep.Load() {
		t.Error("the sender was not roused")
	}
	sending.runBatch()
	if n := sending.ports[1].ring.packets; n != 1 {
		t.Errorf("%d frames have left by the sender, want 1", n)
	}
}

// A closure's frame for an interface that vanishes before the end of the batch is freed.
func TestStagedForALostPort(t *testing.T) {
	b := newBench(t, 2)
	free := b.w.pool.Len()
	stageOne(b.w, 1)
	(&workers{all: []*worker{b.w}, ports: b.w.ports}).closePort(1)
	if n := b.w.pool.Len(); n < free || b.w.count.drop[dropPortDown] != 1 {
		t.Errorf("%d frames are free, had %d; drops %v", n, free, b.w.count.drops())
	}
	if b.w.sleepTime() == 0 {
		t.Error("the worker never sleeps again")
	}
}
