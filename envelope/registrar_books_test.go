// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// checkBooks counts anew what the registrar keeps incrementally.
func checkBooks(t testing.TB, r *Registrar) {
	t.Helper()
	addresses, used, leased := 0, map[KeyID]usage{}, 0
	count := func(g *group) {
		addresses++
		if g.local() {
			return
		}
		u := used[g.key]
		used[g.key] = usage{u.groups + 1, u.members + len(g.reg.Members)}
	}
	for _, g := range r.groups {
		count(g)
		switch {
		case g.local() && g.lease.index != 0:
			t.Errorf("local group %v has a lease", g.reg.Group)
		case !g.local() && (g.lease.index == 0 || r.leases[g.lease.index-1].owner != g):
			t.Errorf("group %v is not among the leases", g.reg.Group)
		case !g.local():
			leased++
		}
	}
	for ip, g := range r.locating {
		if r.groups[ip] == nil {
			count(g)
		}
	}
	if addresses != r.addresses || !maps.Equal(used, r.usage) || leased != len(r.leases) {
		t.Errorf("kept %d addresses, %v and %d leases, counted %d, %v and %d", r.addresses, r.usage, len(r.leases), addresses, used, leased)
	}
	for i, l := range r.leases {
		if l.at < r.leases[0].at || l.index != i+1 {
			t.Errorf("lease %d, of %v, is in the wrong place", i, l.owner.reg.Group)
		}
	}
	under := map[KeyID]int{}
	for k := range r.pending {
		under[k.key]++
	}
	if len(r.tries) != len(r.locating) || len(r.expiries) != len(r.pending) || !maps.Equal(under, r.pendingUnder) || len(r.events.repeats) != len(r.events.byID) || len(r.events.about) != len(r.events.byID) {
		t.Errorf("%d timers of %d groups being located, %d of %d assemblies (%v, kept %v), %d of %d Gones (%d)", len(r.tries), len(r.locating), len(r.expiries), len(r.pending),
			under, r.pendingUnder, len(r.events.repeats), len(r.events.byID), len(r.events.about))
	}
	checkOver(t, r)
}

// checkOver checks the groups over each neighbour, and the changes that are being carried out.
func checkOver(t testing.TB, r *Registrar) {
	t.Helper()
	entries := 0
	for n, list := range r.over {
		for i, e := range list {
			if e.to != n || e.index != i || !slices.Contains(e.group.branch.entries, e) || !slices.Contains(e.group.branch.neighbours(), n) {
				t.Errorf("entry %d over neighbour %d is %+v", i, n, e)
			}
			if ip := e.group.reg.Group; r.groups[ip] != e.group && r.locating[ip] != e.group {
				t.Errorf("%v, over neighbour %d, is no group", ip, n)
			}
			entries++
		}
	}
	for _, g := range r.groups {
		if b := g.branch; b != nil {
			entries -= len(b.neighbours())
		}
	}
	for _, g := range r.locating {
		if b := g.branch; b != nil && b.state != branchPlanning {
			entries -= len(b.neighbours())
		}
	}
	if entries != 0 {
		t.Errorf("%d entries too many are over neighbours", entries)
	}
	if len(r.changes) != len(r.changeTimers) {
		t.Errorf("%d changes of neighbours have %d timers", len(r.changes), len(r.changeTimers))
	}
	for n, c := range r.changes {
		if len(r.over[n]) == 0 || c.to != n || c.timer.index == 0 || c.lost != (r.neighbours[n] == nil) {
			t.Errorf("change %+v of neighbour %d, with %d groups", c, n, len(r.over[n]))
		}
	}
}

// gones returns the Gones that wait for their Acks, in the order in which they were made.
func gones(r *Registrar) []*goneEvent {
	return slices.SortedFunc(maps.Values(r.events.byID), func(a, b *goneEvent) int { return cmp.Compare(a.id, b.id) })
}

type noTable struct{}

func (noTable) Install(*Registration, KeyID) Verdict                { return Verdict{Kind: VerdictAccepted} }
func (noTable) Remove(netip.Addr, EndReason)                        {}
func (noTable) RemoveMember(netip.Addr, MemberKey, EndReason)       {}
func (noTable) HadSource(netip.Addr) bool                           { return false }
func (noTable) FromMember(netip.Addr, netip.Addr, KeyID, bool) bool { return true }

// leasedGroups is a registrar with n groups that masters have registered under key 7.
func leasedGroups(t *testing.T, n int) (*Registrar, func(i int) *group) {
	t.Helper()
	r, err := NewRegistrar(RegistrarConfig{
		Secret: [SecretLen]byte{1}, Prefixes: []netip.Prefix{netip.MustParsePrefix("11.0.0.0/8")}, Auth: testAuth(), MaxGroups: 2 * n,
		Rights: map[KeyID]Rights{7: {Quota: Quota{Groups: 2 * n}}},
	}, noTable{})
	if err != nil {
		t.Fatal(err)
	}
	group := func(i int) *group {
		reg := sample(1, 4)
		reg.Master = netip.MustParseAddrPort("10.0.0.1:4792")
		reg.Group, reg.Epoch, reg.Lease = netip.AddrFrom4([4]byte{11, 1, byte(i >> 8), byte(i)}), 1, time.Hour
		for m := range reg.Members {
			reg.Members[m].QPN = rocev2.QPN(0x100 + 4*i + m)
		}
		return &group{reg: reg, key: 7}
	}
	var out Output
	for i := range n {
		r.tryInstall(time.Duration(i), group(i), &out)
		out.reset()
	}
	if len(r.groups) != n || len(r.leases) != n {
		t.Fatalf("%d groups and %d leases, want %d", len(r.groups), len(r.leases), n)
	}
	checkBooks(t, r)
	return r, group
}

