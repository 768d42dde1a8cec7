// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A port has sent everything when nothing is staged, in its queue, or in a TX ring that the
// kernel has not read: a copy of the XDP programs would overtake it.
func TestFastWaitsForThePort(t *testing.T) {
	b := newBench(t, 3)
	p := b.w.ports[1]
	at := func(when string, want bool) {
		t.Helper()
		if got := b.w.hasSent(p); got != want {
			t.Errorf("%s: has sent everything: %v, want %v", when, got, want)
		}
	}
	at("at first", true)
	b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: 0}, nil))
	at("with a staged copy", false)
	b.unstage()
	at("without it", true)
	p.queue.push(xsk.Desc{Len: 100})
	at("with a frame in the queue", false)
	p.queue.pop()
	p.ring.kickAt = 1
	at("with a TX ring that is not read", false)
	p.ring.kickAt, p.down = 1, true
	at("down", true)
}

// The same of a port by which another worker sends.
func TestFastWaitsForTheOtherWorker(t *testing.T) {
	p := newPair(t, 3, "")
	w := p.w // worker 1; worker 0 sends by port 2
	view := w.ports[2]
	if view.remoteTX == nil || !w.hasSent(view) {
		t.Fatal("not as expected at first")
	}
	p.receive(w, 1, 0)
	w.flush()
	if w.hasSent(view) {
		t.Error("a copy is in the ring to the other worker, and counts as sent")
	}
	other := p.crew.all[0]
	other.drainRemote()
	if w.hasSent(view) {
		t.Error("a copy is staged at the other worker, and counts as sent")
	}
	other.flush()
	if !w.hasSent(view) {
		t.Error("a copy that has left does not count as sent")
	}
}
