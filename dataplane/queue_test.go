// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Frames leave in order, each at the nanosecond at which a link of that rate has
// sent the ones before it, however often and late the worker looks.
func TestQueueKeepsTheLinksTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(10_000, 400_000_000_000).Draw(t, "rate")
		lens := rapid.SliceOfN(rapid.IntRange(minFrame, 9018), 1, 50).Draw(t, "lens")
		q := newEgressQueue(1<<20, 100, rate)
		turn := make([]time.Duration, len(lens))
		now := time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "start"))
		bits := new(big.Int)
		for i, n := range lens {
			turn[i] = now + time.Duration(new(big.Int).Quo(new(big.Int).Mul(bits, big.NewInt(1e9)), big.NewInt(rate)).Int64())
			bits.Add(bits, big.NewInt(8*int64(n+24)))
			q.push(xsk.Desc{Addr: uint64(i), Len: uint32(n)})
		}
		last := turn[len(turn)-1]
		step := rapid.Int64Range(0, min(int64(maxCatchUp), max(1, int64(last-now)/10)))
		var out []xsk.Desc
		for sent := 0; sent < len(lens); {
			room := rapid.IntRange(1, 60).Draw(t, "room")
			out = q.release(now, out[:0], room)
			due := 0
			for sent+due < len(lens) && turn[sent+due] <= now {
				due++
			}
			if len(out) != min(due, room) {
				t.Fatalf("at %v %d frames leave of which room is for %d; want %d", now, len(out), room, due)
			}
			for i, d := range out {
				if d.Addr != uint64(sent+i) || d.Len != uint32(lens[sent+i]) {
					t.Fatalf("frame %d left in place of %d", d.Addr, sent+i)
				}
			}
			sent += len(out)
			if due <= room && sent < len(lens) {
				if rapid.Bool().Draw(t, "exact") {
					now = max(now, turn[sent]-time.Duration(rapid.IntRange(0, 1).Draw(t, "early")))
				} else {
					now += time.Duration(step.Draw(t, "step"))
				}
			}
		}
		if q.bytes != 0 || q.len() != 0 {
			t.Fatalf("%d bytes in %d frames are left", q.bytes, q.len())
		}
	})
}

// 1126 bytes at 20 Mbit/s take 460 µs with FCS, preamble and gap. A link that
// had nothing to send does not catch up, one whose driver came late does, for
// as long as maxCatchUp.
func TestQueueCatchesUpWithTheLinkOnly(t *testing.T) {
	const each = 460 * time.Microsecond
	q := newEgressQueue(1<<20, 1000, 20_000_000)
	fill := func(n int) {
		for range n {
			q.push(xsk.Desc{Len: 1126})
		}
	}
	leave := func(at time.Duration, want int) {
		t.Helper()
		if n := len(q.release(at, nil, 1000)); n != want {
			t.Errorf("at %v: %d frames leave, want %d", at, n, want)
		}
	}
	fill(10)
	leave(time.Second, 1)
	leave(time.Second+each-1, 0)
	leave(time.Second+each, 1)
	leave(time.Second+4*each, 3)
	leave(time.Second+9*each, 5)
	fill(10) // the last one is still on the link
	leave(time.Second+10*each-1, 0)
	leave(time.Second+10*each, 1)
	leave(2*time.Second, 9) // 9 frames' time is less than maxCatchUp
	fill(2)
	leave(3*time.Second, 1)
	leave(4*time.Second, 1)
	fill(900)
	leave(5*time.Second, 1)
	leave(6*time.Second, int(maxCatchUp/each)+1)
	q.setRate(0)
	leave(6*time.Second, 900-1-int(maxCatchUp/each)-1)
}

// What fits says is kept, in order, and never more bytes or frames wait than the
// queue is for, with the reply's share beyond.
func TestQueueIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxBytes, maxFrames := rapid.IntRange(4096, 20000).Draw(t, "bytes"), rapid.IntRange(1, 40).Draw(t, "frames")
		q := newEgressQueue(maxBytes, maxFrames, 0)
		var model []uint32
		bytes := 0
		for range rapid.IntRange(1, 300).Draw(t, "ops") {
			n := rapid.IntRange(minFrame, 4000).Draw(t, "len")
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				if fits := len(model) < maxFrames && bytes+n+24 <= maxBytes; q.fits(n, 1) != fits {
					t.Fatalf("fits(%d) with %d bytes in %d frames is %v", n, bytes, len(model), !fits)
				} else if !fits {
					continue
				}
			case 2:
				n = minFrame
				if fits := len(model) < maxFrames+reservedReplyFrames && bytes < maxBytes+reservedReplyBytes; q.fitsReply() != fits {
					t.Fatalf("fitsReply with %d bytes in %d frames is %v", bytes, len(model), !fits)
				} else if !fits {
					continue
				}
			default:
				out := q.release(0, nil, rapid.IntRange(0, 10).Draw(t, "room"))
				for i, d := range out {
					if d.Len != model[i] {
						t.Fatalf("frame %d has %d bytes, want %d", i, d.Len, model[i])
					}
					bytes -= int(d.Len) + 24
				}
				model = model[len(out):]
				continue
			}
			q.push(xsk.Desc{Len: uint32(n)})
			model, bytes = append(model, uint32(n)), bytes+n+24
			if q.bytes != bytes || q.len() != len(model) {
				t.Fatalf("%d bytes in %d frames; want %d in %d", q.bytes, q.len(), bytes, len(model))
			}
		}
	})
}

