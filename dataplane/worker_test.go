// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// bench is a worker without a goroutine: the test itself feeds it frames. Host 0 is the
// source of group 0, the others receive. The ports are fakes, except with newBenchIn.
type bench struct {
	w     *worker
	group netip.Addr
	hosts []lab.Host
	spec  mcast.GroupSpec
	built [5000]byte
	taken []xsk.Desc
	fake  *fakeStar // nil on AF_XDP
}

func newBench(t testing.TB, hosts int) *bench {
	return newBenchOn(t, lab.StarConfig{Hosts: hosts}, 1024, 4096)
}

// newBenchOn is newBench with other links, path MTU and size of frames.
func newBenchOn(t testing.TB, star lab.StarConfig, pathMTU, frameSize int) *bench {
	cfg := fakeConfig(t, star.Hosts, fmt.Sprintf("umem: {frames: 4096, frame_size: %d}\n", frameSize), "")
	s := newFakeStar(t, star, cfg)
	b := newBenchOf(t, s.all[0], s.hosts, pathMTU)
	b.fake = s
	return b
}

// newBenchIn is newBench with these ports of a lab, on AF_XDP.
func newBenchIn(t testing.TB, s *lab.Star, ports string, pathMTU, frameSize int) *bench {
	cfg, err := config.Parse("bench", []byte(ports+fmt.Sprintf("envelope: {insecure: true}\numem: {frames: 4096, frame_size: %d}\n", frameSize)+"rings: {rx: 512, tx: 512, fill: 512, completion: 512}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var e *Plane
	if err := s.Switch.Do(func() (err error) { e, err = Open(cfg, func(bool, string, ...any) {}, nothing); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return newBenchOf(t, e.workers.all[0], s.Hosts, pathMTU)
}

// newBenchOf is newBench with a given worker and its hosts.
func newBenchOf(t testing.TB, w *worker, hosts []lab.Host, pathMTU int) *bench {
	b := &bench{w: w, group: netip.MustParseAddr("10.77.254.1"), hosts: hosts}
	spec := mcast.GroupSpec{IP: b.group, GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: pathMTU}, Repair: w.repairSpec}
	table := groupTable{ip: b.group, qpn: 0x4711}
	for i, h := range hosts {
		spec.Legs = append(spec.Legs, mcast.LegSpec{Port: mcast.Port(i)})
		m := mcast.MemberSpec{MemberRecord: mcast.MemberRecord{IP: h.IPv4, QPN: rocev2.QPN(0x100 + i), SQPSN: 0, RQPSN: rocev2.PSN(1000 * i)}, Leg: mcast.LegID(i)}
		spec.Members = append(spec.Members, m)
		table.legs = append(table.legs, leg{port: i, mac: rocev2.MAC(h.MAC), ip: rocev2.KeyOf(h.IPv4), qpn: m.QPN, live: 1})
	}
	table.countCopies()
	b.spec = spec
	if err := b.w.putGroup(spec, table); err != nil {
		t.Fatal(err)
	}
	return b
}

// repair puts the group anew, with so many bytes for its repair store.
func (b *bench) repair(t testing.TB, bytes int64) {
	b.spec.Repair.Bytes = bytes
	if err := b.w.putGroup(b.spec, b.w.groups[0]); err != nil {
		t.Fatal(err)
	}
}

// take puts a packet of host i into a frame, as if it had just been received.
func (b *bench) take(i int, k *rocev2.Packet, payload []byte) xsk.Desc {
	addr, ok := b.w.pool.TakeOne()
	if !ok {
		panic("no free frame")
	}
	addr += 256
	n := copy(b.w.umem.Data(addr, uint32(b.w.umem.Room(addr))), b.build(i, k, payload))
	return xsk.Desc{Addr: addr, Len: uint32(n)}
}

// build returns a packet of host i to the group. It is good until the next call.
func (b *bench) build(i int, k *rocev2.Packet, payload []byte) []byte {
	path := rocev2.Path{Src: b.hosts[i].IPv4, Dst: b.group, SrcMAC: rocev2.MAC(b.hosts[i].MAC), SrcPort: 0xC123}
	k.DestQP = 0x4711
	return b.built[:rocev2.BuildPacket(b.built[:], &path, k, payload)]
}

// takeLong is take for a packet of any length: in as few buffers as the kernel makes
// of it. The descriptors are good until the next call.
func (b *bench) takeLong(i int, k *rocev2.Packet, payload []byte) []xsk.Desc {
	rest := b.build(i, k, payload)
	b.taken = b.taken[:0]
	for len(rest) > 0 {
		addr, ok := b.w.pool.TakeOne()
		if !ok {
			panic("no free frame")
		}
		addr += 256
		n := copy(b.w.umem.Data(addr, uint32(b.w.umem.MaxReceive())), rest)
		rest = rest[n:]
		b.taken = append(b.taken, xsk.Desc{Addr: addr, Len: uint32(n), Options: xsk.PktContd})
	}
	b.taken[len(b.taken)-1].Options = 0
	return b.taken
}

// unstage takes back what was staged, in place of sending it.
func (b *bench) unstage() (frames int) {
	for _, p := range b.w.ports {
		for _, d := range p.staged {
			b.w.pool.GiveOne(d.Addr)
		}
		frames += len(p.staged)
		p.staged = p.staged[:0]
	}
	b.w.batchNumber++
	return frames
}

// round sends message psn to all and has every receiver acknowledge it.
func (b *bench) round(psn rocev2.PSN, payload []byte) (copies, acks int) {
	b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn, AckReq: true}, payload))
	copies = b.unstage()
	for i := 1; i < len(b.hosts); i++ {
		b.w.servePacket(i, b.take(i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn.Add(int32(1000 * i)), Syndrome: rocev2.SyndromeACK}, nil))
	}
	return copies, b.unstage()
}

