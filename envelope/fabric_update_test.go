// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// checkInstall panics if r cannot follow what is installed. It returns r's tree.
func (t *tableStub) checkInstall(r *Registration) *Tree {
	old := t.groups[r.Group]
	if r.Tree != nil && r.Tree.Elsewhere && (old != nil || r.Base != 0) {
		panic("a group that runs elsewhere is here")
	}
	seen := map[uint32]bool{}
	for i := range r.Members {
		if seen[r.Number(i)] {
			panic(fmt.Sprintf("number %d twice", r.Number(i)))
		}
		seen[r.Number(i)] = true
	}
	if r.Base == 0 {
		return r.Tree
	}
	if old == nil || old.Epoch != r.Base || old.Origin != r.Origin {
		panic(fmt.Sprintf("update of epoch %d to %d from %v", r.Base, r.Epoch, old))
	}
	for i := range r.Members {
		for j := range old.Members {
			if (r.Number(i) == old.Number(j)) != (r.Members[i] == old.Members[j]) {
				panic(fmt.Sprintf("member %v has number %d, %v has %d", r.Members[i], r.Number(i), old.Members[j], old.Number(j)))
			}
		}
	}
	return r.Tree
}

// update has a master update its group to members, and returns its last event.
func (f *fabric) update(m *Master, members []MemberRecord) Event {
	f.t.Helper()
	var out Output
	if err := m.Update(f.now, members, &out); err != nil {
		f.t.Fatal(err)
	}
	f.hostDid(masterAddr, &out)
	f.run(2 * time.Second)
	return f.last(masterAddr)
}

// checkAgreement fails the test unless the group is at exactly the switches that its tree
// leads to from switch root, all in the same attempt and with the same members and numbers.
func (f *fabric) checkAgreement(root int, ip netip.Addr) {
	f.t.Helper()
	f.checkTree(root, ip)
	r := f.switches[root].sw.groups[ip]
	if r == nil {
		f.t.Errorf("the root %d does not have %s", root, ip)
		return
	}
	want := f.switches[root].table.groups[ip]
	reached := []int{root}
	for at := 0; at < len(reached); at++ {
		i := reached[at]
		s := f.switches[i]
		g, reg := s.sw.groups[ip], s.table.groups[ip]
		switch {
		case g == nil || reg == nil:
			f.t.Errorf("switch %d does not have %s", i, ip)
			continue
		case !slices.Equal(reg.Members, want.Members) || !slices.Equal(reg.numbers(), want.numbers()) || reg.Epoch != want.Epoch || reg.Origin != want.Origin:
			f.t.Errorf("switch %d has epoch %d, origin %d, %v %v, the root %d, %d, %v %v", i, reg.Epoch, reg.Origin, reg.Members, reg.numbers(), want.Epoch, want.Origin, want.Members, want.numbers())
		case (g.branch == nil) != (r.branch == nil) || g.branch != nil && g.branch.id != r.branch.id:
			f.t.Errorf("switch %d has another attempt than the root", i)
		case !slices.Equal(g.reg.Members, reg.Members) || !slices.Equal(g.reg.numbers(), reg.numbers()):
			f.t.Errorf("switch %d: the registrar has %v, the table %v", i, g.reg.Members, reg.Members)
		}
		if g.branch == nil {
			continue
		}
		for _, c := range g.branch.children {
			below := s.peers[c.to-1]
			if slices.Contains(reached, below) {
				f.t.Errorf("switch %d is in the tree twice", below)
				continue
			}
			reached = append(reached, below)
		}
	}
	on := f.installed(ip)
	if slices.Sort(reached); !slices.Equal(on, reached) {
		f.t.Errorf("%s is at %v, its tree leads to %v", ip, on, reached)
	}
}

