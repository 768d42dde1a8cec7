// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLossyNetwork registers groups over a network that loses, copies, delays
// and so reorders, and deletes them again. It always ends: with the group
// registered at the switch, the master and all members alike, or with a failure
// that says whose.
func TestLossyNetwork(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		loss := rapid.SampledFrom([]int{0, 5, 20, 40, 100}).Draw(rt, "loss")
		dup := rapid.SampledFrom([]int{0, 10, 50}).Draw(rt, "dup")
		late := rapid.SampledFrom([]int{1, 50, 700}).Draw(rt, "late")
		n := rapid.IntRange(2, 12).Draw(rt, "members")
		mtu := rapid.SampledFrom([]int{1500, 170}).Draw(rt, "mtu")
		rnd := random(rapid.Uint64().Draw(rt, "seed"))
		w := newWorld(t, RegistrarConfig{Seed: uint64(rnd)})
		dice := func(sides int) int { return int(rnd.next() % uint64(sides)) }
		w.fault = func(Message, Packet) (at []time.Duration) {
			for {
				if dice(100) >= loss {
					at = append(at, hop+time.Duration(dice(late))*time.Millisecond)
				}
				if dice(100) >= dup {
					return at
				}
			}
		}
		reg := sample(1, n)
		w.addMembers(t, reg, reg.Members)
		m := w.startMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 3, MTU: mtu}, reg)
		var out Output
		w.run(9990 * time.Millisecond) // lease of 30 s: all that can happen has
		for i := 0; i < 100 && m.phase != registered && m.phase != ended; i++ {
			w.run(100 * time.Millisecond)
		}
		switch {
		case loss == 100 && m.phase != ended, m.phase != registered && m.phase != ended:
			rt.Fatalf("phase %d after %v", m.phase, w.now)
		case m.phase == registered:
			checkRegistered(rt, w, m, n)
		default:
			checkFailed(rt, w)
		}
		w.fault = func(Message, Packet) []time.Duration { return []time.Duration{hop} }
		m.Delete(w.now, &out)
		w.do("A", &out)
		w.run(40 * time.Second) // the lease as well
		if got := w.sw.Groups(); len(got) > 0 || !m.Ended() || len(w.sw.pending)+len(w.sw.events.byID)+len(w.sw.members) > 0 {
			rt.Fatalf("left over: %v, master ended %v, %d pending, %d events, %d members", got, m.Ended(), len(w.sw.pending), len(w.sw.events.byID), len(w.sw.members))
		}
		if _, ok := w.sw.NextDeadline(); ok {
			rt.Fatal("an empty registrar has a deadline")
		}
	})
}

func checkRegistered(t *rapid.T, w *world, m *Master, n int) {
	reg, _, ok := w.sw.Group(m.reg.Group)
	if !ok || reg.Epoch != m.reg.Epoch || len(reg.Members) != n {
		t.Fatalf("master says registered in epoch %d, switch has %v", m.reg.Epoch, reg)
	}
	if c := w.count("A", MemberConfirmed); c != n {
		t.Fatalf("%d of %d confirmed", c, n)
	}
	for _, rec := range reg.Members {
		name := rec.IP.String()
		if e := w.last(name); e.Kind != Registered || e.Epoch != reg.Epoch || w.count(name, Registered) != 1 {
			t.Fatalf("member %s: %v", name, w.events[name])
		}
	}
	if w.count("A", Registered) != 1 || w.count("switch", Registered) != 1 {
		t.Fatalf("registered more than once: %v, %v", w.events["A"], w.events["switch"])
	}
}

func checkFailed(t *rapid.T, w *world) {
	var f *Failure
	e := w.last("A")
	if e.Kind != RegistrationFailed || !errors.As(e.Err, &f) || !f.SwitchSilent && len(f.Waiting) == 0 {
		t.Fatalf("ended with %v", w.events["A"])
	}
}

