// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// routesChanged tells all switches that routes have changed.
func (f *fabric) routesChanged() {
	for _, s := range f.switches {
		for _, ip := range s.sw.Groups() {
			s.sw.GroupRoutesChanged(f.now, ip)
		}
	}
}

// TestTreeRestoredSwitches: switches restart with their groups, one after the other and all at
// once, the root too. Nothing is built anew, nobody hears of it, leases and updates go on.
func TestTreeRestoredSwitches(t *testing.T) {
	for _, victims := range [][]int{{0}, {1}, {2}, {3}, {0, 1}, {1, 2}, {0, 1, 2, 3}} {
		f := newFabric(t, 5, [][2]int{{0, 1}, {1, 2}, {1, 3}, {3, 4}})
		reg := sample(1, 10)
		f.members(reg, spread(10, 0, 1, 2, 3, 4))
		first := reg
		first.Members = reg.Members[:8]
		m := f.master(masterAddr, 0, first)
		f.run(time.Second)
		if e := f.update(m, reg.Members[1:9]); e.Kind != Updated {
			t.Fatal(eventString(e))
		}
		f.run(10 * reg.Lease) // many Renews
		attempt := f.switches[0].sw.groups[reg.Group].branch.id
		for _, i := range victims {
			for k := range f.switches[i].peers {
				f.cut(i, mcast.Neighbor(k+1))
			}
		}
		for _, i := range victims {
			f.reboot(i)
		}
		f.run(3 * reg.Lease)
		f.checkAgreement(0, reg.Group)
		if id := f.switches[0].sw.groups[reg.Group].branch.id; id != attempt {
			t.Errorf("switches %v: the tree was built anew", victims)
		}
		if e := f.last(masterAddr); e.Kind != Updated {
			t.Errorf("switches %v: %s", victims, eventString(e))
		}
		highest := slices.Max(f.switches[0].table.groups[reg.Group].numbers())
		if e := f.update(m, reg.Members[2:10]); e.Kind != Updated {
			t.Fatalf("switches %v: %s, %v", victims, eventString(e), e.Err)
		}
		f.checkAgreement(0, reg.Group)
		if ns := f.switches[0].table.groups[reg.Group].numbers(); ns[7] != highest+1 {
			t.Errorf("switches %v: numbers %v, the highest was %d", victims, ns, highest)
		}
		var out Output
		m.Delete(f.now, &out)
		f.hostDid(masterAddr, &out)
		f.run(5 * time.Second)
		f.checkNothingLeft()
	}
}

// TestTreeRestoreRefused: what does not fit is not taken back.
func TestTreeRestoreRefused(t *testing.T) {
	for name, spoil := range map[string]func(s *SavedGroup){
		"no branch":    func(s *SavedGroup) { s.Branch = nil },
		"no tree":      func(s *SavedGroup) { s.Registration.Tree = nil },
		"no port":      func(s *SavedGroup) { s.Branch.Children[0].Neighbour = 0 },
		"twice":        func(s *SavedGroup) { s.Branch.Children[0].Neighbour = s.Registration.Tree.Parent },
		"another leg":  func(s *SavedGroup) { s.Registration.Tree.Legs[0] = 99 },
		"legs":         func(s *SavedGroup) { s.Registration.Tree.Legs = s.Registration.Tree.Legs[1:] },
		"another root": func(s *SavedGroup) { s.Branch.Root = switchID(1) },
	} {
		f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
		reg := f.registered(0, 1, 2)
		s, _ := f.switches[1].sw.Saved(reg.Group)
		f.boot(1)
		spoil(&s)
		if err := f.switches[1].sw.Restore(f.now, &s); err == nil {
			t.Errorf("%s: restored", name)
		}
		if r := f.switches[1].sw; len(r.groups)+len(r.members)+len(r.over)+len(r.leases) > 0 {
			t.Errorf("%s: something is left", name)
		}
	}
}

