// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// TestTreeUpdateLosesASwitch: a switch restarts in each moment of an update. The group goes on
// with it, as it was or updated, and the master knows which.
func TestTreeUpdateLosesASwitch(t *testing.T) {
	for victim := 1; victim < 4; victim++ {
		for ms := range 14 {
			f := newFabric(t, 4, [][2]int{{0, 1}, {1, 2}, {1, 3}})
			reg := sample(1, 12)
			f.members(reg, spread(12, 0, 1, 2, 3))
			first := reg
			first.Members = reg.Members[:8]
			m := f.master(masterAddr, 0, first)
			f.run(time.Second)
			var out Output
			if err := m.Update(f.now, reg.Members[2:], &out); err != nil {
				t.Fatal(err)
			}
			f.hostDid(masterAddr, &out)
			f.run(time.Duration(ms)*hop + hop/2)
			f.restarted = true
			f.boot(victim)
			f.run(2500 * time.Millisecond)
			f.restarted = false
			f.checkAgreement(0, reg.Group)
			n := len(f.switches[0].table.groups[reg.Group].Members)
			f.run(12 * time.Second)
			f.checkAgreement(0, reg.Group)
			if e := f.last(masterAddr); e.Kind != Updated && e.Kind != UpdateFailed || (e.Kind == Updated) != (n == 10) {
				t.Errorf("%d members, and the master knows %s", n, eventString(e))
			}
			if t.Failed() {
				t.Fatalf("switch %d restarted after %d ms", victim, ms)
			}
		}
	}
}

// TestTreeMembersGoMeanwhile: members are evicted at their switches, and leave, in each moment
// of an update that names them. They are gone everywhere, and the master knows.
func TestTreeMembersGoMeanwhile(t *testing.T) {
	for at := range 4 {
		for ms := range 14 {
			f := newFabric(t, 4, [][2]int{{0, 1}, {1, 2}, {1, 3}})
			reg := sample(1, 12)
			f.members(reg, spread(12, 0, 1, 2, 3))
			first := reg
			first.Members = reg.Members[:8]
			m := f.master(masterAddr, 0, first)
			f.run(time.Second)
			var out Output
			if err := m.Update(f.now, reg.Members, &out); err != nil {
				t.Fatal(err)
			}
			f.hostDid(masterAddr, &out)
			f.run(time.Duration(ms)*hop + hop/2)
			f.restarted = true // switches hear of it one after the other
			gone := reg.Members[at]
			f.switches[at].table.RemoveMember(reg.Group, gone.Key(), Evicted)
			f.switches[at].sw.MemberEvicted(f.now, reg.Group, gone.Key(), mcast.Silent, 7, &out)
			f.switchDid(at, &out)
			f.run(3 * time.Second)
			f.restarted = false
			f.checkAgreement(0, reg.Group)
			if slices.Contains(f.switches[0].table.groups[reg.Group].Members, gone) || slices.Contains(m.Members(), gone) {
				t.Errorf("the member is still there; the master has %v", m.Members())
			}
			if e := f.last(masterAddr); e.Kind != Updated && e.Kind != UpdateFailed && e.Kind != MemberGone {
				t.Error(eventString(e))
			}
			if t.Failed() {
				t.Fatalf("evicted at switch %d after %d ms", at, ms)
			}
		}
	}
}

