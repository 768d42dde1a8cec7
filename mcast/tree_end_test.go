// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
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
		source, midMessage bool
		first              knowledge
		psn                rocev2.PSN
		want               bool
	}{
		{false, true, positionKnown, 7, true}, {false, false, positionLearnt, 7, false}, {false, false, positionMoved, 7, true},
		{true, false, positionKnown, 9, true}, {true, true, positionKnown, 9, false}, {true, false, positionKnown, 8, false},
	} {
		g := &group{}
		g.src.member, g.fwd.nxt, g.fwd.midMessage = none, 9, c.midMessage
		if c.source {
			g.src.member = 0
		}
		tr := &tree{g: g, edges: edgePositions{firsts: []knowledge{c.first}}}
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

// TestR90_RestartOfARebuiltTree: a switch that starts again with stored positions does not know whether a member had
// its last turn in the present tree, if the tree has been another one.
func TestR90_RestartOfARebuiltTree(t *testing.T) {
	for layout, want := range []knowledge{positionKnown, positionMoved} {
		n := treeOf(t, []int{-1, 0}, []int{0, 1})
		n.stored = true
		n.start()
		n.hosts[0].post(1)
		n.run(time.Second, func() bool { return n.pending == 0 })
		n.run(n.now+20*time.Millisecond, func() bool { return false })
		s := n.switches[1]
		s.read()
		s.layout = uint32(layout)
		s.put(true)
		if got := s.sw.groups[0].tree().knows(s.memberOf(n.hosts[0])); got != want {
			t.Errorf("layout %d: %d, want %d", layout, got, want)
		}
		if got := s.sw.groups[0].tree().knows(s.memberOf(n.hosts[1])); got != positionKnown {
			t.Errorf("layout %d: of a member here %d", layout, got)
		}
	}
}

// TestR90_PositionsOfAnotherTree: what a switch knows of a member's turn in another tree is not said toward that
// member, nor acknowledged, and the next turn begins with a question to the switches behind.
func TestR90_PositionsOfAnotherTree(t *testing.T) {
	n := treeOf(t, []int{-1, 0, 1}, []int{0, 1, 2})
	n.start()
	for _, h := range []int{0, 2} { // host 0 is a former source
		n.hosts[h].post(2)
		n.run(n.now+time.Second, func() bool { return n.pending == 0 })
	}
	n.run(n.now+20*time.Millisecond, func() bool { return false })
	s := n.switches[1]
	g, k := s.sw.groups[0], s.memberOf(n.hosts[0])
	tr, l := g.tree(), g.members[k].leg
	p := Packet{Group: groupIP, Src: n.hosts[0].ip, Neighbor: 1, DestQP: groupQPN, Op: rocev2.SendOnly, PSN: g.members[k].sqPSN.Prev(), Verified: true, AckReq: true}
	for _, moved := range []bool{false, true} {
		if moved {
			tr.note(k, positionMoved)
		}
		if _, said := tr.had(l, k); said == moved {
			t.Errorf("moved %v: said toward the member: %v", moved, said)
		}
		if s.sw.Input(n.now, &p, &s.out); (s.out.Drop == DuplicateData) == moved || (len(s.out.Feedback) != 0) == moved {
			t.Errorf("moved %v: an old packet is %v, feedback %v", moved, s.out.Drop, s.out.Feedback)
		}
	}
	at, behind := g.members[k].sqPSN, g.members[s.memberOf(n.hosts[2])].leg
	for _, b := range []edgeBound{{known: true, ends: true, psn: at, next: at.Add(4)}, {known: true, psn: at, next: at}, {known: true, ends: true, psn: at, next: at}} {
		tr.edges.relay = relay{member: int32(k), asking: true, said: make([]edgeBound, len(g.legs))}
		tr.edges.relay.said[behind] = b
		tr.answerRelay(n.now, &s.out)
		if r := &tr.edges.relay; !r.answered || r.low != at || r.next != b.next || r.ends != (b.ends && b.next == at) {
			t.Errorf("%+v: answered %+v", b, *r)
		}
	}
	tr.edges.relay = relay{member: int32(k), answered: true, low: at, next: at.Add(4)}
	tr.takePosition(n.now, l, &token.Position{Source: g.numberOf(k), PSN: uint32(at.Add(2)), Next: uint32(at), Over: true}, &s.out)
	if r := &tr.edges.relay; r.low != at.Add(2) || r.next != at.Add(4) || r.ends {
		t.Errorf("the source sends nothing before %06x: the answer is %+v", at.Add(2), *r)
	}
	tr.noteNeeded(l, &token.Position{Needed: g.numberOf(k)})
	tr.endRelay()
	tr.note(k, positionUnknown)
	if at := tr.position(l); at.Source != g.numberOf(k) || !at.Over || at.PSN != 0 {
		t.Errorf("a switch that knows nothing says %+v", at)
	}
	tr.note(k, positionMoved)
	if g.openTurn(n.now, k, &s.out); !g.is(unplaced) {
		t.Error("the switch behind is not asked what its members have")
	}
}
