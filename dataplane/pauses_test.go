// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// listeners is workers without goroutines, whose clock the test is. Port i is
// received from, and sent by, worker i modulo their number.
type listeners struct {
	t       *testing.T
	workers []*worker
	evicted []mcast.MemberID
}

func fakeHost(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}) }

var testGroup = netip.MustParseAddr("10.77.254.1")

const listenersDead = 100 * time.Millisecond

// newListeners makes a group of host i behind port i; worker 0 has it.
func newListeners(t *testing.T, hosts, count int) *listeners {
	l := &listeners{t: t}
	c := &workers{}
	for i := range count {
		w := bareWorker(t, hosts)
		w.index, w.pauses.seen, w.pauses.grown = i, make([]time.Duration, count), make([]time.Duration, count)
		if count > 1 {
			w.workers = c
		}
		l.workers = append(l.workers, w)
	}
	c.all, c.ports = l.workers, l.workers[0].ports
	for _, p := range c.ports {
		p.sockets = []xsk.BoundQueue{nil}
		p.queue = newEgressQueue(256<<10, 1024, 0)
	}
	c.setPortDelays()
	w := l.workers[0]
	if err := w.core.Apply(0, mcast.PutGroup{Spec: l.spec(0)}, &w.out); err != nil {
		t.Fatal(err)
	}
	return l
}

// spec returns the group. Its new members are probed if psnProbe is not 0.
func (l *listeners) spec(psnProbe time.Duration) mcast.GroupSpec {
	spec := mcast.GroupSpec{IP: testGroup, GroupParams: mcast.GroupParams{QPN: 0x4242, PathMTU: 1024, Policy: mcast.Evict, DeadAfter: listenersDead}, PSNProbe: psnProbe}
	for i := range l.workers[0].ports {
		spec.Legs = append(spec.Legs, mcast.LegSpec{Port: mcast.Port(i)})
		spec.Members = append(spec.Members, mcast.MemberSpec{MemberRecord: mcast.MemberRecord{IP: fakeHost(i), QPN: rocev2.QPN(0x100 + i)}, Leg: mcast.LegID(i)})
	}
	return spec
}

// turns has the given workers run at now, as step does but for the sockets.
func (l *listeners) turns(now time.Duration, workers ...int) {
	for _, i := range workers {
		w := l.workers[i]
		w.now = now
		w.notePauses()
		w.core.Advance(now, &w.out)
		for _, e := range w.out.Events {
			if e.Kind == mcast.MemberEvicted {
				l.evicted = append(l.evicted, e.Member)
			}
		}
	}
}

// sleep has a worker sleep until due at most.
func (l *listeners) sleep(due time.Duration, worker int) { l.workers[worker].pauses.setRunBy(due) }

func (l *listeners) packet(now time.Duration, host int, op rocev2.Opcode, psn rocev2.PSN) {
	w := l.workers[0]
	w.core.Input(now, &mcast.Packet{
		Group: testGroup, Src: fakeHost(host), Port: mcast.Port(host), Op: op, DestQP: 0x4242, PSN: psn,
		AckReq: true, Verified: true, Syndrome: rocev2.SyndromeACK,
	}, &w.out)
	if w.out.Drop != 0 {
		l.t.Fatalf("host %d's packet is dropped: %v", host, w.out.Drop)
	}
}

// begin has host 0 send a packet at 1 ms, which host 1 acknowledges and host 2 does not.
func (l *listeners) begin() {
	for i := range l.workers {
		l.turns(time.Millisecond, i)
		l.sleep(time.Second, i)
	}
	l.packet(time.Millisecond, 0, rocev2.SendOnly, 0)
	l.packet(time.Millisecond, 1, rocev2.Acknowledge, 0)
}

func (l *listeners) expectEvicted(what string, members ...mcast.MemberID) {
	l.t.Helper()
	if len(l.evicted) != len(members) || len(members) > 0 && l.evicted[0] != members[0] {
		l.t.Fatalf("%s: evicted are %v, want %v", what, l.evicted, members)
	}
}

// R58: what a worker is late by, beyond what timers take, is not the silence of a
// member: neither when it sleeps for longer than it was to, nor in a turn.
func TestR58_AWorkersPauses(t *testing.T) {
	const ms = time.Millisecond
	l := newListeners(t, 3, 1)
	l.begin()
	l.sleep(51*ms, 0)
	l.turns(111*ms, 0) // to run at 51, it is 60 ms late
	l.expectEvicted("after a sleep of 110 ms, which was to be of 50")
	l.turns(141*ms, 0) // a turn of 30 ms
	l.expectEvicted("after 140 ms, of which it paused for 86")
	l.sleep(186*ms, 0)
	l.turns(186*ms, 0)
	l.expectEvicted("after 99 ms of silence")
	l.sleep(187*ms, 0)
	l.turns(187*ms+pauseThreshold/2, 0) // as late as timers are
	l.expectEvicted("after 101 ms of silence", 2)
}

