// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A batch counts what came from the ports, from other workers, and for them: a worker
// that has any of it does not go to sleep.
func TestBatchCountsAllThatCame(t *testing.T) {
	p := newPair(t, 4, "")
	receiver, owner := p.crew.all[0], p.crew.all[1]
	if n := owner.runBatch() + receiver.runBatch(); n != 0 {
		t.Fatalf("%d packets at first", n)
	}
	if !p.fake.queues[0][0].Arrive(p.build(0, &rocev2.Packet{Op: rocev2.SendOnly}, nil)) {
		t.Fatal("a frame is lost")
	}
	if n := receiver.runBatch(); n != 1 {
		t.Errorf("%d packets at the receiver, want 1", n)
	}
	if n := owner.runBatch(); n != 1 {
		t.Errorf("%d packets at the owner, want 1", n)
	}
	if n := receiver.runBatch(); n != 1 {
		t.Errorf("%d frames to send for the owner, want the one for port 2", n)
	}
	for i, want := range []int{0, 1, 1, 1} {
		if n := len(p.fake.queues[i][0].Sent()); n != want {
			t.Errorf("%d frames left by port %d, want %d", n, i, want)
		}
	}
}

// A group that floods its worker delays the data and the ACKs of another one by a batch of each of its ports at most.
func TestBusyGroupDelaysOthersByABatch(t *testing.T) {
	const flood = 400
	b := newBench(t, 4)
	b.putMore(t, 1)
	w := b.w
	arrive := func(host int, k *rocev2.Packet) {
		t.Helper()
		if !b.fake.queues[host][0].Arrive(b.build(host, k, nil)) {
			t.Fatalf("a frame of host %d is lost", host)
		}
	}
	// sent returns how many frames of the busy group and of the other one have left by a port.
	sent := func(host int) (busy, other int) {
		for _, f := range b.fake.queues[host][0].Sent() {
			if src, _ := netip.AddrFromSlice(f[rocev2.EthernetLen+12:][:4]); src == b.group {
				busy++
			} else {
				other++
			}
		}
		return busy, other
	}
	b.at(1, func() { arrive(1, &rocev2.Packet{Op: rocev2.SendOnly, AckReq: true}) }) // behind a batch of the flood
	for n := range flood {
		arrive(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: rocev2.PSN(n)})
	}
	w.runBatch()
	if busy, other := sent(3); other != 1 || busy == 0 || busy > len(w.rx) {
		t.Errorf("in a batch %d frames of the busy group and %d of the other one have left, want at most %d and 1", busy, other, len(w.rx))
	}
	b.at(1, func() {
		for _, i := range []int{0, 2, 3} { // host 0's ACK waits behind the flood that it sends itself
			arrive(i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: rocev2.PSN(1000 * i), Syndrome: rocev2.SyndromeACK})
		}
	})
	batches := 0
	for other := 0; other == 0; batches++ {
		if batches > flood {
			t.Fatal("the other group's source gets no ACK")
		}
		w.runBatch()
		_, other = sent(1)
	}
	if most := (flood + len(w.rx) - 1) / len(w.rx); batches > most {
		t.Errorf("the ACK has taken %d batches, want %d: those of the port that its last part came by", batches, most)
	}
}

// A worker that sleeps has said until when, so that the time does not count as a pause.
func TestSleepIsNoPause(t *testing.T) {
	w := newBench(t, 2).w
	w.runBatch()
	w.poller.Wake()
	w.sleep()
	if w.pauses.runBy < w.now+maxSleep/2 {
		t.Errorf("the worker runs again by %v, now is %v", w.pauses.runBy, w.now)
	}
	w.now = w.pauses.runBy
	if w.pauses.note(w.now) > 0 {
		t.Error("a sleep that ends in time is a pause")
	}
}

// No worker has a ring to itself. All stand still while pauseAll's function runs, and go
// on afterwards; when they have ended, it does not run.
func TestPauseAll(t *testing.T) {
	s := newFakeStar(t, lab.StarConfig{Hosts: 2}, fakeConfig(t, 2, "umem: {frames: 4096}\nworker: {cpu: [-1, -1, -1]}\n", ""))
	for i, w := range s.all {
		if len(w.handoff.in) != 2 || w.handoff.out[i] != nil {
			t.Errorf("worker %d has %d rings from others, and one to itself: %v", i, len(w.handoff.in), w.handoff.out[i] != nil)
		}
	}
	ran := 0
	if _, err := s.workers.run(func() {
		batches := func() (n [3]uint64) {
			for i, w := range s.all {
				n[i] = w.batchNumber
			}
			return n
		}
		if !s.pauseAll(func() {
			before := batches()
			for _, w := range s.all {
				w.poller.Wake()
			}
			time.Sleep(5 * time.Millisecond)
			if after := batches(); after != before {
				t.Errorf("batches %v, were %v: a worker goes on", after, before)
			}
			ran++
		}) {
			t.Error("not all have paused")
		}
		if !s.do(func(*worker) { ran++ }) {
			t.Error("not all go on")
		}
	}); err != nil {
		t.Fatal(err)
	}
	if s.pauseAll(func() { ran++ }) || ran != 4 {
		t.Errorf("%d functions ran, want 4: none after the workers' end", ran)
	}
}
