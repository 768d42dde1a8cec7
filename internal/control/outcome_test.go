// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// evicts is what makes the core evict member 2 of a group of three under evict: the
// source sends message psn, member 1 acknowledges it, member 2 fails.
func evicts(psn rocev2.PSN) []mcast.Packet {
	return []mcast.Packet{
		send(0, psn), answer(1, psn.Add(1000), rocev2.SyndromeACK), answer(2, psn.Add(2000), rocev2.SyndromeNAKOpErr),
	}
}

// turns is n turns of hosts 0 and 1, which have sent psn messages each, with host 2
// as a receiver.
func turns(n int, psn rocev2.PSN) (ps []mcast.Packet) {
	all := int32(2 * psn)
	for i := range n {
		src, other := i%2, 1-i%2
		at := psn.Add(int32(i / 2))
		if src == 0 {
			ps = append(ps, send(0, at), answer(1, at.Add(1000), rocev2.SyndromeACK))
		} else {
			ps = append(ps, send(1, at.Add(1000)), answer(0, at, rocev2.SyndromeACK))
		}
		_ = other
		ps = append(ps, answer(2, rocev2.PSN(2000).Add(all+int32(i)), rocev2.SyndromeACK))
	}
	return ps
}

// An eviction reaches API, registrar and journal however much another group has to
// say at the same time.
func TestNoGroupHidesAnothersEviction(t *testing.T) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			f := newFakeSwitch(t, 3, workers)
			f.register(0, 3, 0x100, "evict")
			f.register(1, 3, 0x200, "evict")
			const n = 3000
			f.control.do(func() { // the control loop is busy
				f.feed(0, turns(n, 0)...)
				f.feed(1, evicts(0)...)
			})
			f.eventually("the journal has the eviction", func() bool { return len(f.events(1, api.EventEvicted)) == 1 })
			e := f.events(1, api.EventEvicted)
			if len(e) != 1 || e[0].Member != fakeHost(2) || e[0].PSN == nil || *e[0].PSN != 0xFFFFFF || e[0].Reason != "fatal NAK 0x63, remote operational error (completion status 11)" {
				t.Errorf("evictions in the journal: %+v", e)
			}
			g, err := f.Group(fakeGroup(1))
			if err != nil || len(g.Former) != 1 || len(g.Members) != 2 {
				t.Errorf("group show: %+v, %v", g, err)
			}
			f.eventually("the journal has the turns", func() bool { return len(f.events(0, api.EventSource)) > 0 })
			if es := f.events(0, api.EventSource); len(es) != 1 || es[0].Reason != fmt.Sprintf("the last of %d turns", n) || es[0].Member != fakeHost(1) {
				t.Errorf("turns in the journal: %+v", es)
			}
		})
	}
}

// TestEvictedHostIsNoMember: a host whose only member is evicted is a guest at once: it is
// not pinned any more, and forgotten after a while. A host that is still a member of another
// group stays as it is.
func TestEvictedHostIsNoMember(t *testing.T) {
	for _, both := range []bool{false, true} {
		f := newFakeSwitch(t, 3, 1)
		f.register(0, 3, 0x100, "evict")
		if both {
			f.register(1, 3, 0x200, "evict")
		}
		f.control.do(func() {
			f.control.dir.hosts.SetPinner(pinnerFunc(func(ip netip.Addr) {
				if ip != fakeHost(2) || both {
					t.Errorf("the pin of %v may have changed", ip)
				}
			}))
		})
		f.feed(0, evicts(0)...)
		f.eventually("the journal has the eviction", func() bool { return len(f.events(0, api.EventEvicted)) == 1 })
		f.control.do(func() {
			x, g := f.control.dir.hosts, f.control.dir.groups[fakeGroup(0)]
			h := x.Of(fakeHost(2))
			if groups := slices.Collect(h.Groups()); slices.Contains(groups, fakeGroup(0)) || h.IsMember() != both {
				t.Errorf("the host of the evicted member is in %v; another group %v", groups, both)
			}
			if at, in := g.hostSlot(fakeHost(2)); in || len(slices.Collect(g.hosts())) != 2 {
				t.Errorf("the group has %v, the evicted one at %d", slices.Collect(g.hosts()), at)
			}
			if was, _ := f.control.dir.memberLocation(fakeGroup(0), fakeHost(2), 0, true); was.Ifindex == 0 {
				t.Error("envelopes of the former member are not recognised")
			}
			if x.Advance(f.control.now() + time.Minute); (x.Of(fakeHost(2)) != nil) != both {
				t.Errorf("the host is known: %v, another group %v", x.Of(fakeHost(2)) != nil, both)
			}
		})
	}
}

