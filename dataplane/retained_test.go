// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// staged returns what was staged for each port, and frees it.
func (b *bench) staged() [][][]byte {
	out := make([][][]byte, len(b.w.ports))
	for i, p := range b.w.ports {
		for rest := p.staged; len(rest) > 0; {
			ds := rest[:xsk.ChainLen(rest)]
			out[i] = append(out[i], b.w.join(ds))
			b.w.freeFrames(ds)
			rest = rest[len(ds):]
		}
		p.staged = p.staged[:0]
	}
	b.w.batchNumber++
	return out
}

// send has host 0 send messages from first on, n of them, and returns what went
// to each port.
func (b *bench) send(first rocev2.PSN, n int) [][][]byte {
	var out [][][]byte
	for i := range n {
		payload := bytes.Repeat([]byte{byte(i)}, 1024)
		b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: first.Add(int32(i))}, payload))
		for port, frames := range b.staged() {
			if i == 0 {
				out = append(out, nil)
			}
			out[port] = append(out[port], frames...)
		}
	}
	return out
}

// answer has host i acknowledge, or not, psn in the source's numbering.
func (b *bench) answer(i int, psn rocev2.PSN, syn rocev2.Syndrome) [][][]byte {
	b.say(i, psn, syn)
	return b.staged()
}

// A NAK of one receiver is answered from the store: the same bytes once more, to
// that receiver alone, the last packet with AckReq, and the source hears nothing.
// When everything is acknowledged every frame is free again.
func TestKeptFramesAreSentAgain(t *testing.T) {
	b := newBench(t, 4)
	free := b.w.pool.Len()
	first := b.send(0, 10)
	if kept := free - b.w.pool.Len(); kept != 10 {
		t.Fatalf("%d frames are kept, want 10", kept)
	}
	again := b.answer(1, 3, rocev2.SyndromeNAKSequence)
	for port, frames := range again {
		if want := map[int]int{1: 7}[port]; len(frames) != want {
			t.Fatalf("%d frames to port %d after a NAK of host 1, want %d", len(frames), port, want)
		}
	}
	for i, got := range again[1] {
		want := first[1][3+i]
		if i < 6 && !bytes.Equal(got, want) {
			t.Errorf("copy %d is not what was sent before:\n%x\n%x", 3+i, got, want)
		}
		var f rocev2.Frame
		if r := rocev2.Decode(got, &f); r != rocev2.OK || !f.VerifyICRC() {
			t.Errorf("copy %d: decode %v, or its ICRC is wrong", 3+i, r)
		}
		if asks := f.BTH().AckReq(); asks != (i == 6) {
			t.Errorf("copy %d: AckReq %v", 3+i, asks)
		}
	}
	for i := 1; i < 4; i++ {
		b.answer(i, 9, rocev2.SyndromeACK)
	}
	if n := b.w.pool.Len(); n != free {
		t.Errorf("%d frames free when all is acknowledged, want %d", n, free)
	}
}

// The store gives back its frames when its group goes, and keeps no more than it
// may.
func TestStoreIsBoundedAndEmptied(t *testing.T) {
	b := newBench(t, 3)
	free := b.w.pool.Len()
	b.send(0, 4)
	b.repair(t, 5*int64(b.w.umem.FrameSize())) // instead of the group that keeps 4
	if n := b.w.pool.Len(); n != free {
		t.Fatalf("%d frames free after the group was replaced, want %d", n, free)
	}
	b.send(0, 12)
	if kept := free - b.w.pool.Len(); kept != 5 {
		t.Errorf("%d frames are kept, want 5", kept)
	}
	if out := b.answer(1, 3, rocev2.SyndromeNAKSequence); len(out[1]) != 0 {
		t.Errorf("%d copies from a store that lacks some of what is missing", len(out[1]))
	}
	if out := b.answer(2, 2, rocev2.SyndromeACK); len(out[0]) != 2 {
		t.Errorf("%d packets to the source, want an ACK and the NAK", len(out[0]))
	}
	b.w.deleteGroup(0)
	b.unstage()
	if n := b.w.pool.Len(); n != free {
		t.Errorf("%d frames free after the group was removed, want %d", n, free)
	}
}

