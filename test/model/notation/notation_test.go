// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

func TestPSN(t *testing.T) {
	for n, want := range map[rocev2.PSN]string{0: "0", 99: "99", 100: "0x64", 0xFFFFFF: "-1", 0xFFFF9D: "-99", 0xFFFF9C: "0xffff9c", 0x7FFFFF: "0x7fffff"} {
		got, err := ParsePSN(PSN(n))
		if PSN(n) != want || got != n || err != nil {
			t.Errorf("%#x is %s and not %s, and is read as %#x, %v", uint32(n), PSN(n), want, uint32(got), err)
		}
	}
	for _, s := range []string{"", "100", "0x10", "0xffffff", "ff", "-0x1", "16777216"} {
		if n, err := ParsePSN(s); err == nil {
			t.Errorf("%q is read as %#x", s, uint32(n))
		}
	}
}

// copies reads "B:5 C:5(ar)".
func copies(t *testing.T, s string) (all []Copy) {
	for _, f := range strings.Fields(s) {
		leg, rest, _ := strings.Cut(f, ":")
		at, set, ok := strings.Cut(rest, "(")
		n, err := ParsePSN(at)
		if err != nil {
			t.Fatal(err)
		}
		c := Copy{Leg: leg, PSN: n}
		if ok {
			c.Set = "(" + set
		}
		all = append(all, c)
	}
	return all
}

// TestAnswer: calls are one line only if they differ in nothing but PSNs that follow each
// other; the order of the copies of a call shows.
func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		calls string // one each line
		want  string
	}{
		{"B:5 C:5", "copy B,C 5"},
		{"B:5 C:6", "copy B 5 C 6"},
		{"B:0 C:0\nB:1 C:1\nB:2 C:2", "copy B,C 0..2"},
		{"B:-1 C:0x200\nB:0 C:0x201", "copy B -1..0 C 0x200..0x201"},
		{"B:0 C:0 B:1 C:1", "copy B,C 0..1"},
		{"B:0 B:1 C:0 C:1", "copy B 0..1; C 0..1"},
		{"B:0 B:1\nB:2 B:3", "copy B 0..1 at once\ncopy B 2..3 at once"},
		{"B:0 B:1\nB:2", "copy B 0..1 at once\ncopy B 2"},
		{"B:0\nB:1(ar)\nB:2(ar)", "copy B 0\ncopy B 1..2(ar)"},
		{"B:0 C:0\nC:1 B:1", "copy B,C 0\ncopy C,B 1"},
		{"B:0\nB:2", "copy B 0\ncopy B 2"},
		{"N1:1 N1:2 N1:3(ar)", "copy N1 1..2; N1 3(ar)"},
		{"B:7 N1:1 N1:2", "copy B 7; N1 1..2"},
	} {
		var a Answer
		for call := range strings.Lines(c.calls) {
			a.Add(&Call{Copies: copies(t, call)})
		}
		var w strings.Builder
		if a.WriteTo(&w); strings.TrimSpace(w.String()) != c.want {
			t.Errorf("%s:\n%swant\n%s", c.calls, &w, c.want)
		}
	}
}

func TestKept(t *testing.T) {
	var a Answer
	for n := range 3 {
		a.Add(&Call{Copies: []Copy{{"B", rocev2.PSN(n), ""}}, Kept: []string{"kept"}})
	}
	a.Add(&Call{Copies: []Copy{{"B", 3, ""}}, Then: []string{"ACK 2"}, Kept: []string{"kept"}})
	a.Add(&Call{Kept: []string{"kept", "released 1"}})
	a.Add(&Call{Kept: []string{"kept", "released 1"}})
	var w strings.Builder
	a.WriteTo(&w)
	if want := "copy B 0..2, kept\ncopy B 3\nACK 2\nkept\nkept, released 1, 2 times\n"; w.String() != want {
		t.Errorf("%swant\n%s", &w, want)
	}
}

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		own    []string
		behind []Behind
		want   string
	}{
		{[]string{"A", "B"}, nil, "switch -- A, B\n"},
		{[]string{"A"}, []Behind{{Name: "N1", Levels: 2, Members: []string{"B", "C"}}}, "switch -- A\n       -- N1, 2 levels -- B, C\n"},
		{nil, []Behind{{Name: "N1", Parent: true, Members: []string{"A"}}, {Name: "N2", Members: []string{"B"}}}, "A -- N1 -- switch -- N2 -- B\n"},
		{[]string{"A"}, []Behind{{Name: "N1", Parent: true}}, "N1 -- switch -- A\n"},
	} {
		if got := Figure(c.own, c.behind); got != c.want {
			t.Errorf("%swant\n%s", got, c.want)
		}
	}
}