// A group that has news all the time, and one after the other, loses nothing.
func TestNewsDuringNews(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	const groups = 3 * outcomeBatch
	for n := range groups {
		f.register(n, 3, api.QPN(0x1000+16*n), "evict")
	}
	for round := range 5 {
		f.feed(0, turns(20, rocev2.PSN(10*round))...)
	}
	for n := 1; n < groups; n++ {
		f.feed(n, evicts(0)...)
		f.feed(0, turns(2, rocev2.PSN(50+n-1))...)
	}
	for n := 1; n < groups; n++ {
		f.eventually(fmt.Sprintf("group %d has lost member 2", n), func() bool { return len(f.events(n, api.EventEvicted)) == 1 })
	}
	var o mcast.Outcomes
	f.eventually("no worker has news", func() bool { return !f.plane.HasChanged(0) })
	f.control.do(func() {
		g := f.control.dir.groups[fakeGroup(0)]
		if err := g.handle.Outcomes(&o); err != nil {
			t.Error(err)
		}
		if o.Turns != 100+2*(groups-1) || g.applied().turns != o.Turns {
			t.Errorf("%d turns in the core, %d known", o.Turns, g.applied().turns)
		}
	})
}

// evictAndReplace has the core evict a member of group 0, and registers the group anew with
// other queue pairs before the control loop reads the eviction. It runs on the control loop.
func (f *fakeSwitch) evictAndReplace(group netip.Addr) {
	f.know(4)
	f.feed(0, evicts(0)...)
	reg, _, _ := f.control.registrar.Group(group)
	for i := range reg.Members {
		reg.Members[i].QPN += 0x800
	}
	reg.Base, reg.Epoch = 0, 0
	if _, err := f.control.registrar.RegisterLocal(f.control.now(), reg, &f.control.out); err != nil {
		f.t.Error(err)
	}
	f.control.sendOutput()
}

// Decisions of a group from before a new registration are reported of its old members, and
// change nothing for the new ones, whose slots are the same.
func TestOldOutcomesDoNotHitNewRegistrations(t *testing.T) {
	f := newFakeSwitch(t, 5, 1)
	r := f.register(0, 3, 0x100, "evict")
	f.control.do(func() {
		before := f.control.dir.groups[r.Group].generation
		f.evictAndReplace(r.Group)
		if g := f.control.dir.groups[r.Group]; g.generation == before {
			t.Errorf("both registrations have generation %d", before)
		}
	})
	f.eventually("no worker has news", func() bool { return !f.plane.HasChanged(0) })
	if es := f.events(0, api.EventEvicted); len(es) != 1 || es[0].QPN != 0x102 {
		t.Errorf("evictions in the journal: %+v, want one of QPN 0x102", es)
	}
	g, err := f.Group(r.Group)
	if err != nil || len(g.Members) != 3 || len(g.Former) != 0 {
		t.Fatalf("group show: %+v, %v", g, err)
	}
	for i := 3; i < 5; i++ {
		if err := f.AddMember(r.Group, &api.AddMember{RegisterMember: f.record(i, api.QPN(0x100+i))}); err != nil {
			t.Errorf("add a member: %v", err)
		}
	}
}

