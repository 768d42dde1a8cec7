// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/mcast"
)

// looks gives a group looks, one letter each, and returns what changes: '.', the ACK moves; '!', it
// has stood still for a second, because of member 0; '+', likewise of member 1; '?', nobody knows of
// whom.
func looks(d *delayed, text string) (changes []Delay) {
	now := time.Hour
	for _, c := range text {
		now += lookInterval
		a, stalled := awaited{}, time.Duration(0)
		switch c {
		case '!', '+':
			a.Legs, a.PSN, stalled = 2, 7, api.StallTime*time.Second
			if c == '+' {
				a.Member = 1
			}
		case '?':
			stalled = time.Minute
		}
		if d.look(now, stalled, a) {
			changes = append(changes, d.Delay)
		}
	}
	return changes
}

// A group stalls after a second, and the member is named that it waits for. Nothing else is a delay.
func TestDelays(t *testing.T) {
	stalled := func(m mcast.MemberID) Delay { return Delay{Kind: Stalled, Member: m, Legs: 2, PSN: 7} }
	none := Delay{}
	for _, c := range []struct {
		name, looks string
		want        []Delay
	}{
		{"the ACK moves", "....", nil},
		{"a stall", ".!!!!.", []Delay{stalled(0), none}},
		{"a stall of another member", "!!++.", []Delay{stalled(0), stalled(1), none}},
		{"it is not known who", "????!??.", []Delay{stalled(0), none}},
	} {
		got := looks(new(delayed), c.looks)
		for i := range got {
			if got[i].Kind != NoDelay && got[i].Since == 0 {
				t.Errorf("%s: %+v began never", c.name, got[i])
			}
			got[i].Since = 0
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	}
}

// A group is looked at every lookInterval, once however many packets it has, in the order in which
// groups are due.
func TestLooksAreDue(t *testing.T) {
	x := newDelays(3, make(chan struct{}, 1))
	if _, ok := x.next(); ok {
		t.Error("a look is due, and no group has data")
	}
	x.watch(1, 2)
	x.watch(2, 0)
	x.watch(3, 2)
	if at, ok := x.next(); !ok || at != 1+lookInterval || x.count != 2 || x.queue[x.head].id != 2 {
		t.Errorf("%v, %v: %d looks, of %v", at, ok, x.count, x.queue)
	}
	x.groups[2].Kind = Stalled
	x.forget(2)
	if d := &x.groups[2]; d.Kind != NoDelay || !d.queued {
		t.Errorf("%+v", d)
	}
}
