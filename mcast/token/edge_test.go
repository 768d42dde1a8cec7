// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import "testing"

// A poll leaves at once, and is answered at once, also where everything is acknowledged.
func TestPoll(t *testing.T) {
	d := newDesk(false)
	d.idle()
	d.hear(Parent, func(*Report) {})
	d.m.Poll(0, 2, &d.out)
	if m := d.sentTo(2); len(d.out.Messages) != 1 || m == nil || !m.Poll {
		t.Errorf("polled leg 2: %+v", d.out.Messages)
	}
	if d.m.Poll(0, 9, &d.out); len(d.out.Messages) != 0 {
		t.Errorf("polled a leg that is not there: %+v", d.out.Messages)
	}
	d.m.Cut(0, 2, &d.out)
	if d.m.Poll(0, 2, &d.out); len(d.out.Messages) != 0 {
		t.Errorf("polled a leg that is cut: %+v", d.out.Messages)
	}
	if _, _, _, up := d.m.Numbers(9); up {
		t.Error("a leg that is not there is up")
	}
}

// A new leg below needs a new term, for which the switch asks its parent, or which it begins as the root.
func TestLegsThatAreAdded(t *testing.T) {
	d := newDesk(false)
	d.idle()
	if d.m.Add(0, 3, &d.out); d.sentTo(Parent) == nil || d.sentTo(Parent).Outdated != testTerm {
		t.Errorf("a new leg: %+v", d.out.Messages)
	}
	for _, leg := range []Leg{3, Parent, Here, Nowhere} {
		if d.m.Add(0, leg, &d.out); len(d.out.Messages) != 0 || len(d.m.children) != 3 {
			t.Errorf("leg %d again: %+v", leg, d.out.Messages)
		}
	}
	d.out.Messages = make([]Outgoing, 3)
	if d.m.SetRoot(0, true, &d.out); d.m.Term() != testTerm+1 || len(d.out.Messages) != 2 || d.sentTo(1) == nil || d.sentTo(2) == nil {
		t.Errorf("the root begins term %#x: %+v", d.m.Term(), d.out.Messages)
	}
	if d.m.SetRoot(0, false, &d.out); d.m.Accepts(1) || d.m.Session(Parent) != 0 || !d.sentTo(1).Suspended {
		t.Errorf("a switch with another parent: %+v", d.out.Messages)
	}
}
