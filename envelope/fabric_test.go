// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// spread returns homes for n members: behind the switches in turn.
func spread(n int, switches ...int) []int {
	homes := make([]int, n)
	for i := range homes {
		homes[i] = switches[i%len(switches)]
	}
	return homes
}

// TestTreeRegisters: groups over a chain and over leaves and spines are registered, and
// deleted with nothing left.
func TestTreeRegisters(t *testing.T) {
	for name, f := range map[string]*fabric{
		"chain":      newFabric(t, 4, [][2]int{{0, 1}, {1, 2}, {2, 3}}),
		"leaf-spine": leafSpine(t, 4, 2),
	} {
		t.Run(name, func(t *testing.T) {
			f.t = t
			reg := sample(1, 12)
			f.members(reg, spread(12, 0, 1, 2, 3))
			m := f.master(masterAddr, 0, reg)
			f.run(3 * time.Second)
			if e := f.last(masterAddr); e.Kind != Registered {
				t.Fatalf("master: %s", eventString(e))
			}
			if on := f.installed(reg.Group); len(on) < 4 || len(on) > 5 {
				t.Errorf("installed at %v", on)
			}
			f.checkTree(0, reg.Group)
			for i, s := range f.switches {
				if g, _, ok := s.sw.Group(reg.Group); ok && g.Lease != reg.Lease {
					t.Errorf("switch %d: lease %v", i, g.Lease)
				}
			}
			f.run(2 * reg.Lease) // the master renews
			if on := f.installed(reg.Group); len(on) < 4 || f.last(masterAddr).Kind != Registered {
				t.Fatalf("after two leases: installed at %v, %s", on, eventString(f.last(masterAddr)))
			}
			var out Output
			m.Delete(f.now, &out)
			f.hostDid(masterAddr, &out)
			f.run(5 * time.Second)
			f.checkNothingLeft()
			for _, rec := range reg.Members {
				if e := f.last(netip.AddrPortFrom(rec.IP, DefaultPort)); e.Kind != GroupGone || e.EndReason != Deleted {
					t.Errorf("member %s: %s", rec.IP, eventString(e))
				}
			}
		})
	}
}

// TestTreeSpreads: eight groups over two spines use both alike, each but one.
func TestTreeSpreads(t *testing.T) {
	f := leafSpine(t, 3, 2)
	for g := byte(1); g <= 8; g++ {
		reg := sample(g, 6)
		f.members(reg, spread(6, 0, 1, 2))
		f.master(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 200, g, 1}), 5000), 0, reg)
	}
	f.run(3 * time.Second)
	over := func() (a, b int) { return len(f.switches[3].table.groups), len(f.switches[4].table.groups) }
	if a, b := over(); a != 4 || b != 4 {
		t.Errorf("%d groups over one spine, %d over the other", a, b)
	}
	for g := byte(11); g <= 18; g++ { // one after the other
		reg := sample(g, 6)
		f.members(reg, spread(6, 0, 1, 2))
		f.master(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 200, g, 1}), 5000), 0, reg)
		f.run(time.Second)
		if a, b := over(); max(a-b, b-a) > 1 {
			t.Errorf("%d groups over one spine, %d over the other", a, b)
		}
	}
}

// fabricRuns is the number of random runs: n, or what FABRIC_RUNS says.
func fabricRuns(n uint64) uint64 {
	if m, err := strconv.ParseUint(os.Getenv("FABRIC_RUNS"), 10, 32); err == nil {
		return m
	}
	return n
}