// TestReplay captures a whole life of a group and plays every packet again,
// from its true source and from a stranger, while the group lives, after it is
// gone, when a newer epoch is there, and after the switch has restarted.
func TestReplay(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 3)
	w.addMembers(t, reg, reg.Members)
	m := w.startMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 3}, reg)
	var out Output
	w.run(25 * time.Second) // two renewals
	before := append([]Packet(nil), w.captured...)
	_, until, _ := w.sw.Group(reg.Group)
	calls := len(w.table.calls)
	replay := func(when string, ps []Packet) {
		for _, p := range ps {
			for _, src := range []netip.AddrPort{p.Src, netip.MustParseAddrPort("10.0.0.66:999")} {
				var out Output
				if w.sw.Serves(p.Dst.Addr()) {
					w.sw.Input(w.now, src, p.Data, &out)
				} else if h := w.hosts[p.Dst]; h != nil {
					h.Input(w.now, src, p.Data, &out)
				}
				msg, _ := Parse(p.Data)
				if len(out.Events) > 0 {
					t.Errorf("%s: replayed %v has effects: %v", when, describe(msg), out.Events)
				}
				if len(out.Packets) > 1 {
					t.Errorf("%s: replayed %v is answered with %d packets", when, describe(msg), len(out.Packets))
				}
				for _, a := range out.Packets {
					if a.Dst.Addr() == netip.MustParseAddr("10.0.0.66") {
						t.Errorf("%s: replayed %v is answered to the stranger", when, describe(msg))
					}
				}
			}
		}
		if n := len(w.table.calls); n != calls {
			t.Errorf("%s: table got %v", when, w.table.calls[calls:])
		}
	}
	replay("alive", before)
	if _, u, _ := w.sw.Group(reg.Group); u != until {
		t.Errorf("a replay extends the lease from %v to %v", until, u)
	}
	m.Delete(w.now, &out)
	w.do("A", &out)
	w.run(time.Second)
	calls = len(w.table.calls)
	all := append([]Packet(nil), w.captured...)
	replay("deleted", all)

	// A newer epoch: the old messages name the same group and members.
	w.addMembers(t, reg, reg.Members)
	m2 := w.addMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 4}, reg)
	m2.Start(w.now, &out)
	w.do("A", &out)
	w.run(time.Second)
	if m2.phase != registered || m2.reg.Epoch != 2 {
		t.Fatalf("phase %d epoch %d", m2.phase, m2.reg.Epoch)
	}
	calls = len(w.table.calls)
	replay("newer epoch", all)

	// Another life of the switch knows no epochs.
	sw, err := NewRegistrar(RegistrarConfig{Secret: [SecretLen]byte{0xDE, 0xAD}, Auth: testAuth(), Prefixes: w.sw.cfg.Prefixes}, w.table)
	if err != nil {
		t.Fatal(err)
	}
	w.sw = sw
	replay("restarted", w.captured)
	// The master finds out at its next renewal, and says why.
	w.run(30 * time.Second)
	e := w.last("A")
	var p *Problem
	if e.Kind != GroupGone || !errors.As(e.Err, &p) || p.Reason != UnknownGroup {
		t.Errorf("after the restart: %v", eventString(e))
	}
}

// TestInstanceChangesUnderLiveGroup: renew and leave go on under the new one.
func TestInstanceChangesUnderLiveGroup(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 3)
	w.addMembers(t, reg, reg.Members)
	m := w.startMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 3}, reg)
	var out Output
	w.run(time.Second)
	w.sw.generation++
	w.run(15 * time.Second)
	if _, until, ok := w.sw.Group(reg.Group); !ok || until < 40*time.Second || m.phase != registered {
		t.Errorf("lease until %v, phase %d", until, m.phase)
	}
	w.sw.generation++
	leaver := reg.Members[2].IP.String()
	if err := w.members[leaver].Leave(w.now, reg.Group, &out); err != nil {
		t.Fatal(err)
	}
	w.do(leaver, &out)
	w.run(time.Second)
	if e := w.last(leaver); e.Kind != GroupGone || e.EndReason != Left {
		t.Errorf("leave: %v", eventString(e))
	}
	w.sw.generation++
	if err := m.Leave(w.now, reg.Members[1].Key(), &out); err != nil {
		t.Fatal(err)
	}
	w.do("A", &out)
	w.run(time.Second)
	if e := w.last("A"); e.Kind != MemberGone || e.EndReason != Removed {
		t.Errorf("remove: %v", eventString(e))
	}
	if got, _, _ := w.sw.Group(reg.Group); len(got.Members) != 1 {
		t.Errorf("%d members", len(got.Members))
	}
}

