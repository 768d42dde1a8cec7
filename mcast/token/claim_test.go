// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import "testing"

// Of the sources that are reported, one that is certainly unfinished goes before one that may be
// at rest; of two alike the switch's own one, then the one that was reported first.
func TestDoubtfulClaims(t *testing.T) {
	type claim struct {
		k        Member
		doubtful bool
	}
	for _, c := range []struct {
		name             string
		own, first, then claim
		want             claim
	}{
		{"nobody is unfinished", claim{}, claim{}, claim{}, claim{}},
		{"the switch's own doubtful one", claim{31, true}, claim{}, claim{}, claim{31, true}},
		{"a child's doubtful one", claim{}, claim{21, true}, claim{}, claim{21, true}},
		{"a doubtful one, and then a certain one", claim{}, claim{21, true}, claim{22, false}, claim{22, false}},
		{"a certain one, and then a doubtful one", claim{}, claim{21, false}, claim{22, true}, claim{21, false}},
		{"a doubtful one, and then nobody", claim{}, claim{21, true}, claim{}, claim{21, true}},
		{"two doubtful ones", claim{}, claim{21, true}, claim{22, true}, claim{21, true}},
		{"the switch's own certain one", claim{31, false}, claim{21, true}, claim{22, true}, claim{31, false}},
		{"the switch's own doubtful one beside a certain one", claim{31, true}, claim{21, false}, claim{}, claim{21, false}},
		{"the switch's own doubtful one beside a doubtful one", claim{31, true}, claim{21, true}, claim{}, claim{31, true}},
	} {
		d := newDesk(false)
		d.unfinished, d.doubtful = c.own.k, c.own.doubtful
		d.joining()
		for i, x := range []claim{c.first, c.then} {
			d.hear(Leg(i+1), func(r *Report) { *r = Report{Term: testTerm, Joined: true, Member: x.k, Doubtful: x.doubtful} })
		}
		if m := d.sentTo(Parent); m == nil || !m.Joined || m.Member != c.want.k || m.Doubtful != c.want.doubtful {
			t.Errorf("%s: %+v, not %+v", c.name, m, c.want)
		}
		d.unfinished = NoMember
		d.m.join(testTerm+1, &d.out)
		if d.m.claim != NoMember || d.m.doubtful {
			t.Errorf("%s: the claim outlives its term", c.name)
		}
	}
}

// A source that is served, and may be at rest, begins nothing while others wait: when it is at rest the
// next term begins, as one of them may be unfinished.
func TestDoubtedSource(t *testing.T) {
	for _, c := range []struct {
		name                string
		certain, waits      bool
		doubted, needs      bool
		serving, thenServes Member
		reported, then      Member // the source that is unfinished here when the switch joins, and when the token comes
	}{
		{"in doubt, and nobody waits", false, false, false, false, 11, 11, 11, 11},
		{"in doubt, and another member waits", false, true, true, true, 11, NoMember, 11, 11},
		{"in doubt until the token comes, and another member waits", false, true, true, true, 11, NoMember, 11, NoMember},
		{"certainly unfinished, and another member waits", true, true, false, false, 11, 12, 11, 11},
		{"at rest here, unfinished for another switch, and another member waits", true, true, false, false, 11, 12, NoMember, NoMember},
	} {
		d := newDesk(false)
		d.unfinished, d.doubtful = c.reported, !c.certain
		d.idle()
		if m := d.sentTo(Parent); m.Requests == c.certain {
			t.Errorf("%s: the token is requested: %v", c.name, m.Requests)
		}
		if c.waits {
			d.m.Request(0, 12, &d.out)
		}
		d.unfinished = c.then
		d.crosses(Parent, 11)
		if d.m.Serving() != c.serving || d.m.Doubted() != c.doubted {
			t.Errorf("%s: serves %d, doubted %v", c.name, d.m.Serving(), d.m.Doubted())
		}
		left := d.m.Clone(d)
		d.unfinished = NoMember
		d.m.Rested(0, &d.out)
		if d.m.Serving() != c.thenServes || d.m.Doubted() || d.m.needsTerm() != c.needs {
			t.Errorf("%s: serves %d, doubted %v, needs a term: %v", c.name, d.m.Serving(), d.m.Doubted(), d.m.needsTerm())
		}
		if left.Leave(0, 11, &d.out); left.Doubted() || left.needsTerm() {
			t.Errorf("%s: the source has left: doubted %v, needs a term: %v", c.name, left.Doubted(), left.needsTerm())
		}
	}
}
