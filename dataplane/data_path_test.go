// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Details of the data path, each by one packet or two.

// effect checks f's effect on the count of a reason, and on the free frames.
func (b *bench) effect(t *testing.T, what string, d dropReason, more uint64, f func()) {
	t.Helper()
	drops, free := b.w.count.drop[d], b.w.pool.Len()
	f()
	if n := b.w.count.drop[d] - drops; n != more {
		t.Errorf("%s: counted %d times, want %d", what, n, more)
	}
	b.unstage()
	if n := b.w.pool.Len(); n != free {
		t.Errorf("%s: %d frames are free, had %d", what, n, free)
	}
}

// A reply that cannot be built is counted by its reason.
func TestRepliesThatAreNotBuilt(t *testing.T) {
	b := newBench(t, 2)
	w, p := b.w, b.w.ports[1]
	reply := func() { stageOne(w, 1) }
	b.effect(t, "down", dropPortDown, 1, func() { p.down = true; reply(); p.down = false })
	b.effect(t, "without frames", dropNoFrame, 1, func() {
		taken := make([]uint64, w.pool.Len())
		w.pool.Take(taken)
		reply()
		w.pool.Give(taken)
	})
	b.effect(t, "a full queue", dropQueueFull, 1, func() {
		was := p.queue
		p.queue.rate, p.queue.maxBytes, p.queue.maxFrames = 1, -reservedReplyBytes, -reservedReplyFrames
		reply()
		p.queue = was
	})
	b.effect(t, "a builder that makes nothing", dropNotGroup, 1, func() {
		w.beginFrame(1)
		w.endFrame(1, 0)
	})
	addr, _ := w.pool.TakeOne() // the next frame, full of what was sent before
	copy(w.umem.Frame(addr), bytes.Repeat([]byte{0xAA}, 100))
	w.pool.GiveOne(addr)
	w.beginFrame(1)
	w.endFrame(1, 42)
	d := p.staged[0]
	if got := w.umem.Data(d.Addr, d.Len); len(got) != minFrame || !bytes.Equal(got[42:], make([]byte, minFrame-42)) {
		t.Errorf("a short frame is padded with %x", got[42:])
	}
	b.unstage()
}

// An address of the group prefixes is answered for, another one is not: by ARP, by a
// neighbour advertisement, and to a ping.
func TestAnswersForGroupAddressesOnly(t *testing.T) {
	b := newBench(t, 2)
	w := b.w
	six := netip.MustParsePrefix("fd77::6c65:0/112")
	w.prefixes = append(w.prefixes, six)
	host := rocev2.Path{Src: b.hosts[1].IPv4, SrcMAC: rocev2.MAC(b.hosts[1].MAC), DstMAC: rocev2.BroadcastMAC}
	serve := func(build func(buf []byte) int) func() {
		return func() {
			addr, _ := w.pool.TakeOne()
			n := build(w.umem.Data(addr+256, 2048))
			if n == 0 {
				t.Fatal("not built")
			}
			w.servePacket(1, xsk.Desc{Addr: addr + 256, Len: uint32(n)})
		}
	}
	for _, c := range []struct {
		name    string
		answers uint64
		build   func(buf []byte) int
	}{
		{"ARP for a group", 1, func(buf []byte) int {
			return rocev2.BuildARP(buf, &host, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: host.SrcMAC, SenderIP: host.Src, TargetIP: b.group})
		}},
		{"ARP for another", 0, func(buf []byte) int {
			return rocev2.BuildARP(buf, &host, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: host.SrcMAC, SenderIP: host.Src, TargetIP: b.hosts[0].IPv4})
		}},
		{"a reply by ARP", 0, func(buf []byte) int {
			return rocev2.BuildARP(buf, &host, &rocev2.ARP{Op: rocev2.ARPReply, SenderMAC: host.SrcMAC, SenderIP: host.Src, TargetIP: b.group})
		}},
		{"a solicitation for a group", 1, func(buf []byte) int {
			p := host
			p.Src = netip.MustParseAddr("fd77::2")
			return rocev2.BuildNeighborSolicitation(buf, &p, netip.MustParseAddr("fd77::6c65:1"))
		}},
		{"a solicitation for another", 0, func(buf []byte) int {
			p := host
			p.Src = netip.MustParseAddr("fd77::2")
			return rocev2.BuildNeighborSolicitation(buf, &p, netip.MustParseAddr("fd77::3"))
		}},
	} {
		before := w.count.neighbour
		b.effect(t, c.name, dropNotGroup, 1-c.answers, serve(c.build))
		if n := w.count.neighbour - before; n != c.answers {
			t.Errorf("%s: %d answers, want %d", c.name, n, c.answers)
		}
	}
	// Neighbours and envelopes have bounds of their own.
	w.ports[1].policers.envelopes, w.ports[1].policers.neighbours = NewPolicer(1), Policer{}
	arp := serve(func(buf []byte) int {
		return rocev2.BuildARP(buf, &host, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: host.SrcMAC, SenderIP: host.Src, TargetIP: b.group})
	})
	for range 30 {
		b.effect(t, "ARP beside exhausted envelopes", dropRateLimit, 0, arp)
	}
	w.ports[1].policers.neighbours = NewPolicer(100)
	for range 10 {
		arp()
	}
	b.unstage()
	b.effect(t, "ARP beyond the port's bound", dropRateLimit, 1, arp)
}

