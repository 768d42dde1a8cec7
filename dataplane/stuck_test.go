// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/xsktest"
)

// hold makes the switch's port i (from 1) one that can be stopped: a bridge of its own,
// by way of the link to host i, whose queueing discipline then keeps every frame, and
// with it its place in the UMEM, while the carrier stays up. It returns the ports'
// configuration, and what stops the port and lets it go on.
func hold(t testing.TB, s *lab.Star, ports string, i int) (config string, stop, goOn func()) {
	t.Helper()
	h := s.Switch.Handle()
	link := fmt.Sprintf("p%d", i)
	bridge := fmt.Sprintf("s%d", i)
	p, err := h.LinkByName(link)
	if err == nil {
		err = errors.Join(s.Switch.Bridge(bridge, p.Attrs().HardwareAddr, 1500), s.Switch.Enslave(link, bridge), s.Switch.WaitUp(10*time.Second))
	}
	if err != nil {
		t.Fatal(err)
	}
	const rate, burst = 500, 2000
	q := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: p.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       rate, Limit: 16 << 20, Buffer: uint32(netlink.Xmittime(rate, burst)),
	}
	do := func(f func() error) func() {
		return func() {
			t.Helper()
			if err := f(); err != nil {
				t.Fatal(err)
			}
		}
	}
	config = strings.Replace(ports, "name: "+link+"\n", "name: "+bridge+"\n", 1)
	return config, do(func() error { return h.QdiscReplace(q) }), do(func() error { return h.QdiscDel(q) })
}

// stuckAfter is how many frames a fake that was stopped still takes: fewer than wait in
// the TX ring, so that the kernel has to be asked again.
const stuckAfter = 40

// stuckFakes is a bench of fakes of which some of the last ports can be stopped.
func stuckFakes(t testing.TB, hosts, last int) (b *bench, stop, goOn func()) {
	b = newBench(t, hosts)
	all := func(f func(*xsktest.Queue)) func() {
		return func() {
			for _, q := range b.fake.queues[hosts-last:] {
				f(q[0])
			}
		}
	}
	return b, all(func(q *xsktest.Queue) { q.Stop(stuckAfter) }), all((*xsktest.Queue).GoOn)
}

// stuckMaker is stuckFakes or stuckBench.
type stuckMaker func(t testing.TB, hosts, last int) (b *bench, stop, goOn func())

// onStuckPorts runs test with fakes, and with veths if the tests may have a lab.
func onStuckPorts(t *testing.T, test func(t *testing.T, bench stuckMaker)) {
	t.Run("fake", func(t *testing.T) { test(t, stuckFakes) })
	t.Run("AF_XDP", func(t *testing.T) { test(t, stuckBench) })
}

// stuckBench is a bench on AF_XDP of which some of the last ports can be stopped.
func stuckBench(t testing.TB, hosts, last int) (b *bench, stop, goOn func()) {
	s := labtest.Star(t, lab.StarConfig{Hosts: hosts})
	ports := s.Config()
	var stops, goes []func()
	for i := hosts - last + 1; i <= hosts; i++ {
		var st, gn func()
		ports, st, gn = hold(t, s, ports, i)
		stops, goes = append(stops, st), append(goes, gn)
	}
	all := func(fs []func()) func() {
		return func() {
			for _, f := range fs {
				f()
			}
		}
	}
	b = newBenchIn(t, s, ports, 1024, 4096)
	for _, p := range b.w.ports[hosts-last : hosts] {
		// Not all that waits in the TX ring fits: the kernel has to be asked again.
		if err := unix.SetsockoptInt(p.rxSockets[0].(*xsk.Socket).FD(), unix.SOL_SOCKET, unix.SO_SNDBUF, 64<<10); err != nil {
			t.Fatal(err)
		}
	}
	return b, all(stops), all(goes)
}

// one has host 0 send message psn, which hosts 1 to n acknowledge.
func (b *bench) one(psn rocev2.PSN, n int, payload []byte) {
	b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn, AckReq: true}, payload))
	for i := 1; i <= n; i++ {
		b.say(i, psn, rocev2.SyndromeACK)
	}
}

// awaitSent waits until the kernel has sent most of what it was given for ports: a busy machine does
// so after the system call, and ports with many frames put copies off.
func (b *bench) awaitSent(t testing.TB, ports ...int) {
	t.Helper()
	end := time.Now().Add(20 * time.Second)
	for _, i := range ports {
		for p := b.w.ports[i]; p.ring.frames() > p.queue.maxFrames/4; runtime.Gosched() {
			if b.w.flush(); time.Now().After(end) {
				t.Fatalf("%d frames wait in the TX ring of port %d, which transmits", p.ring.frames(), i)
			}
		}
	}
}

// status is what the core says of group 0.
func (b *bench) status() (st mcast.GroupStatus) {
	b.w.core.Group(0).Snapshot(&st)
	return st
}