// Serving data and feedback allocates nothing, and loses no frame.
func TestDataPathAllocatesNothing(t *testing.T) {
	b := newBench(t, 4)
	payload := make([]byte, 1024)
	psn := rocev2.PSN(0)
	free := b.w.pool.Len()
	run := func() {
		copies, acks := b.round(psn, payload)
		if copies != 3 || acks != 1 {
			t.Fatalf("PSN %d: %d copies, %d acknowledgements; want 3 and 1; drops %v", psn, copies, acks, b.w.count.drops())
		}
		psn = psn.Next()
	}
	run()
	if n := testing.AllocsPerRun(200, run); n != 0 {
		t.Errorf("%v allocations for a packet and its feedback", n)
	}
	if b.w.pool.Len() != free {
		t.Errorf("%d free frames, had %d", b.w.pool.Len(), free)
	}
}

// Answers for a neighbour of no group, and what is not for a group at all, is
// counted and frees its frame.
func TestStrayFramesAreCounted(t *testing.T) {
	b := newBench(t, 2)
	free := b.w.pool.Len()
	put := func(build func(buf []byte) int) {
		addr, _ := b.w.pool.TakeOne()
		addr += 256
		n := build(b.w.umem.Data(addr, 2048))
		b.w.servePacket(0, xsk.Desc{Addr: addr, Len: uint32(n)})
	}
	out := rocev2.Path{Src: b.hosts[0].IPv4, Dst: b.hosts[1].IPv4, SrcMAC: rocev2.MAC(b.hosts[0].MAC), DstMAC: rocev2.BroadcastMAC}
	for _, c := range []struct {
		build   func(buf []byte) int
		counter string
	}{
		{func(buf []byte) int { return copy(buf, make([]byte, 20)) }, "decode_not_ip"},
		{func(buf []byte) int {
			return rocev2.BuildARP(buf, &out, &rocev2.ARP{Op: rocev2.ARPRequest, SenderIP: b.hosts[0].IPv4, TargetIP: b.hosts[1].IPv4})
		}, "not_for_group"},
		{func(buf []byte) int {
			n := rocev2.BuildUDP(buf, &out, 4797, []byte("x"))
			buf[n-1]++
			return n
		}, "bad_udp_checksum"},
		{func(buf []byte) int {
			return rocev2.BuildPacket(buf, &out, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 0x4711}, nil)
		}, "unknown_group"},
	} {
		before := b.w.count.drops()[c.counter]
		put(c.build)
		if got := b.w.count.drops()[c.counter]; got != before+1 {
			t.Errorf("%s: %d, was %d; all drops %v", c.counter, got, before, b.w.count.drops())
		}
	}
	if b.unstage() != 0 || b.w.pool.Len() != free {
		t.Errorf("%d free frames, had %d", b.w.pool.Len(), free)
	}
}

