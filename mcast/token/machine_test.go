// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"
	"time"
)

// Tests of times, numbers of terms, and neighbours that break the rules, which the search
// leaves out.

func (d *desk) sentTo(leg Leg) *Message {
	for i := range d.out.Messages {
		if d.out.Messages[i].Leg == leg {
			return &d.out.Messages[i].Message
		}
	}
	return nil
}

// A switch without others below it makes the token at once.
func TestRootAlone(t *testing.T) {
	d := &desk{}
	d.m = New(Config{Epoch: 3, Root: true, Switch: d})
	if d.m.State() != Holding || d.m.Term() != FirstTerm(3) {
		t.Fatalf("%v in term %#x", d.m.State(), d.m.Term())
	}
	if _, ok := d.m.NextDeadline(); ok {
		t.Error("a deadline without a neighbour")
	}
	d.m.Request(0, 11, &d.out)
	if d.m.Serving() != 11 || len(d.out.Actions) != 1 {
		t.Errorf("serves %d: %v", d.m.Serving(), d.out.Actions)
	}
	d.m.Rested(0, &d.out)
	if d.m.Serving() != 11 {
		t.Error("the turn has ended though nobody waits")
	}
	for _, leg := range []Leg{Parent, Here, Nowhere} {
		d.m.Up(0, leg, 1, &d.out)
		d.m.Cut(0, leg, &d.out)
		d.m.Remove(0, leg, &d.out)
		if d.m.State() != Sending || len(d.m.children) != 0 {
			t.Errorf("leg %d at the root: %v, %v", leg, d.m.State(), d.m.children)
		}
	}
	if d.m.Accepts(Parent) || d.m.Accepts(1) {
		t.Error("data of a neighbour that does not exist")
	}
}

// A new child begins a new term, and the source that is served goes on until it has begun.
func TestNewChild(t *testing.T) {
	d := &desk{}
	d.m = New(Config{Epoch: 3, Root: true, Switch: d})
	d.m.Request(0, 11, &d.out)
	d.unfinished = 11
	d.m.Up(0, 1, 7, &d.out)
	if d.m.State() != Joining || d.m.Term() != FirstTerm(3)+1 || d.m.Serving() != NoMember || d.out.Actions[0] != (Action{Stop, 11}) {
		t.Fatalf("%v in term %#x: %v", d.m.State(), d.m.Term(), d.out.Actions)
	}
	d.seq, d.said = map[Leg]uint64{}, map[Leg]Report{}
	d.m.Request(0, 12, &d.out)
	d.hear(1, func(r *Report) { *r = Report{Term: d.m.term, Joined: true} })
	if d.m.Serving() != 11 {
		t.Errorf("serves %d, not the unfinished source", d.m.Serving())
	}
	if d.m.Accepts(1) {
		t.Error("data comes from where the token is not")
	}
}

// The root begins a term above all that it hears of, and in the registration's epoch.
func TestTermsOfTheRoot(t *testing.T) {
	d := newDesk(true)
	d.hear(1, func(r *Report) { *r = Report{Term: FirstTerm(1) + 5, Outdated: FirstTerm(1) + 9} })
	if d.m.Term() != FirstTerm(1)+10 {
		t.Errorf("term %#x", d.m.Term())
	}
	d.hear(1, func(r *Report) { *r = Report{Term: FirstTerm(1) + 12} })
	if d.m.Term() != FirstTerm(1)+13 {
		t.Errorf("term %#x", d.m.Term())
	}
	if drop := d.hear(1, func(r *Report) { *r = Report{Term: FirstTerm(2)} }); drop != LaterEpoch {
		t.Errorf("a term of another epoch: %v", drop)
	}
	if drop := d.hear(1, func(r *Report) { *r = Report{Outdated: FirstTerm(2)} }); drop != LaterEpoch {
		t.Errorf("a need for a term of another epoch: %v", drop)
	}
	d.m.SetEpoch(3)
	d.m.SetEpoch(2) // an epoch does not go back
	d.hear(1, func(r *Report) { *r = Report{Outdated: FirstTerm(1) + 13} })
	if d.m.Term() != FirstTerm(3) {
		t.Errorf("term %#x after the epoch has become 3", d.m.Term())
	}
}

