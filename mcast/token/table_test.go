// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var write = flag.Bool("write", false, "write the table of states into docs/TREES.md")

// desk is a switch with a neighbour above and two below. Members 11 and 12 are its own,
// 21 is behind leg 1, 31 behind its parent.
type desk struct {
	unfinished Member
	doubtful   bool
	m          *Machine
	out        Output
	seq        map[Leg]uint64
	said       map[Leg]Report // the newest report that each neighbour has sent
}

func (d *desk) Locate(k Member) Leg {
	switch k {
	case 11, 12:
		return Here
	case 21:
		return 1
	case 31:
		return Parent
	}
	return Nowhere
}

func (d *desk) Unfinished() (Member, bool) { return d.unfinished, !d.doubtful }

func newDesk(root bool) *desk {
	d := &desk{seq: map[Leg]uint64{}, said: map[Leg]Report{}}
	d.m = New(Config{Epoch: 1, Root: root, Children: []Leg{1, 2}, Switch: d})
	if !root {
		d.m.Up(0, Parent, 1, &d.out)
	}
	d.m.Up(0, 1, 1, &d.out)
	d.m.Up(0, 2, 1, &d.out)
	return d
}

// hear makes a neighbour send a report that differs from its last one, and acknowledge
// all that it was sent.
func (d *desk) hear(leg Leg, edit func(*Report)) Drop {
	r := d.said[leg]
	edit(&r)
	d.said[leg] = r
	d.seq[leg]++
	e := d.m.edge(leg)
	if e == nil {
		return NoSession
	}
	return d.m.Receive(0, leg, &Message{Session: e.session, Seq: d.seq[leg], Ack: e.sent, Report: r}, &d.out)
}

const testTerm = Term(1<<32 | 5)

func (d *desk) joining() {
	d.hear(Parent, func(r *Report) { *r = Report{Term: testTerm} })
}

func (d *desk) idle() {
	d.joining()
	for leg := Leg(1); leg <= 2; leg++ {
		d.hear(leg, func(r *Report) { *r = Report{Term: testTerm, Joined: true} })
	}
}

// crosses makes the token come over a leg.
func (d *desk) crosses(leg Leg, k Member) Drop {
	return d.hear(leg, func(r *Report) { r.Crossings, r.Requests, r.Member = r.Crossings+1, false, k })
}

func (d *desk) waiting() { d.idle(); d.m.Request(0, 11, &d.out) }
func (d *desk) sending() { d.waiting(); d.crosses(Parent, NoMember) }
func (d *desk) holding() { d.idle(); d.crosses(Parent, NoMember) }

// passed is a switch that has passed the token to leg 1.
func (d *desk) passed() {
	d.holding()
	d.hear(1, func(r *Report) { r.Requests = true })
	d.hear(1, func(r *Report) { r.Crossings, r.Requests = 1, false })
}

var situations = []struct {
	name string
	make func(*desk)
}{
	{"Outside", func(*desk) {}},
	{"Joining", (*desk).joining},
	{"Idle", (*desk).idle},
	{"Idle, the token behind leg 1", (*desk).passed},
	{"Waiting", (*desk).waiting},
	{"Holding", (*desk).holding},
	{"Sending", (*desk).sending},
	{"Sending, others wait", func(d *desk) {
		d.sending()
		d.hear(Parent, func(r *Report) { r.Requests = true })
	}},
	{"Outdated, a member sends", func(d *desk) {
		d.sending()
		d.m.Up(0, 1, 2, &d.out)
		d.said[1] = Report{}
	}},
	{"Suspended", func(d *desk) { d.waiting(); d.hear(Parent, func(r *Report) { r.Suspended = true }) }},
}

