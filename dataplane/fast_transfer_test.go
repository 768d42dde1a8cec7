// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// The data of a group in its steady state is replicated by the XDP programs, and is the same
// at all receivers.
func TestFastTransfer(t *testing.T) {
	for name, c := range map[string]fastLabConfig{
		"IPv4":                        {hosts: 4},
		"IPv6":                        {hosts: 4, v6: true},
		"two members behind one port": {hosts: 3, behind: []int{1, 2}},
		"two workers":                 {hosts: 4, workers: 2},
		"path MTU 2048":               {hosts: 4, pathMTU: 2048},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFastLab(t, c)
			x.steady(0, func() { x.send(0, 20, 10000, x.all(0)...) })
			if s := x.state(); s.Fast.Taken == 0 || s.Fast.Sent == 0 || s.Status.Counters.FeedbackIn < s.Fast.Taken {
				t.Errorf("ACKs of the programs: %d in, %d out, %q; of the core %d in", s.Fast.Taken, s.Fast.Sent, s.Fast.ACKs, s.Status.Counters.FeedbackIn)
			}
			x.rests()
		})
	}
}

// rests waits until the group, without data, is taken back. If it was slow for another reason when the data ended, it
// gets some more.
func (x *fastLab) rests() {
	x.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		switch s := x.state().Fast; {
		case s.Path == PathSlow && s.Why == whyIdle:
			return
		case s.Path == PathSlow:
			x.send(0, 1, 10000, x.all(0)...)
		case time.Now().After(end):
			x.Fatalf("the group is idle, and not taken back: %+v", s)
		}
	}
}

// A receiver that loses packets gets them from the ring, and the group stays on the fast
// path.
func TestFastLoss(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 4})
	x.lose(2, 0.01)
	x.lose(3, 0.002)
	x.steady(0, func() { x.send(0, 20, 10000, x.all(0)...) })
	c := x.state().Status.Counters
	x.Logf("%+v", c)
	if c.NAKsServed == 0 || c.Resent == 0 {
		t.Errorf("nothing was repaired: %+v", c)
	}
	if s := x.hosts[0].qp.Stats(); s.NAKs > 1 { // one for the data that came before the receivers' PSNs were verified
		t.Errorf("the source got %d NAKs", s.NAKs)
	}
}

// Queue pairs that behave as RNICs are documented to have the fast path, and all bytes, with losses
// too: one of each kind sends to three others in turn.
func TestFastPersonalities(t *testing.T) {
	all := rc.Personalities()
	for i, source := range all {
		if !labtest.InTurn(t, i, 3) {
			continue
		}
		t.Run(source.String(), func(t *testing.T) {
			x := newFastLab(t, fastLabConfig{hosts: 4, personalities: []soft.Personality{source, all[(i+1)%len(all)], all[(i+3)%len(all)], soft.ConnectXRepeat}})
			x.send(0, 10, 10000, x.all(0)...)
			x.lose(0, 0.001)
			x.lose(2, 0.01)
			x.lose(3, 0.002)
			x.send(0, 10, 10000, x.all(0)...)
			s := x.state()
			t.Logf("%+v", s.Fast)
			// A requester whose timer is 12 ms long repeats what has not been lost where endpoints are slow, and each
			// time the group leaves the fast path for a moment.
			if c := s.Status.Counters; c.Resent == 0 || s.Fast.Packets < c.DataIn/10 {
				t.Errorf("%d of %d packets took the fast path, %d were sent again", s.Fast.Packets, c.DataIn, c.Resent)
			}
		})
	}
}

// A packet that the source's own link loses does not end the fast path: what comes behind it is
// dropped until the source has gone back (R103).
func TestFastSourceLoss(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 4, loss: 0.001})
	x.steady(0, func() { x.send(0, 20, 10000, x.all(0)...) })
	s := x.state()
	if s.Status.Counters.Drops[mcast.BehindGap] == 0 {
		t.Errorf("no packet came behind a gap: %+v", s.Status.Counters)
	}
}