// TestTreeJoinsWhereTheLastHasLeft: the last member behind a switch leaves, and another one joins there at once. The End that
// takes the switch off the tree is late by any time, so that it meets the update before, in and after each of its steps: it
// ends what was there, and not the update.
func TestTreeJoinsWhereTheLastHasLeft(t *testing.T) {
	for late := range 12 {
		f := newFabric(t, 2, [][2]int{{0, 1}})
		reg := sample(1, 4)
		f.members(reg, []int{0, 0, 1, 1})
		first := reg
		first.Members = reg.Members[:3]
		m := f.master(masterAddr, 0, first)
		f.run(time.Second)
		f.fault = func(_, _ int, b []byte) []time.Duration {
			if relayKind(b[relayKindOffset]) == relayEnd {
				return []time.Duration{hop + time.Duration(late)*hop/2}
			}
			return []time.Duration{hop}
		}
		var out Output
		left := reg.Members[2]
		a := netip.AddrPortFrom(left.IP, DefaultPort)
		if err := f.hosts[a].(*Member).Leave(f.now, reg.Group, &out); err != nil {
			t.Fatal(err)
		}
		f.hostDid(a, &out)
		for slices.Contains(m.Members(), left) {
			f.run(hop / 4)
		}
		if err := m.Update(f.now, append(m.Members(), reg.Members[3]), &out); err != nil {
			t.Fatal(err)
		}
		f.hostDid(masterAddr, &out)
		f.run(100 * hop)
		if e := f.last(masterAddr); e.Kind != Updated {
			t.Errorf("End late by %v: the master says %v after 100 ms", time.Duration(late)*hop/2, eventString(e))
		}
		for i := range f.switches {
			for _, e := range f.switches[i].events {
				if e.Kind == RegistrationFailed || e.Kind == RebuildFailed || e.Kind == Rebuilt {
					t.Errorf("End late by %v: switch %d: %v", time.Duration(late)*hop/2, i, eventString(e))
				}
			}
		}
		f.checkAgreement(0, reg.Group)
	}
}

// TestTreeDiskIsFull: a member joins while the disk of one switch is full, which that one notices before, or by what it has to
// store of the update. The group goes on as it was, and in the end the switches and the master agree.
func TestTreeDiskIsFull(t *testing.T) {
	for full := range 3 {
		for _, noticed := range []time.Duration{-hop, hop, 3 * hop, 20 * hop} {
			for _, length := range []time.Duration{time.Second, 6 * time.Second, 15 * time.Second} {
				f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
				reg := sample(1, 5)
				f.members(reg, []int{0, 1, 2, 0, 2})
				first := reg
				first.Members = reg.Members[:4]
				m := f.master(masterAddr, 0, first)
				f.run(time.Second)
				f.restarted = true // a switch may lack the update for a while
				f.setFull(full, true)
				if noticed < 0 {
					f.switches[full].sw.SetStorageFails(true)
				}
				var out Output
				if err := m.Update(f.now, reg.Members, &out); err != nil {
					t.Fatal(err)
				}
				f.hostDid(masterAddr, &out)
				f.run(max(noticed, 0))
				f.switches[full].sw.SetStorageFails(true)
				f.run(length)
				if g := f.switches[0].table.groups[reg.Group]; full == 0 && length < 10*time.Second && g.Find(reg.Members[4].Key()) >= 0 { // then those below have forgotten it
					t.Error("the root has installed the update, of which it could tell no other switch")
				}
				f.switches[full].sw.SetStorageFails(false)
				f.setFull(full, false)
				f.run(8 * time.Second)
				f.restarted = false
				f.checkAgreement(0, reg.Group)
				for i := range f.switches {
					for _, e := range f.switches[i].events {
						if e.Kind == GroupGone {
							t.Errorf("switch %d: %v, %v", i, eventString(e), e.Err)
						}
					}
				}
				e := f.last(masterAddr)
				var p *Problem
				if g := f.switches[0].table.groups[reg.Group]; e.Kind != Updated && !(e.Kind == UpdateFailed && errors.As(e.Err, &p) && p.Reason == NotStored && g != nil && len(g.Members) == 4) {
					t.Errorf("the master says %v, %v", eventString(e), e.Err)
				}
				if t.Failed() {
					t.Fatalf("disk of switch %d full for %v, noticed after %v", full, length, noticed)
				}
			}
		}
	}
}

// TestTreeRebuildsAreCoalesced: however often a root is asked, it begins a rebuild at once, and
// the next one not before 200 ms have passed.
func TestTreeRebuildsAreCoalesced(t *testing.T) {
	f := leafSpine(t, 3, 2)
	reg := f.registered(0, 1, 2)
	g := f.switches[0].sw.groups[reg.Group]
	seen := map[attemptID]bool{}
	f.captured = nil
	for range 100 {
		f.switches[0].sw.wantRebuild(f.now, f.switches[0].sw.groups[reg.Group], LostLink{})
		f.run(10 * time.Millisecond)
	}
	for _, x := range f.captured {
		if m := unsealed(x.b); m.kind == relayPrepare {
			seen[m.id] = true
		}
	}
	if len(seen) < 2 || len(seen) > 6 {
		t.Errorf("%d rebuilds in a second", len(seen))
	}
	if f.switches[0].sw.groups[reg.Group] == g {
		t.Error("nothing was built anew")
	}
	f.checkAgreement(0, reg.Group)
}

