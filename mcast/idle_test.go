// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// idleGroup returns a group whose receivers have acknowledged everything at time 0.
func idleGroup(t *testing.T) *group {
	s := manyGroups(t, 1, 3, 64<<10)
	var out Output
	serveOne(t, s, &out, 0, 0, 0)
	advance(s, &out, idleAfter+1)
	return s.groups[0]
}

// TestR82_WhatKeepsAGroupActive: each kind of unfinished work keeps the memory of a group
// by itself, and so does data within idleAfter.
func TestR82_WhatKeepsAGroupActive(t *testing.T) {
	if g := idleGroup(t); !g.idle(idleAfter+1) || g.idle(idleAfter) {
		t.Fatalf("idle after %v: %v, earlier: %v", idleAfter, g.idle(idleAfter+1), g.idle(idleAfter))
	}
	for name, busy := range map[string]func(*group){
		"a receiver that is not verified":  func(g *group) { g.numbering.numPending = 1 },
		"a check for silence":              func(g *group) { g.due.arm(livenessCheck, 1) },
		"a timer of local repair":          func(g *group) { g.due.arm(repairTimer, 1) },
		"a round of probes":                func(g *group) { g.due.arm(probeRound, 1) },
		"a receiver that waits to join":    func(g *group) { g.setJoining(1, true) },
		"a receiver that recovers":         func(g *group) { g.repair.numRecovering = 1 },
		"a NAK":                            func(g *group) { g.agg.numPending = 1 },
		"a receiver that joined in flight": func(g *group) { g.recv.joinedInFlight = 1 },
		"data in flight":                   func(g *group) { g.fwd.nxt = g.fwd.nxt.Next() },
		"a message under way":              func(g *group) { g.fwd.midMessage = true },
		"a frame in the store":             func(g *group) { g.repair.store.bytes = 1 },
		"a refused packet":                 func(g *group) { g.setRefusal(refusal{syndrome: rocev2.SyndromeNAKInvalid}) },
		"a message that waits":             func(g *group) { g.set(blocked, true) },
		"a message that is asked for":      func(g *group) { g.set(asking, true) },
		"a packet lately":                  func(g *group) { g.src.lastPSNAt = 1 },
		"a quarantine lately":              func(g *group) { g.src.quarantinedUntil = 1 },
		"a receiver behind a quorum":       func(g *group) { g.policy.quorum, g.acks[1].acked = 1, g.acks[1].acked.Prev() },
		"a group without a source, lately": func(g *group) { g.src.member, g.src.lastPSNAt = none, 1 },
	} {
		g := idleGroup(t)
		if busy(g); g.idle(idleAfter + 1) {
			t.Errorf("%s: the group is idle", name)
		}
	}
	for name, rest := range map[string]func(*group){
		"no store":     func(g *group) { g.repair.store = nil },
		"no source":    func(g *group) { g.src.member, g.fwd.nxt = none, g.fwd.nxt.Next() },
		"a quorum":     func(g *group) { g.policy.quorum = 1 },
		"a failed one": func(g *group) { g.set(failed, true) },
	} {
		g := idleGroup(t)
		if rest(g); !g.idle(idleAfter + 1) {
			t.Errorf("%s: the group is not idle", name)
		}
	}
}

// TestR82_TwoAtATime: when a group becomes active two others are checked, in turn. Those
// that are busy are checked again later, and deleted ones no more.
func TestR82_TwoAtATime(t *testing.T) {
	s := manyGroups(t, 12, 3, 0)
	var out Output
	for i := range 6 {
		serveOne(t, s, &out, 0, i, 0)
	}
	now := idleAfter + time.Second
	advance(s, &out, now)
	s.groups[1].fwd.midMessage = true // busy
	if err := s.Apply(now, DeleteGroup{2}, &out); err != nil {
		t.Fatal(err)
	}
	// By now the order of the checks is 2, 0, 4, 1, 3, 5.
	idleFrom := map[GroupID]int{0: 0, 4: 1, 3: 2, 5: 2}
	for i := range 3 {
		serveOne(t, s, &out, now, 6+i, 0)
		active := map[GroupID]bool{}
		for id, g := range s.groups {
			if g != nil && g.activity != nil {
				active[GroupID(id)] = true
			}
		}
		for id, from := range idleFrom {
			if active[id] != (i < from) {
				t.Errorf("after %d groups: group %d is active: %v", i+1, id, active[id])
			}
		}
		if !active[1] {
			t.Errorf("after %d groups: the busy one has no memory", i+1)
		}
	}
	if n := len(s.pools.activity.free[2]); n == 0 {
		t.Error("nothing was given back")
	}
}

