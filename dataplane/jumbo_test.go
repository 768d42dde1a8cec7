// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// newJumboBench returns a worker whose group has path MTU 4096.
func newJumboBench(t testing.TB, hosts, frameSize int) *bench {
	return newBenchOn(t, lab.StarConfig{Hosts: hosts, MTU: 4200}, 4096, frameSize)
}

// Packets in several buffers are kept whole and sent again as they were, and all
// their frames are free when they are acknowledged.
func TestLongPacketsAreSentAgain(t *testing.T) {
	for frameSize, buffers := range map[int]int{4096: 2, 2048: 3} {
		t.Run(fmt.Sprintf("frames of %d", frameSize), func(t *testing.T) {
			b := newJumboBench(t, 4, frameSize)
			free := b.w.pool.Len()
			var first [4][][]byte
			for psn := range rocev2.PSN(10) {
				payload := bytes.Repeat([]byte{byte(psn)}, 4096)
				if psn%3 == 2 {
					payload = payload[:100] // short ones between them
				}
				b.w.servePacket(0, b.takeLong(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, payload)...)
				for port, packets := range b.staged() {
					first[port] = append(first[port], packets...)
				}
			}
			if kept := free - b.w.pool.Len(); kept != 7*buffers+3 {
				t.Fatalf("%d frames are kept, want %d", kept, 7*buffers+3)
			}
			again := b.answer(1, 3, rocev2.SyndromeNAKSequence)
			if len(again[1]) != 7 || len(again[0])+len(again[2])+len(again[3]) != 0 {
				t.Fatalf("%d, %d, %d, %d packets after a NAK of host 1, want 7 to it alone", len(again[0]), len(again[1]), len(again[2]), len(again[3]))
			}
			for i, got := range again[1] {
				if i < 6 && !bytes.Equal(got, first[1][3+i]) {
					t.Errorf("packet %d is not what was sent before", 3+i)
				}
				var f rocev2.Frame
				if r := rocev2.Decode(got, &f); r != rocev2.OK || !f.VerifyICRC() || f.BTH().AckReq() != (i == 6) {
					t.Errorf("packet %d: decode %v, ICRC right %v, AckReq %v", 3+i, r, f.VerifyICRC(), f.BTH().AckReq())
				}
			}
			for i := 1; i < 4; i++ {
				b.answer(i, 9, rocev2.SyndromeACK)
			}
			if n := b.w.pool.Len(); n != free {
				t.Errorf("%d frames free when all is acknowledged, want %d", n, free)
			}
		})
	}
}

// The store's bytes are those of all buffers.
func TestStoreCountsEveryBuffer(t *testing.T) {
	b := newJumboBench(t, 3, 2048)
	free := b.w.pool.Len()
	b.repair(t, 7*2048)
	for psn := range rocev2.PSN(10) {
		b.w.servePacket(0, b.takeLong(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, make([]byte, 4096))...)
		b.staged()
	}
	if kept := free - b.w.pool.Len(); kept != 6 {
		t.Errorf("%d frames are kept of packets of 3, want 6 of at most 7", kept)
	}
	b.w.deleteGroup(0)
	b.staged() // the source's NAK (R88)
	if n := b.w.pool.Len(); n != free {
		t.Errorf("%d frames free after the group was removed, want %d", n, free)
	}
}

// Serving, keeping and repairing packets in several buffers allocates nothing, and
// loses no frame.
func TestLongPacketsAllocateNothing(t *testing.T) {
	b := newJumboBench(t, 4, 2048)
	payload := make([]byte, 4096)
	psn := rocev2.PSN(0)
	free := b.w.pool.Len()
	run := func() {
		b.w.servePacket(0, b.takeLong(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn, AckReq: true}, payload)...)
		if n := b.unstage(); n != 9 {
			t.Fatalf("PSN %d: copies in %d buffers, want 9", psn, n)
		}
		b.w.servePacket(1, b.take(1, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn.Add(1000), Syndrome: rocev2.SyndromeNAKSequence}, nil))
		if n := b.unstage(); n != 3 {
			t.Fatalf("PSN %d: repaired by %d buffers, want 3; drops %v", psn, n, b.w.count.drops())
		}
		for i := 1; i < 4; i++ {
			b.w.servePacket(i, b.take(i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn.Add(int32(1000 * i)), Syndrome: rocev2.SyndromeACK}, nil))
		}
		if n := b.unstage(); n != 1 {
			t.Fatalf("PSN %d: %d acknowledgements", psn, n)
		}
		b.w.now += time.Millisecond // what a port may bring of NAKs
		psn = psn.Next()
	}
	run()
	if n := testing.AllocsPerRun(200, run); n != 0 {
		t.Errorf("%v allocations for a packet, its repair and its feedback", n)
	}
	if b.w.pool.Len() != free {
		t.Errorf("%d free frames, had %d", b.w.pool.Len(), free)
	}
}