// The work of the registrar in each iteration of the control loop, and for each registration,
// does not grow with the number of groups. A walk over all groups takes 100 times as long
// with 100 times as many. Memory that is not in a cache, and other programs, make a
// difference of less than 10 times.
func TestManyGroupsCostNoMore(t *testing.T) {
	cost := map[int]time.Duration{}
	const few, many = 100, 10_000
	for _, n := range []int{few, many} {
		r, group := leasedGroups(t, n)
		g := group(n)
		best := time.Duration(math.MaxInt64)
		var out Output
		for range 50 {
			start := time.Now()
			for range 100 {
				r.NextDeadline()
				r.Advance(time.Second, &out)
				if p := r.check(g); p != nil {
					t.Fatal(p)
				}
			}
			best = min(best, time.Since(start))
		}
		cost[n] = best / 100
	}
	t.Logf("with %d groups %v, with %d %v", few, cost[few], many, cost[many])
	if cost[many] > 10*cost[few] {
		t.Errorf("an iteration of the control loop takes %v with %d groups, %v with %d", cost[many], many, cost[few], few)
	}
}

// laterTable is a table that waits for the location of every member.
type laterTable struct{ noTable }

func (laterTable) Install(*Registration, KeyID) Verdict { return Verdict{Kind: VerdictLater} }

// The same of groups whose members are being located, of registrations that are being
// assembled, and of Gones without an Ack.
func TestManyThatWaitCostNoMore(t *testing.T) {
	cost := map[int]time.Duration{}
	const few, many = 100, 10_000
	for _, n := range []int{few, many} {
		r, err := NewRegistrar(RegistrarConfig{
			Secret: [SecretLen]byte{1}, Prefixes: []netip.Prefix{netip.MustParsePrefix("11.0.0.0/8")}, Auth: testAuth(),
			MaxGroups: 2 * n, MaxEvents: 2 * n, MaxPending: 2 * n, LocateTimeout: time.Hour, LocateRetry: time.Hour, EventRetry: time.Hour, ReassemblyTimeout: time.Hour,
		}, laterTable{})
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		var g *group
		var body *Gone
		for i := range n {
			reg := sample(1, 4)
			reg.Master = netip.MustParseAddrPort("10.0.0.1:4792")
			reg.Group, reg.Epoch, reg.Lease = netip.AddrFrom4([4]byte{11, 1, byte(i >> 8), byte(i)}), 1, time.Hour
			g, body = &group{reg: reg, key: 7}, &Gone{}
			r.tryInstall(0, g, &out)
			r.queueGone(0, g, reg.Master, body, &out)
			a := &assembly{}
			r.assemble(pendingKey{reg.Group, 7}, a)
			r.expiries.set(&a.expiry, time.Hour)
			out.reset()
		}
		checkBooks(t, r)
		g.gone = map[MemberKey]leftMember{{}: {body: body}}
		best := time.Duration(math.MaxInt64)
		for range 20 {
			start := time.Now()
			for range 20 {
				r.NextDeadline()
				r.Advance(time.Second, &out)
				if r.requeueGone(time.Second, g, MemberKey{}, &out); len(out.Packets) > 0 {
					t.Fatal("a Gone that is under way is sent once more")
				}
			}
			best = min(best, time.Since(start))
		}
		cost[n] = best / 20
	}
	t.Logf("with %d of each %v, with %d %v", few, cost[few], many, cost[many])
	if cost[many] > 10*cost[few] {
		t.Errorf("a turn of the control loop takes %v with %d of each, %v with %d", cost[many], many, cost[few], few)
	}
}

// Leases end in their order, those of one moment in the order of the addresses, and a
// renewal counts.
func TestLeasesEnd(t *testing.T) {
	r, _ := leasedGroups(t, 50)
	var out Output
	at, ok := r.NextDeadline()
	if !ok || at != time.Hour {
		t.Fatalf("the first lease ends at %v, %v", at, ok)
	}
	first := r.groups[netip.MustParseAddr("11.1.0.0")]
	r.extendLease(first, 2*time.Hour)
	for i := 10; i > 0; i-- {
		r.extendLease(r.groups[netip.AddrFrom4([4]byte{11, 1, 0, byte(i)})], time.Hour+10)
	}
	checkBooks(t, r)
	r.Advance(time.Hour+10, &out)
	var gone []netip.Addr
	for _, e := range out.Events {
		if e.Kind == GroupGone {
			gone = append(gone, e.Group)
		}
	}
	if len(gone) != 10 {
		t.Fatalf("%d groups have gone, want 10: %v", len(gone), gone)
	}
	for i, ip := range gone {
		if want := netip.AddrFrom4([4]byte{11, 1, 0, byte(i + 1)}); ip != want {
			t.Errorf("%v goes as number %d, want %v", ip, i, want)
		}
	}
	checkBooks(t, r)
}

// registeredMembers returns the members that the index has, with their groups.
func registeredMembers(r *Registrar) map[MemberKey]netip.Addr {
	members := map[MemberKey]netip.Addr{}
	for ip, qpns := range r.members {
		for qpn := range qpns {
			members[MemberKey{IP: ip, QPN: qpn}] = netip.Addr{}
		}
	}
	for ip, g := range r.groups {
		for i := range g.reg.Members {
			if k := g.reg.Members[i].Key(); r.members.has(k) {
				members[k] = ip
			}
		}
	}
	return members
}