// The same for another group, which has the ID of one that was deleted.
func TestOldOutcomesDoNotHitOtherGroups(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	f.register(0, 3, 0x100, "evict")
	f.control.do(func() {
		f.feed(0, evicts(0)...)
		f.control.deleteByOperator(fakeGroup(0))
	})
	f.register(1, 3, 0x200, "evict")
	f.eventually("no worker has news", func() bool { return !f.plane.HasChanged(0) })
	if g, err := f.Group(fakeGroup(1)); err != nil || len(g.Members) != 3 {
		t.Errorf("group show: %+v, %v", g, err)
	}
	if es := f.events(0, api.EventEvicted, api.EventEnded); len(es) != 2 || es[0].Kind != api.EventEvicted || es[1].Kind != api.EventEnded {
		t.Errorf("the journal has %+v; want the eviction, then the end", es)
	}
	// An answer that is older than the registration is not applied either.
	f.control.do(func() {
		g := f.control.dir.groups[fakeGroup(1)]
		o := mcast.Outcomes{Group: g.id, Generation: g.generation - 1, Turns: 7, Evicted: []mcast.Event{{Kind: mcast.MemberEvicted}}}
		if f.control.applyOutcomes(g, &o); g.slots[0].gone || g.applied().turns != 0 {
			t.Error("an outcome of an older generation was applied")
		}
	})
}

// Members that come and go, while the group has news all the time, take over each
// other's slots.
func TestSlotsAreReusedUnderNews(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	r := f.register(0, 3, 0x100, "evict")
	for i := range 100 {
		qpn := api.QPN(0x200 + i)
		m := f.record(3, qpn)
		m.SQPSN, m.RQPSN = api.PSN(i), api.PSN(i)
		f.control.do(func() { f.feed(0, turns(2, rocev2.PSN(i))...) })
		if err := f.AddMember(r.Group, &api.AddMember{RegisterMember: m}); err != nil {
			t.Fatalf("member %d: %v", i, err)
		}
		if err := f.RemoveMember(r.Group, fakeHost(3)); err != nil {
			t.Fatalf("member %d: %v", i, err)
		}
	}
	f.control.do(func() {
		if n := len(f.control.dir.groups[r.Group].slots); n != 4 {
			t.Errorf("%d slots, want 4", n)
		}
	})
}

// A member that is evicted in the moment in which it is removed, or the group fails
// or is deleted, is told as evicted all the same; a turn is told of the member that
// had it.
func TestOutcomesAreToldBeforeTheirSubjectGoes(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	r := f.register(0, 3, 0x100, "evict")
	f.control.do(func() {
		f.know(4)
		f.feed(0, evicts(0)...)
		reg, _, _ := f.control.registrar.Group(r.Group)
		last := reg.Members[2]
		last.IP, last.QPN, last.RQPSN = fakeHost(3), 0x333, 3000
		reg.Members[2] = last
		reg.Base, reg.Epoch = reg.Epoch, 0
		if _, err := f.control.registrar.RegisterLocal(f.control.now(), reg, &f.control.out); err != nil {
			t.Error(err)
		}
		f.control.sendOutput()
	})
	if es := f.events(0, api.EventEvicted); len(es) != 1 || es[0].Member != fakeHost(2) {
		t.Errorf("evictions in the journal: %+v, want that of host 2", es)
	}
	// Member 3 has taken over the slot. It is source, then goes before anybody asks.
	f.control.do(func() {
		f.know(4)
		f.feed(0, send(3, 2000), answer(0, 0, rocev2.SyndromeACK), answer(1, 1001, rocev2.SyndromeACK))
		reg, _, _ := f.control.registrar.Group(r.Group)
		reg.Members[2].IP, reg.Members[2].QPN = fakeHost(2), 0x444
		reg.Base, reg.Epoch = reg.Epoch, 0
		if _, err := f.control.registrar.RegisterLocal(f.control.now(), reg, &f.control.out); err != nil {
			t.Error(err)
		}
		f.control.sendOutput()
	})
	f.eventually("no worker has news", func() bool { return !f.plane.HasChanged(0) })
	f.eventually("host 3's turn is in the journal", func() bool { // not within turnGap after the one before
		es := f.events(0, api.EventSource)
		return len(es) > 0 && es[len(es)-1].Member == fakeHost(3)
	})

	s := f.register(1, 3, 0x500, "strict")
	f.control.do(func() {
		f.feed(1, evicts(0)...) // under strict the group fails
		f.control.deleteByOperator(s.Group)
	})
	if es := f.events(1, api.EventFailed, api.EventEnded); len(es) != 2 || es[0].Kind != api.EventFailed || es[0].Member != fakeHost(2) {
		t.Errorf("the journal has %+v; want the failure, then the end", es)
	}
}