// Each member that sends has the fast path for its turn.
func TestFastSourceChange(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 3, behind: []int{1}})
	for from := range x.hosts {
		x.steady(from, func() { x.send(from, 10, 10000, x.all(from)...) })
	}
	for range 5 {
		for from := range x.hosts {
			x.send(from, 1, 20000, x.all(from)...)
		}
	}
	x.Logf("%+v", x.state().Fast)
}

// Members leave and join while data flows, ports go down and come back, and the group has the
// fast path again.
func TestFastChanges(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 4, behind: []int{2}})
	last := mcast.MemberID(len(x.hosts) - 1)
	while(func(stop <-chan struct{}) {
		var to []int
		for i := 1; i < int(last); i++ {
			to = append(to, i)
		}
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := x.trySend(0, 1, 10000, to...); err != nil {
				t.Error(err)
				return
			}
		}
	}, func() {
		if err := x.group.RemoveMember(last, &mcast.Outcomes{}); err != nil {
			t.Error(err)
		}
		for range 20 {
			table := x.table
			x.group.SetTable(&table)
			if err := x.plane.SetMTU(1, 3000); err != nil {
				t.Error(err)
			}
		}
	})
	x.hosts = x.hosts[:last]
	x.steady(0, func() { x.send(0, 20, 10000, x.all(0)...) })
}

// A group without data gives its ring to another one that finds none, and gets one again.
func TestFastRingsAreGivenBack(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 3})
	reclaim := func(idleFor time.Duration) (ok bool) {
		w := x.plane.workers.all[0]
		w.do(func() {
			f := w.fast.of(0)
			f.movedAt = w.now - idleFor
			ok = w.reclaimRings(ringIdle, 1)
		})
		return ok
	}
	x.steady(0, func() { x.send(0, 20, 10000, x.all(0)...) })
	if s := x.state().Fast; s.Ring != maxFastSlots {
		t.Errorf("a ring of %d packets, want %d: no other group may ask", s.Ring, maxFastSlots)
	}
	x.rests()
	if reclaim(ringIdle / 2) {
		t.Error("a group has lost its ring although data has come lately")
	}
	before := x.state().Fast
	if !reclaim(ringIdle) {
		t.Error("the ring of an idle group is not given back")
	}
	if s := x.state().Fast; s.Ring != 0 || s.Why != whyReclaimed || s.Copies != before.Copies {
		t.Errorf("%+v, before %+v", s, before)
	}
	if reclaim(ringIdle) {
		t.Error("a group without a ring gives one back")
	}
	x.steady(0, func() { x.send(0, 20, 10000, x.all(0)...) })
}

// A receiver that falls silent while the programs count ACKs is removed, and the others have everything: no word of
// another one passes for its.
func TestFastACKsOfADeadReceiver(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 4, change: func(x *fastLab) {
		x.spec.Policy, x.spec.DeadAfter, x.spec.AllDeadAfter = mcast.Evict, 300*time.Millisecond, 10*time.Second
	}})
	x.steady(0, func() { x.send(0, 20, 10000, x.all(0)...) })
	before := x.state()
	if before.Fast.Taken == 0 {
		t.Fatalf("the programs count no ACKs: %q", before.Fast.ACKs)
	}
	x.hosts[3].device.Close()
	x.send(0, 1, 10000, 1, 2)
	if m := x.state().Status.Members[3]; m.Live {
		t.Error("a transfer is complete without the receiver, which is a member")
	}
	x.hosts = x.hosts[:3]
	x.steady(0, func() { x.send(0, 20, 10000, x.all(0)...) })
	if after := x.state(); after.Fast.Taken == before.Fast.Taken {
		t.Errorf("the programs count no ACKs of the others: %q", after.Fast.ACKs)
	}
}
