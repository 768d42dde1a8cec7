// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Each announcement is sent three times, many of them no faster than the pace, and
// one that is asked for again before it was sent is sent once.
func TestAnnouncementsArePaced(t *testing.T) {
	a := newAnnouncer()
	const n = 1000
	for range 2 {
		for i := range n {
			a.add(0, announcement{port: uint16(i % 4), group: mcast.GroupID(i)})
		}
	}
	sent := map[announcement]int{}
	total := 0
	now := time.Duration(0)
	for {
		at, ok := a.next()
		if !ok {
			break
		}
		if total > 0 && at-now < announceInterval {
			t.Fatalf("the next ones are sent %v after the last ones", at-now)
		}
		now = max(now, at)
		xs := a.due(now)
		if len(xs) == 0 || len(xs) > announceBatch {
			t.Fatalf("at %v %d announcements", now, len(xs))
		}
		for _, x := range xs {
			sent[x]++
			total++
		}
	}
	if len(sent) != n || total != n*len(announceAfter) {
		t.Errorf("%d of %d groups announced, %d times in all", len(sent), n, total)
	}
	if least := time.Duration(total/announceBatch-1) * announceInterval; now < least || now > 2*least {
		t.Errorf("all are sent after %v, want %v or a little more", now, least)
	}
	a.add(now, announcement{})
	if at, ok := a.next(); !ok || at > now+announceInterval {
		t.Errorf("the next one is sent %v later, %v", at-now, ok)
	}
}

// Registration and a member's move ask for announcements where members are.
func TestAnnouncementsFollowMembers(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	f.control.do(func() {
		f.know(3)
		f.register1(0, 3)
		a, id := f.control.departures.announcer, f.control.dir.groups[fakeGroup(0)].id
		for pi := range 4 {
			if x := (announcement{port: uint16(pi), group: id}); a.queued[x] != (pi < 3) {
				t.Errorf("port %d: announced %v", pi, a.queued[x])
			}
		}
		a.queued = map[announcement]bool{}
		h := f.control.dir.hosts.Of(fakeHost(2))
		at, _ := f.locator.Locate(h.IP())
		at.Ifindex, at.Links = 4, []int{4} // by another route
		f.control.dir.hosts.Answered(h, at, nil, f.control.now())
		if len(a.queued) != 1 || !a.queued[announcement{port: 3, group: id}] {
			t.Errorf("after a move: %v", a.queued)
		}
		a.queued = map[announcement]bool{}
		f.control.announcePort(1)
		f.control.continueSweeps(0)
		if len(a.queued) != 1 || !a.queued[announcement{port: 1, group: id}] {
			t.Errorf("port 1 comes up: %v", a.queued)
		}
	})
}

// The groups of a port that comes up are announced three times each, without a request for all of them at once: a group
// that is registered meanwhile is announced with the next batch.
func TestAnnouncementsOfManyGroups(t *testing.T) {
	const groups = 2*sweepGroups + 7
	dir := t.TempDir()
	writeGroups(t, filepath.Join(dir, "groups"), groups, 2)
	f := newFakeSwitchWith(t, 3, 1, restartConfig(groups)+"state: "+dir+"\n")
	f.control.do(func() {
		c, sent := f.control, map[mcast.GroupID]int{}
		a := c.departures.announcer
		if len(a.sweeps) != 1 || a.sweeps[0].port != everyPort {
			t.Errorf("after the start: %v", a.sweeps)
		}
		*a = *newAnnouncer()
		now := c.now() + time.Hour // all that is requested meanwhile is due
		c.announcePort(2)          // has no group
		c.continueSweeps(now)
		if a.sweeps[0].next != sweepGroups || len(a.queued) > 0 {
			t.Errorf("%+v after one look, %d requests", a.sweeps, len(a.queued))
		}
		c.announcePort(1)
		c.announcePort(1)
		late := announcement{port: 2, group: groups}
		for n := 0; ; n++ {
			at, ok := a.next()
			if !ok {
				break
			}
			now = max(now, at)
			if c.continueSweeps(now); len(a.queued) > announceBatch {
				t.Errorf("%d requests wait", len(a.queued))
				break
			}
			if n == 10 {
				a.add(now, late)
			}
			for _, x := range a.due(now) {
				if x != late && x.port != 1 {
					t.Errorf("announced at port %d", x.port)
				}
				sent[x.group]++
			}
			if n == 11 && sent[late.group] == 0 {
				t.Error("the group that is registered meanwhile waits")
			}
		}
		for group, n := range sent {
			if n != len(announceAfter) {
				t.Errorf("%v: announced %d times", group, n)
			}
		}
		if len(sent) != groups+1 {
			t.Errorf("%d groups are announced", len(sent))
		}
	})
}