// sleepTime is the worker's, at the time that the test has come to.
func (b *bench) mayWait() time.Duration {
	b.w.start = time.Now().Add(-b.w.now)
	return b.w.sleepTime()
}

// A port stops transmitting while its carrier is up. The other receivers get every
// packet, and their ACKs count; the kernel is not asked once for each copy that waits;
// the member behind the port is removed after dead_after, and the source hears of
// everything.
func TestStuckPortCostsItsOwnReceiversOnly(t *testing.T) { onStuckPorts(t, testStuckPort) }

func testStuckPort(t *testing.T, bench stuckMaker) {
	for _, repair := range []int64{0, 64 << 10, 2 << 20} {
		t.Run(fmt.Sprintf("repair=%d", repair), func(t *testing.T) {
			b, stop, _ := bench(t, 4, 1)
			b.spec.Policy, b.spec.DeadAfter = mcast.Evict, 100*time.Millisecond
			b.repair(t, repair)
			w, stuck := b.w, b.w.ports[3]
			stop()
			payload := make([]byte, 1024)
			const packets = 2000 // more than the port's share of the frames
			start := time.Now()
			for psn := range rocev2.PSN(packets) {
				b.one(psn, 2, payload)
				w.now += 10 * time.Microsecond
				w.fireDeadlines()
				w.flush()
				b.awaitSent(t, 0, 1, 2)
			}
			// The stuck port lets a frame through from time to time, and has room for a few then.
			mostDeferred := 10 + uint64(time.Since(start)/time.Second)
			for _, i := range []int{1, 2} {
				if p := w.ports[i]; p.ring.packets != packets || p.refusedFrames+p.deferred != 0 {
					t.Errorf("%d of %d copies left by port %d; %d refused, %d put off", p.ring.packets, packets, i, p.refusedFrames, p.deferred)
				}
			}
			if st := b.status(); st.Members[1].Acked != packets-1 || st.Members[2].Acked != packets-1 || !st.Members[3].Live {
				t.Errorf("members %+v", st.Members)
			}
			if stuck.ring.frames() == 0 || stuck.ring.frames()+stuck.queue.len() > stuck.queue.maxFrames {
				t.Fatalf("%d frames in the TX ring of the stuck port and %d in its queue, may have %d together", stuck.ring.frames(), stuck.queue.len(), stuck.queue.maxFrames)
			}
			if stuck.deferred > mostDeferred {
				t.Errorf("%d copies were made for a port that takes none", stuck.deferred)
			}
			if full := repair < 1<<20; full && stuck.refusedFrames == 0 || !full && stuck.deferred == 0 {
				t.Errorf("%d copies put off, %d refused", stuck.deferred, stuck.refusedFrames)
			}
			if d := b.mayWait(); repair == 0 && (stuck.ring.kickAt == 0 || d > maxTXRetry || d < minTXRetry) {
				t.Errorf("the kernel is asked again at %v, now is %v, and the worker may sleep for %v", stuck.ring.kickAt, w.now, d)
			}
			s, err := stuck.rxSockets[0].Stats()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d system calls to send by the stuck port, %d of %d packets, copies put off %d, refused %d", s.Kicks, stuck.ring.packets, packets, stuck.deferred, stuck.refusedFrames)
			if s.Kicks > packets/8 || s.KickStalls == 0 {
				t.Errorf("%d system calls to send by the stuck port in %d batches", s.Kicks, packets)
			}
			before := w.ports[0].ring.packets
			for range 30 {
				w.now += 10 * time.Millisecond
				w.fireDeadlines()
				w.flush()
			}
			st := b.status()
			if st.Members[3].Live || st.Acked != packets-1 || w.ports[0].ring.packets == before {
				t.Fatalf("0.3 s later: live %v, acknowledged %d of %d, %d frames for the source", st.Members[3].Live, st.Acked, packets, w.ports[0].ring.packets-before)
			}
			for psn := rocev2.PSN(packets); psn < packets+100; psn++ {
				b.one(psn, 2, payload)
				w.flush()
				b.awaitSent(t, 0, 1, 2)
			}
			if st := b.status(); st.Acked != packets+99 {
				t.Errorf("without the member: acknowledged up to %d, want %d; drops %v", st.Acked, packets+99, w.count.drops())
			}
			if n := w.groups[0].maxCopies; n != 3 {
				t.Errorf("the group needs frames for %d copies, want 3", n)
			}
		})
	}
}

// A port that goes on after a moment gets soon what waited for it, each copy once, and
// its receiver is in line again.
func TestStuckPortGoesOn(t *testing.T) { onStuckPorts(t, testStuckPortGoesOn) }

