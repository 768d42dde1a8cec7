// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Members that have gone, in whatever way, need neither frames nor places in a ring.
func TestGoneMembersNeedNothing(t *testing.T) {
	b := newBench(t, 5)
	b.spec.Policy, b.spec.DeadAfter = mcast.Evict, 100*time.Millisecond
	b.repair(t, 0)
	w := b.w
	want := func(what string, copies int, ports ...int) {
		t.Helper()
		var got []int
		for pi, n := range w.groups[0].portNeeds(len(w.ports)) {
			if n > 0 {
				got = append(got, pi)
			}
		}
		if w.groups[0].maxCopies != copies || !slices.Equal(got, ports) {
			t.Errorf("%s: frames for %d copies are needed, and room at ports %v; want %d, %v", what, w.groups[0].maxCopies, got, copies, ports)
		}
	}
	want("all", 5, 0, 1, 2, 3, 4)
	w.removeMember(0, 4)
	want("one was removed", 4, 0, 1, 2, 3)
	w.removeMember(0, 4)
	want("and once more", 4, 0, 1, 2, 3)
	b.one(0, 2, nil)
	b.unstage()
	w.now += time.Second
	w.servePacket(1, b.take(1, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: 1000, Syndrome: rocev2.SyndromeACK}, nil))
	for range 3 {
		w.fireDeadlines()
		w.now += 60 * time.Millisecond
		b.say(1, 0, rocev2.SyndromeACK)
	}
	if b.status().Members[3].Live {
		t.Fatal("a silent member was not evicted")
	}
	want("one was evicted", 3, 0, 1, 2)
	b.unstage()

	// Frames for the others' copies are enough.
	free := w.pool.Len()
	taken := make([]uint64, free-3-maxFeedback-1)
	w.pool.Take(taken)
	w.count.drop[dropNoFrame] = 0
	b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: 1}, nil))
	if n := w.count.drop[dropNoFrame]; n != 0 {
		t.Error("a packet is refused for want of frames that nobody needs")
	}
	b.unstage()
	for range 1 {
		a, _ := w.pool.TakeOne()
		taken = append(taken, a)
	}
	b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: 2}, nil))
	if n := w.count.drop[dropNoFrame]; n != 1 {
		t.Errorf("with one frame fewer: %d packets refused, want 1; drops %v", n, w.count.drops())
	}
	for _, c := range []struct{ more, repairs int }{{0, -1}, {1, 1}, {5, 5}, {maxResends, maxResends}, {maxResends + 1, maxResends}} {
		need := 3 + maxFeedback + c.more
		for w.pool.Len() > need {
			a, _ := w.pool.TakeOne()
			taken = append(taken, a)
		}
		for w.pool.Len() < need {
			w.pool.GiveOne(taken[len(taken)-1])
			taken = taken[:len(taken)-1]
		}
		if n, ok := w.reserve(0, rocev2.SendOnly, 1); !ok || n != c.repairs {
			t.Errorf("with %d frames more than first copies and feedback need there is room for %d repairs (%v), want %d", c.more, n, ok, c.repairs)
		}
	}
	// Feedback needs frames for feedback only.
	b.say(1, 1, rocev2.SyndromeACK)
	b.say(2, 1, rocev2.SyndromeACK)
	if st := b.status(); st.Acked != 1 {
		t.Errorf("acknowledged up to %d, want 1; drops %v", st.Acked, w.count.drops())
	}
	b.unstage()
	w.pool.Give(taken)
}

// A group is split if members are behind two isolated ports.
func TestGroupIsSplit(t *testing.T) {
	ports := []*port{{}, {linkState: linkState{isolated: true}}, {linkState: linkState{isolated: true}}}
	for _, c := range []struct {
		legs  []leg
		split bool
	}{
		{[]leg{{port: 0, live: 1}, {port: 1, live: 1}}, false},
		{[]leg{{port: 1, live: 1}, {port: 1, live: 1}}, false},
		{[]leg{{port: 1, live: 1}, {port: 0, live: 1}, {port: 2, live: 1}}, true},
		{[]leg{{port: 1, live: 1}, {port: 2}}, false},
		{[]leg{{port: -1, live: 1}, {port: 2, live: 1}}, false},
	} {
		g := groupTable{legs: c.legs, acrossIsolated: !c.split}
		if g.noteIsolation(ports); g.acrossIsolated != c.split {
			t.Errorf("%+v: split is %v", c.legs, g.acrossIsolated)
		}
	}
}

// The tables that a change of members makes say who has gone.
func TestNewTableKnowsWhoIsGone(t *testing.T) {
	b := newBench(t, 3)
	t1 := Table{IP: b.group, PMTU: 1024}
	for i, h := range b.hosts {
		t1.Destinations = append(t1.Destinations, Destination{
			Origin: Origin{Port: i, MAC: rocev2.MAC(h.MAC)}, IP: h.IPv4, QPN: rocev2.QPN(i), Gone: i == 1,
		})
	}
	table := b.w.makeTable(&t1)
	if need := table.portNeeds(3); table.maxCopies != 2 || !slices.Equal(need, []int{1, 0, 1}) {
		t.Errorf("frames for %d copies, and room for %v", table.maxCopies, need)
	}
}