// A copy for a port that is down, or a packet from one isolated port to another, is
// dropped and counted, and its frame is free.
func TestCopiesThatAreNotMade(t *testing.T) {
	b := newBench(t, 3)
	b.repair(t, 0)
	w := b.w
	data := func(psn rocev2.PSN) func() {
		return func() {
			w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, []byte("some bytes")))
		}
	}
	w.ports[2].down = true
	b.effect(t, "a port that is down", dropPortDown, 1, data(0))
	w.ports[2].down = false
	w.groups[0].legs[1].port = -1
	b.effect(t, "a member without a location", dropNoLocation, 1, data(1))
	w.groups[0].legs[1].port = 1
	for _, p := range w.ports {
		p.isolated = true
	}
	w.setTable(0, w.groups[0])
	b.effect(t, "isolated ports", dropIsolated, 1, data(2))
	b.effect(t, "feedback between isolated ports", dropIsolated, 0, func() { b.say(1, 0, rocev2.SyndromeACK) })
}

// Feedback needs no frames for copies.
func TestFeedbackWithFewFrames(t *testing.T) {
	b := newBench(t, 8)
	w := b.w
	taken := make([]uint64, w.pool.Len()-maxFeedback)
	w.pool.Take(taken)
	if _, ok := w.reserve(0, rocev2.Acknowledge, 1); !ok {
		t.Error("no frames for feedback")
	}
	if _, ok := w.reserve(0, rocev2.SendOnly, 1); ok {
		t.Error("frames for copies")
	}
	w.pool.Give(taken)
}

// The last copy uses the received frame where the leg's headers fit in front of it, and
// another one where they do not.
func TestLastCopyNeedsHeadroom(t *testing.T) {
	for _, at := range []uint64{256, 4, 0} {
		w := bareWorker(t, 1)
		group := netip.MustParseAddr("10.9.9.9")
		w.groups[0] = groupTable{ip: group, qpn: 0x4711, legs: []leg{{kind: mcast.Connected, port: 0, vlan: 7, ip: rocev2.KeyOf(netip.MustParseAddr("10.0.0.7")), qpn: 9}}}
		w.pool.TakeOne()
		addr, _ := w.pool.TakeOne() // not at the beginning of the UMEM
		in := rocev2.Path{Src: netip.MustParseAddr("10.0.0.1"), Dst: group}
		n := rocev2.BuildPacket(w.umem.Data(addr+at, 1000), &in, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 0x4711}, []byte("abcd"))
		if r := rocev2.Decode(w.umem.Data(addr+at, uint32(n)), &w.frame); r != rocev2.OK {
			t.Fatal(r)
		}
		own := w.copy(&mcast.Copy{}, &w.frame, []xsk.Desc{{Addr: addr + at, Len: uint32(n)}}, true)
		d := w.ports[0].staged[0]
		if in := w.umem.Base(d.Addr) == addr; own != (at >= 4) || in != own {
			t.Errorf("%d bytes before the frame: the copy is in the received frame %v, said %v", at, in, own)
		}
		var f rocev2.Frame
		if r := rocev2.Decode(w.umem.Data(d.Addr, d.Len), &f); r != rocev2.OK || !f.VerifyICRC() {
			t.Errorf("%d bytes before the frame: %v", at, r)
		}
	}
}

