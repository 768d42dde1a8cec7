// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// cutWorlds are fabrics with the links that are cut: switch and neighbour.
func cutWorlds(t *testing.T) map[string]func() *fabric {
	return map[string]func() *fabric{
		"chain":      func() *fabric { return newFabric(t, 4, [][2]int{{0, 1}, {1, 2}, {2, 3}}) },
		"leaf-spine": func() *fabric { return leafSpine(t, 3, 2) },
	}
}

// registered makes a group of members at the first switches of f, whose master is at switch 0.
func (f *fabric) registered(switches ...int) Registration {
	f.t.Helper()
	reg := sample(1, 3*len(switches))
	f.members(reg, spread(len(reg.Members), switches...))
	f.master(masterAddr, 0, reg)
	f.run(time.Second)
	if e := f.last(masterAddr); e.Kind != Registered {
		f.t.Fatal(eventString(e))
	}
	return reg
}

// endedFor checks that master and members of reg know that it has ended since a switch was
// lost, and which link they were told.
func (f *fabric) endedFor(reg Registration, links ...LostLink) {
	f.t.Helper()
	if on := f.installed(reg.Group); len(on) > 0 {
		f.t.Errorf("the group is still at %v", on)
	}
	hosts := []netip.AddrPort{masterAddr}
	for _, rec := range reg.Members {
		hosts = append(hosts, netip.AddrPortFrom(rec.IP, DefaultPort))
	}
	for _, a := range hosts {
		e := f.last(a)
		var lost *LostLink
		ok := e.Kind == GroupGone && e.EndReason == SwitchLost && errors.As(e.Err, &lost)
		if ok {
			ok = false
			for _, l := range links {
				ok = ok || l == *lost
			}
		}
		if !ok {
			f.t.Errorf("%s: %s, %v, want one of %v", a, eventString(e), e.Err, links)
		}
	}
}

// bothEnds are the link of switch i to its neighbour n, as each end names it.
func (f *fabric) bothEnds(i int, n mcast.Neighbor) []LostLink {
	p := f.switches[i].peers[n-1]
	back := f.reverse(i, n)
	return []LostLink{{switchID(i), switchID(p), portName(n)}, {switchID(p), switchID(i), portName(back)}}
}

// TestTreeCut: a link is cut for longer than the grace. If the group's tree has it, and there
// is no other way, the group ends on both sides, and all are told which switch was lost at
// which port. Over another way the tree is there again after some milliseconds.
func TestTreeCut(t *testing.T) {
	for name, world := range cutWorlds(t) {
		first := world()
		for i, s := range first.switches {
			for k := range s.peers {
				n := mcast.Neighbor(k + 1)
				t.Run(fmt.Sprintf("%s, switch %d, neighbour %d", name, i, n), func(t *testing.T) {
					f := world()
					f.t = t
					reg := f.registered(0, 1, 2)
					used := len(f.switches[i].sw.over[n]) > 0
					f.cut(i, n)
					if name == "leaf-spine" {
						f.run(250 * time.Millisecond)
						f.checkTree(0, reg.Group)
						if !used {
							return
						}
						f.run(3 * time.Second) // a switch that is cut off from its parent waits
						f.checkAgreement(0, reg.Group)
						if over := f.switches[i].sw.over[n]; len(over) > 0 {
							t.Errorf("%d trees lead over the link that is cut", len(over))
						}
						f.run(2*reg.Lease + time.Minute)
						f.checkAgreement(0, reg.Group)
						if f.last(masterAddr).Kind != Registered || len(f.switches[i].sw.changes) > 0 {
							t.Errorf("the master knows %s", eventString(f.last(masterAddr)))
						}
						return
					}
					f.run(2900 * time.Millisecond)
					if on := f.installed(reg.Group); len(on) < 3 {
						t.Errorf("installed at %v within the grace", on)
					}
					f.run(200 * time.Millisecond)
					if !used {
						if f.last(masterAddr).Kind != Registered || len(f.switches[i].sw.changes) > 0 {
							t.Errorf("the master knows %s", eventString(f.last(masterAddr)))
						}
						return
					}
					f.endedFor(reg, f.bothEnds(i, n)...)
					f.run(time.Minute)
					f.checkNothingLeft()
				})
			}
		}
	}
}

// TestTreeFlaps: an adjacency that is lost again and again, each time for less than the grace,
// ends nothing and leaves nothing.
func TestTreeFlaps(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
	reg := f.registered(0, 1, 2)
	for i := range 40 {
		f.cut(1, mcast.Neighbor(1+i%2))
		f.cut(1, mcast.Neighbor(1+i%2)) // what is lost is not lost again
		f.run(time.Duration(100*(i%29)) * time.Millisecond)
		f.connect(1, mcast.Neighbor(1+i%2), f.switches[1].peers[i%2])
		f.run(time.Duration(i%3) * 30 * time.Millisecond)
	}
	f.run(2 * reg.Lease)
	if on := f.installed(reg.Group); len(on) != 3 || f.last(masterAddr).Kind != Registered {
		t.Errorf("installed at %v, %s", on, eventString(f.last(masterAddr)))
	}
	for i, s := range f.switches {
		if len(s.sw.changes)+len(s.sw.changeTimers)+len(s.sw.requests) > 0 {
			t.Errorf("switch %d has %d changes, requests %v", i, len(s.sw.changes), requestText(s.sw))
		}
	}
}

