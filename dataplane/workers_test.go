// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// pair is a bench whose switch has two workers, both played by the test. Group 0
// belongs to worker 1; host i is behind port i, and worker i%2 transmits there.
type pair struct {
	*bench
	crew *workers
	all  int // frames
}

// newPair has fake ports; ports is more of the configuration of port p2.
func newPair(t testing.TB, hosts int, ports string) *pair {
	cfg := fakeConfig(t, hosts, "umem: {frames: 4096}\nworker: {cpu: [-1, -1]}\n", ports)
	s := newFakeStar(t, lab.StarConfig{Hosts: hosts}, cfg)
	p := newPairOf(t, s.workers, s.hosts)
	p.fake = s
	return p
}

// nothing is what is done while programs are loaded.
func nothing() error { return nil }

// newPairOn is newPair on AF_XDP.
func newPairOn(t testing.TB, star lab.StarConfig, ports, more string, notify Notify) *pair {
	s := labtest.Star(t, star)
	return newPairIn(t, s, s.Config()+more, ports, notify)
}

// newPairIn is newPair with these ports.
func newPairIn(t testing.TB, s *lab.Star, text, ports string, notify Notify) *pair {
	if ports != "" {
		text = string(bytes.ReplaceAll([]byte(text), []byte("name: p2\n"), []byte("name: p2\n    "+ports+"\n")))
	}
	cfg, err := config.Parse("pair", []byte(text+"envelope: {insecure: true}\numem: {frames: 4096}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\nworker: {cpu: [-1, -1]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var e *Plane
	if err := s.Switch.Do(func() (err error) { e, err = Open(cfg, notify, nothing); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return newPairOf(t, e.workers, s.Hosts)
}

func newPairOf(t testing.TB, c *workers, hosts []lab.Host) *pair {
	b := &bench{w: c.all[1], group: netip.MustParseAddr("10.77.254.1"), hosts: hosts}
	spec, table := b.group0()
	if err := b.w.putGroup(spec, table); err != nil {
		t.Fatal(err)
	}
	c.owners.put(b.group, 1)
	p := &pair{bench: b, crew: c}
	p.all = p.free()
	return p
}

// group0 is a group of all hosts.
func (b *bench) group0() (mcast.GroupSpec, groupTable) {
	spec := mcast.GroupSpec{IP: b.group, GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024}, Repair: b.w.repairSpec}
	table := groupTable{ip: b.group, qpn: 0x4711}
	for i, h := range b.hosts {
		spec.Legs = append(spec.Legs, mcast.LegSpec{Port: mcast.Port(i)})
		m := mcast.MemberSpec{MemberRecord: mcast.MemberRecord{IP: h.IPv4, QPN: rocev2.QPN(0x100 + i), RQPSN: rocev2.PSN(1000 * i)}, Leg: mcast.LegID(i)}
		spec.Members = append(spec.Members, m)
		table.legs = append(table.legs, leg{port: i, mac: rocev2.MAC(h.MAC), ip: rocev2.KeyOf(h.IPv4), qpn: m.QPN, live: 1})
	}
	table.countCopies()
	return spec, table
}

// free returns how many frames are in the depot and the pools.
func (p *pair) free() int { return p.crew.free() }

// receive has worker w take host i's packet psn from the wire.
func (p *pair) receive(w *worker, i int, psn rocev2.PSN) {
	owner := p.bench.w
	p.bench.w = w // whose pool the frame is from
	d := p.take(i, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, []byte("a payload"))
	p.bench.w = owner
	w.dispatch(i, []xsk.Desc{d})
}

// unsend takes back what is staged or queued for the ports that w transmits for, in
// place of sending it, and returns the packets by port.
func (p *pair) unsend(w *worker) map[int][][]byte {
	out := make(map[int][][]byte)
	for i, port := range w.ports {
		if port.remoteTX != nil {
			continue
		}
		ds := port.staged
		for port.queue.len() > 0 {
			ds = append(ds, port.queue.pop())
		}
		for _, d := range ds {
			out[i] = append(out[i], bytes.Clone(w.umem.Data(d.Addr, d.Len)))
			w.pool.GiveOne(d.Addr)
		}
		port.staged = port.staged[:0]
		port.publishStatus()
	}
	w.batchNumber++
	return out
}

// serveAll has worker w serve all that was posted to it, and takes back what leaves.
func (p *pair) serveAll(w *worker) {
	for w.drainHandoff() > 0 {
		p.unsendAll(w)
	}
}

// unsendAll takes back what worker w has to send, by its own ports or by another's.
func (p *pair) unsendAll(w *worker) {
	w.flush()
	for _, o := range p.crew.all {
		o.drainRemote()
		p.unsend(o)
	}
}

// end removes the group and checks that no frame was lost. The source of a group with
// data in flight is sent a NAK (R88), so there is something to take back.
func (p *pair) end(t *testing.T) {
	t.Helper()
	p.w.deleteGroup(0)
	p.unsendAll(p.w)
	if got := p.free(); got != p.all {
		t.Errorf("%d frames are free, had %d", got, p.all)
	}
}

// A packet that one worker receives is served by the one that its group belongs to,
// and leaves by the one that transmits for the port; the frames find their way back.
func TestPacketsFindTheirOwner(t *testing.T) {
	p := newPair(t, 4, "")
	receiver, owner := p.crew.all[0], p.crew.all[1]
	p.receive(receiver, 0, 0)
	if owner.count.dataIn != 0 || receiver.count.dataIn != 0 {
		t.Fatal("served before it was opened")
	}
	if n := owner.drainHandoff(); n != 1 || owner.count.dataIn != 1 || owner.count.copies != 3 {
		t.Fatalf("%d packets opened, %d served, %d copies; drops %v", n, owner.count.dataIn, owner.count.copies, owner.count.drops())
	}
	for i, p := range owner.ports {
		if p.remoteTX != nil {
			owner.publishRemote(p)
			if i != 2 && i != 0 {
				t.Errorf("port %d is not the owner's to send by", i)
			}
		}
	}
	if n := receiver.drainRemote(); n != 1 {
		t.Errorf("%d frames admitted, want the one for port 2", n)
	}
	a, b := p.unsend(receiver), p.unsend(owner)
	if len(a) != 1 || len(a[2]) != 1 || len(b) != 2 || len(b[1]) != 1 || len(b[3]) != 1 {
		t.Fatalf("left: %v by worker 0, %v by worker 1", a, b)
	}
	var f rocev2.Frame
	if r := rocev2.Decode(a[2][0], &f); r != rocev2.OK || !f.VerifyICRC() || f.Dst() != p.hosts[2].IPv4 {
		t.Errorf("the copy for host 2: decode %v, for %v", r, f.Dst())
	}
	// The group keeps the received frame until all have acknowledged it.
	p.end(t)
}

// What is staged for another worker's port never exceeds its exit, and, if it has a
// rate, never what its queue may hold together with what waits there already: what
// is refused is refused by whoever stages, and nothing at the port itself.
func TestExitFeelsTheQueueBehindIt(t *testing.T) {
	p := newPair(t, 2, "queue: 8192")
	staging, sending := p.crew.all[0], p.crew.all[1]
	far, near := staging.ports[1], sending.ports[1]
	if far.remoteTX == nil || near.remoteTX != nil {
		t.Fatal("worker 1 does not transmit for port 1")
	}
	const size = 976 // 1000 on the link
	stage := func() (n int) {
		for far.admits(size, 1) {
			a, ok := staging.pool.TakeOne()
			if !ok {
				t.Fatal("no frame")
			}
			far.stage(xsk.Desc{Addr: a, Len: size})
			n++
		}
		return n
	}
	if n, share := stage(), far.remoteTX.ring.Size()/2; n != share || far.room(size, 1) != 0 {
		t.Errorf("%d staged without a rate, and room for %d; want half of the exit, %d", n, far.room(size, 1), share)
	}
	if !far.admitsReply() {
		t.Error("no room for a reply")
	}
	staging.publishRemote(far)
	if n := stage(); n != 0 {
		t.Errorf("%d staged for a full exit", n)
	}
	for sending.drainRemote() > 0 {
		p.unsend(sending)
	}

	near.queue.setRate(1_000_000)
	near.publishStatus()
	staging.refreshTXLimits()
	const want = 8
	if n := stage(); n != want {
		t.Fatalf("%d staged for a queue of 8192 bytes, want %d", n, want)
	}
	staging.publishRemote(far)
	if n := stage(); n != 0 {
		t.Fatalf("%d more while those are on their way", n)
	}
	if n := sending.drainRemote(); n != want || near.queue.len() != want {
		t.Fatalf("%d admitted, %d queued, want %d", n, near.queue.len(), want)
	}
	near.publishStatus()
	staging.refreshTXLimits()
	if n := stage(); n != 0 {
		t.Fatalf("%d more while those are queued", n)
	}
	// 8000 bytes in front of 1 Mbit/s: 4096 of them take 32 ms.
	if at := far.halfEmptyAt(0); at < 31*time.Millisecond || at > 32*time.Millisecond {
		t.Errorf("half empty after %v", at)
	}
	near.queue.pop()
	near.queue.pop()
	near.publishStatus()
	staging.refreshTXLimits()
	if n := stage(); n != 2 {
		t.Errorf("%d staged after two have left, want 2", n)
	}
	if near.refusedFrames+far.refusedFrames != 0 {
		t.Error("something was refused at the port")
	}
}

// What a port's queue does not admit stays in the exit, whole packets only, until it
// does; the sender may sleep meanwhile.
func TestExitWaitsForTheQueue(t *testing.T) {
	p := newPair(t, 2, "rate: 1mbit\n    queue: 8192")
	staging, sending := p.crew.all[0], p.crew.all[1]
	far, near := staging.ports[1], sending.ports[1]
	near.publishStatus()
	staging.refreshTXLimits()
	descs := func(w *worker, n int) (ds []xsk.Desc) {
		for range n {
			a, _ := w.pool.TakeOne()
			ds = append(ds, xsk.Desc{Addr: a, Len: 988, Options: xsk.PktContd})
		}
		ds[n-1].Options = 0
		return ds
	}
	for range 4 { // of 2000 bytes on the link
		if !far.admits(2*988, 2) {
			t.Fatal("no room in an empty queue")
		}
		far.stagePacket(descs(staging, 2))
	}
	staging.publishRemote(far)
	for range 5 { // of its own, of 1012 bytes
		near.stage(descs(sending, 1)[0])
	}
	if n := sending.drainRemote(); n != 2 || near.queue.len() != 7 {
		t.Fatalf("%d frames admitted, %d queued; want 2 and 7", n, near.queue.len())
	}
	if !sending.prepareSleep() {
		t.Error("it would look again and again at what has no room")
	}
	near.queue.pop()
	near.queue.pop()
	if n := sending.drainRemote(); n != 2 || near.refusedFrames != 0 {
		t.Errorf("%d frames admitted when two have left, want 2; %d refused", n, near.refusedFrames)
	}
	// A packet that the queue could not hold if it were empty does not stay for ever.
	for near.queue.len() > 0 {
		near.queue.pop()
	}
	near.queue.maxBytes = 1000
	if n := sending.drainRemote(); n != 4 || near.refusedFrames != 2 {
		t.Errorf("%d frames taken, %d refused by a queue that is too small; want 4 and 2", n, near.refusedFrames)
	}
	near.queue.maxBytes = 8192
	staging.refreshTXLimits()
	far.stagePacket(descs(staging, 2))
	staging.publishRemote(far)

	// Without a rate it waits for room in the TX ring, and is looked at again.
	near.queue.setRate(0)
	near.queue.maxBytes, near.stageLimit = 1000, 1
	if n := sending.drainRemote(); n != 0 {
		t.Errorf("%d frames taken without room", n)
	}
	near.progress.last = sending.now
	if at, ok := sending.remote.nextRetry(sending.now); !ok || at != sending.now+minTXRetry {
		t.Errorf("the worker looks again at %v (%v)", at, ok)
	}
	near.down = true
	if n := sending.drainRemote(); n != 2 || sending.count.drop[dropPortDown] != 1 {
		t.Errorf("%d frames taken when the port is down, want 2; %d packets counted", n, sending.count.drop[dropPortDown])
	}
}

// A worker that other workers have something for does not sleep, and is woken if it
// does.
func TestWorkerIsRoused(t *testing.T) {
	p := newPair(t, 2, "")
	receiver, owner := p.crew.all[0], p.crew.all[1]
	if !owner.prepareSleep() {
		t.Fatal("it would not sleep, with nothing to do")
	}
	p.receive(receiver, 0, 0)
	if owner.asleep.Load() {
		t.Error("still taken for asleep")
	}
	if woken, err := owner.poller.Wait(10 * time.Second); !woken || err != nil {
		t.Errorf("not woken: %v, %v", woken, err)
	}
	if owner.prepareSleep() {
		t.Error("it would sleep with a packet to open")
	}
	owner.drainHandoff()
	if !owner.prepareSleep() {
		t.Error("it would not sleep")
	}
}

// Handing over allocates nothing.
func TestHandingOverAllocatesNothing(t *testing.T) {
	p := newPair(t, 4, "")
	receiver, owner := p.crew.all[0], p.crew.all[1]
	psn := rocev2.PSN(0)
	payload := make([]byte, 1024)
	copies := 0
	run := func() {
		a, _ := receiver.pool.TakeOne()
		a += 256
		k := rocev2.Packet{Op: rocev2.SendOnly, PSN: psn, DestQP: 0x4711}
		psn = psn.Next()
		path := rocev2.Path{Src: p.hosts[0].IPv4, Dst: p.group, SrcMAC: rocev2.MAC(p.hosts[0].MAC), SrcPort: 0xC123}
		n := rocev2.BuildPacket(receiver.umem.Data(a, uint32(receiver.umem.Room(a))), &path, &k, payload)
		batch := receiver.rx[:1]
		batch[0] = xsk.Desc{Addr: a, Len: uint32(n)}
		receiver.dispatch(0, batch)
		copies += owner.drainHandoff()
		owner.publishRemote(owner.ports[2])
		copies += receiver.drainRemote()
		for _, w := range p.crew.all {
			for _, port := range w.ports {
				for _, d := range port.staged {
					w.pool.GiveOne(d.Addr)
				}
				port.staged = port.staged[:0]
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if copies != 2*102 {
		t.Errorf("%d packets and copies were handed over, want %d; drops %v", copies, 2*102, owner.count.drops())
	}
}

// A worker that cannot stay on its CPU ends all of them, and the error names it.
func TestWorkerWithoutItsCPU(t *testing.T) {
	s := labtest.Star(t, lab.StarConfig{Hosts: 2})
	cfg, err := config.Parse("cpu", []byte(s.Config()+"envelope: {insecure: true}\numem: {frames: 1024}\nworker: {cpu: [-1, 8191, -1]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Switch.Do(func() error {
		e, err := Open(cfg, func(bool, string, ...any) {}, nothing)
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(e.Run(func() { <-t.Context().Done() }), e.Close())
	})
	if err == nil || !strings.Contains(err.Error(), "keep worker 1 on CPU 8191 (worker.cpu)") {
		t.Errorf("%v", err)
	}
}

// A switch without traffic ends at once: no worker sleeps between the command to end and
// its end.
func TestIdleWorkersEndAtOnce(t *testing.T) {
	shortest := time.Hour
	for range 3 {
		cfg, err := config.Parse("idle", []byte("group_prefixes: [10.77.254.0/24]\nenvelope: {insecure: true}\numem: {frames: 1024}\nworker: {cpu: [-1, -1]}\nports:\n  - {name: f0}\n"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Unattached(cfg, 1500, func(bool, string, ...any) {})
		if err != nil {
			t.Fatal(err)
		}
		var begin time.Time
		if err := p.Run(func() {
			time.Sleep(20 * time.Millisecond) // longer than a worker spins
			begin = time.Now()
		}); err != nil {
			t.Error(err)
		}
		shortest = min(shortest, time.Since(begin))
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if shortest > maxSleep/2 {
		t.Errorf("the fastest of three took %v", shortest)
	}
}