// TestR82_JoinersOfAnActiveGroup: a leg that is added to an active group begins without
// any activity of another group's leg, and the smaller slice is given back.
func TestR82_JoinersOfAnActiveGroup(t *testing.T) {
	s := manyGroups(t, 2, 4, 0)
	var out Output
	g := s.groups[0]
	for i := range 2 {
		p := Packet{Group: groupAddr(i), Src: memberAddr(0), DestQP: groupQPN, Op: rocev2.SendOnly, Payload: 8, AckReq: true, Verified: true}
		s.Input(0, &p, &out)
	}
	before := &g.activity[0]
	add := AddMember{Member: MemberSpec{MemberRecord: MemberRecord{IP: memberAddr(4), QPN: 0x100, Window: g.fwd.window}, Leg: 4}}
	if err := s.Apply(0, add, &out); err != nil {
		t.Fatal(err)
	}
	if len(g.activity) != 5 || len(g.acks) != 5 || g.acks[4].flags != isConnected || g.activity[4] != (legActivity{}) || g.activity[1].recovery.expectedACK != g.acks[1].acked {
		t.Errorf("%d activities, acks %+v", len(g.activity), g.acks)
	}
	if free := s.pools.activity.free[2]; len(free) != 1 || &free[0][:1][0] != before {
		t.Errorf("%d slices were given back", len(free))
	}
	s.groups[1].deactivate()
	if s.groups[1].activity != nil || s.groups[1].agg.messages.ends != nil || s.groups[1].agg.messages.count != 0 {
		t.Errorf("%+v", s.groups[1].agg.messages)
	}
}

// TestR82_EndedGroupsGiveBack: a group that is put anew, or deleted, gives back the memory
// of its data at once, and is checked no more.
func TestR82_EndedGroupsGiveBack(t *testing.T) {
	s := manyGroups(t, 6, 3, 64<<10)
	var out Output
	for i := range 3 {
		serveOne(t, s, &out, 0, i, 0)
	}
	used := []*legActivity{&s.groups[0].activity[0], &s.groups[1].activity[0]}
	for i, op := range []Op{PutGroup{groupOf(0, 3, 64<<10)}, DeleteGroup{1}} {
		if err := s.Apply(0, op, &out); err != nil {
			t.Fatal(err)
		}
		if free := s.pools.activity.free[2]; len(free) != i+1 || &free[i][:1][0] != used[i] {
			t.Errorf("%T gives back %d slices", op, len(free))
		}
	}
	serveOne(t, s, &out, 0, 3, 0)
	serveOne(t, s, &out, 0, 4, 0)
	if err := s.Apply(0, RemoveMember{0, 1}, &out); err != nil {
		t.Fatal(err)
	}
	if s.groups[0].activity != nil || s.actives.n != 3 {
		t.Errorf("%d groups are checked", s.actives.n)
	}
	if checks := s.groups[0].numbering.checks; checks != nil {
		t.Errorf("a group that verifies nothing has %d verifications", len(checks))
	}
}

