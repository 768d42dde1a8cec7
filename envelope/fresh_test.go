// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"math"
	"net/netip"
	"testing"
	"time"
)

// TestHighestEpoch: a key holder names epochs that nothing could follow, in
// registrations and deletions, installed or not. None is used up, and the master
// that takes what the switch offers is served.
func TestHighestEpoch(t *testing.T) {
	a := newAsker(t, RegistrarConfig{EpochBase: 1000})
	reg := sample(1, 2)
	far := func(want Reason, value uint64, e uint64) {
		t.Helper()
		for _, b := range []Body{&Register{reg.groupBody(reg.Members)}, &Delete{}} {
			bs := a.answers(a.ask(a.head(reg.Group, e), b))
			if j, ok := bs[0].(*Reject); len(bs) != 1 || !ok || j.Reason != want || j.Value != value {
				t.Errorf("epoch %d: %+v", e, bs[0])
			}
		}
	}
	const most = 1000 + 1<<20
	for _, e := range []uint64{math.MaxUint64, 1 << 60, most + 1} {
		far(EpochTooFar, most, e)
	}
	if len(a.w.sw.epochs) > 0 || len(a.w.table.calls) > 0 {
		t.Errorf("%d epochs are remembered; %v", len(a.w.sw.epochs), a.w.table.calls)
	}
	if r := a.reason(a.register(epoch(reg, most))); r != NoReason {
		t.Errorf("the highest allowed: %v", r)
	}
	far(EpochTooFar, most+1<<20, math.MaxUint64)
	for _, rec := range reg.Members {
		a.w.addMember(t, rec, reg)
	}
	var out Output
	m := a.w.addMaster(t, "A", MasterConfig{Local: masterAddr}, reg)
	m.Start(a.w.now, &out)
	a.w.do("A", &out)
	a.w.run(time.Second)
	if e := a.w.last("A"); e.Kind != Registered || e.Epoch != most+1 {
		t.Errorf("the master: %v", eventString(e))
	}
}

// TestForgottenEpochs: a master that insists on a low number is stale; when the
// operator has the group's epochs forgotten, it is served, and what was recorded
// before is void.
func TestForgottenEpochs(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 2), 5)
	a.register(epoch(sample(1, 3), 1000))
	old, err := Append(nil, &Message{a.head(reg.Group, 1001), &Register{reg.groupBody(reg.Members)}}, testKeys, 7)
	if err != nil {
		t.Fatal(err)
	}
	if r := a.reason(a.register(reg)); r != StaleEpoch {
		t.Fatalf("%v", r)
	}
	var out Output
	if err := a.w.sw.DeleteLocal(0, reg.Group, &out); err != nil {
		t.Fatal(err)
	}
	if r := a.reason(a.register(reg)); r != StaleEpoch {
		t.Errorf("the end of a group is not the end of its epochs: %v", r)
	}
	if err := a.w.sw.DeleteLocal(0, reg.Group, &out); err != nil {
		t.Errorf("forget: %v", err)
	}
	if out := a.raw(old); out.Drop != WrongInstance {
		t.Errorf("what was recorded: %v", out.Drop)
	}
	if r := a.reason(a.register(reg)); r != NoReason {
		t.Errorf("after that: %v", r)
	}
	var p *Problem
	if err := a.w.sw.DeleteLocal(0, sample(9, 2).Group, &out); !errors.As(err, &p) || p.Reason != UnknownGroup {
		t.Errorf("a group that never was: %v", err)
	}
}