// What a group had come to is known after its end, for a bounded number of groups.
func TestGoneGroupsAreRemembered(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	r := f.register(0, 3, 0x100, "strict")
	f.control.do(func() {
		f.feed(0, evicts(0)...) // under strict the group fails
		f.control.deleteByOperator(r.Group)
	})
	gone, err := f.EndedGroups()
	if err != nil || len(gone) != 1 {
		t.Fatalf("gone: %+v, %v", gone, err)
	}
	const why = "because of 10.77.0.3 qpn 0x102: fatal NAK 0x63, remote operational error (completion status 11)"
	if g := gone[0]; g.IP != r.Group || g.State != "failed" || g.Failure != why || g.Ended == nil || g.Ended.Reason != "deleted" || g.Counters.DataIn != 1 || len(g.Members) != 3 {
		t.Errorf("gone: %+v", g)
	}
	if es := f.events(0, api.EventEnded); len(es) != 1 || es[0].Reason != "deleted; last state: "+why {
		t.Errorf("the journal has %+v", es)
	}
	var unknown *api.Error
	if _, err := f.Group(r.Group); !errors.As(err, &unknown) || unknown.Reason != api.ReasonUnknownGroup || !strings.Contains(unknown.Message, "(deleted): see `gleam group show "+r.Group.String()+" --ended`") {
		t.Errorf("a question for a group that has gone: %v", err)
	}
	for i, forgets := range []bool{true, false} {
		if err := f.Delete(r.Group); !errors.As(err, &unknown) || unknown.Reason != api.ReasonUnknownGroup || strings.Contains(unknown.Message, "epochs of the one that has ended are forgotten") != forgets {
			t.Errorf("deletion %d of a group that has gone: %v", i+1, err)
		}
	}
	// A registration that is replaced ends too; a member evicted then is a former one.
	r = f.register(0, 3, 0x100, "evict")
	f.control.do(func() {
		f.evictAndReplace(r.Group)
	})
	gone, _ = f.EndedGroups()
	if g := gone[len(gone)-1]; len(gone) != 2 || g.Ended.Reason != "replaced by a newer epoch" || len(g.Former) != 1 || g.Former[0].IP != fakeHost(2) {
		t.Errorf("gone: %+v", gone)
	}
	for range 2 * maxEndedGroups {
		f.register(1, 3, 0x200, "evict")
		if err := f.Delete(fakeGroup(1)); err != nil {
			t.Fatal(err)
		}
	}
	if gone, _ = f.EndedGroups(); len(gone) != maxEndedGroups {
		t.Errorf("%d groups are remembered, want %d", len(gone), maxEndedGroups)
	}
}

// A strict group that fails because the switch takes a member for dead says so, in
// the journal and in the group's state: the NAK that the source got is no cause.
func TestFailureSaysWhy(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	r := &api.Register{Group: fakeGroup(0), QPN: 0x4711, PMTU: 1024, Policy: "strict", DeadAfterMS: 50, NoRepair: true}
	for i := range 3 {
		r.Members = append(r.Members, f.record(i, 0x100+api.QPN(i)))
	}
	if err := f.Register(r); err != nil {
		t.Fatal(err)
	}
	f.feed(0, send(0, 0), answer(1, 1000, rocev2.SyndromeACK))
	const why = "silent for dead_after: the switch took it for dead; the source got a fatal NAK 0x63, remote operational error (completion status 11)"
	f.eventually("the journal has the failure", func() bool {
		f.feed(0, send(0, 0)) // the source asks: the switch has no store
		return len(f.events(0, api.EventFailed)) == 1
	})
	if es := f.events(0, api.EventFailed); len(es) != 1 || es[0].Member != fakeHost(2) || es[0].Reason != why {
		t.Errorf("the journal has %+v", es)
	}
	if g, err := f.Group(fakeGroup(0)); err != nil || g.State != "failed" || g.Failure != "because of 10.77.0.3 qpn 0x102: "+why {
		t.Errorf("the group is %+v, %v", g, err)
	}
}

// pinnerFunc is called with hosts whose pin may have changed.
type pinnerFunc func(netip.Addr)

func (f pinnerFunc) Set(ip netip.Addr, _ location.PinTarget) { f(ip) }