// A packet that a port does not take, which only a member can be behind that has
// moved there, is dropped for that leg alone.
func TestLongPacketToAPortOfSmallMTU(t *testing.T) {
	for _, c := range []struct {
		name  string
		mtu   int
		multi bool
	}{{"MTU", 1500, true}, {"one buffer", 9000, false}} {
		t.Run(c.name, func(t *testing.T) {
			b := newJumboBench(t, 4, 4096)
			b.repair(t, 0)
			free := b.w.pool.Len()
			b.w.ports[3].mtu, b.w.ports[3].multiBuffer = c.mtu, c.multi
			b.w.servePacket(0, b.takeLong(0, &rocev2.Packet{Op: rocev2.SendOnly}, make([]byte, 4096))...)
			out := b.staged()
			if len(out[1]) != 1 || len(out[2]) != 1 || len(out[3]) != 0 || b.w.count.drop[dropTooLong] != 1 || b.w.pool.Len() != free {
				t.Errorf("%d, %d, %d copies; drops %v; %d of %d frames free", len(out[1]), len(out[2]), len(out[3]), b.w.count.drops(), b.w.pool.Len(), free)
			}
		})
	}
}

// What is torn, has too many buffers, headers in several, or no need of several is
// counted and freed, and what follows is served.
func TestHostileChains(t *testing.T) {
	b := newJumboBench(t, 3, 2048)
	w := b.w
	free := w.pool.Len()
	good := func(psn rocev2.PSN, n int) []byte {
		w.freeFrames(b.takeLong(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn, AckReq: true}, make([]byte, n)))
		return bytes.Clone(b.built[:n+58])
	}
	torn := func(n int) []xsk.Desc {
		ds := w.cut(good(0, 4096), 1000, 2000)
		for len(ds) < n {
			addr, _ := w.pool.TakeOne()
			ds = append(ds, xsk.Desc{Addr: addr, Len: 64})
		}
		for i := range ds {
			ds[i].Options = xsk.Torn
		}
		return ds
	}
	many := func(n int) []xsk.Desc {
		var at []int
		for i := range n - 1 {
			at = append(at, 60+i)
		}
		return w.cut(good(0, 4096), at...)
	}
	psn := rocev2.PSN(0)
	for _, c := range []struct {
		name, counter string
		make          func() []xsk.Desc
		times         uint64
	}{
		{"torn", "frame_too_long", func() []xsk.Desc { return torn(3) }, 3},
		{"torn, of more buffers than a packet may have", "frame_too_long", func() []xsk.Desc { return torn(20) }, 20},
		{"19 buffers", "frame_too_long", func() []xsk.Desc { return many(19) }, 1},
		{"40 buffers", "frame_too_long", func() []xsk.Desc { return many(40) }, 1},
		{"cut in the UDP header", "decode_split_headers", func() []xsk.Desc { return w.cut(good(0, 1500), 38) }, 1},
		{"shorter than IP says", "decode_truncated", func() []xsk.Desc { return w.cut(good(0, 4096)[:3000], 1500) }, 1},
		{"so short that it has to be padded", "frame_too_long", func() []xsk.Desc { return w.cut(good(0, 0), 54) }, 1},
	} {
		before := w.count.drops()[c.counter]
		w.serveChains(0, c.make())
		if got := w.count.drops()[c.counter] - before; got != c.times || b.unstage() != 0 || w.pool.Len() != free {
			t.Errorf("%s: %s counted %d times, want %d; %d of %d frames free; drops %v", c.name, c.counter, got, c.times, w.pool.Len(), free, w.count.drops())
		}
	}
	// Padding in a buffer of its own is cut off, a packet of 18 buffers is served, and
	// so is what comes after something torn in the same batch.
	padded := append(good(psn, 3000), make([]byte, 40)...)
	batch := append(torn(3), w.cut(padded, 1500, len(padded)-40)...)
	batch = append(batch, w.cut(good(1, 4096), 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 1000, 2500, 4000)...)
	if n := w.serveChains(0, batch); n != 5 {
		t.Errorf("%d packets, want 3 pieces of a torn one and 2", n)
	}
	for port, packets := range b.staged()[1:] {
		var f rocev2.Frame
		if len(packets) != 2 || rocev2.Decode(packets[0], &f) != rocev2.OK || !f.VerifyICRC() || rocev2.Decode(packets[1], &f) != rocev2.OK || !f.VerifyICRC() {
			t.Errorf("%d packets to port %d, want 2 good ones", len(packets), port+1)
		}
	}
	for i := 1; i < 3; i++ {
		b.answer(i, 1, rocev2.SyndromeACK)
	}
	if w.pool.Len() != free {
		t.Errorf("%d of %d frames free in the end", w.pool.Len(), free)
	}
}