// Padding in a buffer of its own is cut off, also behind a packet that is in one buffer
// then.
func TestPaddingOfAShortPacket(t *testing.T) {
	b := newJumboBench(t, 2, 2048)
	w := b.w
	n := copy(b.built[:], b.build(0, &rocev2.Packet{Op: rocev2.SendOnly}, nil))
	ds := w.cut(append(b.built[:n:n], make([]byte, 40)...), n)
	if w.serveChains(0, ds); w.count.copies != 1 || len(w.count.drops()) != 0 {
		t.Errorf("%d copies; drops %v", w.count.copies, w.count.drops())
	}
	b.unstage()
}

// Frames that other workers send by a port are marked by the worker that transmits there,
// with a VLAN tag and without.
func TestRemoteFramesAreMarked(t *testing.T) {
	for _, vlan := range []uint16{0, 7} {
		p := newPair(t, 2, "")
		staging, sending := p.crew.all[0], p.crew.all[1]
		far, near := staging.ports[1], sending.ports[1]
		near.ecn = newMarker(config.ECN{KMin: 100, KMax: 200, PMax: 1}, 1)
		near.ring.bytes = 5000
		path := rocev2.Path{Src: p.group, Dst: p.hosts[1].IPv4, TOS: 2, Tagged: vlan != 0, TCI: vlan}
		addr, _ := staging.pool.TakeOne()
		n := rocev2.BuildPacket(staging.umem.Frame(addr), &path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 1}, []byte("abcd"))
		far.stage(xsk.Desc{Addr: addr, Len: uint32(n)})
		if !far.hasStaged() {
			t.Error("nothing is staged")
		}
		staging.publishRemote(far)
		if far.hasStaged() {
			t.Error("a frame that was published waits for the end of the batch")
		}
		if sending.drainRemote() != 1 || near.ceMarked != 1 {
			t.Errorf("VLAN %d: %d frames are marked, want 1", vlan, near.ceMarked)
		}
		var f rocev2.Frame
		if r := rocev2.Decode(sending.umem.Frame(addr)[:n], &f); r != rocev2.OK || f.IPv4().ECN() != rocev2.CE {
			t.Errorf("VLAN %d: %v, ECN %v", vlan, r, f.IPv4().ECN())
		}
		p.unsend(sending)
	}
}

// The account of a port that has vanished is empty, and one that is down makes progress:
// it has nothing to be asked for.
func TestLostPortHoldsNothing(t *testing.T) {
	b := newBench(t, 2)
	w, p := b.w, b.w.ports[1]
	q := b.fake.queues[1][0]
	q.Stop(1)
	for range 3 {
		stageOne(w, 1)
	}
	w.flush()
	if p.queue.inTXRing != 3 || p.ring.kickAt == 0 {
		t.Fatalf("%d frames in the TX ring, the kernel is asked again at %v", p.queue.inTXRing, p.ring.kickAt)
	}
	p.down, w.now = true, w.now+5
	if w.flush(); p.progress.last != w.now || p.ring.kickAt != 0 {
		t.Errorf("down: progress at %v, to be asked at %v; want %v and never", p.progress.last, p.ring.kickAt, w.now)
	}
	q.Vanish()
	(&workers{all: []*worker{w}, ports: w.ports}).closePort(1)
	if p.queue.inTXRing != 0 || p.depth() != 0 || p.ring.frames() != 0 || !p.vanished {
		t.Errorf("%d frames with %d bytes in the TX ring of a port that has vanished", p.ring.frames(), p.depth())
	}
}
