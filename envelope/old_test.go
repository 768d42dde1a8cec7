// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"strings"
	"testing"
	"time"
)

// What is new prolongs the time in which a registration is put together.
func TestSegmentsMayComeSlowly(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 6), 1)
	for seq := range 3 {
		var out Output
		a.w.now = time.Duration(seq) * 4 * time.Second // of 5 s
		a.w.sw.Advance(a.w.now, &out)
		h := a.head(reg.Group, 1)
		h.Transaction, h.Seq, h.Total = 100, uint16(seq), 3
		out = a.ask(h, &Register{reg.groupBody(reg.Members[2*seq : 2*seq+2])})
		if seq == 2 && a.reason(out) != NoReason {
			t.Error("rejected")
		}
	}
}

// A queue pair that the newer epoch of its group does not name may be in another one.
func TestReplacedMembersAreFree(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg, other := epoch(sample(1, 3), 1), epoch(sample(2, 2), 1)
	other.Members = append(other.Members, reg.Members[2])
	a.register(reg)
	a.register(epoch(sample(1, 2), 2))
	if r := a.reason(a.register(other)); r != NoReason {
		t.Errorf("rejected: %v", r)
	}
}

// A master that counts on a member which has gone is told once more who has, though
// the Gone was acknowledged.
func TestGoneIsToldAgain(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 3), 1)
	a.register(reg)
	var out Output
	a.w.sw.MemberEvicted(0, reg.Group, reg.Members[2].Key(), 0, 5, &out)
	h := a.head(reg.Group, 1)
	h.Transaction = gones(a.w.sw)[0].id // the master's
	a.ask(h, &Ack{})
	reg.Epoch, reg.Base = 2, 1
	reg.Members = append(reg.Members, sample(1, 4).Members[3])
	out = a.register(reg)
	if r := a.reason(out); r != MembersChanged {
		t.Fatalf("update: %v", r)
	}
	told := 0
	for _, p := range out.Packets {
		m, _ := Parse(p.Data)
		if g, ok := m.Body.(*Gone); ok && p.Dst == a.from && g.Member == reg.Members[2].Key() && g.EndReason == Evicted {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the master is told %d times", told)
	}
}

// A member says what it knows of why it is not registered: a refusal, or messages
// that are not authentic, if they came since it has joined.
func TestTrouble(t *testing.T) {
	reg := sample(1, 2)
	mine := reg.Members[0]
	w := newWorld(t, RegistrarConfig{})
	m := w.addMember(t, mine, reg)
	m.Forget(reg.Group)
	var out Output
	foreign, _ := Append(nil, &Message{Header{Epoch: 1, Total: 1, Group: reg.Group, ReplyTo: masterAddr}, &Notify{}}, Keys{7: testKeys[8]}, 7)
	m.Input(0, switchAddr(reg), foreign, &out)
	if err := m.Join(membershipOf(mine, reg)); err != nil {
		t.Fatal(err)
	}
	expect := func(when, want string) {
		t.Helper()
		if err := m.Problem(reg.Group); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
	}
	expect("a foreign message of before", "")
	m.Input(0, switchAddr(reg), foreign, &out)
	expect("a foreign message", "1 messages were dropped because they are not authentic")
	wrong := mine
	wrong.RQPSN++
	m.Input(0, switchAddr(reg), note(t, 1, reg.Group, &Notify{reg.groupBody([]MemberRecord{wrong})}), &out)
	expect("a refusal", "has another rq_psn")
	m.Input(0, switchAddr(reg), note(t, 2, reg.Group, &Notify{reg.groupBody([]MemberRecord{mine})}), &out)
	expect("confirmed", "")
	m.Forget(reg.Group)
	expect("not joined", "")
}

// Answers and hints to a request that the master has repeated under a newer
// transaction are void.
func TestOldAnswersAreVoid(t *testing.T) {
	reg := epoch(sample(1, 2), 1)
	m, err := NewMaster(MasterConfig{Local: masterAddr, Auth: testAuth()}, reg)
	if err != nil {
		t.Fatal(err)
	}
	var out Output
	m.Start(0, &out)
	first := m.registerTx
	answer := func(key KeyID, tx uint32, body Body) Drop {
		t.Helper()
		b, err := Append(nil, &Message{Header{
			Epoch: 1, Instance: 0xC0FFEE, Transaction: tx, Total: 1, Group: reg.Group, ReplyTo: m.switchAddr,
		}, body}, testKeys, key)
		if err != nil {
			t.Fatal(err)
		}
		m.Input(0, m.switchAddr, b, &out)
		return out.Drop
	}
	if d := answer(7, first, &Challenge{Request: TypeRegister}); d != NoDrop || m.registerTx == first {
		t.Fatalf("challenged: %v, transaction %d", d, m.registerTx)
	}
	hint := &Reject{Request: TypeRegister, Problem: Problem{Reason: BadAuthentication}}
	if answer(0, first, hint); m.Unfinished(0).AuthHint {
		t.Error("a hint about the first request counts")
	}
	if d := answer(7, first, &Accept{Request: TypeRegister, Members: 2, Lease: time.Minute}); d != DuplicateMsg || m.phase != registering {
		t.Errorf("an Accept of the first request: %v", d)
	}
	if answer(0, m.registerTx, hint); !m.Unfinished(0).AuthHint {
		t.Error("a hint about the request does not count")
	}
	if d := answer(7, m.registerTx, &Accept{Request: TypeRegister, Members: 2, Lease: time.Minute}); d != NoDrop || m.phase != confirming {
		t.Errorf("an Accept: %v", d)
	}
}
