// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"slices"
	"testing"
)

// TestAssembly: segments of a registration in all orders, and what does not
// belong together.
func TestAssembly(t *testing.T) {
	reg := epoch(sample(1, 6), 1)
	part := func(a *asker, tx uint32, seq, total int, change func(*Header, *GroupBody)) Output {
		h := a.head(reg.Group, 1)
		h.Transaction, h.Seq, h.Total = tx, uint16(seq), uint16(total)
		b := reg.groupBody(reg.Members[2*seq : 2*seq+2])
		if change != nil {
			change(&h, &b)
		}
		return a.ask(h, &Register{b})
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 1, 0, 0, 2}} {
		a := newAsker(t, RegistrarConfig{})
		for i, seq := range order {
			out := part(a, 100, seq, 3, nil)
			if last := i == len(order)-1; last != (len(out.Packets) > 0) {
				t.Errorf("order %v: packets %d after %d", order, len(out.Packets), seq)
			}
		}
		if got, _, _ := a.w.sw.Group(reg.Group); !slices.Equal(got.Members, reg.Members) {
			t.Errorf("order %v: members %v", order, got.Members)
		}
	}
	for name, change := range map[string]func(*Header, *GroupBody){
		"other total":        func(h *Header, _ *GroupBody) { h.Total = 4 },
		"other metadata":     func(_ *Header, b *GroupBody) { b.PathMTU = 512 },
		"other contents":     func(h *Header, b *GroupBody) { h.Seq = 0 },
		"too many members":   func(_ *Header, b *GroupBody) { b.Members = sample(2, 9).Members },
		"segment of nobody":  func(_ *Header, b *GroupBody) { b.Members = nil },
		"other master's":     func(h *Header, _ *GroupBody) { h.ReplyTo = netip.AddrPortFrom(masterAddr.Addr(), 1) },
		"more segments than": func(h *Header, _ *GroupBody) { h.Total = 7; h.Transaction = 101 },
	} {
		a := newAsker(t, RegistrarConfig{})
		part(a, 100, 0, 3, nil)
		out := part(a, 100, 1, 3, change)
		if len(out.Packets) != 1 {
			t.Errorf("%s: %d answers, drop %v", name, len(out.Packets), out.Drop)
			continue
		}
		if m, _ := Parse(out.Packets[0].Data); m.Body.(*Reject).Reason != Malformed {
			t.Errorf("%s: %v", name, m.Body)
		}
	}
	a := newAsker(t, RegistrarConfig{})
	part(a, 100, 0, 3, nil)
	if out := part(a, 99, 1, 3, nil); a.reason(out) != StaleTransaction {
		t.Errorf("older transaction: %v", out.Drop)
	}
	stranger := &asker{t: t, w: a.w, from: netip.MustParseAddrPort("10.0.0.9:9")}
	if out := part(stranger, 99, 1, 3, nil); out.Drop != StaleMessage || len(out.Packets) > 0 {
		t.Errorf("older transaction of another master: %v", out.Drop)
	}
	part(a, 101, 1, 3, nil) // a newer transaction begins anew
	if out := part(a, 101, 2, 3, nil); len(out.Packets) > 0 {
		t.Error("segments of two transactions were put together")
	}
	// What is not completed is forgotten.
	at, ok := a.w.sw.NextDeadline()
	var out Output
	a.w.sw.Advance(at, &out)
	if _, again := a.w.sw.NextDeadline(); !ok || again || len(a.w.sw.pending) > 0 {
		t.Errorf("deadline %v %v, %d pending", ok, again, len(a.w.sw.pending))
	}
}

// TestPendingIsBounded: more unfinished registrations than there is room for, and
// one key's take half of the room at most.
func TestPendingIsBounded(t *testing.T) {
	a := newAsker(t, RegistrarConfig{MaxPending: 4})
	for i, c := range []struct {
		key  KeyID
		want Drop
	}{
		{7, NoDrop}, {7, NoDrop}, {7, PendingFull}, {7, PendingFull}, {8, NoDrop}, {8, NoDrop}, {8, PendingFull},
	} {
		reg := sample(byte(i+1), 4)
		h := a.head(reg.Group, 1)
		h.Total, h.KeyID = 2, c.key
		if out := a.askUnder(h, &Register{reg.groupBody(reg.Members[:2])}); out.Drop != c.want {
			t.Errorf("registration %d: %v", i, out.Drop)
		}
	}
}

// TestEpochOverflow: when the table of epochs is full, all cookies become
// void, live groups stay and renew under new ones, and what was captured of
// forgotten groups is only challenged.
func TestEpochOverflow(t *testing.T) {
	a := newAsker(t, RegistrarConfig{MaxGroups: 1, MaxEpochs: 4})
	live := epoch(sample(1, 2), 5)
	a.register(live)
	first := a.w.sw.generation
	dead := epoch(sample(2, 2), 1)
	b, _ := Append(nil, &Message{a.head(dead.Group, 1), &Register{dead.groupBody(dead.Members)}}, testKeys, 7)
	for g := byte(2); g < 6; g++ { // rejected, table full: an epoch each
		a.register(epoch(sample(g, 2), 1))
	}
	if a.w.sw.generation == first || len(a.w.sw.epochs) > 4 {
		t.Fatalf("generation %d, was %d, %d epochs", a.w.sw.generation, first, len(a.w.sw.epochs))
	}
	if out := a.raw(b); out.Drop != WrongInstance || len(out.Events) > 0 {
		t.Errorf("capture of a forgotten group: %v", out.Drop)
	}
	if r := a.reason(a.register(live)); r != NoReason {
		t.Errorf("live group: %v", r)
	}
	if r := a.reason(a.register(epoch(sample(1, 3), 5))); r != EpochConflict {
		t.Errorf("live group's epoch is forgotten: %v", r)
	}
	if r := a.reason(a.register(epoch(sample(1, 3), 4))); r != StaleEpoch {
		t.Errorf("epochs before the live group's are forgotten: %v", r)
	}
}

// TestDeleteStopsLateSegments: a master that gives up deletes; what of its
// registration is still on the way must not install the group after all.
func TestDeleteStopsLateSegments(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 4), 3)
	if r := a.reason(a.ask(a.head(reg.Group, 3), &Delete{})); r != NoReason {
		t.Fatal(r)
	}
	if r := a.reason(a.register(reg)); r != StaleEpoch {
		t.Errorf("late registration: %v", r)
	}
	// The same while it is being located, or assembled.
	reg.Epoch = 4
	a.w.table.verdict[reg.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: reg.Members[0].Key()}}
	a.register(reg)
	a.ask(a.head(reg.Group, 4), &Delete{})
	h := a.head(reg.Group, 5)
	h.Total = 2
	a.ask(h, &Register{reg.groupBody(reg.Members[:2])})
	a.ask(a.head(reg.Group, 5), &Delete{})
	delete(a.w.table.verdict, reg.Group)
	h.Seq = 1
	if out := a.ask(h, &Register{reg.groupBody(reg.Members[2:])}); a.reason(out) != StaleEpoch {
		t.Error("late segment is taken")
	}
	var out Output
	a.w.sw.RetryGroup(0, reg.Group, &out)
	if len(a.w.sw.Groups()) > 0 {
		t.Error("installed after its delete")
	}
}
