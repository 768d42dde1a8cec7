// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The first source of a group is reported at once, and one that changes all the time once
// in turnGap, with the number of turns and the last source. Groups do not hide each other,
// and nothing is left over in the end.
func TestTurnReports(t *testing.T) {
	var r turnReports
	a, b := &group{}, &group{}
	said := map[*group][]turn{}
	report := func(g *group, x turn) { said[g] = append(said[g], x) }
	now, sum := time.Duration(0), uint64(0)
	add := func(g *group, psn rocev2.PSN, turns uint64) {
		if x := (turn{psn: psn, turns: turns}); r.add(now, g, x) {
			report(g, x)
		}
		if g == a {
			sum += turns
		}
	}
	if _, ok := r.next(); ok {
		t.Error("there is something to do before anything has happened")
	}
	for ; now < 10*time.Second; now += 20 * time.Millisecond {
		add(a, rocev2.PSN(now/time.Millisecond), 1+uint64(now/time.Millisecond)%2)
		if now == 5*time.Second {
			add(b, 7, 1)
		}
		if at, ok := r.next(); ok && at <= now {
			r.due(now, report)
		}
	}
	if n := len(said[a]); n < 10 || n > 11 {
		t.Errorf("%d reports of 500 turns within 10 s", n)
	}
	if x := said[b]; len(x) != 1 || x[0] != (turn{psn: 7, turns: 1}) {
		t.Errorf("the other group: %+v", x)
	}
	for at, ok := r.next(); ok; at, ok = r.next() {
		if now = max(now, at); now > time.Minute {
			t.Fatal("there is something to do for ever")
		}
		r.due(now, report)
	}
	reported := uint64(0)
	for _, x := range said[a] {
		reported += x.turns
	}
	if last := said[a][len(said[a])-1]; reported != sum || last.psn != 9980 {
		t.Errorf("%d of %d turns are reported, the last at %d", reported, sum, last.psn)
	}
	add(a, 1, 1)
	add(a, 2, 3)
	r.flush(a, report)
	r.flush(a, report)
	if x := said[a][len(said[a])-1]; x != (turn{psn: 2, turns: 3}) {
		t.Errorf("the last words are %+v", x)
	}
}
