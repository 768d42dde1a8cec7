// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"testing"
	"time"
)

// askingWorld has a registered group whose master renews often and whose members ask. The last member is
// at the master's address, and the registrar has not started again yet.
func askingWorld(t *testing.T) (*world, Registration) {
	t.Helper()
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 3)
	w.addMembers(t, reg, reg.Members)
	for _, m := range w.members {
		m.cfg.AskEvery = 3 * time.Second
	}
	w.startMaster(t, "A", MasterConfig{Local: masterAddr, RenewWithin: 2 * time.Second}, reg)
	w.run(time.Second)
	if e := w.last("A"); e.Kind != Registered {
		t.Fatalf("the master: %v", eventString(e))
	}
	return w, reg
}

// restart has the switch forget all that it knew.
func (w *world) restart(t *testing.T) {
	t.Helper()
	w.table = newTableStub()
	sw, err := NewRegistrar(RegistrarConfig{Secret: [SecretLen]byte{1}, Prefixes: w.sw.cfg.Prefixes, Auth: testAuth()}, w.table)
	if err != nil {
		t.Fatal(err)
	}
	w.sw, w.books = sw, func() { checkBooks(t, sw) }
}

// TestRestartIsHeard: master and members of a group that a switch has forgotten hear of it within seconds, once.
func TestRestartIsHeard(t *testing.T) {
	w, reg := askingWorld(t)
	w.run(20 * time.Second)
	for name := range w.events {
		if w.count(name, GroupGone) > 0 {
			t.Fatalf("%s: %s while the switch runs", name, eventString(w.last(name)))
		}
	}
	w.restart(t)
	w.run(3 * time.Second)
	if e := w.last("A"); e.Kind != GroupGone || e.EndReason != Forgotten || e.Err == nil {
		t.Errorf("the master after 3 s: %s", eventString(e))
	}
	w.run(5 * time.Second)
	for _, m := range reg.Members {
		if e := w.last(m.IP.String()); e.Kind != GroupGone || e.EndReason != Forgotten || e.Member != m.Key() {
			t.Errorf("%s after 8 s: %s", m.IP, eventString(e))
		}
	}
	before := len(w.captured)
	w.run(time.Minute)
	if n := len(w.captured) - before; n > 0 {
		t.Errorf("%d messages after the end", n)
	}
}

// TestSilenceIsNoRestart: a switch that does not answer, or answers once that it does not know the group and
// then that it does, has not forgotten it.
func TestSilenceIsNoRestart(t *testing.T) {
	w, reg := askingWorld(t)
	lost := w.fault
	w.fault = func(m Message, p Packet) []time.Duration {
		if m.Type == TypeRenew && m.ReplyTo.Port() == DefaultPort {
			return nil
		}
		return lost(m, p)
	}
	w.run(20 * time.Second)
	restarted := false
	w.fault = func(m Message, p Packet) []time.Duration {
		if restarted && m.Type == TypeRenew && m.ReplyTo == masterAddr {
			return nil // the master would end the group
		}
		return lost(m, p)
	}
	known, table, books := w.sw, w.table, w.books
	for range 5 {
		w.restart(t)
		restarted = true
		for answered := 0; answered == 0; { // of a member
			n := len(w.captured)
			w.step(w.now + time.Second)
			for _, p := range w.captured[n:] {
				if m, _ := Parse(p.Data); m.Type == TypeReject && m.ReplyTo.Port() == DefaultPort && p.Dst.Port() == DefaultPort {
					answered++
				}
			}
		}
		w.run(2 * hop)
		restarted = false
		w.sw, w.table, w.books = known, table, books
		w.run(8 * time.Second)
	}
	for _, m := range reg.Members {
		if w.count(m.IP.String(), GroupGone) > 0 {
			t.Errorf("%s: %s", m.IP, eventString(w.last(m.IP.String())))
		}
	}
}