// Without frames for all copies a packet is refused whole, with nothing leaking.
func TestNoFramesForLongPackets(t *testing.T) {
	b := newJumboBench(t, 4, 2048)
	b.repair(t, 0)
	w := b.w
	for _, p := range w.ports {
		p.vanished = true // nothing is really sent, and no frame comes back
	}
	var taken []xsk.Desc
	for w.pool.Len() > 40 {
		addr, _ := w.pool.TakeOne()
		taken = append(taken, xsk.Desc{Addr: addr})
	}
	served := 0
	for psn := rocev2.PSN(0); w.pool.Len() >= 3; psn++ {
		before := w.pool.Len()
		w.servePacket(0, b.takeLong(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, make([]byte, 4096))...)
		if used := before - w.pool.Len(); used == 0 {
			break
		} else if used != 9 {
			t.Fatalf("packet %d took %d frames, want 9 for 3 copies", psn, used)
		}
		served++
	}
	if served == 0 || w.count.drop[dropNoFrame] != 1 || w.count.copies != uint64(3*served) {
		t.Errorf("%d packets served by %d copies; drops %v", served, w.count.copies, w.count.drops())
	}
	w.freeFrames(taken)
}

// As many members as there is room for packets of several buffers for.
func TestCapacityCountsBuffers(t *testing.T) {
	b := newJumboBench(t, 2, 2048)
	need := []int{1000}
	for _, c := range []struct{ pmtu, buffers, capacity int }{{1024, 1, 508}, {2048, 2, 252}, {4096, 3, 166}} {
		if n := b.w.makeTable(&Table{IP: b.group, PMTU: c.pmtu}).maxBuffers; n != c.buffers {
			t.Errorf("path MTU %d: %d buffers, want %d", c.pmtu, n, c.buffers)
		}
		if n := b.w.capacity(need, c.buffers); n != c.capacity {
			t.Errorf("%d buffers: %d members, want %d", c.buffers, n, c.capacity)
		}
	}
}

