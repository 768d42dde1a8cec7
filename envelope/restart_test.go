// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"testing"
	"time"
)

// An answer has the key of what it answers, and a Notify or Gone that of the
// registration: a master and members that hold one key only are served by a
// switch that holds several, whichever it names first.
func TestAnswersHaveTheAskersKey(t *testing.T) {
	only8 := Auth{Keys: Keys{8: testKeys[8]}, Send: 8}
	w := newWorld(t, RegistrarConfig{}) // it would send under 7 by itself
	reg := sample(1, 3)
	for i, rec := range reg.Members {
		w.addMember(t, rec, reg)
		w.members[rec.IP.String()].auth = only8
		if i == 2 { // holds both, and answers under the one that it is asked under
			w.members[rec.IP.String()].auth = testAuth()
		}
	}
	m := w.startMaster(t, "A", MasterConfig{Local: masterAddr, Auth: only8, Deadline: 2 * time.Second}, reg)
	var out Output
	w.run(time.Second)
	if e := w.last("A"); e.Kind != Registered {
		t.Fatalf("the master: %v", eventString(e))
	}
	w.sw.MemberEvicted(w.now, reg.Group, reg.Members[0].Key(), 0, 5, &out)
	w.do("switch", &out)
	w.run(time.Second)
	if err := m.Leave(w.now, reg.Members[2].Key(), &out); err != nil {
		t.Fatal(err)
	}
	w.do("A", &out)
	w.run(time.Second)
	m.Delete(w.now, &out)
	w.do("A", &out)
	w.run(time.Second)
	for name, want := range map[string]int{"A": 1, reg.Members[0].IP.String(): 1, reg.Members[1].IP.String(): 1, reg.Members[2].IP.String(): 1} {
		if n := w.count(name, GroupGone); n != want {
			t.Errorf("%s: %d times gone, want %d", name, n, want)
		}
	}
	for _, p := range w.captured {
		if msg, _ := Parse(p.Data); msg.KeyID != 8 {
			t.Errorf("%v is under key %d", msg, msg.KeyID)
		}
	}
	if len(w.sw.events.byID) > 0 {
		t.Errorf("%d Gone are not acknowledged", len(w.sw.events.byID))
	}
}

// A master that restarts with the epoch and contents of before, and with smaller
// transaction numbers, is told where to go on from, and keeps the group.
func TestRestartedMasterGoesOn(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := epoch(sample(1, 2), 5)
	reg.Lease = 2 * time.Second
	w.addMembers(t, reg, reg.Members)
	begin := func(lastTx uint32) *Master {
		m := w.addMaster(t, "A", MasterConfig{Local: masterAddr}, reg)
		m.lastTransaction = lastTx
		var out Output
		m.Start(w.now, &out)
		w.do("A", &out)
		return m
	}
	begin(1 << 20)
	w.run(3 * time.Second)
	again := begin(0xFFFF_FFFD) // in the circle before the other's, and about to wrap
	w.run(time.Second)
	if e := w.last("A"); e.Kind != Registered {
		t.Fatalf("the restarted master: %v", eventString(e))
	}
	w.run(10 * time.Second)
	if e := w.last("A"); e.Kind != Registered || again.Ended() {
		t.Errorf("the group was lost: %v", eventString(e))
	}
	if _, until, ok := w.sw.Group(reg.Group); !ok || until <= w.now {
		t.Errorf("the switch has the group: %v, until %v at %v", ok, until, w.now)
	}
}

// A renewal of before, played again, is answered to its master and nobody else,
// and changes nothing.
func TestOldRenewChangesNothing(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 2), 5)
	reg.Lease = 10 * time.Second
	a.register(reg)
	for i, c := range []struct {
		tx   uint32
		want Reason
		drop Drop
	}{
		{100, NoReason, NoDrop}, {100, NoReason, DuplicateMsg}, {99, StaleTransaction, Rejected}, {1, StaleTransaction, Rejected},
		{100 + 1<<31 - 1, NoReason, NoDrop}, {100, StaleTransaction, Rejected}, {1 << 31, StaleTransaction, Rejected},
	} {
		a.w.now += time.Second
		h := a.head(reg.Group, 5)
		h.Transaction = c.tx
		before := a.w.sw.groups[reg.Group].lease.at
		out := a.ask(h, &Renew{Lease: 10 * time.Second, ListUnconfirmed: reg.Members[:1]})
		if r := a.reason(out); r != c.want || out.Drop != c.drop {
			t.Errorf("renewal %d, transaction %d: %v, %v; want %v, %v", i, c.tx, r, out.Drop, c.want, c.drop)
		}
		taken := c.drop == NoDrop
		if moved := a.w.sw.groups[reg.Group].lease.at != before; moved != taken || (len(out.Packets) == 2) != taken {
			t.Errorf("renewal %d: lease moved %v, %d packets", i, moved, len(out.Packets))
		}
	}
}

// A limit on leases below the default one is the default one.
func TestShortLeaseLimit(t *testing.T) {
	a := newAsker(t, RegistrarConfig{MaxLease: 30 * time.Second})
	reg := epoch(sample(1, 2), 1)
	reg.Lease = 0
	bs := a.answers(a.register(reg))
	if acc, ok := bs[0].(*Accept); !ok || acc.Lease != 30*time.Second {
		t.Errorf("%v", bs)
	}
}