// Messages are repeated after 1, 2, 4, ... up to 64 times the retry time.
func TestRetry(t *testing.T) {
	d := newDesk(false)
	now := time.Duration(0)
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 64, 64} {
		at, ok := d.m.NextDeadline()
		if !ok || at != now+want*DefaultRetry {
			t.Fatalf("repetition %d is due at %v, not %v", i, at, now+want*DefaultRetry)
		}
		if d.m.Advance(at-1, &d.out); len(d.out.Messages) != 0 {
			t.Errorf("repetition %d comes too early", i)
		}
		if d.m.Advance(at, &d.out); len(d.out.Messages) != 3 || !d.out.Messages[0].Message.Poll {
			t.Errorf("repetition %d: %v", i, d.out.Messages)
		}
		now = at
		// An acknowledgement of nothing new changes nothing.
		d.m.Receive(now, Parent, &Message{Session: 1, Seq: 1}, &d.out)
	}
	// An acknowledgement ends it, and the next report begins anew.
	d.hear(1, func(*Report) {})
	d.hear(2, func(*Report) {})
	d.hear(Parent, func(r *Report) {})
	if at, ok := d.m.NextDeadline(); ok {
		t.Errorf("a deadline at %v though everything is acknowledged", at)
	}
	d.m.Up(now, Parent, 2, &d.out)
	if at, ok := d.m.NextDeadline(); !ok || at != now+DefaultRetry {
		t.Errorf("due at %v, not %v", at, now+DefaultRetry)
	}
	d.m.Advance(now+DefaultRetry, &d.out)
	d.m.Cut(now, Parent, &d.out)
	for leg := Leg(1); leg <= 2; leg++ {
		d.m.Cut(now, leg, &d.out)
	}
	if at, ok := d.m.NextDeadline(); ok {
		t.Errorf("a deadline at %v without a neighbour", at)
	}
	if d.m.Request(now, 11, &d.out); len(d.out.Messages) != 0 {
		t.Errorf("sent to nobody: %v", d.out.Messages)
	}
}

// Every call begins with an empty output.
func TestOutputBeginsEmpty(t *testing.T) {
	for i, call := range []func(*desk){
		func(d *desk) { d.m.Request(0, 11, &d.out) },
		func(d *desk) { d.m.Leave(0, 99, &d.out) },
		func(d *desk) { d.m.Rested(0, &d.out) },
		func(d *desk) { d.m.Receive(0, 9, &Message{}, &d.out) },
		func(d *desk) { d.m.Advance(0, &d.out) },
		func(d *desk) { d.m.Up(0, Here, 1, &d.out) },
		func(d *desk) { d.m.Cut(0, 9, &d.out) },
		func(d *desk) { d.m.Remove(0, 9, &d.out) },
		func(d *desk) { d.m.Add(0, 1, &d.out) },
		func(d *desk) { d.m.Poll(0, 9, &d.out) },
	} {
		d := newDesk(false)
		d.sending()
		d.out = Output{Messages: make([]Outgoing, 3), Actions: make([]Action, 3)}
		if call(d); len(d.out.Messages)+len(d.out.Actions) != 0 {
			t.Errorf("call %d: %+v", i, d.out)
		}
	}
}

// A leaf that knows no term takes no data.
func TestOutsideTakesNoData(t *testing.T) {
	d := &desk{}
	d.m = New(Config{Epoch: 1, Switch: d})
	d.m.Up(0, Parent, 1, &d.out)
	if d.m.Accepts(Parent) || d.m.State() != Outside || d.sentTo(Parent).Joined {
		t.Errorf("%v: %+v", d.m.State(), d.out.Messages)
	}
	d.seq, d.said = map[Leg]uint64{}, map[Leg]Report{}
	d.joining()
	if !d.m.Accepts(Parent) || d.m.State() != Idle || !d.sentTo(Parent).Joined {
		t.Errorf("%v: %+v", d.m.State(), d.out.Messages)
	}
	d.hear(Parent, func(r *Report) { r.Suspended = true })
	if d.m.Accepts(Parent) {
		t.Error("a switch that is cut off takes data")
	}
	d = newDesk(false)
	d.passed()
	if !d.m.Accepts(1) || d.m.Accepts(2) || d.m.Accepts(Parent) {
		t.Error("data is taken from elsewhere than where the token is")
	}
	d.m.Cut(0, 1, &d.out)
	if d.m.Accepts(1) {
		t.Error("data of a neighbour that is cut")
	}
	d.hear(Parent, func(r *Report) { r.Suspended = true })
	if d.sentTo(1) != nil || d.sentTo(2) == nil {
		t.Errorf("after leg 1 is cut: %v", d.out.Messages)
	}
	d = newDesk(false)
	d.passed()
	if d.m.Up(0, 1, 2, &d.out); d.m.Accepts(1) {
		t.Error("data of a neighbour that has started again, and has not joined")
	}
}