// TestTreeRestoredAlone: a switch comes back with its group, and its neighbours do not. The
// group ends after the grace.
func TestTreeRestoredAlone(t *testing.T) {
	for victim := range 3 {
		f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
		reg := f.registered(0, 1, 2)
		for _, p := range f.switches[victim].peers {
			f.severed[[2]int{min(victim, p), max(victim, p)}] = true
		}
		f.reboot(victim)
		f.run(2900 * time.Millisecond)
		if f.switches[victim].table.groups[reg.Group] == nil {
			t.Errorf("switch %d: ended within the grace", victim)
		}
		f.run(200 * time.Millisecond)
		if f.switches[victim].table.groups[reg.Group] != nil {
			t.Errorf("switch %d: still there", victim)
		}
	}
}

// TestTreeRefusalIsRepeated: a Prepare that is repeated after it was refused gets the same
// answer, also if the reason has gone by then.
func TestTreeRefusalIsRepeated(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
	reg := sample(1, 6)
	f.members(reg, spread(6, 0, 1, 2))
	f.switches[1].noWay[reg.Members[2].IP] = NoWay
	refusals := 0
	f.fault = func(from, to int, b []byte) []time.Duration {
		m := unsealed(b)
		if from == 1 && m.kind == relayRefused {
			f.switches[1].noWay = nil
			if refusals++; refusals < 4 {
				return nil
			}
		}
		return []time.Duration{hop}
	}
	f.master(masterAddr, 0, reg)
	f.run(5 * time.Second)
	if e := f.last(masterAddr); refusals != 4 || e.Kind != RegistrationFailed || e.Err.(*Failure).Problem.Reason != NoWay {
		t.Errorf("%d refusals, %s", refusals, eventString(e))
	}
	f.run(time.Minute)
	f.checkNothingLeft()
}

// TestTreeUpdateLosesASilentSwitch: a switch that has been prepared answers nothing any more,
// while its hellos go on. The others install the update, and end the group after the grace.
func TestTreeUpdateLosesASilentSwitch(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
	reg := sample(1, 9)
	f.members(reg, spread(9, 0, 1, 2))
	first := reg
	first.Members = reg.Members[:6]
	m := f.master(masterAddr, 0, first)
	f.run(time.Second)
	f.restarted = true
	f.fault = func(from, to int, b []byte) []time.Duration {
		if m := unsealed(b); m.kind == relayCommit && to == 2 {
			f.silent[2] = true
		}
		return []time.Duration{hop}
	}
	if e := f.update(m, reg.Members); e.Kind == Updated {
		t.Error(eventString(e))
	}
	f.run(2 * time.Second)
	if n := len(f.switches[0].table.groups[reg.Group].Members); n != 9 {
		t.Errorf("%d members", n)
	}
	f.run(4 * time.Second)
	if e := f.last(masterAddr); e.Kind != GroupGone || e.EndReason != SwitchLost || len(f.installed(reg.Group)) != 1 {
		t.Errorf("%s, still at %v", eventString(e), f.installed(reg.Group))
	}
}