// TestInstanceChangesWhileAcceptsAreLost: the switch has installed a registration, or an update, and its Accept is lost until
// the instance has changed. The master repeats what it asked for: the group is not made a second time, and no update is taken for
// refused that members are in.
func TestInstanceChangesWhileAcceptsAreLost(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 3)
	w.addMembers(t, reg, reg.Members)
	lost := false
	w.fault = func(m Message, _ Packet) []time.Duration {
		if a, is := m.Body.(*Accept); lost && is && a.Request == TypeRegister {
			return nil
		}
		return []time.Duration{hop}
	}
	// changes has the instance change while Accepts are lost, and returns the epoch that is installed then.
	changes := func(begin func()) uint64 {
		lost = true
		begin()
		w.run(250 * time.Millisecond)
		w.sw.generation++
		lost = false
		w.run(2 * time.Second)
		got, _, _ := w.sw.Group(reg.Group)
		return got.Epoch
	}
	first := reg
	first.Members = reg.Members[:2]
	var m *Master
	registered := changes(func() { m = w.startMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 3}, first) })
	if e := w.last("A"); registered != 1 || e.Kind != Registered || e.Epoch != 1 {
		t.Errorf("registration: epoch %d is installed, the master says %v", registered, eventString(e))
	}
	updated := changes(func() {
		var out Output
		if err := m.Update(w.now, reg.Members, &out); err != nil {
			t.Fatal(err)
		}
		w.do("A", &out)
	})
	if e := w.last("A"); updated != 2 || e.Kind != Updated || e.Epoch != 2 {
		t.Errorf("update: epoch %d is installed, the master says %v", updated, eventString(e))
	}
}

// TestRaceForGroup: two masters that take the next epoch want the same group at
// once. The later one has it, the other is told, and nobody waits for ever.
func TestRaceForGroup(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 2)
	w.addMembers(t, reg, reg.Members)
	var out Output
	for i, name := range []string{"A", "B"} {
		m := w.addMaster(t, name, MasterConfig{Local: netip.AddrPortFrom(masterAddr.Addr(), uint16(5000+i)), Seed: uint64(i)}, reg)
		m.Start(0, &out)
		w.do(name, &out)
	}
	w.run(5 * time.Second)
	a, b := w.masters["A"], w.masters["B"]
	if a.phase != ended || w.last("A").EndReason != Replaced || b.phase != registered || b.reg.Epoch != 2 {
		t.Errorf("A: %v, B: phase %d epoch %d", eventString(w.last("A")), b.phase, b.reg.Epoch)
	}
}

// TestManyMembers registers more members than one Renew can name, none of which
// hears the first Notify.
func TestManyMembers(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 600)
	w.addMembers(t, reg, reg.Members)
	w.fault = func(m Message, _ Packet) []time.Duration {
		if m.Type == TypeNotify && w.now < 50*time.Millisecond {
			return nil
		}
		return []time.Duration{hop}
	}
	m := w.startMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 3}, reg)
	w.run(8 * time.Second)
	if m.phase != registered || w.count("A", MemberConfirmed) != 600 {
		t.Errorf("phase %d, %d confirmed", m.phase, w.count("A", MemberConfirmed))
	}
	for _, p := range w.captured {
		if len(p.Data) > 1472 {
			t.Fatalf("a payload of %d bytes", len(p.Data))
		}
	}
}