// R58: nor is what the worker is late by that receives from the member's port; it
// counts while it lasts, and after it.
func TestR58_TheReceivingWorkersPauses(t *testing.T) {
	const ms = time.Millisecond
	l := newListeners(t, 3, 3) // port 2 is worker 2's
	l.begin()
	l.sleep(21*ms, 2)
	for now := 2 * ms; now <= 200*ms; now += ms {
		l.turns(now, 0, 1)
	}
	l.expectEvicted("while the worker that would hear it stands still")
	l.turns(201*ms, 2)
	for now := 202 * ms; now < 279*ms; now += ms {
		l.turns(now, 0, 1, 2)
	}
	l.expectEvicted("after 99 ms in which it was heard")
	l.turns(280*ms, 0, 1, 2)
	l.expectEvicted("after 101 ms in which it was heard", 2)

	l = newListeners(t, 3, 3)
	l.begin()
	l.sleep(21*ms, 1) // not a worker that would hear it
	for now := 2 * ms; now <= 102*ms; now += ms {
		l.turns(now, 0, 2)
	}
	l.expectEvicted("while another worker stands still", 2)
}

// R58: workers that pause again and again, each for most of the time, run in between.
// What they do not hear then is silence, and the wait for a member of lately ends (R73).
func TestR58_PausesWithoutEnd(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		late, apart time.Duration // each worker is late by late, and each runs apart after the one before
	}{
		"at the same time": {10 * ms, 0},
		"in turn":          {10 * ms, 3 * ms},
		"batches of 6 ms":  {6 * ms, 2 * ms},
		"pauses of 50 ms":  {50 * ms, 16 * ms},
	} {
		until := func(l *listeners, done func() bool) time.Duration {
			for now := c.late; now < 10*time.Second; now += c.late {
				for i := range 3 {
					if l.turns(now+time.Duration(i)*c.apart, i); done() {
						return now
					}
				}
			}
			return 0
		}
		l := newListeners(t, 3, 3)
		l.begin()
		evicted := until(l, func() bool { return len(l.evicted) > 0 })
		l = newListeners(t, 3, 3)
		w := l.workers[0]
		for _, op := range []mcast.Op{
			mcast.PutGroup{Spec: l.spec(time.Millisecond)},
			mcast.UpdateMembers{Remove: []mcast.MemberID{1}, Add: []mcast.AddMember{{Member: mcast.MemberSpec{MemberRecord: mcast.MemberRecord{IP: fakeHost(1), QPN: 0x111}, Leg: 1}, Leg: mcast.LegSpec{Port: 1}}}},
		} {
			if err := w.core.Apply(0, op, &w.out); err != nil {
				t.Fatal(err)
			}
		}
		probed := until(l, func() bool {
			return slices.ContainsFunc(w.out.Probes, func(p mcast.Probe) bool { return p.Leg == 1 })
		})
		t.Logf("%s: probed after %v, evicted after %v", name, probed, evicted)
		if probed < 20*ms || evicted < listenersDead {
			t.Errorf("%s: the member of lately is probed after %v, the silent one evicted after %v", name, probed, evicted)
		}
	}
}

// The sockets of port i are received from by worker i, modulo the workers, and those after it.
func TestReceivesFrom(t *testing.T) {
	for _, c := range []struct {
		sockets, port int
		want          [3]bool
	}{
		{1, 0, [3]bool{true, false, false}}, {1, 1, [3]bool{false, true, false}}, {1, 5, [3]bool{false, false, true}},
		{2, 0, [3]bool{true, true, false}}, {2, 2, [3]bool{true, false, true}}, {3, 4, [3]bool{true, true, true}},
	} {
		all := &workers{all: make([]*worker, 3)}
		for range c.port + 1 {
			p := new(port)
			p.sockets = make([]xsk.BoundQueue, c.sockets)
			all.ports = append(all.ports, p)
		}
		for i, want := range c.want {
			if all.receivesFrom(i, c.port) != want {
				t.Errorf("worker %d receives from port %d of %d sockets: %v", i, c.port, c.sockets, !want)
			}
		}
	}
}

// What other workers have paused is read once, whichever of them it was.
func TestR58_OthersPausesAreReadOnce(t *testing.T) {
	const ms = time.Millisecond
	l := newListeners(t, 3, 3)
	w := l.workers[0]
	for _, late := range []int{1, 2} {
		for i := range l.workers {
			l.sleep(time.Second, i)
		}
		l.sleep(0, late)
		at := time.Duration(late) * 50 * ms
		for _, want := range []time.Duration{at - pauseThreshold, 0} {
			if more := w.readOthersPauses(at); more != (want > 0) || w.pauses.grown[late] != want || w.pauses.grown[3-late] != 0 {
				t.Errorf("worker %d has paused: %v, %v, want %v of it alone", late, more, w.pauses.grown, want)
			}
		}
	}
	if newListeners(t, 3, 1).workers[0].readOthersPauses(time.Second) {
		t.Error("there is one worker, and others have paused")
	}
}

// R59: what may wait in a port's queue at its rate is added to DeadAfter, for members
// behind it.
func TestR59_AQueuesTime(t *testing.T) {
	l := newListeners(t, 3, 1)
	w := l.workers[0]
	w.setPortDelay(2, 2_000_000) // 256 KiB take 1.05 s
	l.begin()
	for now := 2 * time.Millisecond; now <= time.Second; now += time.Millisecond {
		l.turns(now, 0)
	}
	l.expectEvicted("while its first packet may be in the queue")
	w.setPortDelay(2, 0)
	l.turns(time.Second+time.Millisecond, 0)
	l.turns(time.Second+101*time.Millisecond, 0)
	l.expectEvicted("without a rate", 2)
}