// TestTreeFollowsRoutes: a group whose next hop is no way any more is built anew over another
// one; a better way alone moves nothing.
func TestTreeFollowsRoutes(t *testing.T) {
	f := leafSpine(t, 3, 2)
	reg := f.registered(0, 1, 2)
	spine := f.switches[0].peers[f.switches[0].table.groups[reg.Group].Tree.Neighbours[0].Neighbour-1]
	before := f.switches[0].sw.groups[reg.Group].branch.id
	f.routesChanged()
	f.run(time.Second)
	if f.switches[0].sw.groups[reg.Group].branch.id != before {
		t.Error("built anew while all ways are there")
	}
	f.severed[[2]int{1, spine}] = true // the adjacency stays
	f.routesChanged()
	f.run(time.Second)
	f.checkAgreement(0, reg.Group)
	for n := range f.switches[1].sw.over {
		if f.switches[1].peers[n-1] == spine {
			t.Error("the tree still leads over the way that has gone")
		}
	}
	after := f.switches[0].sw.groups[reg.Group].branch.id
	f.severed = map[[2]int]bool{}
	f.routesChanged()
	f.run(time.Second)
	if f.switches[0].sw.groups[reg.Group].branch.id != after {
		t.Error("built anew for a better way")
	}
	rebuilt := 0
	for _, e := range f.switches[0].events {
		if e.Kind == Rebuilt && e.Err != nil {
			rebuilt++
		}
	}
	if rebuilt != 1 {
		t.Errorf("the root has told %d times of a new tree, and why", rebuilt)
	}
}

// change is a random change of a world with groups.
type change struct {
	*fabric
	rnd    *rand.Rand
	routed bool // routes follow cuts
	groups []*changingGroup
}

type changingGroup struct {
	at   netip.AddrPort
	m    *Master
	reg  Registration // all that may be members
	next rocev2.QPN
}

// some returns two or more of the members; those that have been in the group before and are
// not now have another queue pair.
func (c *change) some(g *changingGroup) (ms []MemberRecord) {
	now := g.m.Members()
	for i := range g.reg.Members {
		rec := &g.reg.Members[i]
		if c.rnd.IntN(3) == 0 && len(g.reg.Members)-i > 2-len(ms) {
			continue
		}
		if !slices.Contains(now, *rec) {
			g.next++
			rec.QPN = g.next
			c.rejoin(*rec, g.reg)
		}
		ms = append(ms, *rec)
	}
	return ms
}

func (c *change) one() {
	g := c.groups[c.rnd.IntN(len(c.groups))]
	i := c.rnd.IntN(len(c.switches))
	s := c.switches[i]
	n := mcast.Neighbor(1 + c.rnd.IntN(len(s.peers)))
	p := s.peers[n-1]
	link := [2]int{min(i, p), max(i, p)}
	var out Output
	switch c.rnd.IntN(8) {
	case 0, 1:
		if g.m.Update(c.now, c.some(g), &out) == nil {
			c.hostDid(g.at, &out)
		}
	case 2:
		if ms := g.m.Members(); len(ms) > 0 && g.m.Leave(c.now, ms[c.rnd.IntN(len(ms))].Key(), &out) == nil {
			c.hostDid(g.at, &out)
		}
	case 3:
		if reg := s.table.groups[g.reg.Group]; reg != nil && len(reg.Members) > 2 {
			k := reg.Members[c.rnd.IntN(len(reg.Members))].Key()
			s.table.RemoveMember(reg.Group, k, Evicted)
			s.sw.MemberEvicted(c.now, reg.Group, k, mcast.Silent, 7, &out)
			c.switchDid(i, &out)
		}
	case 4:
		c.cut(i, n)
		c.severed[link] = c.routed
		c.run(time.Duration(c.rnd.IntN(2000)) * time.Millisecond)
		delete(c.severed, link)
		c.connect(i, n, p)
	case 5:
		if c.severed[link] = c.routed; c.routed {
			c.routesChanged()
			c.run(time.Duration(c.rnd.IntN(2000)) * time.Millisecond)
		}
		delete(c.severed, link)
	case 6:
		c.boot(i)
	case 7:
		c.reboot(i)
	}
	c.run(time.Duration(c.rnd.IntN(1200)) * time.Millisecond)
}