// TestTreeUpdates: members at any switches join and leave by updates. The tree grows and
// shrinks with them, down to one switch and back; those that stay hear nothing.
func TestTreeUpdates(t *testing.T) {
	f := newFabric(t, 5, [][2]int{{0, 1}, {1, 2}, {1, 3}, {3, 4}})
	reg := sample(1, 10)
	f.members(reg, spread(10, 0, 0, 2, 3, 4))
	at := func(ks ...int) (ms []MemberRecord) {
		for _, k := range ks {
			ms = append(ms, reg.Members[k])
		}
		return ms
	}
	first := reg
	first.Members = at(0, 1)
	m := f.master(masterAddr, 0, first)
	f.run(time.Second)
	f.checkAgreement(0, reg.Group)
	numbers := map[MemberKey]uint32{}
	highest := uint32(0)
	for step, ks := range [][]int{
		{0, 1, 2},          // to another switch
		{0, 1, 2, 3, 5, 4}, // in another order, two more switches
		{0, 1, 4, 3},       // one switch has none any more
		{1, 3, 4, 9},
		{0, 1}, // one switch
		{0, 6, 7, 8, 9},
		{7, 8}, // none where the master is
		{7, 2},
		{0, 5},
	} {
		before := map[netip.Addr]int{}
		for _, rec := range reg.Members {
			before[rec.IP] = len(f.events[netip.AddrPortFrom(rec.IP, DefaultPort)])
		}
		was := f.switches[0].table.groups[reg.Group]
		fresh := at(ks...)
		for i := range fresh { // a member that comes back has restarted its queue pair
			if _, used := numbers[fresh[i].Key()]; used && was.Find(fresh[i].Key()) < 0 {
				fresh[i].QPN += 100
				for j := range reg.Members {
					if reg.Members[j].IP == fresh[i].IP {
						reg.Members[j] = fresh[i]
					}
				}
				f.rejoin(fresh[i], reg)
			}
		}
		if e := f.update(m, fresh); e.Kind != Updated {
			t.Fatalf("step %d: %s %v", step, eventString(e), e.Err)
		}
		f.checkAgreement(0, reg.Group)
		is := f.switches[0].table.groups[reg.Group]
		for i, rec := range is.Members {
			k := rec.Key()
			if n := numbers[k]; n != 0 && n != is.Number(i) || n == 0 && is.Number(i) <= highest {
				t.Errorf("step %d: %v has number %d, had %d; the highest was %d", step, k, is.Number(i), n, highest)
			}
			numbers[k] = is.Number(i)
		}
		for _, n := range numbers {
			highest = max(highest, n)
		}
		for _, rec := range reg.Members {
			heard := len(f.events[netip.AddrPortFrom(rec.IP, DefaultPort)]) - before[rec.IP]
			had, has := slices.Contains(was.Members, rec), slices.Contains(is.Members, rec)
			if (had == has) != (heard == 0) {
				t.Errorf("step %d: %s was in it: %t, is: %t, and has heard %d", step, rec.IP, had, has, heard)
			}
			if e := f.last(netip.AddrPortFrom(rec.IP, DefaultPort)); had && !has && e.EndReason != Removed {
				t.Errorf("step %d: %s knows %s", step, rec.IP, eventString(e))
			}
		}
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
	f.run(2 * reg.Lease)
	f.checkAgreement(0, reg.Group)
	var out Output
	m.Delete(f.now, &out)
	f.hostDid(masterAddr, &out)
	f.run(5 * time.Second)
	f.checkNothingLeft()
}

// rejoin gives the host of a member another queue pair.
func (f *fabric) rejoin(rec MemberRecord, reg Registration) {
	a := netip.AddrPortFrom(rec.IP, DefaultPort)
	m, err := NewMember(MemberConfig{Local: a, Auth: testAuth(), Seed: uint64(f.seq)})
	if err == nil {
		err = m.Join(membershipOf(rec, reg))
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.hosts[a] = m
}

// TestTreeUpdateRefused: whatever one switch has against an update, the group goes on as it
// was, at the same switches.
func TestTreeUpdateRefused(t *testing.T) {
	reg := sample(1, 6)
	far := reg.Members[5] // behind switch 3
	for name, c := range map[string]struct {
		break_ func(f *fabric)
		want   Reason
	}{
		"location": {func(f *fabric) {
			f.switches[3].check[far.IP] = Verdict{VerdictRejected, Problem{Reason: UnknownMemberLocation}}
		}, UnknownMemberLocation},
		"no way":  {func(f *fabric) { f.switches[1].noWay[far.IP] = NoWay }, NoWay},
		"no room": {func(f *fabric) { f.switches[3].sw.cfg.MaxGroups = 0 }, TableFull},
		"silent":  {func(f *fabric) { f.silent[3] = true }, SwitchSilent},
		"another life": {func(f *fabric) {
			f.switches[2].sw.groups[reg.Group].reg.Origin++
		}, WrongBase},
		"parameter": {func(f *fabric) {
			f.switches[2].sw.groups[reg.Group].reg.PathMTU = 256
		}, FixedParameter},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(t, 4, [][2]int{{0, 1}, {1, 2}, {1, 3}})
			f.members(reg, []int{0, 0, 2, 2, 2, 3})
			first := reg
			first.Members = reg.Members[:4]
			m := f.master(masterAddr, 0, first)
			f.run(time.Second)
			c.break_(f)
			e := f.update(m, reg.Members)
			f.run(10 * time.Second)
			e = f.last(masterAddr)
			failure, ok := e.Err.(*Failure)
			if e.Kind != UpdateFailed || !ok || failure.Problem.Reason != c.want {
				t.Fatalf("master: %s", eventString(e))
			}
			if on := f.installed(reg.Group); fmt.Sprint(on) != "[0 1 2]" || len(f.switches[2].table.groups[reg.Group].Members) != 4 {
				t.Errorf("at %v", on)
			}
			for i, s := range f.switches {
				if len(s.sw.locating) > 0 {
					t.Errorf("switch %d: an attempt is left", i)
				}
			}
		})
	}
}

// TestTreeIdentical: a master that registers its live group again has it go on in all of the
// tree, under a new epoch, and all members are notified.
func TestTreeIdentical(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
	reg := f.registered(0, 1, 2)
	for _, s := range f.switches {
		s.table.carried[reg.Group] = true
	}
	before := f.switches[2].table.groups[reg.Group]
	f.events = map[netip.AddrPort][]Event{}
	f.master(masterAddr, 0, reg) // restarted
	f.run(2 * time.Second)
	if e := f.last(masterAddr); e.Kind != Registered || e.Epoch <= before.Epoch {
		t.Fatal(eventString(e))
	}
	f.checkAgreement(0, reg.Group)
	if now := f.switches[2].table.groups[reg.Group]; now.Origin != before.Origin || now.Base != before.Epoch {
		t.Errorf("origin %d and base %d, was epoch %d", now.Origin, now.Base, before.Epoch)
	}
}