// TestTreeCommitRefused: a switch that refuses the second step of an update, and of all rebuilds
// after that, ends the group after one grace.
func TestTreeCommitRefused(t *testing.T) {
	for _, links := range [][][2]int{{{0, 1}, {1, 2}}, {{0, 1}, {0, 2}}} {
		f := newFabric(t, 3, links)
		reg := sample(1, 9)
		f.members(reg, spread(9, 0, 1, 2))
		m := f.master(masterAddr, 0, reg)
		f.run(time.Second)
		f.restarted = true // switch 2 lacks what the others have
		f.switches[2].table.verdict[reg.Group] = Verdict{VerdictRejected, Problem{Reason: TooManyMembers}}
		if e := f.update(m, reg.Members[1:]); e.Kind == Updated {
			t.Fatalf("%s, %v", eventString(e), e.Err)
		}
		f.run(800 * time.Millisecond)
		if on := f.installed(reg.Group); len(on) != 3 {
			t.Errorf("installed at %v within the grace", on)
		}
		f.run(400 * time.Millisecond)
		if e := f.last(masterAddr); e.Kind != GroupGone || e.EndReason != SwitchLost {
			t.Errorf("the master knows %s", eventString(e))
		}
		f.run(time.Minute)
		f.checkNothingLeft()
	}
}

// checkUpdated fails the test if a switch of a member serves the group as it was before the
// update of which a master has heard: it would acknowledge data that a new member lacks.
func (f *fabric) checkUpdated(e *Event) {
	f.t.Helper()
	for _, root := range f.switches {
		updated := root.table.groups[e.Group]
		if updated == nil || updated.Epoch < e.Epoch || !root.sw.groups[e.Group].isRoot() {
			continue
		}
		for k := range updated.Members {
			at := f.at[updated.Members[k].IP]
			if g := f.switches[at].table.groups[e.Group]; g != nil && g.Epoch < e.Epoch {
				f.t.Errorf("%v: the master knows of epoch %d of %s, and switch %d serves epoch %d", f.now, e.Epoch, e.Group, at, g.Epoch)
			}
		}
	}
}

// TestTreeUpdateWaitsForAll: a switch refuses the second step of an update until a rebuild.
// The master hears of the update when that switch has it too, also if the root restarts meanwhile.
func TestTreeUpdateWaitsForAll(t *testing.T) {
	for _, links := range [][][2]int{{{0, 1}, {1, 2}}, {{0, 1}, {0, 2}}} {
		for _, restart := range []bool{false, true} {
			f := newFabric(t, 3, links)
			reg := sample(1, 9)
			f.members(reg, spread(9, 0, 1, 2))
			first := reg
			first.Members = reg.Members[:8]
			m := f.master(masterAddr, 0, first)
			f.run(time.Second)
			f.restarted = true // switch 2 lacks what the others have
			f.switches[2].table.verdict[reg.Group] = Verdict{VerdictRejected, Problem{Reason: TooManyMembers}}
			var out Output
			if err := m.Update(f.now, reg.Members, &out); err != nil {
				t.Fatal(err)
			}
			f.hostDid(masterAddr, &out)
			f.run(time.Second)
			if e := f.last(masterAddr); e.Kind != Registered {
				t.Errorf("the master knows %s, and a switch lacks the update", eventString(e))
			}
			if restart {
				f.reboot(0)
			}
			delete(f.switches[2].table.verdict, reg.Group)
			f.run(2 * time.Second)
			f.checkAgreement(0, reg.Group)
			if e := f.last(masterAddr); !restart && (e.Kind != Updated || e.Total != 9) || e.Kind == GroupGone {
				t.Errorf("restart %v: the master knows %s", restart, eventString(e))
			}
			if on := f.installed(reg.Group); len(on) != 3 {
				t.Errorf("installed at %v", on)
			}
		}
	}
}

// laterPlanner does not know the ways yet.
type laterPlanner struct{ *fabricSwitch }

func (laterPlanner) Ways(netip.Addr) Ways { return Ways{Verdict: Verdict{Kind: VerdictLater}} }

// TestTreeEndsBeforeARebuild: a group ends while its root does not know the ways for a rebuild.
// There is no rebuild when it knows them.
func TestTreeEndsBeforeARebuild(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
	f.registered(0, 1, 2)
	s := f.switches[0]
	s.sw.cfg.Switch.Planner = laterPlanner{s}
	f.cut(0, 1)
	f.run(3100 * time.Millisecond)
	s.sw.cfg.Switch.Planner = s
	f.connect(0, 1, 1)
	if e := f.last(masterAddr); e.Kind != GroupGone || e.EndReason != SwitchLost {
		t.Errorf("the master knows %s", eventString(e))
	}
	f.run(time.Minute)
	f.checkNothingLeft()
}