// TestTreeForgets: a switch that restarts has forgotten its groups. Below the root it is taken
// in again, at once when it is back within the grace. The groups of a root, and of a switch
// that is away for longer, end at all switches.
func TestTreeForgets(t *testing.T) {
	for victim := range 4 {
		for _, away := range []time.Duration{0, time.Second, 5 * time.Second} {
			t.Run(fmt.Sprintf("switch %d, away for %v", victim, away), func(t *testing.T) {
				f := newFabric(t, 4, [][2]int{{0, 1}, {1, 2}, {1, 3}})
				reg := f.registered(0, 1, 2, 3)
				for k := range f.switches[victim].peers {
					f.cut(victim, mcast.Neighbor(k+1))
				}
				f.silent[victim] = true
				f.run(away)
				f.silent[victim] = false
				f.boot(victim)
				f.restarted = true
				if victim != 0 && away < 3*time.Second {
					f.run(300 * time.Millisecond)
					f.restarted = false
					f.checkAgreement(0, reg.Group)
					f.run(2 * reg.Lease)
					f.checkAgreement(0, reg.Group)
					if tree := f.switches[victim].table.groups[reg.Group].Tree; !tree.Elsewhere {
						t.Error("the table does not know that the group runs elsewhere")
					}
					return
				}
				f.run(3200 * time.Millisecond)
				for i, s := range f.switches {
					if _, _, ok := s.sw.Group(reg.Group); ok {
						t.Errorf("switch %d has the group", i)
					}
					for _, e := range s.events {
						if e.Kind == GroupGone && (e.EndReason != SwitchLost || e.Err == nil) {
							t.Errorf("switch %d: %s, %v", i, eventString(e), e.Err)
						}
					}
				}
				if victim != 0 { // else the master's switch has forgotten whom to tell
					if e := f.last(masterAddr); e.Kind != GroupGone || e.EndReason != SwitchLost {
						t.Errorf("the master knows %s", eventString(e))
					}
				}
				for _, rec := range reg.Members {
					e := f.last(netip.AddrPortFrom(rec.IP, DefaultPort))
					if f.at[rec.IP] != victim && (e.Kind != GroupGone || e.EndReason != SwitchLost) {
						t.Errorf("%s, at switch %d, knows %s", rec.IP, f.at[rec.IP], eventString(e))
					}
				}
				f.run(time.Minute)
				if victim != 0 {
					f.checkNothingLeft()
				}
			})
		}
	}
}

// TestTreeCutNoticedLater: one end notices the loss later than the other, which has ended its
// groups by then, and the adjacency is back before its own grace ends.
func TestTreeCutNoticedLater(t *testing.T) {
	for _, i := range []int{0, 1} { // the end that notices first: above, and below
		f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
		reg := f.registered(0, 1, 2)
		f.switches[i].sw.SetNeighbour(f.now, 1, nil)
		f.run(2500 * time.Millisecond)
		f.switches[1-i].sw.SetNeighbour(f.now, 1, nil)
		f.run(600 * time.Millisecond)
		if on := f.installed(reg.Group); len(on) == 0 || len(on) == 3 {
			t.Errorf("installed at %v", on)
		}
		f.connect(0, 1, 1)
		f.run(time.Second) // until the End is repeated
		f.endedFor(reg, f.bothEnds(0, 1)...)
		f.run(time.Minute)
		f.checkNothingLeft()
	}
}

// TestTreeCutInRegistration: a link is cut in each moment of a registration. Nothing is left,
// and the master knows.
func TestTreeCutInRegistration(t *testing.T) {
	for ms := range 12 {
		for link := range 2 {
			f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
			reg := sample(1, 9)
			f.members(reg, spread(9, 0, 1, 2))
			m := f.master(masterAddr, 0, reg)
			f.run(time.Duration(ms+1)*hop - hop/2)
			f.cut(link, mcast.Neighbor(1+link))
			f.restarted = true // switches below may have ended it already
			f.run(20 * time.Second)
			if e := f.last(masterAddr); e.Kind != RegistrationFailed && e.Kind != GroupGone {
				t.Errorf("link %d cut after %d ms: %s", link, ms, eventString(e))
			}
			if on := f.installed(reg.Group); len(on) > 0 {
				t.Errorf("link %d cut after %d ms: installed at %v", link, ms, on)
			}
			var out Output
			m.Delete(f.now, &out)
			f.hostDid(masterAddr, &out)
			f.run(time.Minute)
			if f.checkNothingLeft(); t.Failed() {
				t.FailNow()
			}
		}
	}
}