// TestR82_GroupsAfterARestart: a group that is put with positions gives back the memory of its probes when no more
// are due, whether its members have answered or not, and does not need any if nothing is on its way to it. Its next
// packet finds the same state.
func TestR82_GroupsAfterARestart(t *testing.T) {
	for name, c := range map[string]struct {
		silent           time.Duration
		source, answered bool
	}{"members answer": {0, false, true}, "nobody answers": {0, false, false}, "nothing is on its way": {quarantine, false, true}, "a turn goes on": {quarantine, true, true}} {
		spec := groupOf(0, 3, 64<<10)
		spec.PSNProbe, spec.Stored, spec.SilentFor = time.Millisecond, true, c.silent
		spec.Resume = &Positions{HasSource: c.source, Members: []Position{{Known: true, Send: 100, Receive: 5}, {Known: true, Receive: 1000}, {Known: true, Receive: 2000}}}
		s := New(Limits{Groups: 1})
		var out Output
		if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
			t.Fatal(err)
		}
		g, now := s.groups[0], time.Duration(0)
		if active := g.activity != nil; active != (c.silent == 0 || c.source) {
			t.Errorf("%s: the group is active from the beginning: %v", name, active)
		}
		for at, due := s.NextDeadline(); due; at, due = s.NextDeadline() {
			now = at
			s.Advance(now, &out)
			for _, p := range slices.Clone(out.Probes) {
				a := Packet{Group: groupAddr(0), Src: memberAddr(int(p.Leg)), DestQP: groupQPN, Op: rocev2.Acknowledge, PSN: g.members[p.Leg].ePSN.Prev(), MSN: 1, Verified: true}
				if c.answered {
					s.Input(now, &a, &out)
				}
			}
		}
		if g.activity != nil || g.is(learning) || (g.numbering.numPending == 0) != c.answered || g.is(resumes) != c.source {
			t.Fatalf("%s: active %v, learning %v, %d pending, resumes %v", name, g.activity != nil, g.is(learning), g.numbering.numPending, g.is(resumes))
		}
		before := s.AppendState(nil, now)
		if g.restUntilData(); g.activity != nil || !bytes.Equal(s.AppendState(nil, now), before) {
			t.Errorf("%s: the memory has a state", name)
		}
		g.restUntilData()
		p := Packet{Group: groupAddr(0), Src: memberAddr(0), DestQP: groupQPN, Op: rocev2.SendOnly, PSN: 100, Payload: 8, AckReq: true, Verified: true, RetainBytes: minFrameBytes}
		s.Input(now, &p, &out)
		s.PositionsStored(now, 0, g.storage.number, &Positions{HasSource: true, Members: spec.Resume.Members}, &out)
		if s.Input(now, &p, &out); (len(out.Copies) == 2) != c.answered {
			t.Errorf("%s: copies %+v, drop %v", name, out.Copies, out.Drop)
		}
	}
}

// TestR82_ATurnOfAnIdleGroup: a turn may begin without a packet of its source, as a neighbour asks for it.
func TestR82_ATurnOfAnIdleGroup(t *testing.T) {
	g := idleGroup(t)
	g.deactivate()
	var out Output
	if g.openTurn(2*idleAfter, 1, &out); g.src.member != 1 || g.activity == nil {
		t.Errorf("source %d, active %v", g.src.member, g.activity != nil)
	}
}

// TestR36_ManyJoinAQuorum: a group with a quorum may grow to any number of receivers while
// data flows.
func TestR36_ManyJoinAQuorum(t *testing.T) {
	s := New(Limits{})
	spec := GroupSpec{IP: groupAddr(0), GroupParams: GroupParams{QPN: groupQPN, PathMTU: 256, Policy: Quorum, Quorum: 2}}
	for i := range 3 {
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: memberAddr(i), QPN: 0x100}, Leg: LegID(i)})
	}
	var out Output
	apply := func(op Op) {
		t.Helper()
		if err := s.Apply(0, op, &out); err != nil {
			t.Fatal(err)
		}
	}
	send := func(psn rocev2.PSN, copies int) {
		t.Helper()
		s.Input(0, &Packet{Group: groupAddr(0), Src: memberAddr(0), DestQP: groupQPN, Op: rocev2.SendOnly, PSN: psn, Payload: 8, AckReq: true, Verified: true}, &out)
		if len(out.Copies) != copies {
			t.Fatalf("PSN %d: %d copies, want %d, drop %v", psn, len(out.Copies), copies, out.Drop)
		}
	}
	apply(PutGroup{spec})
	send(0, 2)
	const joiners = 40
	op := UpdateMembers{}
	for i := range joiners {
		op.Add = append(op.Add, AddMember{Member: MemberSpec{MemberRecord: MemberRecord{IP: memberAddr(3 + i), QPN: 0x100}, Leg: LegID(3 + i)}})
	}
	apply(op)
	send(1, 2+joiners)
	for i := 1; i < 3+joiners; i++ {
		psn := rocev2.PSN(1)
		if i >= 3 {
			psn = 0
		}
		s.Input(0, &Packet{Group: groupAddr(0), Src: memberAddr(i), DestQP: groupQPN, Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeACK, PSN: psn, Verified: true}, &out)
		if ack := len(out.Feedback) > 0; ack != (i == 2) {
			t.Errorf("the ACK of member %d: %+v", i, out.Feedback)
		}
	}
	checkInvariants(t, s.groups[0])
}