// A leg that is removed while a term begins is not waited for, and gets no token.
func TestRemovedWhileJoining(t *testing.T) {
	d := newDesk(false)
	d.joining()
	d.hear(1, func(r *Report) { *r = Report{Term: testTerm, Joined: true, Requests: true} })
	d.hear(2, func(r *Report) { *r = Report{Term: testTerm} })
	d.m.Remove(0, 1, &d.out)
	d.m.Remove(0, 2, &d.out)
	if d.m.State() != Idle {
		t.Fatalf("%v", d.m.State())
	}
	d.crosses(Parent, 21) // which is behind leg 1
	if d.m.State() != Holding {
		t.Errorf("%v", d.m.State())
	}
}

// A report that has not been acknowledged keeps its time when others are answered, and
// one that changes begins anew.
func TestRetryOfChanges(t *testing.T) {
	d := newDesk(false)
	d.idle()
	d.m.Request(0, 11, &d.out)
	first := *d.sentTo(Parent)
	d.m.Advance(DefaultRetry, &d.out)
	d.m.Advance(3*DefaultRetry, &d.out)
	if again := d.sentTo(Parent); again == nil || *again != first {
		t.Fatalf("%+v is repeated as %+v", first, again)
	}
	d.m.Up(4*DefaultRetry, 1, 5, &d.out) // the report changes: a term is needed
	d.m.Cut(4*DefaultRetry, 1, &d.out)
	if at, _ := d.m.NextDeadline(); at != 5*DefaultRetry {
		t.Errorf("due at %v", at)
	}
	e := d.m.edge(Parent)
	d.m.Receive(4*DefaultRetry, Parent, &Message{Session: 1, Seq: 1, Ack: e.acked, Poll: true}, &d.out)
	if at, _ := d.m.NextDeadline(); at != 5*DefaultRetry || len(d.out.Messages) != 1 || !d.out.Messages[0].Message.Poll {
		t.Errorf("due at %v, answered by %v", at, d.out.Messages)
	}
	d.m.Receive(4*DefaultRetry, Parent, &Message{Session: 1, Seq: 1, Ack: e.sent + 1}, &d.out)
	if _, ok := d.m.NextDeadline(); !ok || len(d.out.Messages) != 0 {
		t.Errorf("an acknowledgement of what was never sent counts, or is answered: %v", d.out.Messages)
	}
	d.m.Receive(4*DefaultRetry, Parent, &Message{Session: 1, Seq: 1, Ack: e.sent, Poll: true}, &d.out)
	if _, ok := d.m.NextDeadline(); ok || d.sentTo(Parent) == nil || d.sentTo(Parent).Poll {
		t.Errorf("the acknowledgement does not count, or the poll is not answered: %v", d.out.Messages)
	}
	d.m.Receive(4*DefaultRetry, Parent, &Message{Session: 1, Seq: 1, Ack: e.sent - 1}, &d.out)
	if _, ok := d.m.NextDeadline(); ok {
		t.Error("an old acknowledgement counts")
	}
}

