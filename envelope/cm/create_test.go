// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"slices"
	"testing"
	"time"
)

// newCreatingWorld is a world without a group, whose hosts' REQs make it.
func newCreatingWorld(t *testing.T, seed uint64, hosts int) *world {
	w := newWorld(t, seed, hosts, true)
	w.m.Close(w.now, w.group, &w.out)
	w.creates = hosts
	return w
}

// The first REQ makes the group, the others join it, and their end is its end.
func TestREQMakesTheGroup(t *testing.T) {
	w := newCreatingWorld(t, 0, 3)
	for _, h := range w.hosts[:3] {
		h.connect()
	}
	w.run(w.now + time.Second)
	if w.members() != 3 || w.created != 1 {
		t.Fatalf("%d members, %d groups made", w.members(), w.created)
	}
	for _, h := range w.hosts[:3] {
		h.disconnect(false)
	}
	w.run(w.now + time.Minute)
	w.empty()
	w.hosts[0].connect() // the others do not come
	w.run(w.now + 59*time.Second)
	if w.created != 2 || w.m.listeners[w.group] == nil {
		t.Fatalf("%d groups made", w.created)
	}
	w.run(w.now + 10*time.Second)
	w.empty()
	if r := w.refusalsSeen[len(w.refusalsSeen)-1]; r.Code != Incomplete {
		t.Errorf("%+v", r)
	}
}

// A REQ that names another number of members than the group's is refused; one that names none joins.
func TestREQOfAnotherSize(t *testing.T) {
	w := newCreatingWorld(t, 0, 3)
	w.hosts[0].connect()
	w.run(w.now + time.Second)
	w.creates = 4
	w.hosts[1].connect()
	w.run(w.now + time.Second)
	if n := len(w.refusalsSeen); n != 1 || w.refusalsSeen[0].Code != NotCreated || w.refusalsSeen[0].Text != "the group expects 3 members, not 4" {
		t.Fatalf("%+v", w.refusalsSeen)
	}
	w.creates = 0
	w.hosts[2].connect()
	w.run(w.now + time.Second)
	if _, ok := w.m.Status(w.group); !ok || len(w.m.listeners[w.group].members) != 2 {
		t.Error("a REQ without a number does not join")
	}
}

// Nothing is made by a REQ under another key, changed, of one member, or without a number.
func TestREQThatMakesNoGroup(t *testing.T) {
	w := newCreatingWorld(t, 0, 2)
	h := w.hosts[0]
	h.connectProven()
	sent := h.now.sent
	for name, change := range map[string]func(b []byte){
		"as it is":       func([]byte) {},
		"other MAC":      func(b []byte) { b[privateMACAt]++ },
		"other key":      func(b []byte) { b[7]++ },
		"other number":   func(b []byte) { b[37]++ },
		"no number":      func(b []byte) { b[5], b[37] = flagWindow, 0 },
		"flag alone":     func(b []byte) { b[37] = 0 },
		"reserved bytes": func(b []byte) { b[39] = 1 },
	} {
		x := sent
		x.Data = slices.Clone(sent.Data)
		change(x.Data)
		w.m.Input(w.now, h.ip, w.group, x.Append(nil), &w.out)
		if made := w.out.Creation != nil; made != (name == "as it is") {
			t.Errorf("%s: a group is made: %v", name, made)
		}
		if name != "as it is" && (len(w.out.Events) != 1 || w.out.Events[0].Refusal.Reason != InvalidServiceID) {
			t.Errorf("%s: %+v", name, w.out.Events)
		}
	}
	w.creates = 1
	h.connectProven()
	w.m.Input(w.now, h.ip, w.group, h.now.sent.Append(nil), &w.out)
	if w.out.Creation != nil {
		t.Error("a group of one member is made")
	}
	w.m.Refuse(w.now, h.ip, w.group, sent.Append(nil), "why", &w.out)
	if len(w.out.Packets) != 1 || len(w.out.Events) != 1 || w.out.Events[0].Refusal != (Refusal{Reason: ConsumerReject, Code: NotCreated, Text: "why"}) {
		t.Errorf("refused: %+v", w.out)
	}
}