var happenings = []struct {
	name string
	do   func(*desk)
}{
	{"member 11 requests", func(d *desk) { d.m.Request(0, 11, &d.out) }},
	{"member 12 requests", func(d *desk) { d.m.Request(0, 12, &d.out) }},
	{"member 11 leaves", func(d *desk) { d.m.Leave(0, 11, &d.out) }},
	{"the source is at rest", func(d *desk) { d.m.Rested(0, &d.out) }},
	{"retry time", func(d *desk) { d.m.Advance(time.Hour, &d.out) }},
	{"parent: a newer term", func(d *desk) { d.hear(Parent, func(r *Report) { *r = Report{Term: testTerm + 4} }) }},
	{"parent: no term", func(d *desk) { d.hear(Parent, func(r *Report) { *r = Report{} }) }},
	{"parent: token", func(d *desk) { d.crosses(Parent, NoMember) }},
	{"parent: token for member 21", func(d *desk) { d.crosses(Parent, 21) }},
	{"parent: request", func(d *desk) { d.hear(Parent, func(r *Report) { r.Requests = true }) }},
	{"parent: suspended", func(d *desk) { d.hear(Parent, func(r *Report) { r.Suspended = true }) }},
	{"leg 1: joined", func(d *desk) { d.hear(1, func(r *Report) { r.Term, r.Joined = d.m.term, true }) }},
	{"leg 1: needs a term", func(d *desk) { d.hear(1, func(r *Report) { r.Outdated = d.m.term }) }},
	{"leg 1: request", func(d *desk) { d.hear(1, func(r *Report) { r.Requests = true }) }},
	{"leg 1: token", func(d *desk) { d.crosses(1, NoMember) }},
	{"parent up", func(d *desk) { d.m.Up(0, Parent, 9, &d.out) }},
	{"parent cut", func(d *desk) { d.m.Cut(0, Parent, &d.out) }},
	{"leg 1 up", func(d *desk) { d.m.Up(0, 1, 9, &d.out) }},
	{"leg 1 cut", func(d *desk) { d.m.Cut(0, 1, &d.out) }},
	{"leg 1 removed", func(d *desk) { d.m.Remove(0, 1, &d.out) }},
}

// news says what a report tells that the one before it did not.
func news(old, r Report) string {
	var s []string
	add := func(changed bool, what string) {
		if changed {
			s = append(s, what)
		}
	}
	add(r.Term != old.Term && r.Term != 0, "term")
	add(r.Term == 0 && old.Term != 0, "no term")
	add(r.Term == old.Term && r.Crossings > old.Crossings && r.Member != NoMember, fmt.Sprintf("token for member %d", r.Member))
	add(r.Term == old.Term && r.Crossings > old.Crossings && r.Member == NoMember, "token")
	add(r.Joined && (!old.Joined || r.Term != old.Term), "joined")
	add(r.Requests && (!old.Requests || r.Crossings != old.Crossings || r.Term != old.Term), "request")
	add(r.Outdated != old.Outdated && r.Outdated >= r.Term, "needs a term")
	add(r.Suspended && !old.Suspended, "suspended")
	return strings.Join(s, ", ")
}

// answer is what a machine has done: its actions and the news for its neighbours.
func (d *desk) answer(before map[Leg]Report, sent map[Leg]uint64) string {
	var s []string
	for _, a := range d.out.Actions {
		s = append(s, fmt.Sprintf("%s %d", [...]string{"", "Serve", "Stop", "Wanted"}[a.Kind], a.Member))
	}
	for _, o := range d.out.Messages {
		to := "parent"
		if o.Leg != Parent {
			to = fmt.Sprintf("leg %d", o.Leg)
		}
		what := news(before[o.Leg], o.Message.Report)
		switch {
		case what == "" && o.Message.Seq == 1:
			what = "begins a session"
		case what == "" && o.Message.Seq == sent[o.Leg]:
			what = "again"
		case what == "":
			what = "knows"
		}
		s = append(s, to+": "+what)
	}
	return strings.Join(s, "; ")
}

// TestStates walks the table of docs/TREES.md: all events in all states.
func TestStates(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| state | event | next state | actions, and news for neighbours |\n|---|---|---|---|\n")
	for _, situation := range situations {
		var rows [][3]string
		for _, event := range happenings {
			d := newDesk(false)
			situation.make(d)
			if want, _, _ := strings.Cut(situation.name, ","); d.m.State().String() != want {
				t.Fatalf("%s: the state is %v", situation.name, d.m.State())
			}
			before, sent := map[Leg]Report{}, map[Leg]uint64{}
			d.m.eachEdge(func(e *edge) { before[e.leg], sent[e.leg] = e.reported, e.sent })
			from := d.m.State()
			d.out.reset()
			event.do(d)
			to, does := d.m.State().String(), d.answer(before, sent)
			if d.m.State() == from && does == "" {
				continue
			}
			if d.m.State() == from {
				to = "the same"
			}
			merged := false
			for i := range rows {
				if rows[i][1] == to && rows[i][2] == does {
					rows[i][0] += "<br>" + event.name
					merged = true
				}
			}
			if !merged {
				rows = append(rows, [3]string{event.name, to, does})
			}
		}
		for i, r := range rows {
			name := ""
			if i == 0 {
				name = situation.name
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, r[0], r[1], r[2])
		}
	}
	const doc, begin, end = "../../docs/TREES.md", "<!-- states: go test ./mcast/token -run TestStates -write -->", "<!-- states: end -->"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of states", doc)
	}
	if table == "\n"+b.String()+"\n" {
		return
	}
	if !*write {
		t.Fatalf("%s has another table; with -write it is written anew, and the difference is to be read like a change of the code:%s", doc, b.String())
	}
	if err := os.WriteFile(doc, []byte(head+begin+"\n"+b.String()+"\n"+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
