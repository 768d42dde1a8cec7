// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"slices"
	"testing"
	"time"
)

// isForce reports whether any session is registered.
func (w *dialWorld) isForce() bool { return len(w.force) > 0 }

// A session whose followers' data is acknowledged lasts until they have answered their DREQs,
// whether the dialler or the leader leaves first; with another policy it ends with the dialler.
func TestDrain(t *testing.T) {
	for seed := range uint64(3) {
		for _, leaderFirst := range []bool{false, true} {
			w := newDialWorld(t, seed, 1, 3, 1)
			leads := w.listen.Replies == Leader
			if leaderFirst && !leads {
				continue
			}
			c := w.dialled()
			l := w.listeners()
			l[1].late, l[2].late = 7*time.Second, 3*time.Second
			if leaderFirst {
				l[0].disconnect(l[0].only(), false)
			} else {
				w.order[0].disconnect(c, false)
			}
			w.run(5 * time.Second)
			if w.isForce() != leads || l[1].only().state != "left" || len(l[2].conns) > 0 {
				t.Errorf("replies %d: after 5 s registered: %t, a late listener is %s", w.listen.Replies, w.isForce(), l[1].only().state)
			}
			w.run(3 * time.Second)
			if w.isForce() || len(l[1].conns) > 0 {
				t.Errorf("replies %d: after 8 s the session is left", w.listen.Replies)
			}
			w.run(2 * time.Second)
			w.empty()
		}
	}
}

// A listener that never answers keeps its session for drainTries DREQs, and those whose host
// has died too.
func TestDrainEnds(t *testing.T) {
	w := newDialWorld(t, 2, 1, 3, 1)
	c := w.dialled()
	l := w.listeners()
	l[1].late = time.Hour
	l[2].dies(true)
	w.order[0].disconnect(c, false)
	w.run((drainTries - 1) * time.Second)
	if !w.isForce() {
		t.Error("the session has ended before its time")
	}
	w.run(2 * time.Second)
	if w.isForce() || l[1].only().state != "left" {
		t.Errorf("the session is left: %v", w.force)
	}
	w.empty()
}

// A dialler that waits for the address of a session that drains gets it soon: the late
// listener keeps nobody waiting.
func TestDrainYields(t *testing.T) {
	w := newDialWorld(t, 2, 2, 3, 1)
	c := w.dialled()
	l := w.listeners()
	l[1].late = time.Hour
	w.order[0].disconnect(c, false)
	w.run(500 * time.Millisecond)
	next := w.order[1].connect(7471, "")
	w.run(400 * time.Millisecond)
	if next.state == "established" {
		t.Error("the session has ended before its linger time")
	}
	w.run(1500 * time.Millisecond)
	if next.state != "established" {
		t.Errorf("the next dialler is %s", next.state)
	}
	if !slices.Contains(w.order[0].list(), c) && c.state != "gone" {
		t.Errorf("the first dialler is %s", c.state)
	}
	l[1].late = 0
	for _, k := range l {
		for _, x := range k.list() {
			if x.state == "left" {
				k.forget(x, "killed")
			}
		}
	}
	w.order[1].disconnect(next, false)
	w.run(drainTries * time.Second)
	w.empty()
}

// An operator ends a session that drains at once.
func TestDrainClosed(t *testing.T) {
	w := newDialWorld(t, 2, 1, 2, 1)
	c := w.dialled()
	w.listeners()[1].late = time.Hour
	w.order[0].disconnect(c, false)
	w.run(3 * time.Second)
	if !w.isForce() {
		t.Fatal("the session does not drain")
	}
	if !w.close() {
		t.Fatal("there is no group to close")
	}
	w.run(time.Second)
	if w.isForce() {
		t.Error("the session drains on")
	}
	w.run(leaveTries * time.Second) // as many DREQs as of a session that does not drain
	w.empty()
}

// The last of the members has its group until its program has disconnected: it may have to send its
// last message again. Members that come end this.
func TestLastMemberDrains(t *testing.T) {
	for _, comes := range []bool{false, true} {
		w := newWorld(t, 0, 3, false)
		w.connectAll(3)
		h := w.hosts[0]
		h.deaf = true
		w.hosts[1].disconnect(false)
		w.run(w.now + 200*time.Millisecond)
		w.hosts[2].disconnect(false)
		w.run(w.now + 10*time.Second)
		if len(w.inForce) < minMembers {
			t.Fatalf("%d records while the last member is there", len(w.inForce))
		}
		if comes {
			w.hosts[1].connect()
		} else {
			h.disconnect(false)
		}
		w.run(w.now + 300*time.Millisecond)
		if len(w.inForce) > 0 {
			t.Errorf("%d records are left: %+v", len(w.inForce), w.inForce)
		}
		if comes {
			h.disconnect(false)
			w.hosts[1].disconnect(false)
		}
		w.run(w.now + 2*time.Second)
		w.empty()
	}
}

// A last member that never disconnects has its group for drainTries seconds.
func TestLastMemberStays(t *testing.T) {
	w := newWorld(t, 0, 2, false)
	w.connectAll(2)
	w.hosts[0].deaf = true
	w.hosts[1].disconnect(false)
	w.run(w.now + drainTries*time.Second)
	if len(w.inForce) != 2 {
		t.Errorf("%d records", len(w.inForce))
	}
	w.run(w.now + 2*time.Second)
	w.empty()
}
