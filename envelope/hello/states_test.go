// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"os"
	"strings"
	"testing"
)

var (
	a, aNext, b = speaker(1, 2), speaker(1, 3), speaker(2, 1)
	aLast       = speaker(1, 1)
)

// situations are the columns of the table of states in docs/PROTOCOL.md §11.
var situations = map[string]func(r *rig){
	"Down, silent":         func(*rig) {},
	"Down, no carrier":     func(r *rig) { r.l.SetLink(r.now, false, &r.out) },
	"Down, two neighbours": func(r *rig) { r.prove(a); r.prove(b) },
	"Init, A heard":        func(r *rig) { r.first(a) },
	"Up, with A":           func(r *rig) { r.prove(a) },
}

// other is a hello that differs in one byte.
func (r *rig) other(at int, value byte) {
	h := r.hello(a, nil)
	h[at] = value
	r.input(a, h)
}

// events are its rows. An event returns false where it cannot occur.
var events = map[string]func(r *rig, column string) bool{
	"hello of A, this switch not listed": func(r *rig, _ string) bool { r.first(a); return true },
	"hello of B, this switch not listed": func(r *rig, _ string) bool { r.first(b); return true },
	"hello of A, right echo":             func(r *rig, c string) bool { return r.can(c, a, r.echo) },
	"hello of A, wrong echo": func(r *rig, _ string) bool {
		wrong := uint64(12345)
		r.input(a, r.hello(a, &wrong))
		return true
	},
	"hello of A again": func(r *rig, c string) bool {
		return r.can(c, a, func(Speaker) { r.input(a, r.last[a]) })
	},
	"hello of A again, by another MAC address": func(r *rig, c string) bool {
		return r.can(c, a, func(Speaker) { r.l.Input(r.now, address(3).MAC, r.last[a], &r.out) })
	},
	"hello of B, right echo": func(r *rig, c string) bool {
		if c != "Down, silent" && c != "Down, two neighbours" {
			r.first(b)
		}
		return r.can(c, b, r.echo)
	},
	"hello of A's next incarnation, this switch not listed": func(r *rig, _ string) bool { r.first(aNext); return true },
	"hello of A's next incarnation, right echo": func(r *rig, c string) bool {
		if c != "Down, silent" {
			r.first(aNext)
		}
		return r.can(c, aNext, r.echo)
	},
	"former hello of A's last incarnation, right echo of then": func(r *rig, _ string) bool {
		former := newSeededRig(r.t, 1) // the link before it was forgotten, with other challenges
		former.prove(aLast)
		r.input(aLast, former.last[aLast])
		return true
	},
	"own hello": func(r *rig, _ string) bool {
		r.l.Input(r.now, address(9).MAC, r.own, &r.out)
		return true
	},
	"hello of another switch with this ID":     func(r *rig, _ string) bool { r.first(speaker(9, 2)); return true },
	"hello under a key that is not configured": func(r *rig, _ string) bool { r.other(7, 9); return true },
	"hello with a wrong HMAC":                  func(r *rig, _ string) bool { r.other(43, 99); return true },
	"hello of another version":                 func(r *rig, _ string) bool { r.other(4, 2); return true },
	"two intervals pass":                       func(r *rig, _ string) bool { r.run(2 * DefaultInterval); return true },
	"hold time passes":                         func(r *rig, _ string) bool { r.run(Multiplier * DefaultInterval); return true },
	"carrier lost":                             func(r *rig, _ string) bool { r.l.SetLink(r.now, false, &r.out); return true },
	"carrier back":                             func(r *rig, _ string) bool { r.l.SetLink(r.now, true, &r.out); return true },
	"key replaced, the former one kept": func(r *rig, _ string) bool {
		if err := r.l.SetKeys(testKeys(), 2); err != nil {
			r.t.Fatal(err)
		}
		return true
	},
}

// can plays a hello of s that needs one before, if there was one. Without a carrier, any
// hello does.
func (r *rig) can(column string, s Speaker, play func(Speaker)) bool {
	switch {
	case column == "Down, no carrier":
		r.first(s)
	case r.last[s] == nil:
		return false
	default:
		play(s)
	}
	return true
}

// outcome names what an event has led to, as the cells of the table do.
func (r *rig) outcome() string {
	if r.out.Drop != NoDrop {
		return "drop " + r.out.Drop.String()
	}
	text := r.describe()
	for _, e := range r.out.Events {
		if e.Reason == Restarted {
			text += ", restarted"
		}
	}
	return text
}

func (r *rig) describe() string {
	state, reason := r.l.State()
	text := state.String()
	n, up := r.l.Neighbour()
	if up {
		text += ", with " + map[Speaker]string{a: "A", aNext: "A's next", b: "B"}[n.Speaker]
	}
	return text + map[Reason]string{
		Silent: ", silent", LinkDown: ", no carrier", TwoNeighbours: ", two neighbours", OneWay: ", one-way",
	}[reason]
}

// TestStates walks the table of docs/PROTOCOL.md §11.
func TestStates(t *testing.T) {
	text, err := os.ReadFile("../../docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## 11. ")
	var columns []string
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 1+len(situations) || cells[0] == "---" {
			continue
		}
		if columns == nil {
			columns = cells[1:]
			continue
		}
		rows++
		for i, want := range cells[1:] {
			t.Run(columns[i]+"/"+cells[0], func(t *testing.T) { walk(t, columns[i], cells[0], want) })
		}
	}
	if rows != len(events) {
		t.Errorf("%d events in the table, %d in the test", rows, len(events))
	}
}

func walk(t *testing.T, column, event, want string) {
	set, play := situations[column], events[event]
	if set == nil || play == nil {
		t.Fatal("is not in the test")
	}
	r := newRig(t)
	set(r)
	before := r.describe()
	if r.out = (Output{}); !play(r, column) {
		if want != "-" {
			t.Errorf("cannot occur, want %q", want)
		}
		return
	}
	got := r.outcome()
	if got == before {
		got = "="
	}
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if strings.HasPrefix(want, "drop") && (len(r.out.Events) > 0 || r.describe() != before) {
		t.Errorf("dropped with events %v, state %s", r.out.Events, r.describe())
	}
}

// Each drop has a row, with a name of its own.
func TestDropsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for d := range NumDrops {
		if s := d.String(); s == "" || seen[s] || s == NumDrops.String() || (d.Text() == "") != (d == NoDrop) {
			t.Errorf("drop %d is called %q: %q", d, s, d.Text())
		}
		seen[d.String()] = true
	}
}