// TestTreeSurvivesRestarts: switches restart at random while relays are lost and groups are
// registered, renewed, changed and deleted. In the end nothing is left.
func TestTreeSurvivesRestarts(t *testing.T) {
	for seed := range fabricRuns(40) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		f := randomTree(t, rnd)
		f.restarted = true
		f.fault = lossyLinks(rnd)
		type session struct {
			a   netip.AddrPort
			m   *Master
			reg Registration
		}
		var ss []session
		for g := byte(1); g <= 3; g++ {
			reg := sample(g, 2+rnd.IntN(8))
			reg.Lease = 4 * time.Second
			homes := make([]int, len(reg.Members))
			for i := range homes {
				homes[i] = rnd.IntN(len(f.switches))
			}
			f.members(reg, homes)
			a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 200, g, 1}), 5000)
			ss = append(ss, session{a, f.master(a, rnd.IntN(len(f.switches)), reg), reg})
		}
		for range 10 {
			f.run(time.Duration(rnd.IntN(2000)) * time.Millisecond)
			switch s := ss[rnd.IntN(len(ss))]; rnd.IntN(4) {
			case 0:
				f.boot(rnd.IntN(len(f.switches)))
			case 1:
				i := rnd.IntN(len(f.switches))
				f.connect(i, 1, f.switches[i].peers[0]) // the adjacency was lost
			case 2:
				var out Output
				if s.m.Leave(f.now, s.reg.Members[0].Key(), &out) == nil {
					f.hostDid(s.a, &out)
				}
			case 3:
				f.silent[rnd.IntN(len(f.switches))] = rnd.IntN(2) == 0
			}
		}
		f.silent = map[int]bool{}
		f.run(15 * time.Second)
		for _, s := range ss { // who believes in the group has it everywhere
			if e := f.last(s.a); e.Kind == Registered {
				f.restarted = false
				f.checkTree(f.at[s.a.Addr()], s.reg.Group)
				f.restarted = true
			}
			var out Output
			s.m.Delete(f.now, &out)
			f.hostDid(s.a, &out)
		}
		f.run(time.Minute)
		if f.checkNothingLeft(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestTreeSurvivesLoss: relays are lost, copied and reordered; the group is registered and
// deleted on random trees, with nothing left.
func TestTreeSurvivesLoss(t *testing.T) {
	for seed := range fabricRuns(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		f := randomTree(t, rnd)
		f.fault = func(int, int, []byte) (ds []time.Duration) {
			for rnd.IntN(10) < 7 && len(ds) < 2 {
				ds = append(ds, time.Duration(1+rnd.IntN(80))*time.Millisecond)
			}
			return ds
		}
		reg := sample(1, 2+rnd.IntN(20))
		homes := make([]int, len(reg.Members))
		for i := range homes {
			homes[i] = rnd.IntN(len(f.switches))
		}
		f.members(reg, homes)
		m := f.master(masterAddr, rnd.IntN(len(f.switches)), reg)
		f.run(15 * time.Second)
		if e := f.last(masterAddr); e.Kind != Registered && e.Kind != RegistrationFailed {
			t.Errorf("seed %d: %s", seed, eventString(e))
		}
		var out Output
		m.Delete(f.now, &out)
		f.hostDid(masterAddr, &out)
		f.run(time.Minute)
		f.checkNothingLeft()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestTreeRefusalsLeaveNothing: whatever one switch has against a group, the master hears
// it, with the member, and no switch has anything left.
func TestTreeRefusalsLeaveNothing(t *testing.T) {
	reg := sample(1, 9)
	far := reg.Members[2] // behind switch 2
	for name, c := range map[string]struct {
		break_ func(f *fabric)
		want   Reason
		member bool
	}{
		"location": {func(f *fabric) {
			f.switches[2].check[far.IP] = Verdict{VerdictRejected, Problem{Reason: UnknownMemberLocation}}
		}, UnknownMemberLocation, true},
		"never located": {func(f *fabric) {
			f.switches[2].check[far.IP] = Verdict{VerdictLater, Problem{Reason: LocationUnconfirmed}}
		}, LocationUnconfirmed, true},
		"no way": {func(f *fabric) { f.switches[1].noWay[far.IP] = NoWay }, NoWay, true},
		"no room": {func(f *fabric) {
			f.switches[2].sw.cfg.MaxGroups = 0
		}, TableFull, false},
		"no key": {func(f *fabric) {
			f.switches[2].sw.auth.Keys = Keys{9: testKeys[7]}
		}, KeyMissing, false},
		"silent": {func(f *fabric) { f.silent[2] = true }, SwitchSilent, false},
		"install fails": {func(f *fabric) {
			f.switches[1].table.verdict[reg.Group] = Verdict{VerdictRejected, Problem{Reason: TooManyMembers, Value: 3}}
		}, TooManyMembers, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
			f.members(reg, spread(9, 0, 1, 2))
			c.break_(f)
			f.master(masterAddr, 0, reg)
			f.run(12 * time.Second)
			e := f.last(masterAddr)
			failure, ok := e.Err.(*Failure)
			if e.Kind != RegistrationFailed || !ok || failure.Problem.Reason != c.want || c.member != (failure.Problem.Member == far.Key()) {
				t.Fatalf("master: %s", eventString(e))
			}
			f.silent = map[int]bool{}
			f.run(2 * time.Minute)
			f.checkNothingLeft()
		})
	}
}

// TestTreeEpochs: a switch below that knows a newer epoch refuses, and the master goes on
// with the next one.
func TestTreeEpochs(t *testing.T) {
	f := newFabric(t, 2, [][2]int{{0, 1}})
	reg := sample(1, 4)
	f.members(reg, spread(4, 0, 1))
	f.switches[1].sw.epochOf(reg.Group).accepted = 1 << 60
	f.master(masterAddr, 0, reg)
	f.run(5 * time.Second)
	if e := f.last(masterAddr); e.Kind != Registered || e.Epoch != 1<<60+1 {
		t.Error(eventString(e))
	}
}

// TestTreeMergesReasons: the root has the reasons of all switches.
func TestTreeMergesReasons(t *testing.T) {
	f := leafSpine(t, 3, 1)
	reg := sample(1, 6)
	f.members(reg, spread(6, 0, 1, 2))
	for _, i := range []int{1, 2} {
		f.switches[i].check[reg.Members[i].IP] = Verdict{VerdictRejected, Problem{Reason: UnknownMemberLocation}}
	}
	f.master(masterAddr, 0, reg)
	f.run(3 * time.Second)
	es := f.switches[0].events
	if len(es) != 1 || es[0].Kind != RegistrationFailed || len(es[0].More) != 1 {
		t.Fatalf("%+v", es)
	}
	if a, b := es[0].Err.(*Problem).Member, es[0].More[0].Member; a == b || a.IP == b.IP {
		t.Errorf("%v and %v", a, b)
	}
}

// TestTreeRestarts: a switch restarts at any moment of a registration; nothing is left
// behind once the master has given up or the group was deleted.
func TestTreeRestarts(t *testing.T) {
	for victim := range 3 {
		for ms := range 12 {
			f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
			reg := sample(1, 9)
			reg.Lease = 5 * time.Second
			f.members(reg, spread(9, 0, 1, 2))
			m := f.master(masterAddr, 0, reg)
			f.run(time.Duration(ms+1)*hop - hop/2)
			f.boot(victim)
			f.restarted = true
			f.run(25 * time.Second)
			if e := f.last(masterAddr); e.Kind == Registered {
				if on := f.installed(reg.Group); len(on) != 3 {
					t.Errorf("switch %d after %d ms: the master believes in a group that is at %v", victim, ms, on)
				}
			}
			var out Output
			m.Delete(f.now, &out)
			f.hostDid(masterAddr, &out)
			f.run(time.Minute)
			if f.checkNothingLeft(); t.Failed() {
				t.Fatalf("switch %d restarted after %d ms", victim, ms)
			}
		}
	}
}

// TestTreeRestartedChildren: switches that restart under a living group, one after the other
// and all at once, are taken in again. The master hears nothing.
func TestTreeRestartedChildren(t *testing.T) {
	for _, victims := range [][]int{{1}, {2}, {3}, {1, 2}, {2, 3}, {1, 2, 3}} {
		f := newFabric(t, 4, [][2]int{{0, 1}, {1, 2}, {1, 3}})
		reg := f.registered(0, 1, 2, 3)
		for _, i := range victims {
			f.boot(i)
		}
		f.restarted = true
		f.run(time.Second)
		f.restarted = false
		f.checkAgreement(0, reg.Group)
		f.run(3 * reg.Lease)
		f.checkAgreement(0, reg.Group)
		if e := f.last(masterAddr); e.Kind != Registered {
			t.Errorf("switches %v: %s", victims, eventString(e))
		}
	}
}

// TestTreeSilentChildEndsGroup: a switch that is cut off loses the group with its lease,
// and so do the others.
func TestTreeSilentChildEndsGroup(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
	reg := sample(1, 6)
	reg.Lease = 6 * time.Second
	f.members(reg, spread(6, 0, 1, 2))
	f.master(masterAddr, 0, reg)
	f.run(time.Second)
	f.silent[2] = true
	f.run(4 * reg.Lease)
	if e := f.last(masterAddr); e.Kind != GroupGone {
		t.Error(eventString(e))
	}
	f.run(time.Minute)
	f.checkNothingLeft()
}

// TestTreeMembersGo: a member that leaves, is removed or evicted at its own switch goes at
// every switch, and the master and the member are told.
func TestTreeMembersGo(t *testing.T) {
	f := leafSpine(t, 3, 1)
	reg := sample(1, 9)
	f.members(reg, spread(9, 0, 1, 2))
	m := f.master(masterAddr, 0, reg)
	f.run(time.Second)
	var out Output
	leaver, evicted, removed := reg.Members[1], reg.Members[2], reg.Members[4]
	a := netip.AddrPortFrom(leaver.IP, DefaultPort)
	f.hosts[a].(*Member).Leave(f.now, reg.Group, &out)
	f.hostDid(a, &out)
	f.switches[2].table.RemoveMember(reg.Group, evicted.Key(), Evicted)
	f.switches[2].sw.MemberEvicted(f.now, reg.Group, evicted.Key(), mcast.Silent, 7, &out)
	f.switchDid(2, &out)
	m.Leave(f.now, removed.Key(), &out)
	f.hostDid(masterAddr, &out)
	f.run(2 * time.Second)
	for i, s := range f.switches {
		g := s.table.groups[reg.Group]
		for _, x := range []MemberRecord{leaver, evicted, removed} {
			if g == nil || g.Find(x.Key()) >= 0 || len(g.Members) != 6 {
				t.Errorf("switch %d: %v", i, g)
			}
		}
	}
	why := map[MemberKey]EndReason{}
	for _, e := range f.events[masterAddr] {
		if e.Kind == MemberGone {
			why[e.Member] = e.EndReason
		}
	}
	if why[leaver.Key()] != Left || why[evicted.Key()] != Evicted {
		t.Errorf("the master knows %v", why)
	}
	f.switches[2].sw.GroupFailed(f.now, reg.Group, reg.Members[5].Key(), 0x61, 9, &out)
	f.switchDid(2, &out)
	f.run(time.Second)
	failed := 0
	for _, e := range f.events[masterAddr] {
		if e.EndReason == Failed && e.Member == reg.Members[5].Key() {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("the master has heard %d times that the group failed at another switch", failed)
	}
	for _, x := range []MemberRecord{evicted, removed} {
		if e := f.last(netip.AddrPortFrom(x.IP, DefaultPort)); e.Kind != GroupGone {
			t.Errorf("member %s: %s", x.IP, eventString(e))
		}
	}
}

// TestTreeTwoMasters: two masters register one group at two leaves at once. At most one
// has it, and the other one is told.
func TestTreeTwoMasters(t *testing.T) {
	for delay := range 10 {
		f := leafSpine(t, 3, 2)
		reg := sample(1, 6)
		f.members(reg, spread(6, 0, 1, 2))
		other := netip.MustParseAddrPort("10.0.0.2:5000")
		f.master(masterAddr, 0, reg)
		f.run(time.Duration(delay) * hop)
		f.master(other, 1, reg)
		f.run(20 * time.Second)
		won := 0
		for _, a := range []netip.AddrPort{masterAddr, other} {
			switch e := f.last(a); e.Kind {
			case Registered:
				won++
			case RegistrationFailed, GroupGone:
			default:
				t.Errorf("delay %d, %s: %s", delay, a, eventString(e))
			}
		}
		if n := len(f.captured); n > 400 {
			t.Errorf("delay %d: %d relays", delay, n)
		}
		on := f.installed(reg.Group)
		if won != 1 || won == 1 && len(on) != 4 {
			t.Errorf("delay %d: %d masters have the group, it is at %v", delay, won, on)
		}
		for _, i := range on {
			if e := f.switches[i].table.groups[reg.Group].Epoch; e != f.switches[on[0]].table.groups[reg.Group].Epoch {
				t.Errorf("delay %d: switch %d has epoch %d", delay, i, e)
			}
		}
	}
}
