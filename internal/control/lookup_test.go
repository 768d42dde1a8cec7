// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/mcast"
)

// A question that the kernel does not answer keeps nobody else waiting: groups are shown
// and registered whose members are known, and the registration in question is rejected
// after locate_timeout. The operator is told.
func TestAStuckKernelKeepsNobodyWaiting(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	stuck := make(chan struct{})
	f.locator.mu.Lock()
	f.locator.stuck = stuck
	f.locator.mu.Unlock()
	failed := make(chan error, 1)
	go func() {
		r := &api.Register{Group: fakeGroup(0), QPN: 0x4711, PMTU: 1024, Policy: "strict", NoRepair: true}
		for i := range 3 {
			r.Members = append(r.Members, f.record(i, api.QPN(0x100+i)))
		}
		failed <- f.Register(r)
	}()
	f.eventually("the question is asked", func() (asked bool) {
		f.control.do(func() {
			_, pending := f.control.kernel.lookups.Next()
			asked = pending && f.control.dir.hosts.Of(fakeHost(0)) != nil
		})
		return asked
	})
	start := time.Now()
	f.control.do(func() {
		d := f.control.dir
		for i := 1; i < 4; i++ {
			at, err := f.locator.Locate(fakeHost(i))
			d.hosts.Answered(d.hosts.Candidate(fakeHost(i), d.now()), at, err, d.now())
		}
		reg := envelope.Registration{Group: fakeGroup(1), GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024}}
		for i := 1; i < 4; i++ {
			m := f.record(i, api.QPN(0x200+i))
			reg.Members = append(reg.Members, record(&m))
		}
		if _, err := f.control.registrar.RegisterLocal(f.control.now(), reg, &f.control.out); err != nil {
			t.Error(err)
		}
		f.control.sendOutput()
	})
	if g, err := f.Groups(nil); err != nil || len(g) != 1 {
		t.Errorf("groups: %d, %v; want that of the known members", len(g), err)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("others waited for %v", d)
	}
	err := <-failed
	if e := new(api.Error); !errors.As(err, &e) || e.Reason != envelope.UnknownMemberLocation.String() || !strings.Contains(e.Message, fakeHost(0).String()) {
		t.Errorf("the registration that waits: %v", err)
	}
	f.mu.Lock()
	said := strings.Contains(strings.Join(f.log, "\n"), "the kernel has not answered")
	f.mu.Unlock()
	if !said {
		t.Error("the operator is not told")
	}
	close(stuck)
	f.register(0, 3, 0x300, "evict")
}

// A registration takes the place of one of the same group and epoch that waits for its
// members: it does not wait for them.
func TestARegistrationThatIsGivenUp(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	f.control.do(func() {
		d := f.control.dir
		reg := func(i int) *envelope.Registration {
			m := f.record(i, 0x100)
			return &envelope.Registration{Group: fakeGroup(0), Epoch: 5, Members: []envelope.MemberRecord{record(&m)}}
		}
		at, err := f.locator.Locate(fakeHost(1))
		d.hosts.Answered(d.hosts.Candidate(fakeHost(1), d.now()), at, err, d.now())
		first, second := reg(0), reg(1)
		if _, v := d.locateMembers(first, first, 0); v.Kind != envelope.VerdictLater {
			t.Errorf("the first one: %+v, want to wait", v)
		}
		if places, v := d.locateMembers(second, second, 0); v.Kind != envelope.VerdictAccepted || len(places) != 1 {
			t.Errorf("the second one: %+v, want its member's place", v)
		}
		if _, waits := d.hosts.Of(fakeHost(0)).Awaited(fakeGroup(0)); len(d.pending) != 0 || waits {
			t.Error("the first one is waited for")
		}
	})
}