// Packets of any number of buffers leave a queue whole, in order, and not before
// the link has sent the bytes of all buffers before them, with one overhead each.
func TestQueueKeepsPacketsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate = 8_000_000_000 // a byte a nanosecond
		q := newEgressQueue(1<<20, 200, rate)
		chains := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(60, 4096), 1, 6), 1, 30).Draw(t, "packets")
		var turn []time.Duration
		var at time.Duration
		total := 0
		for i, lens := range chains {
			turn = append(turn, at)
			for k, n := range lens {
				d := xsk.Desc{Addr: uint64(i), Len: uint32(n), Options: xsk.PktContd}
				if k == len(lens)-1 {
					d.Options = 0
				}
				q.push(d)
				at += time.Duration(n)
				total += n
			}
			at += linkOverhead
		}
		if q.bytes != total+len(chains)*linkOverhead {
			t.Fatalf("%d bytes on the link, want %d", q.bytes, total+len(chains)*linkOverhead)
		}
		var now time.Duration
		for next := 0; next < len(chains); {
			room := rapid.IntRange(1, 12).Draw(t, "room")
			out := q.release(now, nil, room)
			for len(out) > 0 {
				n := xsk.ChainLen(out)
				if out[0].Addr != uint64(next) || n != len(chains[next]) || turn[next] > now || n > room {
					t.Fatalf("at %v with room for %d: packet %d of %d buffers left; the next one is %d of %d, at %v", now, room, out[0].Addr, n, next, len(chains[next]), turn[next])
				}
				out, room, next = out[n:], room-n, next+1
			}
			if next < len(chains) && turn[next] <= now && len(chains[next]) <= room {
				t.Fatalf("packet %d of %d buffers, whose turn was at %v, has not left at %v with room for %d", next, len(chains[next]), turn[next], now, room)
			}
			now += time.Duration(rapid.IntRange(0, 5000).Draw(t, "step"))
		}
		if q.bytes != 0 || q.len() != 0 {
			t.Fatalf("%d bytes in %d frames are left", q.bytes, q.len())
		}
	})
}

// Where the TX ring has no room for all of the first packet, the worker looks again
// later instead of at once; all buffers of a packet go the same way.
func TestStagedWhole(t *testing.T) {
	p := &egress{stageLimit: 4, queue: newEgressQueue(1<<20, 100, 0)}
	long := []xsk.Desc{{Len: 4000, Options: xsk.PktContd}, {Len: 4000, Options: xsk.PktContd}, {Len: 500}}
	p.stagePacket(long)
	p.stagePacket(long)
	p.stage(xsk.Desc{Len: 60})
	if len(p.staged) != 3 || p.queue.len() != 4 {
		t.Fatalf("%d staged, %d queued; want 3 and 4", len(p.staged), p.queue.len())
	}
	if p.staged = p.queue.release(0, p.staged, 1); len(p.staged) != 3 {
		t.Errorf("%d staged after a release with room for 1", len(p.staged))
	}
	p.stageLimit = 2
	if at, ok := p.nextRelease(7); !ok || at != 7+minTXRetry {
		t.Errorf("next release at %v, %v", at, ok)
	}
	p.stageLimit = 3
	if at, ok := p.nextRelease(7); !ok || at != 7 {
		t.Errorf("next release at %v, %v, with room", at, ok)
	}
	if n := p.queue.room(9018, 3, 0); n != min(96/3, (1<<20-p.queue.bytes)/9042) {
		t.Errorf("room for %d packets of 3 buffers", n)
	}
	if p.queue.fits(9018, 97) || !p.queue.fits(9018, 96) {
		t.Error("fits does not count buffers")
	}
}

// An update message whose records are in several buffers, one of them in two, says
// what it says in one.
func TestLongUpdateMessage(t *testing.T) {
	b := newJumboBench(t, 3, 2048)
	w := b.w
	var want []mcast.Target
	var records []envelope.TargetRecord
	for i := range envelope.MaxTargets(4096, true) {
		r := envelope.TargetRecord{IP: netip.AddrFrom4([4]byte{10, 66, byte(i >> 8), byte(i)}), VA: uint64(i) << 12, RKey: uint32(i)}
		if i%50 == 7 {
			m := i / 50 % 3
			r.IP = b.hosts[m].IPv4
			want = append(want, mcast.Target{Member: mcast.MemberID(m), VA: r.VA, RKey: r.RKey})
		}
		records = append(records, r)
	}
	payload := envelope.AppendTargets(nil, records)
	ds := w.decode(b.takeLong(0, &rocev2.Packet{Op: rocev2.WriteOnly, DMALen: uint32(len(payload))}, payload))
	if len(ds) != 3 {
		t.Fatalf("%d buffers; drops %v", len(ds), w.count.drops())
	}
	p := mcast.Packet{Group: b.group}
	w.readTargets(0, &p)
	if !slices.Equal(p.Targets, want) {
		t.Errorf("%d targets, want %d:\n%v\n%v", len(p.Targets), len(want), p.Targets, want)
	}
	w.freeFrames(ds)
}