// Replies have room beyond that for data, in frames and in bytes.
func TestQueueHasRoomForReplies(t *testing.T) {
	for _, c := range []struct {
		frames, bytes int // frames and bytes beyond those for data
		want          bool
	}{
		{0, 0, true},
		{reservedReplyFrames - 1, reservedReplyBytes - 1, true},
		{reservedReplyFrames, 0, false},
		{0, reservedReplyBytes, false},
	} {
		q := newEgressQueue(64<<10, 16, 0)
		q.tail, q.bytes = uint32(q.maxFrames+c.frames), q.maxBytes+c.bytes
		if q.fitsReply() != c.want {
			t.Errorf("with %d frames and %d bytes beyond those for data, a reply fits: %v", c.frames, c.bytes, !c.want)
		}
	}
}

// One receiver's port is slow and its queue full: its copies alone are dropped,
// the others get theirs, and what the switch has to say still finds room.
func TestFullQueueDropsForItsLegAlone(t *testing.T) {
	b := newBench(t, 4)
	b.repair(t, 0)
	w, slow := b.w, b.w.ports[2]
	free := w.pool.Len()
	slow.queue.setRate(10_000)
	payload := make([]byte, 1024)
	const packets = 400
	var staged [4]int
	for i := range rocev2.PSN(packets) {
		w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: i}, payload))
		for pi, p := range w.ports {
			staged[pi] += len(p.staged)
		}
		b.unstage()
	}
	frame := rocev2.EthernetLen + rocev2.IPv4Len + rocev2.UDPLen + rocev2.BTHLen + len(payload) + rocev2.ICRCLen
	held := slow.queue.maxBytes / linkBytes(frame)
	if staged != [4]int{0, packets, 0, packets} || slow.queue.len() != held || held >= packets {
		t.Errorf("%v frames staged; %d of at most %d queued for the slow port", staged, slow.queue.len(), held)
	}
	dropped := uint64(packets - held)
	if slow.refusedFrames != dropped || w.count.drop[dropQueueFull] != dropped || w.count.copies != 3*packets-dropped {
		t.Errorf("%d refused, %d counted, %d copies; want %d dropped", slow.refusedFrames, w.count.drop[dropQueueFull], w.count.copies, dropped)
	}
	if e := slow.egressView(); e.Frames != held || e.Bytes != held*linkBytes(frame) || e.MaxDepthBytes != e.Bytes || e.Dropped != dropped {
		t.Errorf("the API would show %+v", e)
	}
	replies := 0
	for ; replies <= packets; replies++ {
		buf, ok := w.beginFrame(2)
		if !ok {
			break
		}
		w.endFrame(2, copy(buf, payload[:minFrame]))
	}
	if want := slow.queue.maxFrames + reservedReplyFrames - held; replies != want { // frames, not bytes, are what ends it
		t.Errorf("%d replies found room, want %d", replies, want)
	}
	slow.down = true
	w.flush()
	if slow.queue.len() != 0 || w.pool.Len() != free || w.count.drop[dropPortDown] != uint64(held+replies) {
		t.Errorf("port down: %d frames queued, %d of %d free; drops %v", slow.queue.len(), w.pool.Len(), free, w.count.drops())
	}
}

// With a rate nothing is allocated either, and no frame is lost.
func TestQueueAllocatesNothing(t *testing.T) {
	b := newBench(t, 3)
	b.repair(t, 0) // nobody acknowledges here
	free := b.w.pool.Len()
	for _, p := range b.w.ports {
		p.queue.setRate(1_000_000_000)
		p.ecn.kmin = 0
	}
	payload := make([]byte, 1024)
	psn := rocev2.PSN(0)
	run := func() {
		for range 4 {
			b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, payload))
			psn = psn.Next()
		}
		b.w.now += 20 * time.Microsecond // two frames' time
		for _, p := range b.w.ports {
			p.staged = p.queue.release(b.w.now, p.staged, 16)
			_, _ = p.nextRelease(b.w.now)
		}
		b.unstage()
	}
	run()
	if n := testing.AllocsPerRun(500, run); n != 0 {
		t.Errorf("%v allocations for four packets", n)
	}
	if b.w.ports[1].refusedFrames == 0 || b.w.ports[1].queue.len() == 0 {
		t.Error("the queue was not full")
	}
	for _, p := range b.w.ports {
		b.w.drainQueue(p)
	}
	if b.w.pool.Len() != free {
		t.Errorf("%d free frames, had %d", b.w.pool.Len(), free)
	}
}

