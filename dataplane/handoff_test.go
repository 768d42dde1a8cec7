// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"testing"

	"github.com/gleam-rdma/gleam/dataplane/spsc"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// full is a batch as large as the worker takes: of host i's packet pkt, which goes
// to the group.
func (p *pair) full(w *worker, i int, pkt *rocev2.Packet) (ds []xsk.Desc) {
	owner := p.bench.w
	p.bench.w = w
	defer func() { p.bench.w = owner }()
	for range len(w.rx) {
		ds = append(ds, p.take(i, pkt, nil))
	}
	return ds
}

// A port that brings more than can be served fills half of the ring to the group's
// worker, so that the packets of another port still find room.
func TestOnePortLeavesRoomForTheOthers(t *testing.T) {
	p := newPair(t, 4, "")
	receiver, owner := p.crew.all[0], p.crew.all[1]
	size := receiver.handoff.out[1].Size()
	ack := &rocev2.Packet{Op: rocev2.Acknowledge, PSN: 2000, Syndrome: rocev2.SyndromeACK}
	for sent := 0; sent < 2*size; sent += len(receiver.rx) {
		receiver.dispatch(2, p.full(receiver, 2, ack))
	}
	if n := receiver.handoff.out[1].Published(); n != size/2 {
		t.Errorf("a port with a backlog has %d of %d places, want half", n, size)
	}
	dropped := receiver.count.drop[dropHandoffFull]
	if dropped != uint64(2*size-size/2) {
		t.Errorf("%d counted as dropped, want %d", dropped, 2*size-size/2)
	}
	for i := range size / 2 {
		p.receive(receiver, 0, rocev2.PSN(i))
	}
	if n := receiver.count.drop[dropHandoffFull] - dropped; n != 0 {
		t.Errorf("%d packets of another port were dropped", n)
	}
	p.serveAll(owner)
	if owner.count.dataIn != uint64(size/2) {
		t.Errorf("%d of the other port's packets served, want %d", owner.count.dataIn, size/2)
	}
	p.end(t)
}

// What is beyond a port's limits is dropped by the worker that receives it: it takes
// no place in the ring to the group's.
func TestLimitsAreAskedBeforeTheRing(t *testing.T) {
	p := newPair(t, 4, "")
	receiver := p.crew.all[0]
	receiver.ports[2].policers.naks = NewPolicer(100) // ten at once
	nak := &rocev2.Packet{Op: rocev2.Acknowledge, PSN: 2000, Syndrome: rocev2.SyndromeNAKSequence}
	receiver.dispatch(2, p.full(receiver, 2, nak))
	if n, limited := receiver.handoff.out[1].Published(), receiver.count.drop[dropRateLimit]; n != 10 || limited != uint64(len(receiver.rx)-10) {
		t.Errorf("%d NAKs posted, %d counted as beyond the limit; want 10 and %d", n, limited, len(receiver.rx)-10)
	}
	ack := &rocev2.Packet{Op: rocev2.Acknowledge, PSN: 2000, Syndrome: rocev2.SyndromeACK}
	receiver.dispatch(2, p.full(receiver, 2, ack)[:1])
	if n := receiver.handoff.out[1].Published(); n != 11 {
		t.Errorf("an ACK was not posted: %d in the ring, want 11", n)
	}
}

// What a worker that is behind cannot take is dropped by whoever received it, and
// counted, and its frame is free.
func TestPostIsBounded(t *testing.T) {
	p := newPair(t, 2, "")
	receiver, owner := p.crew.all[0], p.crew.all[1]
	size := receiver.handoff.out[1].Size()
	for i := range size + 5 {
		p.receive(receiver, 0, rocev2.PSN(i))
	}
	if n := receiver.count.drop[dropHandoffFull]; n != 5 {
		t.Errorf("%d dropped, want 5", n)
	}
	p.serveAll(owner)
	if owner.count.dataIn != uint64(size) {
		t.Errorf("%d served of %d", owner.count.dataIn, size)
	}
	p.end(t)
}

// A packet in several buffers goes through the ring whole or not at all, and its
// port with it; a ring that is nearly full has room for a short one.
func TestPostTakesWholePackets(t *testing.T) {
	p := newPair(t, 2, "")
	w := p.crew.all[0]
	w.handoff.out[1] = spsc.New[xsk.Desc](4)
	chain := func(n int) (ds []xsk.Desc) {
		for range n {
			a, _ := w.pool.TakeOne()
			ds = append(ds, xsk.Desc{Addr: a, Len: 100, Options: xsk.PktContd})
		}
		ds[n-1].Options = 0
		return ds
	}
	w.enqueueHandoff(1, 300, chain(3), false)
	w.enqueueHandoff(1, 300, chain(2), false)
	w.enqueueHandoff(1, 7, chain(1), false)
	r := w.handoff.out[1]
	r.Publish()
	var got []string
	for i := range r.Len(4) {
		o := r.At(i).Options
		got = append(got, fmt.Sprintf("%d:%d", o>>portShift, o&(1<<portShift-1)))
	}
	if want := "[300:1 300:1 300:0 7:0]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
	if n := w.count.drop[dropHandoffFull]; n != 1 {
		t.Errorf("%d dropped, want 1", n)
	}
}
