// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// round2 has both workers do one step each, the owner of the group first.
func (p *pair) round2(now time.Duration) {
	for _, w := range []*worker{p.crew.all[1], p.crew.all[0]} {
		w.now = now
		w.refreshTXLimits()
		w.drainRemote()
		w.fireDeadlines()
		w.flush()
	}
}

// With several workers a port that does not transmit is felt through the exit to its
// sender: its exit fills to its share, and neither the worker that stages nor the one
// that sends keeps anybody else waiting.
func TestStuckPortOfAnotherWorker(t *testing.T) {
	t.Run("fake", func(t *testing.T) {
		p := newPair(t, 4, "")
		testStuckPortOfAnotherWorker(t, p, func() { p.fake.queues[2][0].Stop(stuckAfter) })
	})
	t.Run("AF_XDP", func(t *testing.T) {
		s := labtest.Star(t, lab.StarConfig{Hosts: 4})
		ports, stop, _ := hold(t, s, s.Config(), 3)
		testStuckPortOfAnotherWorker(t, newPairIn(t, s, ports, "", func(bool, string, ...any) {}), stop)
	})
}

// testStuckPortOfAnotherWorker stops port 2, which is worker 0's to send by; the group is
// worker 1's.
func testStuckPortOfAnotherWorker(t *testing.T, p *pair, stop func()) {
	b, owner, sender := p.bench, p.crew.all[1], p.crew.all[0]
	b.spec, _ = b.group0()
	b.spec.Policy, b.spec.DeadAfter = mcast.Evict, 100*time.Millisecond
	b.repair(t, 0)
	stop()
	payload := make([]byte, 1024)
	const packets = 1500
	psn, now := rocev2.PSN(0), owner.readClock()
	send := func() {
		b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn, AckReq: true}, payload))
		b.say(1, psn, rocev2.SyndromeACK)
		b.say(3, psn, rocev2.SyndromeACK)
		psn = psn.Next()
		now += 10 * time.Microsecond
		p.round2(now)
	}
	for range packets {
		send()
	}
	far, near := owner.ports[2], sender.ports[2]
	for _, i := range []int{1, 3} {
		if q := owner.ports[i]; q.ring.packets != packets || q.refusedFrames != 0 {
			t.Errorf("%d of %d copies left by port %d", q.ring.packets, packets, i)
		}
	}
	waiting := far.remoteTX.ring.Published()
	if far.refusedFrames == 0 || waiting != far.remoteTX.ring.Size()/2 || near.ring.frames()+near.queue.len() > near.queue.maxFrames {
		t.Errorf("%d copies refused; %d frames wait in an exit of %d, %d at the port, which may have %d", far.refusedFrames, waiting, far.remoteTX.ring.Size(), near.ring.frames()+near.queue.len(), near.queue.maxFrames)
	}
	if st := b.status(); st.Members[1].Acked != packets-1 || st.Members[3].Acked != packets-1 || !st.Members[2].Live {
		t.Errorf("members %+v", st.Members)
	}
	if at := far.progress.retryAt(now); at <= now+minTXRetry {
		t.Errorf("the exit is looked at again after %v, as if something had moved", at-now)
	}
	for range 30 {
		now += 10 * time.Millisecond
		p.round2(now)
	}
	if st := b.status(); st.Members[2].Live || st.Acked != packets-1 {
		t.Errorf("0.3 s later: live %v, acknowledged %d", st.Members[2].Live, st.Acked)
	}
	for range 100 {
		send()
	}
	if st := b.status(); st.Acked != packets+99 {
		t.Errorf("without the member: acknowledged %d; drops %v", st.Acked, owner.count.drops())
	}
}