// A port wakes the worker for the next frame's turn, or for the next kick, not before and
// not later.
func TestNextEvent(t *testing.T) {
	p := &port{egress: egress{stageLimit: 4, queue: newEgressQueue(4096, 100, 20_000_000)}}
	want := func(what string, now, at time.Duration, ok bool) {
		t.Helper()
		if a, o := p.nextEvent(now); a != at || o != ok {
			t.Errorf("%s: %v, %v; want %v, %v", what, a, o, at, ok)
		}
	}
	want("empty", 5, 0, false)
	p.ring.kickAt = 7
	want("the kernel has to be kicked", 5, 7, true)
	p.ring.kickAt = 0
	p.stage(xsk.Desc{Len: 1126})
	p.stage(xsk.Desc{Len: 1126})
	p.stage(xsk.Desc{Len: 1126})
	want("staged on an idle link", 5, 5, true)
	p.queue.release(1000, nil, 1)
	want("one is on the link", 1001, 461_000, true)
	p.ring.kickAt = 400_000
	want("the kernel has to be kicked before", 1001, 400_000, true)
	p.down = true
	want("an interface that is down is not kicked", 1001, 461_000, true)
	p.down, p.ring.kickAt = false, 500_000
	want("the kernel has to be kicked later", 1001, 461_000, true)
	p.ring.kickAt = 0
	p.stageLimit = 0
	want("the TX ring is full", 1001, 1001+minTXRetry, true)
	p.stageLimit = 4
	p.queue.setRate(0)
	want("no rate any more", 1001, 1001, true)
	p.vanished = true
	want("gone", 1001, 0, false)
}

// What waits in front of an interface that vanishes is freed.
func TestQueueOfALostPort(t *testing.T) {
	b := newBench(t, 3)
	p := b.w.ports[1]
	p.queue.setRate(10_000)
	for i := range rocev2.PSN(5) {
		b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: i}, nil))
	}
	b.unstage()
	free := b.w.pool.Len()
	(&workers{all: []*worker{b.w}, ports: b.w.ports}).closePort(1)
	if e := p.egressView(); e.Frames != 0 || e.Bytes != 0 {
		t.Errorf("still shown as waiting: %+v", e)
	}
	if p.queue.len() != 0 || b.w.count.drop[dropPortDown] != 5 || b.w.pool.Len() < free+5 {
		t.Errorf("%d frames are queued, %d counted, %d more are free", p.queue.len(), b.w.count.drop[dropPortDown], b.w.pool.Len()-free)
	}
	if _, ok := p.nextRelease(b.w.now); ok {
		t.Error("the worker would wake up for it")
	}
}

// Without a rate frames queue while the TX ring is full, and those behind them
// even when it no longer is. There is room for what ring and queue take together, in
// bytes as in frames; with a rate for what the queue takes.
func TestPortRoom(t *testing.T) {
	const frame = 1500 + 18
	p := &egress{stageLimit: 2, queue: newEgressQueue(3*(frame+24), 100, 0)}
	want := func(what string, room, staged, queued int, admits bool) {
		t.Helper()
		if p.room(frame, 1) != room || len(p.staged) != staged || p.queue.len() != queued || p.admits(frame, 1) != admits {
			t.Errorf("%s: room for %d, %d staged, %d queued, admits %v", what, p.room(frame, 1), len(p.staged), p.queue.len(), p.admits(frame, 1))
		}
	}
	want("empty", 5, 0, 0, true)
	for range 3 {
		p.stage(xsk.Desc{Len: frame})
	}
	want("one more than the ring takes", 2, 2, 1, true)
	p.stageLimit = 10
	p.stage(xsk.Desc{Len: frame})
	want("the ring takes more, but one queues already", 1, 2, 2, true)
	p.stage(xsk.Desc{Len: frame})
	want("full", 0, 2, 3, false)
	p.queue.setRate(10_000)
	want("full, with a rate", 0, 2, 3, false)
	p.staged = p.queue.release(0, p.staged, 1)
	want("one has left", 1, 3, 2, true)
	p.stage(xsk.Desc{Len: frame})
	want("with a rate frames queue", 0, 3, 3, false)

	p.queue.setRate(0)
	p.queue.maxBytes, p.queue.maxFrames = 1<<20, 10
	want("frames are what ends it", 4, 3, 3, true)
	p.queue.inTXRing = 3
	want("so do those in the TX ring", 1, 3, 3, true)
	p.queue.inTXRing = 4
	want("and in full", 0, 3, 3, false)

	empty := &egress{queue: newEgressQueue(4096, 100, 1000)}
	if n := empty.room(9018, 1); n != 1 {
		t.Errorf("an empty queue that is shorter than the port's MTU has room for %d packets, want 1: its length is not known", n)
	}
}
