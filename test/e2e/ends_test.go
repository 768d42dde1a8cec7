// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestStrictByDefault: a strict group that says nothing of dead_after, whose queue pairs have no end of
// retries, fails because of a receiver that is dead, or because of all of them, with the dead one's name at the
// sender, at the members and in the journal. Before that the source hears that it stalls, and by whom. No
// message completes that a live member lacks.
func TestStrictByDefault(t *testing.T) {
	for name, hosts := range map[string]int{"one of three receivers": 4, "the only receiver": 2} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: hosts}, memory: 8 << 20, qp: func(_ int, c *endpoint.QPConfig) { c.Timeout = 17 }})
			groups := r.joinByMaster(func(c *endpoint.MasterConfig) {})
			victim := hosts - 1
			dead := r.hosts[victim].ip
			if g, err := r.engine.Group(r.group); err != nil || g.DeadAfterMS != int(mcast.StrictDeadAfter.Milliseconds()) {
				t.Fatalf("%+v, %v: want the default of strict", g, err)
			}
			r.sendTo(groups)
			if err := r.hosts[victim].dev.Close(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			posted := r.postAll(groups[0])
			if e := awaitEvent(t, groups[0], endpoint.Stalled); e.Member != dead {
				t.Errorf("the master heard %+v", e)
			}
			got := statuses(r, r.hosts[0], posted)
			took := time.Since(began)
			failed := 0
			for _, s := range got {
				switch s {
				case endpoint.Success:
					t.Errorf("statuses %v: a message completed that %s has not", got, dead)
				case endpoint.RemoteOpErr:
					failed++
				}
			}
			if failed != 1 || took < mcast.StrictDeadAfter {
				t.Errorf("statuses %v after %v: want one remote operation error after %v", got, took, mcast.StrictDeadAfter)
			}
			for i, g := range groups {
				if i == victim {
					continue // its program may know that it is dead
				}
				if e := awaitEvent(t, g, endpoint.Failed); e.Member != dead || e.Code != mcast.Silent {
					t.Errorf("member %d heard %+v", i, e)
				}
			}
			es, err := r.engine.Events(canceled(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if e := es.Events[0]; e.Kind != api.EventStarted || !strings.HasPrefix(e.Reason, "gleamd ") || e.Seq != 1 {
				t.Errorf("the first event is %+v", e)
			}
			found := false
			for _, e := range es.Events {
				found = found || e.Kind == api.EventFailed && e.Member == dead && strings.HasPrefix(e.Reason, silent)
			}
			if !found {
				t.Errorf("no event names %s: %+v", dead, es.Events)
			}
		})
	}
}

// TestAllReceiversDie: a group under evict or quorum all of whose receivers die at once fails because of one of them,
// as a strict one does, and no message completes.
func TestAllReceiversDie(t *testing.T) {
	for name, change := range map[string]func(*endpoint.MasterConfig){
		"evict":    func(c *endpoint.MasterConfig) { c.Policy = mcast.Evict },
		"quorum:2": func(c *endpoint.MasterConfig) { c.Policy, c.Quorum = mcast.Quorum, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4}, memory: 8 << 20, qp: func(_ int, c *endpoint.QPConfig) { c.Timeout = 17 }})
			groups := r.joinByMaster(change)
			if name == "evict" { // a quorum's completion does not say that all have the bytes
				r.sendTo(groups)
			}
			for _, h := range r.hosts[1:] {
				if err := h.dev.Close(); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			got := statuses(r, r.hosts[0], r.postAll(groups[0]))
			if took := time.Since(began); took < mcast.StrictDeadAfter || slices.Contains(got, endpoint.Success) || !slices.Contains(got, endpoint.RemoteOpErr) {
				t.Errorf("statuses %v after %v: want one remote operation error after %v", got, took, mcast.StrictDeadAfter)
			}
			e := awaitEvent(t, groups[0], endpoint.Failed)
			if e.Code != mcast.Silent || !slices.ContainsFunc(r.hosts[1:], func(h *rigHost) bool { return h.ip == e.Member }) {
				t.Errorf("the sender heard %+v", e)
			}
			es, err := r.engine.Events(canceled(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(es.Events, func(x api.Event) bool {
				return x.Kind == api.EventFailed && x.Member == e.Member && strings.HasPrefix(x.Reason, silent)
			}) {
				t.Errorf("no event names %s: %+v", e.Member, es.Events)
			}
		})
	}
}

// TestForgottenGroup: master and members of a group that a switch without state has forgotten hear of it within
// seconds, whether data flows or not, and join again.
func TestForgottenGroup(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	groups := r.joinByMaster(func(c *endpoint.MasterConfig) { c.Lease = 5 * time.Minute })
	r.sendTo(groups)
	r.stop()
	r.start()
	began, machine := time.Now(), labtest.Watch()
	for i, g := range groups {
		e := awaitEvent(t, g, endpoint.Ended)
		if e.Reason != envelope.Forgotten {
			t.Errorf("member %d heard %+v", i, e)
		}
		most := 10 * time.Second
		if i == 0 {
			most = 3 * time.Second
		}
		if took := time.Since(began); took > most {
			machine.Timing(t, "member %d heard of it after %v, want %v at most", i, took, most)
		}
	}
	for i, g := range groups {
		if err := g.Close(); err != nil {
			t.Errorf("member %d: close: %v", i, err)
		}
	}
	for _, h := range r.hosts {
		r.fresh(h)
	}
	r.sendTo(r.joinByMaster(nil))
}

// statuses returns those of the next n completions of a host.
func statuses(r *rig, h *rigHost, n int) (ss []endpoint.Status) {
	r.t.Helper()
	var wc [16]endpoint.Completion
	for len(ss) < n {
		k, err := h.qp.Poll(r.ctx, wc[:])
		if err != nil {
			r.t.Fatalf("%d of %d completions: %v", len(ss), n, err)
		}
		for _, c := range wc[:k] {
			ss = append(ss, c.Status)
		}
	}
	return ss
}

// TestPauseIsNoDeath: a strict group survives a receiver whose link is down for some seconds. Its source hears
// that it stalls and that it goes on.
func TestPauseIsNoDeath(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, qp: func(_ int, c *endpoint.QPConfig) { c.Timeout = 14 }})
	groups := r.joinByMaster(func(c *endpoint.MasterConfig) {})
	r.sendTo(groups)
	h := r.hosts[2]
	link, err := h.NS.Handle().LinkByName(h.Interface)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.NS.Handle().LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	r.fill(0)
	posted := r.postAll(groups[0])
	if e := awaitEvent(t, groups[0], endpoint.Stalled); e.Member != h.ip {
		t.Errorf("the source heard %+v", e)
	}
	pause := time.NewTimer(mcast.StrictDeadAfter / 2)
	<-pause.C
	if err := h.NS.Handle().LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
	r.complete(r.hosts[0], posted)
	r.same(0)
	if e := awaitEvent(t, groups[0], endpoint.Resumed); e.Member != h.ip {
		t.Errorf("the source heard %+v", e)
	}
}
