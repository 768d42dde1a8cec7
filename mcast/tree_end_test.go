// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestR89_NextTurnAfterARestart: the switch of a source that is at rest starts again, when another
// member begins. That member does not wait for the silence of the former source.
func TestR89_NextTurnAfterARestart(t *testing.T) {
	for _, c := range []struct{ parent, at []int }{
		{[]int{-1, 0}, []int{0, 1, 1}},
		{[]int{-1, 0}, []int{1, 0, 0}},
		{[]int{-1, 0}, []int{1, 0, 1}},
		{[]int{-1, 0, 0}, []int{1, 2, 0}},
		{[]int{-1, 0, 0}, []int{1, 2, 2}},
		{[]int{-1, 0, 1}, []int{2, 0, 2}},
	} {
		for early := range 20 {
			n := treeOf(t, c.parent, c.at)
			n.rng = random(uint64(early) + 1)
			n.stored, n.patience = true, 67*time.Millisecond
			n.repair = RepairSpec{Bytes: 1000 * minFrameBytes, Timeout: DefaultRepairTimeout, Tries: DefaultRepairTries}
			n.start()
			a, b := n.hosts[0], n.hosts[1]
			a.post(5)
			n.run(time.Second, func() bool { return n.pending == 0 })
			n.run(n.now+20*time.Millisecond, func() bool { return false })
			at := n.now
			n.after(time.Duration(50*early)*time.Microsecond, func() { b.post(5) })
			n.after(500*time.Microsecond, func() { n.crashFor(c.at[0], 20*time.Millisecond) })
			n.run(time.Minute, func() bool { return n.now > at+10*time.Millisecond && n.pending == 0 })
			if took := n.now - at; took > 500*time.Millisecond {
				t.Errorf("tree %v, hosts at %v, %d: %v", c.parent, c.at, early, took)
			}
		}
	}
}

// TestR89_EndsOfMessages: a position says that a message ends before it where that is known, and
// counts as the end of all that was forwarded only where it is.
func TestR89_EndsOfMessages(t *testing.T) {
	for _, c := range []struct {
		source, learnt, midMessage bool
		psn                        rocev2.PSN
		want                       bool
	}{
		{false, false, true, 7, true}, {false, true, false, 7, false},
		{true, false, false, 9, true}, {true, false, true, 9, false}, {true, false, false, 8, false},
	} {
		g := &group{}
		g.src.member, g.fwd.nxt, g.fwd.midMessage = none, 9, c.midMessage
		if c.source {
			g.src.member = 0
		}
		tr := &tree{g: g, edges: edgePositions{learnt: []bool{c.learnt}}}
		if got := tr.endsBefore(0, c.psn); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for _, c := range []struct {
		phase gates
		psn   rocev2.PSN
		want  bool
	}{{resumes, 9, true}, {resumes, 8, false}, {resumes, 10, false}, {resumes | learning, 9, false}} {
		g := &group{gates: c.phase}
		g.newExtra().resume = resume{unknownEnd: true}
		g.fwd.nxt, g.fwd.midMessage = 9, true
		if g.noteEnd(c.psn); g.fwd.midMessage == c.want || g.is(resumes) == c.want {
			t.Errorf("%+v: in the middle of a message %v, resumes %v", c, g.fwd.midMessage, g.is(resumes))
		}
	}
}