// TestForgedRestart: nobody but the switch makes a member believe that the switch has started again.
func TestForgedRestart(t *testing.T) {
	w, reg := askingWorld(t)
	rec := reg.Members[0]
	mem, at := w.members[rec.IP.String()], switchAddr(reg)
	var asked Message
	old := w.fault
	w.fault = func(m Message, p Packet) []time.Duration {
		if m.Type == TypeRenew && m.ReplyTo.Addr() == rec.IP && m.ReplyTo.Port() == DefaultPort {
			asked = m
			return nil // has no answer but the attacker's
		}
		return old(m, p)
	}
	w.run(4 * time.Second)
	if asked.Transaction == 0 {
		t.Fatal("the member has not asked")
	}
	reject := Message{Header: Header{Epoch: asked.Epoch, Instance: 5, Transaction: asked.Transaction, Total: 1, Group: reg.Group, ReplyTo: at},
		Body: &Reject{Request: TypeRenew, Problem: Problem{Reason: UnknownGroup}}}
	seal := func(key KeyID, keys Keys, change func(*Message)) []byte {
		m := reject
		change(&m)
		b, err := Append(nil, &m, keys, key)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	same := func(*Message) {}
	strange := Keys{7: make([]byte, 32), 8: make([]byte, 32)}
	for name, b := range map[string][]byte{
		"another key":         seal(mem.groups[reg.Group].key, strange, same),
		"no key":              seal(0, Keys{}, same),
		"another transaction": seal(mem.groups[reg.Group].key, testAuth().Keys, func(m *Message) { m.Transaction-- }),
		"another epoch":       seal(mem.groups[reg.Group].key, testAuth().Keys, func(m *Message) { m.Epoch++ }),
		"another request":     seal(mem.groups[reg.Group].key, testAuth().Keys, func(m *Message) { m.Body = &Reject{Request: TypeLeave, Problem: Problem{Reason: UnknownGroup}} }),
		"another reason":      seal(mem.groups[reg.Group].key, testAuth().Keys, func(m *Message) { m.Body = &Reject{Request: TypeRenew, Problem: Problem{Reason: KeyRole}} }),
	} {
		before := mem.groups[reg.Group].question
		for range 4 {
			var out Output
			mem.Input(w.now, at, b, &out)
			if len(out.Events) > 0 || mem.groups[reg.Group].question.unknown > 0 {
				t.Errorf("%s: %v, %d answers", name, out.Events, mem.groups[reg.Group].question.unknown)
			}
		}
		mem.groups[reg.Group].question = before
	}
	right := seal(mem.groups[reg.Group].key, testAuth().Keys, same)
	for i := range 4 { // the same answer counts once
		var out Output
		mem.Input(w.now, at, right, &out)
		if len(out.Events) > 0 || mem.groups[reg.Group].question.unknown != 1 {
			t.Errorf("answer %d: %v, %d answers", i, out.Events, mem.groups[reg.Group].question.unknown)
		}
	}
	var out Output
	mem.Input(w.now, masterAddr, right, &out)
	if out.Drop != WrongSource {
		t.Errorf("from another address: %v", out.Drop)
	}
}

// TestQuestionExtendsNothing: a member's question moves no lease and no transaction, under whatever role.
func TestQuestionExtendsNothing(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 2), 5)
	a.register(reg)
	g := a.w.sw.groups[reg.Group]
	lease, tx := g.lease.at, g.tx
	a.w.now += time.Second
	h := a.head(reg.Group, 5)
	h.Transaction, h.ReplyTo = g.tx+5, a.w.sw.addrOf(reg.Members[0].Key())
	a.from = h.ReplyTo
	h.Instance = a.cookie()
	out := a.ask(h, &Renew{Lease: 10 * time.Minute, ListUnconfirmed: reg.Members})
	if len(out.Packets) != 1 || g.lease.at != lease || g.tx != tx {
		t.Errorf("%d packets, the lease ends at %v (%v), transaction %d (%d)", len(out.Packets), g.lease.at, lease, g.tx, tx)
	}
}