// An envelope whose UDP checksum was left to the host's interface is handed on and
// counted. The note of that stays with its datagram: the next envelope, in the same
// slot, has a complete checksum.
func TestEnvelopeWithPartialChecksum(t *testing.T) {
	b := newBench(t, 2)
	out := rocev2.Path{Src: b.hosts[0].IPv4, Dst: b.hosts[1].IPv4, SrcMAC: rocev2.MAC(b.hosts[0].MAC), DstMAC: rocev2.BroadcastMAC}
	const pseudo = 0x14b7 // 0a4d+0001 + 0a4d+0002 + 0011 + 0009
	for len(b.w.slowPath.requests.free) > 1 {
		<-b.w.slowPath.requests.free
	}
	for _, partial := range []bool{true, false} {
		addr, _ := b.w.pool.TakeOne()
		buf := b.w.umem.Data(addr+256, 2048)
		n := rocev2.BuildUDP(buf, &out, 4797, []byte("x"))
		if partial {
			buf[40], buf[41] = pseudo>>8, pseudo&0xFF
		}
		b.w.servePacket(0, xsk.Desc{Addr: addr + 256, Len: uint32(n)})
		select {
		case d := <-b.w.slowPath.requests.queued:
			if d.Partial != partial || string(d.Payload()) != "x" || d.From.Port != 0 {
				t.Errorf("partial %v, want %v; %q of port %d", d.Partial, partial, d.Payload(), d.From.Port)
			}
			d.Release()
		default:
			t.Fatalf("partial %v: no envelope; drops %v", partial, b.w.count.drops())
		}
	}
	if c := &b.w.count; c.envelopePartial != 1 || c.envelopeIn != 2 {
		t.Errorf("%d of %d envelopes with a partial checksum, want 1 of 2", c.envelopePartial, c.envelopeIn)
	}
}

// BenchmarkWorker is what the worker itself spends on a received data packet:
// decode, core, copies, rewriting. The kernel's part, receiving and sending, is
// not in it.
func BenchmarkWorker(b *testing.B) {
	for _, legs := range []int{1, 3, 7} {
		for _, size := range []int{64, 1024, 4096} { // 4096: in two buffers
			for _, repair := range []int64{0, 1 << 20} {
				b.Run(fmt.Sprintf("1to%d/%dB/repair=%v", legs, size, repair > 0), func(b *testing.B) { benchmarkWorker(b, legs, size, repair) })
			}
		}
	}
}

func benchmarkWorker(b *testing.B, legs, size int, repair int64) {
	star, pathMTU := lab.StarConfig{Hosts: legs + 1}, 1024
	if size > 1024 {
		star.MTU, pathMTU = 4200, 4096
	}
	x := newBenchOn(b, star, pathMTU, 4096)
	x.repair(b, repair)
	payload := make([]byte, size)
	psn := rocev2.PSN(0)
	var spent time.Duration
	b.ReportAllocs()
	b.SetBytes(int64(size))
	for b.Loop() {
		ds := x.takeLong(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn, AckReq: psn%16 == 15}, payload)
		start := time.Now()
		x.w.servePacket(0, ds...)
		spent += time.Since(start)
		x.unstage()
		if psn%16 == 15 {
			for i := 1; i <= legs; i++ {
				x.w.servePacket(i, x.take(i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn.Add(int32(1000 * i)), Syndrome: rocev2.SyndromeACK}, nil))
			}
			x.unstage()
		}
		psn = psn.Next()
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "worker-ns/packet")
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*legs), "worker-ns/copy")
}