// TestTreeCutOfManyGroups: the groups over a neighbour that is lost end in portions, and so
// are they asked for when it is back.
func TestTreeCutOfManyGroups(t *testing.T) {
	const groups = 3*neighbourBatch + 1
	world := func() (*fabric, *Registrar) {
		f := newFabric(t, 2, [][2]int{{0, 1}})
		for g := byte(11); g < 11+groups; g++ {
			reg := sample(g, 2)
			f.members(reg, spread(2, 0, 1))
			f.master(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 200, g, 1}), 5000), 0, reg)
		}
		f.run(time.Second)
		if n := len(f.switches[0].sw.over[1]); n != groups {
			t.Fatalf("%d groups are over the neighbour", n)
		}
		return f, f.switches[0].sw
	}
	f, r := world()
	var out Output
	r.Advance(f.now, &out)
	f.cut(0, 1)
	at := f.now + 3*time.Second
	for r.leases.stop(&r.leases[0].owner.lease); len(r.leases) > 0; r.leases.stop(&r.leases[0].owner.lease) {
	}
	for left, calls := groups, 0; left > 0; calls++ {
		if due, ok := r.NextDeadline(); !ok || due > at {
			t.Fatalf("%d groups are left, the next deadline is %v", left, due)
		}
		r.Advance(at, &out)
		ended := 0
		for _, e := range out.Events {
			if e.Kind == GroupGone {
				ended++
			}
		}
		if left -= ended; ended > neighbourBatch || calls > 4 {
			t.Fatalf("%d groups have ended in one call, %d calls", ended, calls)
		}
	}
	if len(r.over)+len(r.changes)+len(r.changeTimers) > 0 {
		t.Errorf("left: %v, %v", r.over, r.changes)
	}

	f, r = world()
	f.run(100 * time.Millisecond)
	f.cut(0, 1)
	f.connect(0, 1, 1)
	asked := map[netip.Addr]bool{}
	for calls := range 5 {
		r.Advance(f.now, &out)
		if len(out.Relays) > neighbourBatch {
			t.Errorf("call %d: %d relays", calls, len(out.Relays))
		}
		for _, x := range out.Relays {
			asked[x.Group] = true
		}
	}
	if len(asked) != groups || len(r.changes) > 0 {
		t.Errorf("%d groups have been asked for, %d changes are left", len(asked), len(r.changes))
	}
}

// TestTreeCutsAtRandom: links are cut, and come back with and without a restart, at random,
// while relays are lost. Soon after the last change each group is at all switches of its tree,
// or its master knows that it has ended.
func TestTreeCutsAtRandom(t *testing.T) {
	for seed := range fabricRuns(40) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		f := randomTree(t, rnd)
		f.restarted = true
		f.fault = lossyLinks(rnd)
		masters := map[netip.AddrPort]*Master{}
		regs := map[netip.AddrPort]Registration{}
		for g := byte(1); g <= 3; g++ {
			reg := sample(g, 2+rnd.IntN(8))
			homes := make([]int, len(reg.Members))
			for i := range homes {
				homes[i] = rnd.IntN(len(f.switches))
			}
			f.members(reg, homes)
			a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 200, g, 1}), 5000)
			masters[a], regs[a] = f.master(a, rnd.IntN(len(f.switches)), reg), reg
		}
		f.run(3 * time.Second)
		for range 12 {
			i := rnd.IntN(len(f.switches))
			n := mcast.Neighbor(1 + rnd.IntN(len(f.switches[i].peers)))
			f.cut(i, n)
			f.run(time.Duration(rnd.IntN(3500)) * time.Millisecond)
			if rnd.IntN(6) == 0 {
				f.boot(i)
			} else {
				f.connect(i, n, f.switches[i].peers[n-1])
			}
			f.run(time.Duration(rnd.IntN(500)) * time.Millisecond)
		}
		f.run(8 * time.Second)
		for _, a := range f.addresses() {
			m := masters[a]
			if m == nil {
				continue
			}
			reg := regs[a]
			if e := f.last(a); e.Kind == Registered && f.switches[f.at[a.Addr()]].table.groups[reg.Group] != nil {
				f.restarted = false
				f.checkAgreement(f.at[a.Addr()], reg.Group)
				f.restarted = true
			} else if on := f.installed(reg.Group); len(on) > 0 {
				t.Errorf("%s is at %v, and its master knows %s", reg.Group, on, eventString(e))
			}
			var out Output
			m.Delete(f.now, &out)
			f.hostDid(a, &out)
		}
		f.run(time.Minute)
		if f.checkNothingLeft(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