// A receiver that owes an ACK and is silent is asked, by the worker's clock, with
// a packet that it may have already.
func TestSilentReceiverIsAsked(t *testing.T) {
	b := newBench(t, 3)
	b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, AckReq: true}, []byte("x")))
	b.staged()
	b.answer(2, 0, rocev2.SyndromeACK)
	b.w.now += time.Second
	b.w.fireDeadlines()
	out := b.staged()
	if len(out[1]) != 1 || len(out[2]) != 0 || len(out[0]) != 0 {
		t.Fatalf("%d, %d, %d frames to the source, the silent receiver and the other one; want 0, 1, 0", len(out[0]), len(out[1]), len(out[2]))
	}
}

// Repairs that there is no room for wait, and none is lost.
func TestRepairWaitsForRoom(t *testing.T) {
	b := newBench(t, 3)
	b.send(0, 400)
	got := len(b.answer(1, 0, rocev2.SyndromeNAKSequence)[1])
	if got == 0 || got > maxResends {
		t.Fatalf("%d copies at once, want 1 to %d", got, maxResends)
	}
	for range 20 {
		b.w.fireDeadlines()
		got += len(b.staged()[1])
	}
	if got != 400 {
		t.Errorf("%d copies in all, want 400; drops %v", got, b.w.count.drops())
	}
}

// The packet toward another switch that is made a question keeps all but the bit,
// and its ICRC is right.
func TestQuestionOnAForwardedLeg(t *testing.T) {
	b := newBench(t, 2)
	l := &b.w.groups[0].legs[1]
	l.kind = mcast.Forwarded
	d := b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: 7}, []byte("a payload"))
	if r := rocev2.Decode(b.w.umem.Data(d.Addr, d.Len), &b.w.frame); r != rocev2.OK {
		t.Fatal(r)
	}
	b.w.copy(&mcast.Copy{Leg: 1, PSN: 7, Flags: mcast.SetAckReq}, &b.w.frame, []xsk.Desc{d}, false)
	var f rocev2.Frame
	if r := rocev2.Decode(b.staged()[1][0], &f); r != rocev2.OK || !f.VerifyICRC() || !f.BTH().AckReq() || f.BTH().PSN() != 7 {
		t.Errorf("decode %v, ICRC right %v, AckReq %v, PSN %d", r, f.VerifyICRC(), f.BTH().AckReq(), f.BTH().PSN())
	}
	if b.w.frame.BTH().AckReq() {
		t.Error("the frame that is kept was changed")
	}
}

// Groups repair as the configuration says.
func TestConfiguredRepair(t *testing.T) {
	c := config.Default()
	if r := repairSpec(c, 1<<30); r.Timeout != c.Repair.Timeout || r.Tries != c.Repair.Tries {
		t.Errorf("%+v, want %+v", r, c.Repair)
	}
}

// After a copy that a port's queue refused, what stands in for an update message is
// put off as well: it must not overtake.
func TestEmptyWriteDoesNotOvertake(t *testing.T) {
	b := newBench(t, 3)
	b.send(0, 1)
	p := b.w.ports[1]
	p.fullAt = b.w.coreCalls + 1
	d := b.take(0, &rocev2.Packet{Op: rocev2.WriteOnly, PSN: 0}, []byte("an update"))
	if r := rocev2.Decode(b.w.umem.Data(d.Addr, d.Len), &b.w.frame); r != rocev2.OK {
		t.Fatal(r)
	}
	b.w.copy(&mcast.Copy{Leg: 1, PSN: 1000, Flags: mcast.EmptyWrite}, &b.w.frame, []xsk.Desc{d}, false)
	if out := b.staged(); len(out[1]) != 0 || p.deferred != 1 {
		t.Errorf("%d frames staged, put off %d times", len(out[1]), p.deferred)
	}
}