// A neighbour that contradicts itself changes nothing.
func TestContradictions(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(*desk)
		leg  Leg
		edit func(*Report)
		want Drop
	}{
		{"the token comes twice", (*desk).holding, Parent, func(r *Report) { r.Crossings = 2 }, Contradictory},
		{"the token comes twice at once", (*desk).idle, Parent, func(r *Report) { r.Crossings = 3 }, Contradictory},
		{"the token comes back that was never passed", (*desk).holding, 1, func(r *Report) { r.Crossings = 1 }, Contradictory},
		{"the token comes before the term has begun", (*desk).joining, Parent, func(r *Report) { r.Crossings = 1 }, Contradictory},
		{"the token comes in a term that is over", func(d *desk) { d.idle(); d.hear(1, func(r *Report) { r.Outdated = testTerm }) }, Parent, func(r *Report) { r.Crossings = 1 }, NoDrop},
		{"the token comes while suspended", func(d *desk) { d.idle(); d.m.Cut(0, 1, &d.out); d.hear(Parent, func(r *Report) { r.Suspended = true }) }, Parent, func(r *Report) { r.Suspended, r.Crossings = false, 1 }, NoDrop},
		{"another leg", (*desk).idle, 9, func(r *Report) {}, NoSession},
		{"a leg that is cut", func(d *desk) { d.idle(); d.m.Cut(0, 1, &d.out) }, 1, func(r *Report) { r.Requests = true }, NoSession},
	} {
		d := newDesk(false)
		c.make(d)
		state, queue := d.m.State(), len(d.m.queue)
		if got := d.hear(c.leg, c.edit); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if d.m.State() != state || len(d.m.queue) != queue || d.m.here() != (state == Holding) {
			t.Errorf("%s: %v, not %v, queue %v", c.name, d.m.State(), state, d.m.queue)
		}
	}
	d := newDesk(false)
	d.idle()
	if drop := d.m.Receive(0, Parent, &Message{Session: 2, Seq: 99, Report: Report{Term: testTerm + 1}}, &d.out); drop != NoSession || d.m.Term() != testTerm {
		t.Errorf("another session: %v, term %#x", drop, d.m.Term())
	}
	d.m.Receive(0, Parent, &Message{Session: 1, Seq: d.m.parent.received, Report: Report{Term: testTerm + 1}}, &d.out)
	if d.m.Term() != testTerm {
		t.Error("an old message counts")
	}
}

// Where the token goes that is for a member.
func TestReserved(t *testing.T) {
	for _, c := range []struct {
		name     string
		goal     Member
		wants    Member // first of the queue
		state    State
		serving  Member
		passedTo Leg
	}{
		{"a member here", 11, 0, Sending, 11, 0},
		{"a member here, while another waits", 11, 12, Sending, 11, 0},
		{"a member here that waits", 11, 11, Sending, 11, 0},
		{"a member below", 21, 0, Idle, 0, 1},
		{"a member below, while another waits", 21, 12, Waiting, 0, 1},
		{"a member that has left", 99, 0, Holding, 0, 0},
		{"a member that has left, while another waits", 99, 12, Sending, 12, 0},
		{"a member that is elsewhere", 31, 12, Sending, 12, 0},
	} {
		d := newDesk(false)
		d.idle()
		if c.wants != NoMember {
			d.m.Request(0, c.wants, &d.out)
		}
		d.crosses(Parent, c.goal)
		if d.m.State() != c.state || d.m.Serving() != c.serving {
			t.Errorf("%s: %v, serves %d", c.name, d.m.State(), d.m.Serving())
		}
		if c.passedTo != 0 && (d.sentTo(c.passedTo) == nil || d.sentTo(c.passedTo).Member != c.goal) {
			t.Errorf("%s: %v", c.name, d.out.Messages)
		}
		if d.m.reserved != NoMember {
			t.Errorf("%s: the token is reserved for %d still", c.name, d.m.reserved)
		}
		if c.wants == c.goal && len(d.m.queue) != 0 {
			t.Errorf("%s: still waits", c.name)
		}
	}
}