// TestPendingRegistrationsExpire: a registration that the registrar does not ask about again
// is forgotten. Only registrations whose time has come are looked at.
func TestPendingRegistrationsExpire(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	f.control.do(func() {
		d := f.control.dir
		later := func(n, i int) *envelope.Registration {
			m := f.record(i, 0x100)
			r := &envelope.Registration{Group: fakeGroup(n), Epoch: 5, Members: []envelope.MemberRecord{record(&m)}}
			if _, v := d.locateMembers(r, r, 0); v.Kind != envelope.VerdictLater {
				t.Fatalf("group %d: %+v, want to wait", n, v)
			}
			return r
		}
		expect := func(at time.Duration, checks int, groups ...int) {
			t.Helper()
			d.expirePending(at)
			waiting := 0
			for _, n := range groups {
				if d.pending[fakeGroup(n)] != nil {
					waiting++
				}
			}
			if waiting != len(groups) || len(d.pending) != len(groups) || len(d.expiries) != checks {
				t.Errorf("at %v: %d registrations wait, with %d expiries, want %v and %d", at, len(d.pending), len(d.expiries), groups, checks)
			}
		}
		later(0, 0)
		asked := later(1, 1)
		later(2, 2)
		first := d.expiries[0].at
		expect(first-1, 3, 0, 1, 2)
		d.pending[asked.Group].lastRequested = first - 1
		replaced := later(2, 0) // another one of the same group: the first one is decided
		d.expiries[3].at, d.pending[replaced.Group].lastRequested = first+pendingTTL, first
		expect(d.expiries[2].at, 2, 1, 2)
		expect(first+pendingTTL, 1, 1)
		expect(first+2*pendingTTL, 0)
		for i := range 3 {
			for n := range 3 {
				if h := d.hosts.Of(fakeHost(i)); h != nil && !h.Await(fakeGroup(n), location.Missing{}) {
					t.Errorf("host %d is waited for", i)
				}
			}
		}
	})
}

// A change that comes while the question is under way makes the answer one of before.
func TestAChangeDuringAQuestionIsAskedFor(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	f.register(0, 3, 0x100, "evict")
	f.control.do(func() {
		d := f.control.dir
		h := d.hosts.Of(fakeHost(1))
		d.hosts.LookUp(h)
		location.NewLookups().SubmitHosts(d.now(), d.hosts) // the kernel does not answer yet
		old, _ := f.locator.Locate(h.IP())
		f.locator.set(1, 3, 7, nil)
		d.hosts.Apply(&locate.Set{Learnt: map[locate.MAC]bool{locate.MAC(old.MAC): true}}, d.now())
		d.hosts.Answered(h, old, nil, d.now())
	})
	f.eventually("host 1 has moved", func() bool { g, _ := f.Group(fakeGroup(0)); return g.Members[1].Port == "f2" })
}

// Any report of an interface has the VRFs of the ports read: with other ones all members are looked up
// again. An error is told once, leaves those that were known, and the read is tried again.
func TestVRFsAreFollowed(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	f.register(0, 3, 0x100, "strict")
	l := f.locator
	set := func(vrfs []int, err error) (reads int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reallyVRFs, l.vrfErr = vrfs, err
		return l.reads
	}
	told := func(what string) int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return strings.Count(strings.Join(f.log, "\n"), what)
	}
	const elsewhere = 99 // an interface that no member is behind
	asked := l.questions(3)
	set([]int{20}, nil)
	f.changes.Link(elsewhere)
	f.eventually("all members are looked up again", func() bool {
		now := l.questions(3)
		return now[0] > asked[0] && now[1] > asked[1] && now[2] > asked[2]
	})

	reads := set([]int{21}, errors.New("no buffer space available"))
	f.changes.Link(elsewhere)
	f.eventually("the read is tried again", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.reads >= reads+2 })
	if n := told("the VRFs of the ports cannot be read"); n != 1 || !slices.Equal(l.VRFs(), []int{20}) {
		t.Errorf("the error is told %d times, and the VRFs are %v", n, l.VRFs())
	}
	set([]int{21}, nil)
	f.eventually("the VRFs are known again", func() bool { return told("the VRFs of the ports can be read again") == 1 })
	if !slices.Equal(l.VRFs(), []int{21}) {
		t.Errorf("the VRFs are %v", l.VRFs())
	}
}