// TestProofOfAddress: a request without the cookie of its own address and key, or
// with one that is too old, is challenged and costs nothing: no location, no state.
func TestProofOfAddress(t *testing.T) {
	a := newAsker(t, RegistrarConfig{CookiePeriod: time.Minute})
	reg := epoch(sample(1, 2), 5)
	victim := netip.MustParseAddrPort("10.0.0.66:4711")
	try := func(name string, cookie uint64, taken bool) {
		t.Helper()
		h := a.head(reg.Group, reg.Epoch)
		h.Instance, h.Total = cookie, 2 // a segment, whose state would stay
		out := a.ask(h, &Register{reg.groupBody(reg.Members[:1])})
		if got := out.Drop == NoDrop; got != taken || out.Proved != taken || (len(a.w.sw.pending) > 0) != taken {
			t.Errorf("%s: %v, %d pending", name, out.Drop, len(a.w.sw.pending))
		}
		for _, p := range out.Packets {
			if m, _ := Parse(p.Data); m.Type != TypeChallenge || p.Dst != a.from || m.Instance != a.cookie() {
				t.Errorf("%s: %v to %v, instance %x", name, m, p.Dst, m.Instance)
			}
		}
		clear(a.w.sw.pending)
	}
	mine := a.cookie()
	try("none", 0, false)
	try("of another address", a.w.sw.cookie(victim, 7), false)
	try("of another port", a.w.sw.cookie(netip.AddrPortFrom(a.from.Addr(), 9), 7), false)
	try("of another key", a.w.sw.cookie(a.from, 8), false)
	try("mine", mine, true)
	a.w.now = 119 * time.Second
	try("mine, of the last period", mine, true)
	a.w.now = 120 * time.Second
	try("mine, too old", mine, false)
	if len(a.w.table.calls)+len(a.w.sw.epochs) > 0 {
		t.Errorf("%v, %d epochs", a.w.table.calls, len(a.w.sw.epochs))
	}
	// Who asks for another's address gets no answer to work with.
	h := a.head(reg.Group, 5)
	h.ReplyTo = victim
	if out := a.ask(h, &Delete{}); out.Drop != WrongSource || len(out.Packets) > 0 {
		t.Errorf("in another's name: %v", out.Drop)
	}
	// A Challenge is no longer than the shortest request but for its 9 bytes of body.
	b, _ := Append(nil, &Message{a.head(reg.Group, 5), &Delete{}}, testKeys, 7)
	c, _ := Append(nil, &Message{a.head(reg.Group, 5), &Challenge{}}, testKeys, 7)
	if len(c) > len(b)+9 {
		t.Errorf("a Delete has %d bytes, a Challenge %d", len(b), len(c))
	}
}

// TestLongLeaseIsNotChallenged: a master learns the newest cookie by each Accept, so
// renewals do not cost a second round trip.
func TestLongLeaseIsNotChallenged(t *testing.T) {
	w := newWorld(t, RegistrarConfig{CookiePeriod: 15 * time.Second})
	reg := sample(1, 2)
	w.addMembers(t, reg, reg.Members)
	m := w.startMaster(t, "A", MasterConfig{Local: masterAddr}, reg)
	w.run(5 * time.Minute)
	if n := w.sw.Drops()[WrongInstance]; n != 1 || m.phase != registered {
		t.Errorf("%d challenges, phase %d", n, m.phase)
	}
}

