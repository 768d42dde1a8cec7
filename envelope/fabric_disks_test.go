// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"math/rand/v2"
	"testing"
	"time"
)

// fill has the disk of switch i be full, which it notices by what it has to store, or well again.
func (f *fabric) fill(i int, full bool) {
	f.switches[i].sw.SetStorageFails(full)
	f.setFull(i, full)
}

// checkRan fails the test if a group has ended at a switch.
func (f *fabric) checkRan() {
	f.t.Helper()
	for i := range f.switches {
		for _, e := range f.switches[i].events {
			if e.Kind == GroupGone {
				f.t.Errorf("switch %d: %v, %v", i, eventString(e), e.Err)
			}
		}
	}
}

// TestDeleteAfterARenew: a master deletes its group while it does not know that the switch has installed an update. A Renew of
// before is refused for its epoch then: the group is deleted all the same.
func TestDeleteAfterARenew(t *testing.T) {
	f := newFabric(t, 2, [][2]int{{0, 1}})
	reg := sample(1, 5)
	f.members(reg, spread(5, 0, 1))
	first := reg
	first.Members = reg.Members[:4]
	m := f.master(masterAddr, 0, first)
	f.run(time.Second)
	var renew, out Output
	m.sendRenew(f.now, &renew)
	delete(f.hosts, masterAddr) // the Accept is lost
	if err := m.Update(f.now, reg.Members, &out); err != nil {
		t.Fatal(err)
	}
	f.hostDid(masterAddr, &out)
	f.run(50 * hop)
	f.hosts[masterAddr] = m
	m.Delete(f.now, &out)
	f.hostDid(masterAddr, &renew)
	f.run(5 * hop)
	f.hostDid(masterAddr, &out)
	f.run(5 * time.Second)
	if e := f.last(masterAddr); e.Kind != GroupGone || e.EndReason != Deleted {
		t.Error(eventString(e))
	}
	f.checkNothingLeft()
}

// TestTreeNewSwitchHasAFullDisk: an update takes a switch into the tree whose disk is full, so that its Committed waits, for
// longer than its first lease. The root, which cannot write either, asks on, and the group goes on.
func TestTreeNewSwitchHasAFullDisk(t *testing.T) {
	f := newFabric(t, 2, [][2]int{{0, 1}})
	reg := sample(1, 4)
	f.members(reg, []int{0, 0, 0, 1})
	first := reg
	first.Members = reg.Members[:3]
	m := f.master(masterAddr, 0, first)
	f.run(time.Second)
	f.switches[0].sw.SetStorageFails(true)
	f.setFull(1, true)
	var out Output
	if err := m.Update(f.now, reg.Members, &out); err != nil {
		t.Fatal(err)
	}
	f.hostDid(masterAddr, &out)
	f.run(15 * time.Second)
	f.setFull(1, false)
	f.run(time.Second)
	f.checkAgreement(0, reg.Group)
	if f.checkRan(); f.last(masterAddr).Kind != Updated {
		t.Error(eventString(f.last(masterAddr)))
	}
}

// TestTreeDisksFill: disks become full at any times while members join, each for less than a third of the lease. The group goes
// on, and in the end the switches and the master agree.
func TestTreeDisksFill(t *testing.T) {
	for seed := range fabricRuns(100) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		f := newFabric(t, 2, [][2]int{{0, 1}})
		reg := sample(1, 12)
		f.members(reg, spread(12, 0, 1))
		first := reg
		first.Members = reg.Members[:3]
		m := f.master(masterAddr, rnd.IntN(2), first)
		f.run(time.Second)
		f.restarted = true // a switch may lack an update for a while
		var since [2]time.Duration
		for n := 4; f.now < 30*time.Second; {
			if i := rnd.IntN(2); !f.switches[i].full {
				f.fill(i, true)
				since[i] = f.now
			}
			f.run(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			for i := range since {
				if f.now > since[i]+time.Duration(rnd.IntN(7000))*time.Millisecond {
					f.fill(i, false)
				}
			}
			var out Output
			if n < len(reg.Members) && m.Update(f.now, append(m.Members(), reg.Members[n]), &out) == nil {
				n++
				f.hostDid(masterAddr, &out)
				f.run(time.Duration(rnd.IntN(40)) * time.Millisecond)
			}
		}
		for i := range f.switches {
			f.fill(i, false)
		}
		f.run(8 * time.Second)
		f.restarted = false
		f.checkAgreement(f.at[masterAddr.Addr()], reg.Group)
		if f.checkRan(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
