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
)

// TestTreeLoops: routes with a loop, and two ways to one switch, are refused.
func TestTreeLoops(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {0, 2}, {1, 2}})
	reg := sample(1, 3)
	f.members(reg, []int{0, 1, 2})
	loop := loopPlanner{f.switches[1], reg.Members[2].IP, 1} // back to switch 0, which is the parent
	f.switches[1].sw.cfg.Switch.Planner = loop
	f.switches[0].sw.cfg.Switch.Planner = loopPlanner{f.switches[0], reg.Members[2].IP, 1}
	f.master(masterAddr, 0, reg)
	f.run(3 * time.Second)
	if e := f.last(masterAddr); e.Kind != RegistrationFailed || e.Err.(*Failure).Problem.Reason != NoWay {
		t.Error(eventString(e))
	}
	f.run(time.Minute)
	f.checkNothingLeft()
}

// loopPlanner sends what is for one host to one neighbour.
type loopPlanner struct {
	*fabricSwitch
	host netip.Addr
	to   mcast.Neighbor
}

func (p loopPlanner) Ways(host netip.Addr) Ways {
	if host == p.host {
		return Ways{Verdict: Verdict{Kind: VerdictAccepted}, Hops: []mcast.Neighbor{p.to}}
	}
	return p.fabricSwitch.Ways(host)
}

// TestTreeSecondParent: two branches that meet at one switch are refused.
func TestTreeSecondParent(t *testing.T) {
	f := leafSpine(t, 2, 2)
	reg := sample(1, 4)
	f.members(reg, []int{0, 1, 1, 0})
	f.switches[0].sw.cfg.Switch.Planner = splitPlanner{f.switches[0], reg.Members}
	f.master(masterAddr, 0, reg)
	f.run(3 * time.Second)
	e := f.last(masterAddr)
	if e.Kind != RegistrationFailed || e.Err.(*Failure).Problem.Reason != SecondParent || e.Err.(*Failure).Problem.Value != uint64(switchID(1)) {
		t.Error(eventString(e))
	}
	f.run(time.Minute)
	f.checkNothingLeft()
}

type splitPlanner struct {
	*fabricSwitch
	members []MemberRecord
}

func (p splitPlanner) Ways(host netip.Addr) Ways {
	w := p.fabricSwitch.Ways(host)
	if !w.Here {
		w.Hops = w.Hops[:1]
		if host == p.members[1].IP {
			w.Hops = []mcast.Neighbor{2}
		}
	}
	return w
}

// TestTreeUnsupported: what groups over several switches cannot have is refused by name.
func TestTreeUnsupported(t *testing.T) {
	f := newFabric(t, 2, [][2]int{{0, 1}})
	reg := sample(1, 4)
	f.members(reg, spread(4, 0, 1))
	var out Output
	if _, err := f.switches[0].sw.RegisterLocal(f.now, reg, &out); err == nil {
		t.Error("by hand")
	}
	quorum := reg
	quorum.Policy, quorum.Quorum = mcast.Quorum, 1
	f.master(masterAddr, 0, quorum)
	f.run(2 * time.Second)
	if e := f.last(masterAddr); e.Kind != RegistrationFailed || e.Err.(*Failure).Problem.Value != uint64(LimitQuorum) {
		t.Error(eventString(e))
	}
	tiers := reg
	tiers.Policy, tiers.DeadAfter, tiers.SenderTimeout, tiers.SenderRetries = mcast.Evict, 300*time.Millisecond, 14, 7
	f.events[masterAddr] = nil
	f.master(masterAddr, 0, tiers) // 300 ms < 469.7 ms < 600 ms
	f.run(2 * time.Second)
	if e := f.last(masterAddr); e.Kind != RegistrationFailed || e.Err.(*Failure).Problem.Reason != BadDeadAfter {
		t.Error(eventString(e))
	}
	f.checkNothingLeft()
}

// TestTreeThousandMembers: 1,000 members behind four switches, in several segments.
func TestTreeThousandMembers(t *testing.T) {
	f := leafSpine(t, 4, 2)
	reg := sample(1, 1000)
	for i := range reg.Members {
		reg.Members[i].IP = netip.AddrFrom4([4]byte{10, 1, byte(i / 200), byte(1 + i%200)})
	}
	f.members(reg, spread(1000, 3, 0, 2, 1))
	f.master(masterAddr, 0, reg)
	f.run(5 * time.Second)
	if e := f.last(masterAddr); e.Kind != Registered {
		t.Fatal(eventString(e))
	}
	for _, i := range f.installed(reg.Group) {
		if g := f.switches[i].table.groups[reg.Group]; len(g.Members) != 1000 || !slices.EqualFunc(g.Members, reg.Members, func(a, b MemberRecord) bool { return a == b }) {
			t.Errorf("switch %d has other members", i)
		}
	}
}

// TestTreeMasterAlone: the master is at a switch without members; all of them are at another.
func TestTreeMasterAlone(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
	reg := sample(1, 4)
	f.members(reg, spread(4, 2))
	m := f.master(masterAddr, 0, reg)
	f.run(time.Second)
	if on := f.installed(reg.Group); f.last(masterAddr).Kind != Registered || len(on) != 3 {
		t.Errorf("installed at %v, %s", on, eventString(f.last(masterAddr)))
	}
	var out Output
	m.Delete(f.now, &out)
	f.hostDid(masterAddr, &out)
	f.run(5 * time.Second)
	f.checkNothingLeft()
}

// checkNothingLeft fails the test if a switch has state of any group.
func (f *fabric) checkNothingLeft() {
	f.t.Helper()
	for i, s := range f.switches {
		r := s.sw
		if len(s.table.groups)+len(r.groups)+len(r.locating)+len(r.members)+len(r.requests)+len(r.requestTimers)+len(r.preparing)+
			len(r.prepareExpiries)+len(r.refusals)+len(r.refusalExpiries)+len(r.graces)+len(r.rebuilds)+len(r.routeChecks)+len(r.over)+len(r.changes)+len(r.changeTimers)+len(r.leases)+len(r.tries)+len(r.usage) > 0 {
			f.t.Errorf("switch %d has left: table %v, groups %v, locating %v, members %v, requests %v, preparing %v, load %v, %d changes, %d leases, %d tries",
				i, len(s.table.groups), r.groups, r.locating, r.members, requestText(r), r.preparing, r.over, len(r.changes), len(r.leases), len(r.tries))
		}
	}
}

func requestText(r *Registrar) (s []string) {
	for id := range r.requests {
		s = append(s, fmt.Sprintf("%v to %d", id.kind, id.to))
	}
	return s
}

// leafSpine returns leaves 0..l-1 and spines l..l+s-1, with a link from each to each.
func leafSpine(t testing.TB, l, s int) *fabric {
	var links [][2]int
	for i := range l {
		for j := range s {
			links = append(links, [2]int{i, l + j})
		}
	}
	return newFabric(t, l+s, links)
}

// randomTree returns a connected fabric with a tree and some more links.
func randomTree(t testing.TB, rnd *rand.Rand) *fabric {
	n := 2 + rnd.IntN(6)
	var links [][2]int
	for i := 1; i < n; i++ {
		links = append(links, [2]int{rnd.IntN(i), i})
	}
	for range rnd.IntN(3) {
		a, b := rnd.IntN(n), rnd.IntN(n)
		if l := [2]int{min(a, b), max(a, b)}; a != b && !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	return newFabric(t, n, links)
}