// TestRestartedSwitch: the switch restarts. Members and masters that live on take the
// new registration, whose epoch is above those of before; what was recorded of the
// earlier life changes nothing, at the switch, at old members and at new ones.
func TestRestartedSwitch(t *testing.T) {
	boot := func(w *world, secret byte, base uint64) {
		sw, err := NewRegistrar(RegistrarConfig{
			Secret: [SecretLen]byte{secret}, EpochBase: base, Auth: testAuth(), Prefixes: []netip.Prefix{w.prefix},
		}, newTableStub())
		if err != nil {
			t.Fatal(err)
		}
		w.sw, w.table = sw, sw.table.(*tableStub)
	}
	w := newWorld(t, RegistrarConfig{})
	boot(w, 1, 1_000_000)
	reg := sample(1, 3)
	w.addMembers(t, reg, reg.Members)
	register := func() *Master {
		m := w.addMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 7}, reg) // with the transactions of before
		var out Output
		m.Start(w.now, &out)
		w.do("A", &out)
		w.run(time.Second)
		if e := w.last("A"); e.Kind != Registered {
			t.Fatalf("%v", eventString(e))
		}
		return m
	}
	var out Output
	m := register()
	w.sw.MemberEvicted(w.now, reg.Group, reg.Members[2].Key(), 0, 5, &out)
	w.do("switch", &out)
	w.run(time.Second)
	m.Delete(w.now, &out)
	w.do("A", &out)
	w.run(time.Second)
	register()
	recorded := append([]Packet(nil), w.captured...)

	boot(w, 2, 1_060_000) // a minute later
	m = register()
	if m.reg.Epoch != 1_060_001 {
		t.Errorf("epoch %d", m.reg.Epoch)
	}
	// One member has restarted its queue pair, and knows nothing of before; another one
	// is evicted, and a recorded Ack must not stand for its own.
	fresh := w.members[reg.Members[1].IP.String()]
	fresh.Forget(reg.Group)
	restarted := sample(1, 3)
	restarted.Members[1].SQPSN, restarted.Members[1].RQPSN = 0x777, 0x888
	if err := fresh.Join(membershipOf(restarted.Members[1], reg)); err != nil {
		t.Fatal(err)
	}
	w.sw.MemberEvicted(w.now, reg.Group, reg.Members[0].Key(), 0, 5, &out)
	waiting := len(w.sw.events.byID)
	calls, events := len(w.table.calls), len(w.events["A"])
	lease := w.sw.groups[reg.Group].lease.at
	for _, p := range recorded {
		msg, _ := Parse(p.Data)
		var to []machine
		switch msg.Type.direction() {
		case toSwitch:
			to = []machine{w.sw}
		case toMaster:
			to = []machine{m}
		default:
			to = []machine{m}
			for _, x := range w.members {
				to = append(to, x)
			}
		}
		for _, x := range to {
			x.Input(w.now, p.Src, p.Data, &out)
			for _, e := range out.Events {
				if x != machine(fresh) || e.Kind != RegistrationFailed { // it refuses, and waits
					t.Errorf("%v from before: %v", msg, eventString(e))
				}
			}
		}
	}
	if len(w.table.calls) != calls || len(w.events["A"]) != events || w.sw.groups[reg.Group].lease.at != lease || m.phase != registered {
		t.Errorf("%v; phase %d", w.table.calls[calls:], m.phase)
	}
	if len(w.sw.events.byID) != waiting || waiting != 2 {
		t.Errorf("%d Gone wait for their Acks, %d before", len(w.sw.events.byID), waiting)
	}
	// The restarted member is served by the next registration.
	m.Delete(w.now, &out)
	w.do("A", &out)
	w.run(time.Second)
	for _, rec := range []MemberRecord{reg.Members[0], reg.Members[2]} {
		w.members[rec.IP.String()].Forget(reg.Group)
		w.addMember(t, rec, reg)
	}
	reg = restarted
	register()
}

// TestRecordedLeave: a member left by a Leave that was recorded, and came back with a
// restarted queue pair; played again, the Leave takes nobody out.
func TestRecordedLeave(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 3), 5)
	a.register(reg)
	back := reg.Members[2]
	leave, err := Append(nil, &Message{a.head(reg.Group, 5), &Leave{Member: back.Key()}}, testKeys, 7)
	if err != nil {
		t.Fatal(err)
	}
	if r := a.reason(a.raw(leave)); r != NoReason {
		t.Fatalf("%v", r)
	}
	update := epoch(sample(1, 3), 6)
	update.Base = 5
	update.Members[2].SQPSN, update.Members[2].RQPSN = 0x777, 0x888
	if r := a.reason(a.register(update)); r != NoReason {
		t.Fatalf("%v", r)
	}
	if r := a.reason(a.raw(leave)); r != StaleEpoch || len(a.w.sw.groups[reg.Group].reg.Members) != 3 {
		t.Errorf("%v, %d members", r, len(a.w.sw.groups[reg.Group].reg.Members))
	}
}
