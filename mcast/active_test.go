// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"runtime"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// manyGroups returns a switch with n groups, each with the given number of members.
func manyGroups(t testing.TB, n, members int, repair int64) *Switch {
	t.Helper()
	s := New(Limits{Groups: n})
	var out Output
	for i := range n {
		if err := s.Apply(0, PutGroup{groupOf(i, members, repair)}, &out); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// inUse returns how many heap bytes the Switch of make takes, after garbage collection.
func inUse(make func() *Switch) uint64 {
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	s := make()
	after := used()
	runtime.KeepAlive(s)
	return after - before
}

// TestR82_MemoryOfAnIdleGroup: an idle group with 16 members takes at most 2 KB, with or
// without local repair, whatever the size of its store.
func TestR82_MemoryOfAnIdleGroup(t *testing.T) {
	const n, limit = 2000, 2048
	for _, repair := range []int64{0, 64 << 10, 8 << 20} {
		per := inUse(func() *Switch { return manyGroups(t, n, 16, repair) }) / n
		t.Logf("repair of %d KiB: %d bytes", repair>>10, per)
		if per > limit {
			t.Errorf("repair of %d KiB: an idle group of 16 members takes %d bytes, more than %d", repair>>10, per, limit)
		}
	}
}

// TestMemoryOfAGroupInATree: an idle group with four neighbours, whose sessions have begun, takes at most
// 2.25 KB. What its token machine orders is in memory that all groups of a switch share.
func TestMemoryOfAGroupInATree(t *testing.T) {
	const n, limit = 2000, 2304
	per := inUse(func() *Switch {
		s := New(Limits{Groups: n})
		var out Output
		for i := range n {
			spec := groupOf(i, 4, 0)
			for m := range spec.Legs {
				spec.Legs[m], spec.Members[m].Number = LegSpec{Kind: Forwarded, Neighbor: Neighbor(m + 1)}, uint32(m+1)
			}
			if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
				t.Fatal(err)
			}
			for m := range spec.Legs {
				if err := s.SetSession(0, spec.ID, Neighbor(m+1), 1, &out); err != nil {
					t.Fatal(err)
				}
			}
		}
		return s
	}) / n
	t.Logf("%d bytes", per)
	if per > limit {
		t.Errorf("an idle group with four neighbours takes %d bytes, more than %d", per, limit)
	}
}

// serveOne makes group i forward a message, which both receivers acknowledge.
func serveOne(t *testing.T, s *Switch, out *Output, now time.Duration, i int, psn rocev2.PSN) {
	t.Helper()
	p := Packet{
		Group: groupAddr(i), Src: memberAddr(0), DestQP: groupQPN, Op: rocev2.SendOnly, PSN: psn, Payload: 8, AckReq: true, Verified: true, RetainBytes: minFrameBytes,
	}
	if s.Input(now, &p, out); len(out.Copies) != 2 {
		t.Fatalf("group %d, PSN %d: %d copies, drop %v", i, psn, len(out.Copies), out.Drop)
	}
	for m := 1; m <= 2; m++ {
		a := Packet{
			Group: p.Group, Src: memberAddr(m), DestQP: groupQPN, Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeACK, PSN: psn.Add(int32(1000 * m)), Verified: true,
		}
		if s.Input(now, &a, out); out.Drop != None {
			t.Fatalf("group %d, PSN %d: the ACK of receiver %d is dropped: %v", i, psn, m, out.Drop)
		}
	}
	if len(out.Feedback) != 1 || out.Feedback[0].PSN != psn {
		t.Fatalf("group %d, PSN %d: feedback %+v", i, psn, out.Feedback)
	}
	if at, ok := s.NextDeadline(); ok && at <= now {
		s.Advance(now, out)
	}
}

// advance serves all deadlines up to t.
func advance(s *Switch, out *Output, t time.Duration) {
	for n := 0; ; n++ {
		at, ok := s.NextDeadline()
		if !ok || at > t {
			return
		}
		if n > 100_000 {
			panic("there is no end of deadlines")
		}
		s.Advance(at, out)
	}
}

// TestR82_IdleGroupsGiveBack: a group that becomes active takes the memory of groups that
// are idle by then. So this memory grows with the number of groups that are active at the
// same time, and a further group allocates nothing.
func TestR82_IdleGroupsGiveBack(t *testing.T) {
	const groups, atOnce = 400, 10
	s := manyGroups(t, groups, 3, 64<<10)
	var out Output
	now := time.Second
	for i := range groups {
		serveOne(t, s, &out, now, i, 0)
		now += 2 * idleAfter / atOnce
		advance(s, &out, now)
	}
	active := 0
	for _, g := range s.groups {
		if g.activity != nil {
			active++
		}
	}
	if active < 2 || active > 2*atOnce {
		t.Errorf("%d groups have memory for data, of which %d had some within %v", active, atOnce/2, idleAfter)
	}
	if n := s.actives.n; n != active {
		t.Errorf("%d active groups are listed, of %d", n, active)
	}
	// Idle groups go on at the PSN that they had reached.
	for i := range groups {
		serveOne(t, s, &out, now, i, 1)
		now += 2 * idleAfter / atOnce
		advance(s, &out, now)
	}
	first := groups - 1
	if got := testing.AllocsPerRun(groups/2, func() {
		first = (first + 1) % groups
		g := s.groups[first]
		if g.activity != nil {
			t.Fatalf("group %d is still active", first)
		}
		serveOne(t, s, &out, now, first, g.fwd.nxt)
		now += 2 * idleAfter / atOnce
		advance(s, &out, now)
	}); got != 0 {
		t.Errorf("a group that becomes active allocates %v times", got)
	}
}

// TestR82_BusyGroupsKeepIt: a group with unfinished work, or with data within idleAfter,
// keeps its memory.
func TestR82_BusyGroupsKeepIt(t *testing.T) {
	s := manyGroups(t, 40, 3, 64<<10)
	var out Output
	serveOne(t, s, &out, 0, 0, 0)
	sendTo(t, s, 0, 1) // no receiver acknowledges
	now := 2 * idleAfter
	s.groups[1].live.deadAfter = 0 // no receiver is evicted
	advance(s, &out, now)
	s.groups[1].due, s.groups[1].repair.store = deadlines{}, nil // and none is probed any more
	serveOne(t, s, &out, now-idleAfter/2, 2, 0)
	for i := 3; i < 40; i++ {
		serveOne(t, s, &out, now, i, 0)
	}
	for i, want := range []bool{false, true, true, true} {
		if got := s.groups[i].activity != nil; got != want {
			t.Errorf("group %d: memory for data %v, want %v", i, got, want)
		}
	}
}

// TestR82_RingsGrow: a ring that grows gives the smaller slice back.
func TestR82_RingsGrow(t *testing.T) {
	s := New(Limits{})
	ring := &store{limit: 1 << 20, sw: s}
	ring.reach(minRing)
	ring.reach(minRing + 1)
	if n := len(s.pools.stored.free[4]); len(ring.ring) != 2*minRing || n != 1 {
		t.Errorf("a ring of %d, and %d smaller ones are free", len(ring.ring), n)
	}
	ring.shrink()
	if len(s.pools.stored.free[5]) != 1 {
		t.Error("a ring was not given back")
	}
}

// TestR82_ChangesOfAnIdleGroup: a member can be removed from an idle group, and can join
// it.
func TestR82_ChangesOfAnIdleGroup(t *testing.T) {
	s := manyGroups(t, 2, 3, 64<<10)
	var out Output
	serveOne(t, s, &out, 0, 0, 0)
	g := s.groups[0]
	advance(s, &out, 2*idleAfter)
	serveOne(t, s, &out, 2*idleAfter, 1, 0)
	if g.activity != nil {
		t.Fatal("the group is still active")
	}
	add := AddMember{Member: MemberSpec{MemberRecord: MemberRecord{IP: memberAddr(3), QPN: 0x100, RQPSN: 3000, Window: g.fwd.window}, Leg: 3}}
	for i, op := range []Op{RemoveMember{Member: 2}, add} {
		if err := s.Apply(2*idleAfter, op, &out); err != nil {
			t.Fatalf("operation %d: %v", i, err)
		}
	}
	p := Packet{Group: groupAddr(0), Src: memberAddr(0), DestQP: groupQPN, Op: rocev2.SendOnly, PSN: 1, Payload: 8, AckReq: true, Verified: true}
	if s.Input(2*idleAfter, &p, &out); len(out.Copies) != 2 || out.Copies[1].Leg != 3 || out.Copies[1].PSN != 3000 {
		t.Errorf("copies %+v, drop %v", out.Copies, out.Drop)
	}
}

// TestAddrIndex: after removals every other address is found.
func TestAddrIndex(t *testing.T) {
	s := manyGroups(t, 300, 3, 0)
	var out Output
	for i := 0; i < 300; i += 3 {
		if err := s.Apply(0, DeleteGroup{GroupID(i)}, &out); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		id, ok := s.Lookup(groupAddr(i))
		if ok != (i%3 != 0) || ok && id != GroupID(i) {
			t.Errorf("group %d: found %v as %d", i, ok, id)
		}
	}
}