// TestSameInputSameOutput: two runs send the same bytes.
func TestSameInputSameOutput(t *testing.T) {
	run := func() string {
		w := newWorld(t, RegistrarConfig{Seed: 1})
		var s string
		w.log = func(f string, args ...any) { s += fmt.Sprintf(f, args...) + "\n" }
		for g := range byte(8) {
			reg := sample(g+1, 3)
			reg.Lease = 2 * time.Second
			w.addMembers(t, reg, reg.Members)
			name := string('A' + rune(g))
			m := w.addMaster(t, name, MasterConfig{Local: netip.AddrPortFrom(masterAddr.Addr(), uint16(5000+int(g))), Seed: uint64(g)}, reg)
			var out Output
			m.Start(0, &out)
			w.do(name, &out)
		}
		w.run(time.Second)
		w.fault = func(Message, Packet) []time.Duration { return nil }
		w.run(10 * time.Second) // all leases run out at once
		for _, p := range w.captured {
			s += fmt.Sprintf("%x\n", p.Data)
		}
		return s
	}
	if a, b := run(), run(); a != b {
		t.Error("two runs differ")
	}
}

// TestRemindersReachAll: more members than one Renew can name never answer; the
// others, behind them, are reminded all the same.
func TestRemindersReachAll(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 500)
	w.addMembers(t, reg, reg.Members[400:])
	w.fault = func(m Message, _ Packet) []time.Duration {
		if m.Type == TypeNotify && w.now < 50*time.Millisecond {
			return nil
		}
		return []time.Duration{hop}
	}
	m := w.startMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 3}, reg)
	w.run(9 * time.Second)
	if n := w.count("A", MemberConfirmed); n != 100 || len(m.Waiting()) != 400 {
		t.Errorf("%d confirmed, %d waited for", n, len(m.Waiting()))
	}
	w.run(2 * time.Second)
	if s := w.events["A"][len(w.events["A"])-1].Err.Error(); len(s) > 600 {
		t.Errorf("the failure names everybody: %d bytes", len(s))
	}
}

// TestInstanceChangesWhileRegistering: the registration itself overflows the
// table of epochs, so its Accept comes from another instance than it named.
func TestInstanceChangesWhileRegistering(t *testing.T) {
	w := newWorld(t, RegistrarConfig{MaxGroups: 1, MaxEpochs: 4})
	a := &asker{t: t, w: w, from: netip.AddrPortFrom(masterAddr.Addr(), 1)}
	for g := byte(2); g < 6; g++ {
		if r := a.reason(a.register(epoch(sample(g, 1), 1))); r != TooFewMembers {
			t.Fatal(r)
		}
	}
	first := w.sw.generation
	reg := sample(1, 2)
	reg.Lease = 3 * time.Second
	w.addMembers(t, reg, reg.Members)
	m := w.startMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 3}, reg)
	w.run(10 * time.Second)
	if w.sw.generation == first {
		t.Fatal("the cookies have not changed: the test tests nothing")
	}
	if m.phase != registered || w.count("switch", Registered) != 1 || w.sw.Drops()[WrongInstance] != 1 {
		t.Errorf("phase %d, installed %d times, %d challenges", m.phase, w.count("switch", Registered), w.sw.Drops()[WrongInstance])
	}
}

// TestIPv6WithWindows: the whole course in the other family, in two segments.
func TestIPv6WithWindows(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := withWindows(sample(1, 80))
	reg.Group = netip.MustParseAddr("fd00:9::1")
	for i := range reg.Members {
		reg.Members[i].IP = netip.AddrFrom16([16]byte{0xFD, 15: byte(i + 2)})
		w.addMember(t, reg.Members[i], reg)
	}
	m := w.startMaster(t, "A", MasterConfig{Local: netip.MustParseAddrPort("[fd00::1]:5000"), Seed: 3}, reg)
	w.run(time.Second)
	got, _, ok := w.sw.Group(reg.Group)
	if !ok || m.phase != registered || len(m.segments) < 2 || !slices.Equal(got.Members, reg.Members) || got.Window != reg.Window {
		t.Errorf("phase %d, %d segments, installed %v", m.phase, len(m.segments), ok)
	}
}