func testStuckPortGoesOn(t *testing.T, bench stuckMaker) {
	b, stop, goOn := bench(t, 3, 1)
	b.repair(t, 2<<20)
	w, stuck := b.w, b.w.ports[2]
	stop()
	payload := make([]byte, 1024)
	const packets = 500 // packets that the store has room for
	for psn := range rocev2.PSN(packets) {
		// Nothing asks for an ACK, so that repair asks nobody either.
		w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, payload))
		w.now += time.Microsecond
		w.fireDeadlines()
		w.flush()
	}
	if stuck.deferred == 0 || stuck.ring.kickAt == 0 {
		t.Fatalf("nothing was put off (%d copies refused), or the kernel took all", stuck.refusedFrames)
	}
	if d := b.mayWait(); d > maxTXRetry {
		t.Errorf("the worker may sleep for %v while frames wait for the kernel", d)
	}
	goOn()
	for i := 0; stuck.ring.packets < packets; i++ {
		if i > 50 {
			t.Fatalf("%d of %d copies have left 5 ms later; drops %v", stuck.ring.packets, packets, w.count.drops())
		}
		w.now += minTXRetry
		w.fireDeadlines()
		w.flush()
	}
	if stuck.ring.packets != packets || stuck.refusedFrames != 0 {
		t.Errorf("%d copies of %d packets have left, %d refused", stuck.ring.packets, packets, stuck.refusedFrames)
	}
	b.say(1, packets-1, rocev2.SyndromeACK)
	b.say(2, packets-1, rocev2.SyndromeACK)
	if st := b.status(); st.Acked != packets-1 {
		t.Errorf("acknowledged up to %d, want %d", st.Acked, packets-1)
	}
}

// What one batch has for a port may be more than its share of the frames: the port is
// given the time to send, if it does send.
func TestBatchBeyondThePortsShare(t *testing.T) {
	b := newBench(t, 4)
	b.repair(t, 0)
	w := b.w
	packets := w.ports[1].queue.maxFrames * 2
	for psn := range rocev2.PSN(packets) {
		w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn}, nil))
	}
	w.flush()
	for i, p := range w.ports[1:] {
		if p.ring.packets != uint64(packets) || p.refusedFrames != 0 {
			t.Errorf("%d of %d copies left by port %d, %d refused", p.ring.packets, packets, i+1, p.refusedFrames)
		}
	}
}

// One packet may have more copies behind a port than the port's share of the frames.
func TestPacketBeyondThePortsShare(t *testing.T) {
	b := newBench(t, 4)
	b.repair(t, 0)
	w := b.w
	table := w.groups[0]
	for i := range table.legs {
		table.legs[i].port = 1
	}
	w.ports[1].queue.maxFrames = 1
	w.setTable(0, table)
	w.flush()
	w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly}, nil))
	if n := w.count.drop[dropSourceGuard]; n != 1 {
		t.Fatal("the source is behind another port now")
	}
	w.servePacket(1, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly}, nil))
	if p := w.ports[1]; len(p.staged) != 3 || p.refusedFrames != 0 {
		t.Errorf("%d copies staged, %d refused; want 3", len(p.staged), p.refusedFrames)
	}
	b.unstage()
}

// A worker without frames to receive into looks for completions by itself: they wake
// nobody.
func TestStarvedWorkerLooksAgain(t *testing.T) {
	b := newBench(t, 2)
	w := b.w
	w.runBatch()
	taken := make([]uint64, w.pool.Len())
	w.pool.Take(taken)
	w.fillReserve = -fillChunk // as if fillChunk entries of each fill ring were free
	w.runBatch()
	if d := w.sleepTime(); d > maxTXRetry {
		t.Errorf("without frames the worker may sleep for %v, want at most %v", d, maxTXRetry)
	}
	w.pool.Give(taken)
	w.runBatch()
	if d := w.sleepTime(); d < maxSleep/2 {
		t.Errorf("with frames the worker may sleep for %v", d)
	}
}

// Ports that take nothing hold a part of the frames only: the others' receivers get all
// copies while most ports are stuck and the kept frames are as many as may be.
func TestStuckPortsLeaveFrames(t *testing.T) { onStuckPorts(t, testStuckPortsLeaveFrames) }

func testStuckPortsLeaveFrames(t *testing.T, bench stuckMaker) {
	b, stop, _ := bench(t, 8, 6)
	w := b.w
	stop()
	payload := make([]byte, 1024)
	const packets = 3000
	for psn := range rocev2.PSN(packets) {
		b.one(psn, 1, payload)
		w.now += 10 * time.Microsecond
		w.fireDeadlines()
		w.flush()
		b.awaitSent(t, 0, 1)
	}
	if n := w.ports[1].ring.packets; n != packets {
		t.Errorf("%d of %d copies left by the port that transmits; drops %v", n, packets, w.count.drops())
	}
	held := 0
	for _, p := range w.ports[2:] {
		held += p.ring.frames() + p.queue.len()
	}
	if most := w.umem.Frames() / 4; held > most || held < most/2 {
		t.Errorf("six of eight ports hold %d frames, want at most %d, and nearly as many", held, most)
	}
	if n := w.count.drop[dropNoFrame]; n != 0 || w.pool.Len() < w.umem.Frames()/16 {
		t.Errorf("%d packets found no frames; %d of %d are free", n, w.pool.Len(), w.umem.Frames())
	}
}