// TestTreeChangesAtRandom: while relays are lost, members join, leave and are evicted, links
// are cut and come back, routes change, and switches restart with and without their groups.
// Some time after the last change each group is at the switches of its tree, all in the same
// attempt and with the same members, or nowhere.
func TestTreeChangesAtRandom(t *testing.T) {
	for seed := range fabricRuns(40) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		c := &change{fabric: randomTree(t, rnd), rnd: rnd, routed: seed%2 == 0}
		c.restarted = true
		c.fault = lossyLinks(rnd)
		for k := byte(1); k <= 2; k++ {
			reg := sample(k, 3+rnd.IntN(8))
			homes := make([]int, len(reg.Members))
			for i := range homes {
				homes[i] = rnd.IntN(len(c.switches))
			}
			c.members(reg, homes)
			a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 200, k, 1}), 5000)
			c.groups = append(c.groups, &changingGroup{a, c.master(a, rnd.IntN(len(c.switches)), reg), reg, 0x800})
		}
		c.run(3 * time.Second)
		for range 15 {
			c.one()
		}
		c.routesChanged()
		c.run(16 * time.Second)
		for _, g := range c.groups {
			root := c.at[g.at.Addr()]
			if on := c.installed(g.reg.Group); c.switches[root].table.groups[g.reg.Group] != nil {
				c.restarted = false
				c.checkAgreement(root, g.reg.Group)
				c.restarted = true
			} else if len(on) > 0 {
				t.Errorf("%s is at %v, and not at its root %d; its master knows %s", g.reg.Group, on, root, eventString(c.last(g.at)))
			}
			var out Output
			g.m.Delete(c.now, &out)
			c.hostDid(g.at, &out)
		}
		c.run(90 * time.Second)
		if c.checkNothingLeft(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestTreeAvoidsWhoRefuses: a spine has no way to members any more, by next hops that are no
// switches, or no route at all. The others' routes still lead to it. The tree is rebuilt over
// the other spine, and nobody is told of an end.
func TestTreeAvoidsWhoRefuses(t *testing.T) {
	for _, why := range []Reason{NoWay, UnknownMemberLocation} {
		f := leafSpine(t, 3, 2)
		reg := f.registered(0, 1, 2)
		var spine int
		for _, at := range f.installed(reg.Group) {
			spine = max(spine, at)
		}
		for _, rec := range reg.Members {
			if f.at[rec.IP] == 2 {
				f.switches[spine].noWay[rec.IP] = why
			}
		}
		f.switches[spine].sw.GroupRoutesChanged(f.now, reg.Group)
		f.run(time.Second)
		on := f.installed(reg.Group)
		if len(on) != 4 || on[3] == spine {
			t.Errorf("%v: the group is at %v, not over spine %d", why, on, spine)
		}
		f.run(20 * time.Second)
		if e := f.last(masterAddr); e.Kind != Registered {
			t.Errorf("%v: %s", why, eventString(e))
		}
	}
}

// TestTreeLosesAnEmptyLeaf: the members behind a switch leave, one after the other. The switch is
// not in the tree any more then, and comes in anew with a member that joins there: it runs
// elsewhere.
func TestTreeLosesAnEmptyLeaf(t *testing.T) {
	f := newFabric(t, 5, [][2]int{{0, 1}, {1, 2}, {1, 3}, {3, 4}})
	reg := sample(1, 10)
	f.members(reg, []int{0, 2, 4, 4, 0, 2, 4, 3, 4, 4})
	first := reg
	first.Members = reg.Members[:4]
	m := f.master(masterAddr, 0, first)
	f.run(time.Second)
	for i, want := range []string{"[0 1 2 3 4]", "[0 1 2]"} {
		rec := reg.Members[2+i]
		var out Output
		if err := f.hosts[netip.AddrPortFrom(rec.IP, DefaultPort)].(*Member).Leave(f.now, reg.Group, &out); err != nil {
			t.Fatal(err)
		}
		f.hostDid(netip.AddrPortFrom(rec.IP, DefaultPort), &out)
		f.run(time.Second)
		if on := fmt.Sprint(f.installed(reg.Group)); on != want {
			t.Errorf("after %d have left the group is at %s, want %s", i+1, on, want)
		}
		f.checkAgreement(0, reg.Group)
	}
	f.run(3 * reg.Lease)
	if e := f.update(m, append(slices.Clone(reg.Members[:2]), reg.Members[6])); e.Kind != Updated {
		t.Fatalf("%s, %v", eventString(e), e.Err)
	}
	f.checkAgreement(0, reg.Group)
	for _, i := range []int{3, 4} {
		if r := f.switches[i].table.groups[reg.Group]; r == nil || !r.Tree.Elsewhere {
			t.Errorf("switch %d goes on from where it was", i)
		}
	}
	f.run(3 * reg.Lease)
	f.checkAgreement(0, reg.Group)
}

// TestTreeWayIsLost: the routes of the only spine have no way to a leaf any more. The root
// tries to rebuild the tree for the grace; the group goes on over the legs that it has.
func TestTreeWayIsLost(t *testing.T) {
	f := leafSpine(t, 3, 1)
	reg := f.registered(0, 1, 2)
	for _, rec := range reg.Members {
		if f.at[rec.IP] == 2 {
			f.switches[3].noWay[rec.IP] = UnknownMemberLocation
		}
	}
	asked := func() (n int) {
		for _, c := range f.captured {
			if m := unsealed(c.b); m.kind == relayRebuild {
				n++
			}
		}
		return n
	}
	f.switches[3].sw.GroupRoutesChanged(f.now, reg.Group)
	f.run(5 * time.Second)
	first := asked()
	f.run(20 * time.Second)
	if n := asked(); first < 4 || first > 20 || n != first {
		t.Errorf("%d Rebuilds in 5 s, %d in 25 s", first, n)
	}
	if e := f.last(masterAddr); e.Kind != Registered || len(f.installed(reg.Group)) != 4 {
		t.Errorf("%s, the group is at %v", eventString(e), f.installed(reg.Group))
	}
}

// TestTreeRootRestartsInAnUpdate: the root restarts while an update is under way, with its groups
// as they were then, or as they were before. The master hears of the update, or why there is none;
// the group goes on at all of its switches, and takes the next update. If the root had accepted an
// update that was not stored, the group ends everywhere, and the master knows.
func TestTreeRootRestartsInAnUpdate(t *testing.T) {
	for k := range 50 {
		ms, stored := k/2, k%2 == 0
		f := newFabric(t, 4, [][2]int{{0, 1}, {1, 2}, {1, 3}})
		reg := sample(1, 8)
		f.members(reg, spread(8, 0, 2, 3))
		first := reg
		first.Members = reg.Members[:4]
		m := f.master(masterAddr, 0, first)
		f.run(time.Second)
		before := len(f.events[masterAddr])
		saved, _ := f.switches[0].sw.Saved(reg.Group)
		var out Output
		if err := m.Update(f.now, reg.Members[:6], &out); err != nil {
			t.Fatal(err)
		}
		f.hostDid(masterAddr, &out)
		f.run(time.Duration(ms) * time.Millisecond)
		f.restarted = true // below the root the update may be installed
		if stored {
			f.reboot(0)
		} else {
			f.start(0, []SavedGroup{saved})
		}
		f.run(20 * time.Second)
		e := f.last(masterAddr)
		if !stored && e.Kind == GroupGone && e.Err != nil && ms > 8 { // the root had accepted it
			f.run(2 * reg.Lease)
			f.checkNothingLeft()
			continue
		}
		if len(f.events[masterAddr]) == before || e.Kind != Updated && (e.Kind != UpdateFailed || e.Err == nil) {
			t.Errorf("%d ms, stored %t: %s, %v", ms, stored, eventString(e), e.Err)
			continue
		}
		f.restarted = false
		if e.Kind == Updated {
			f.checkAgreement(0, reg.Group)
		}
		if e := f.update(m, reg.Members[:8]); e.Kind != Updated {
			t.Errorf("%d ms, stored %t: the next update: %s, %v", ms, stored, eventString(e), e.Err)
		}
		f.checkAgreement(0, reg.Group)
	}
}
