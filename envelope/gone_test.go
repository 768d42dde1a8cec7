// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"testing"
)

// A queue pair that has been taken out of a group may be in another one.
func TestWhoWasTakenOutIsFree(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg, other := epoch(sample(1, 3), 1), epoch(sample(2, 2), 1)
	moved := reg.Members[2]
	other.Members = append(other.Members, moved)
	a.register(reg)
	if r := a.reason(a.register(other)); r != OverlappingMembers {
		t.Errorf("while it is in the first group: %v", r)
	}
	a.ask(a.head(reg.Group, 1), &Leave{Member: moved.Key()})
	if r := a.reason(a.register(epoch(other, 2))); r != NoReason {
		t.Errorf("when it has left: %v", r)
	}
}

// Only the host that a Gone is for acknowledges it, whoever holds the key.
func TestAckIsTheAddressees(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 2), 1)
	a.register(reg)
	var out Output
	a.w.sw.MemberEvicted(0, reg.Group, reg.Members[1].Key(), 0, 5, &out)
	if len(a.w.sw.events.byID) != 2 {
		t.Fatalf("%d Gone wait", len(a.w.sw.events.byID))
	}
	gone := gones(a.w.sw)[0]
	for _, c := range []struct {
		from         netip.AddrPort
		group, epoch uint64
		drop         Drop
		wait         int
	}{
		{netip.MustParseAddrPort("10.0.0.9:9"), 1, 1, Unsolicited, 2},
		{gone.to, 2, 1, Unsolicited, 2},
		{gone.to, 1, 2, Unsolicited, 2},
		{netip.AddrPortFrom(gone.to.Addr(), 9), 1, 1, NoDrop, 1}, // another port is no matter
		{gone.to, 1, 1, Unsolicited, 1},
	} {
		by := &asker{t: t, w: a.w, from: c.from}
		h := by.head(sample(byte(c.group), 2).Group, c.epoch)
		if h.Transaction, h.KeyID = gone.id, 8; len(a.w.sw.events.byID) == 2 {
			if out := by.askUnder(h, &Ack{}); out.Drop != Unsolicited || len(a.w.sw.events.byID) != 2 {
				t.Errorf("Ack from %s under another key: %v, %d wait", c.from, out.Drop, len(a.w.sw.events.byID))
			}
		}
		h.Transaction = gone.id
		if out := by.ask(h, &Ack{}); out.Drop != c.drop || len(a.w.sw.events.byID) != c.wait {
			t.Errorf("Ack from %s of group %d, epoch %d: %v, %d wait; want %v, %d", c.from, c.group, c.epoch, out.Drop, len(a.w.sw.events.byID), c.drop, c.wait)
		}
	}
}
