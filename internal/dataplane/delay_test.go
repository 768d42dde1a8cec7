// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/mcast"
)

// looks gives a group looks, one letter each, and returns what changes, by letter: of the member that
// the ACK waits for alone, a to z; '.', it waits for nobody; '*', for several; '!', it has stood
// still for a second, because of member a; '+', likewise of member b; '?', nobody knows of whom.
func looks(d *delayed, text string) (changes []Delay) {
	now := time.Hour
	for _, c := range text {
		now += lookInterval
		a, stalled := awaited{}, time.Duration(0)
		switch c {
		case '.':
		case '*':
			a.Legs = 3
		case '!', '+':
			a.Legs, a.PSN, stalled = 2, 7, api.StallTime*time.Second
			if c == '+' {
				a.Member = 1
			}
		case '?':
			stalled = time.Minute
		default:
			a.Legs, a.Alone, a.Member = 1, true, mcast.MemberID(c-'a')
		}
		if d.look(now, stalled, a) {
			changes = append(changes, d.Delay)
		}
	}
	return changes
}

// repeat is a text n times.
func repeat(text string, n int) (s string) {
	for range n {
		s += text
	}
	return s
}

// A member is slow from 18 looks of 20 on at which the ACK waits for it alone, and until 10. A group
// stalls after a second. Nothing else is a delay.
func TestDelays(t *testing.T) {
	slow := func(m mcast.MemberID) Delay { return Delay{Kind: Slow, Member: m} }
	stalled := func(m mcast.MemberID) Delay { return Delay{Kind: Stalled, Member: m, Legs: 2, PSN: 7} }
	none := Delay{}
	for _, c := range []struct {
		name, looks string
		want        []Delay
	}{
		{"nothing is outstanding", repeat(".", 100), nil},
		{"it waits for all", repeat("*", 100), nil},
		{"members in turn", repeat("ab", 100), nil},
		{"two of three times", repeat("aab", 100), nil},
		{"one too few", repeat("a", 17) + "...", nil},
		{"just enough", repeat("a", 18), []Delay{slow(0)}},
		{"with others between", "aaaaaaaab" + "aaaaaaaaa.", []Delay{}},
		{"nine of ten", repeat("aaaaaaaaab", 3), []Delay{slow(0)}},
		{"it ends at half", repeat("a", 20) + repeat("*", 9), []Delay{slow(0)}},
		{"it ends", repeat("a", 20) + repeat("*", 10), []Delay{slow(0), none}},
		{"another one", repeat("a", 20) + repeat("b", 40), []Delay{slow(0), none, slow(1)}},
		{"another one after a while", repeat("a", 12) + repeat("b", 40), []Delay{slow(1)}},
		{"another one soon", repeat("a", 12) + repeat("b", 28), []Delay{slow(1)}},
		{"a stall", "*!!!!*", []Delay{stalled(0), none}},
		{"a stall of another member", "!!++*", []Delay{stalled(0), stalled(1), none}},
		{"it is not known who", "????!??*", []Delay{stalled(0), none}},
		{"a stall says nothing of speed", repeat("a", 17) + "!" + repeat("a", 17), []Delay{stalled(0), none}},
		{"slow, and then silent", repeat("c", 18) + "!" + "*", []Delay{slow(2), stalled(0), none}},
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
	x.groups[2].Kind = Slow
	x.forget(2)
	if d := &x.groups[2]; d.Kind != NoDelay || !d.queued {
		t.Errorf("%+v", d)
	}
}
