// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"net/netip"
	"testing"
	"time"
)

// A nonce counts for one claimant, in its period and the next one, once; what is remembered of claimants goes
// with their nonces.
func TestNonces(t *testing.T) {
	n := newNonces([32]byte{1})
	c := claimant{netip.MustParseAddr("10.0.0.100"), netip.MustParseAddr("10.0.0.1"), 0x100}
	const at = 5*noncePeriod + time.Second
	first := n.now(c, at)
	for name, other := range map[string]claimant{
		"group": {c.group.Next(), c.member, c.qpn}, "member": {c.group, c.member.Next(), c.qpn}, "queue pair": {c.group, c.member, c.qpn + 1},
	} {
		if n.counts(other, first, at) {
			t.Errorf("a nonce counts for another %s", name)
		}
	}
	for later, want := range map[time.Duration]bool{0: true, noncePeriod - 2*time.Second: true, 2*noncePeriod - 2*time.Second: true, 2 * noncePeriod: false, 3 * noncePeriod: false} {
		if n.counts(c, first, at+later) != want {
			t.Errorf("%s later a nonce counts: %v", later, !want)
		}
	}
	if other := newNonces([32]byte{2}); other.counts(c, first, at) {
		t.Error("a nonce of before a restart counts")
	}
	if n.counts(c, 0, at) {
		t.Error("a REQ without a nonce counts")
	}
	n.spend(c, at)
	if n.counts(c, first, at) {
		t.Error("a nonce counts twice")
	}
	second := n.now(c, at)
	if !n.counts(c, second, at) {
		t.Error("the next nonce does not count")
	}
	n.spend(c, at+noncePeriod)
	x := c
	x.qpn++
	n.spend(x, at+2*noncePeriod) // c has shown one since
	if len(n.spent) != 2 || n.counts(c, second, at+noncePeriod) {
		t.Errorf("remembered: %v", n.spent)
	}
	x.qpn++
	n.spend(x, at+3*noncePeriod)
	if _, known := n.spent[c]; known || len(n.spent) != 2 || len(n.order) != 2 || len(n.times) != 2 {
		t.Errorf("remembered: %v, %v at %v", n.spent, n.order, n.times)
	}
	if n.counts(c, first, at+3*noncePeriod) || n.counts(c, second, at+3*noncePeriod) {
		t.Error("a nonce counts again")
	}
}

// A captured REQ, with another PSN and ID, displaces no member that waits, none that is registered, and makes
// no group after it.
func TestCapturedREQ(t *testing.T) {
	for _, creates := range []bool{false, true} {
		w := newWorld(t, 0, 2, true)
		if creates {
			w = newCreatingWorld(t, 0, 2)
		}
		w.hosts[0].connect()
		w.run(w.now + time.Second)
		if len(w.captured) != 1 {
			t.Fatalf("%d REQs are taken", len(w.captured))
		}
		w.replay()
		w.hosts[1].connect()
		w.run(w.now + time.Second)
		if w.members() != 2 {
			t.Fatalf("%d members", w.members())
		}
		for range 8 {
			w.replay()
		}
		w.run(w.now + time.Second)
		w.settled()
		for _, h := range w.hosts[:2] {
			h.disconnect(false)
		}
		w.run(w.now + 5*time.Second)
		w.empty()
		for range 8 {
			w.replay()
		}
		w.empty()
	}
}

// A REQ that waited before a restart counts as it was, and once; another one of its private data does not.
func TestREQThatWaitedCountsAfterARestart(t *testing.T) {
	w := newWorld(t, 0, 2, true)
	w.hosts[0].connect()
	w.run(w.now + time.Second)
	x := w.captured[0]
	kept := w.m.Connections(map[netip.Addr]bool{w.group: true})
	l := *w.m.listenOf(w.group)
	for name, change := range map[string]func(*Message, *world){
		"as it was":    func(*Message, *world) {},
		"another PSN":  func(x *Message, _ *world) { x.Request.PSN++ },
		"another ID":   func(x *Message, _ *world) { x.LocalID++ },
		"another GUID": func(x *Message, _ *world) { x.Request.GUID++ },
		"too late":     func(_ *Message, w *world) { w.now += repeatedFor },
	} {
		w := newWorld(t, 2, 2, true)
		w.group = l.Group
		w.m = NewManager(Config{Seed: [32]byte{9}, Keys: map[uint16][]byte{testKey: w.key}})
		if err := w.m.Restore(w.now, l, nil, kept[w.group], &w.out); err != nil {
			t.Fatal(err)
		}
		w.out = Output{}
		y := x
		change(&y, w)
		w.m.Input(w.now, y.Request.Src, w.group, y.Append(nil), &w.out)
		c := w.m.byPeer[peer{y.Request.Src, y.Request.GUID, y.LocalID}]
		if taken := c != nil && c.state == requested; taken != (name == "as it was") {
			t.Errorf("%s: it counts: %v", name, taken)
		}
		if len(w.m.resumed) != 0 && c != nil {
			t.Error("it counts twice")
		}
		if w.m.Close(w.now, w.group, &w.out); len(w.m.resumed) != 0 {
			t.Error("the group has ended, and its REQs may count again")
		}
	}
}
