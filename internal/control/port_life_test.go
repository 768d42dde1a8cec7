// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"testing"
	"time"
)

// Each event in each phase: the phase after it, with "!" if the interface is to be opened.
func TestPortLife(t *testing.T) {
	const now, index = 10 * time.Second, 7
	want := map[portPhase][numPortEvents]string{
		//             added     vanished   seen        unseen     opened     denied     removed
		portNone:    {"open", "none", "none", "none", "none", "none", "none"},
		portOpen:    {"open", "lost", "open", "open", "open", "open", "none"},
		portLost:    {"lost", "lost", "opening!", "lost", "lost", "lost", "none"},
		portOpening: {"opening", "opening", "opening", "opening", "open", "refused", "none"},
		portRefused: {"refused", "refused", "refused", "lost", "refused", "refused", "none"},
	}
	if len(want) != int(numPortPhases) {
		t.Fatalf("%d phases of %d", len(want), numPortPhases)
	}
	for phase, row := range want {
		for e := range numPortEvents {
			l := portLife{phase: phase, ifindex: index, retryAt: now + 1}
			open := l.apply(now, e, index, "because")
			got := l.phase.String()
			if open {
				got += "!"
			}
			if got != row[e] {
				t.Errorf("%s, event %d: %s, want %s", phase, e, got, row[e])
			}
		}
	}
}

// An interface that cannot be opened is tried again after 1 s, 2 s, up to each 32 s;
// another one of its name at once.
func TestPortRetries(t *testing.T) {
	var l portLife
	l.apply(0, portAdded, 0, "")
	l.apply(0, portVanished, 0, "")
	now, waits := time.Duration(0), ""
	for range 8 {
		if !l.apply(now, portSeen, 7, "") {
			t.Fatalf("at %v it is not opened: %+v", now, l)
		}
		if l.apply(now, portSeen, 7, "") {
			t.Fatal("it is opened twice")
		}
		l.apply(now, portDenied, 0, "busy")
		at, ok := l.next()
		if !ok || l.apply(at-1, portSeen, 7, "") {
			t.Fatalf("it is opened before its time: %+v", l)
		}
		waits += fmt.Sprint(at-now, " ")
		now = at
	}
	if want := "1s 2s 4s 8s 16s 32s 32s 32s "; waits != want {
		t.Errorf("waits %s, want %s", waits, want)
	}
	if l.reason != "busy" {
		t.Errorf("the reason is %q", l.reason)
	}
	l.apply(now, portSeen, 7, "")
	l.apply(now, portDenied, 0, "busy")
	if !l.apply(now, portSeen, 8, "") {
		t.Error("another interface of its name is not opened at once")
	}
	if l.apply(now, portOpened, 0, ""); l.phase != portOpen || l.reopened != 1 || l.refusals != 0 {
		t.Errorf("opened: %+v", l)
	}
	if _, ok := l.next(); ok {
		t.Error("an open port is to be tried again")
	}
}