// The claim for an unfinished source goes up from wherever it is known, and the token goes
// down to it, if it has not left meanwhile.
func TestClaims(t *testing.T) {
	d := newDesk(false)
	d.unfinished = 31
	d.joining()
	if m := d.sentTo(Parent); m == nil || m.Joined || m.Member != NoMember {
		t.Errorf("a claim before all have joined: %+v", m)
	}
	d.hear(1, func(r *Report) { *r = Report{Term: testTerm, Joined: true, Member: 21} })
	d.hear(2, func(r *Report) { *r = Report{Term: testTerm, Joined: true} })
	if m := d.sentTo(Parent); m == nil || !m.Joined || m.Member != 31 {
		t.Errorf("the switch's own claim: %+v", m)
	}
	root := newDesk(true)
	root.hear(1, func(r *Report) { *r = Report{Term: root.m.term, Joined: true, Member: 21} })
	root.m.Request(0, 12, &root.out)
	root.hear(2, func(r *Report) { *r = Report{Term: root.m.term, Joined: true, Member: 99} })
	if m := root.sentTo(1); m == nil || m.Crossings != 1 || m.Member != 21 || !m.Requests {
		t.Errorf("the token for the unfinished source: %+v", m)
	}
	left := newDesk(false)
	left.idle()
	left.m.reserved = 21 // as between two messages of a call
	left.m.Leave(0, 21, &left.out)
	if left.m.reserved != NoMember {
		t.Error("a member that has left has the token reserved")
	}
	left.m.Request(0, 11, &left.out)
	left.m.Leave(0, 11, &left.out)
	left.crosses(Parent, NoMember)
	if left.m.State() != Holding {
		t.Errorf("%v: a member that has left is served", left.m.State())
	}
}

// A child that starts again is taken in by the next term, and its old requests are void.
func TestChildStartsAgain(t *testing.T) {
	d := newDesk(false)
	d.joining()
	d.hear(1, func(r *Report) { *r = Report{Term: testTerm, Joined: true, Requests: true} })
	d.m.Up(0, 1, 2, &d.out)
	if len(d.m.queue) != 0 || d.sentTo(1).Term != testTerm || d.m.needsTerm() {
		t.Errorf("queue %v, offered %+v", d.m.queue, d.sentTo(1))
	}
	d.hear(1, func(r *Report) { *r = Report{Term: testTerm, Joined: true, Outdated: testTerm} })
	if d.m.edge(1).joined {
		t.Error("a child has joined that needs another term")
	}
	d = newDesk(false)
	d.idle()
	d.m.Up(0, 1, 2, &d.out)
	if m := d.sentTo(1); m.Term != 0 {
		t.Errorf("offered %+v", m)
	}
	d.hear(1, func(r *Report) { *r = Report{Term: testTerm, Joined: true} })
	if d.m.Accepts(1) || d.m.edge(1).joined {
		t.Error("a child has joined a term that is complete")
	}
	d.hear(Parent, func(r *Report) { *r = Report{Term: testTerm + 1} })
	if m := d.sentTo(1); m.Term != testTerm+1 {
		t.Errorf("offered %+v", m)
	}
}

// Wanted comes once each time that a member or neighbour begins to wait.
func TestWanted(t *testing.T) {
	d := newDesk(false)
	d.sending()
	d.m.Request(0, 11, &d.out) // it is being served
	if len(d.out.Actions) != 0 {
		t.Errorf("%v", d.out.Actions)
	}
	for range 2 {
		d.m.Request(0, 12, &d.out)
		if len(d.out.Actions) != 1 || d.out.Actions[0] != (Action{Wanted, 11}) {
			t.Errorf("%v", d.out.Actions)
		}
		d.m.Request(0, 12, &d.out)
		if len(d.out.Actions) != 0 {
			t.Errorf("again: %v", d.out.Actions)
		}
		d.m.Leave(0, 12, &d.out)
		d.m.Rested(0, &d.out)
		if d.m.Serving() != 11 {
			t.Error("the turn has ended though nobody waits")
		}
	}
}

// Of those that wait, members of this switch wait on in the next term, in their order;
// neighbours request anew.
func TestQueueInTheNextTerm(t *testing.T) {
	d := newDesk(false)
	d.sending()
	d.hear(1, func(r *Report) { r.Requests = true })
	d.m.Request(0, 12, &d.out)
	d.hear(Parent, func(r *Report) { *r = Report{Term: testTerm + 1} })
	d.m.Request(0, 11, &d.out)
	for leg := Leg(1); leg <= 2; leg++ {
		d.hear(leg, func(r *Report) { *r = Report{Term: testTerm + 1, Joined: true} })
	}
	d.crosses(Parent, NoMember)
	if d.m.Serving() != 12 {
		t.Errorf("serves %d", d.m.Serving())
	}
	d.m.Rested(0, &d.out)
	if d.m.Serving() != 11 || len(d.m.queue) != 0 {
		t.Errorf("serves %d, then %v", d.m.Serving(), d.m.queue)
	}
}
