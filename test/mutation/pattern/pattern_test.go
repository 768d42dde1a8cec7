// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"go/ast"
	"go/parser"
	"strings"
	"testing"
)

const code = `func (g *group) add(m *member, out *Output) bool {
	if m.psn < g.low { // comments
		return false
	}
	if m.psn == nil ||
		len(g.members) > 2 {
		g.members = append(g.members, m)
	}
	return true
}`

// Identifiers are any identifiers, all else is itself; spaces, line ends and comments do
// not count.
func TestFind(t *testing.T) {
	for old, want := range map[string]int{
		"if x.y < z.v {":                           1,
		"if x.y < z.v { return false }":            1,
		"if x.y < z.v { return true }":             0,
		"if x < z.v {":                             0,
		"if a.a == nil || len(b.b) > 2 {":          1,
		"if a.a == b || len(b.b) > 2 {":            0, // nil is no name
		"if a.a == nil || cap(b.b) > 2 {":          0,
		"len(b.b) > 3":                             0,
		"return true":                              1,
		"a.b":                                      6,
		"a.b = append(a.b, c)\n\t}\n\treturn true": 1,
	} {
		ms, err := Find(code, old)
		if err != nil || len(ms) != want {
			t.Errorf("%q: %d times, want %d; %v", old, len(ms), want, err)
		}
	}
	for _, old := range []string{"", "  ", "// words", "`"} {
		if ms, err := Find(code, old); err == nil {
			t.Errorf("%q: %d times, want an error", old, len(ms))
		}
	}
}

func TestReplacement(t *testing.T) {
	names := map[string]ast.Expr{}
	for key, text := range map[string]string{
		"$recv": "g", "$1": "group{}.left", "$2": "(*group).forget", "$3": "rocev2.OpSend", "$4": "MemberID(0)", "$5": "slices.Sort[[]int]",
	} {
		e, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		names[key] = e
	}
	for _, x := range []struct{ old, new, want string }{
		{"if x.y < z.v {", "if x.y <= z.v {", "if m.psn <= g.low {"},
		{"if x.y < z.v {", "if false {", "if false {"},
		{"if x.y < z.v {", "", ""},
		{"if x.y < z.v {", "n := x.y\nif z.v > n {", "n := m.psn\nif g.low > n {"},
		{"if x.x < z.v {", "if z.v > x.x {", "if g.low > m.psn {"}, // x and .x are two names
		{"if x.y < z.v {", "$recv.$2(x)\nif x.y < z.$1 {", "g.forget(m)\nif m.psn < g.left {"},
		{"if x.y < z.v {", "if x.y < $3 || $4(1) == $5(x) {", "if m.psn < rocev2.OpSend || MemberID(1) == slices.Sort(m) {"},
		{"if x.y < z.v {", "if x.y < z.other {", `error: other of "if x.y < z.other {" is not in the old text`},
		{"if x.y < z.v {", "if x.y < z.$6 {", "error: $6 stands for nothing"},
		{"if x.y < x.v {", "if x.y {", `error: x of "if x.y {" has met several names`},
		{"if x.y < x.v {", "if z.y {", `error: z of "if z.y {" is not in the old text`},
		{"if x.y < z.v {", "if T {", `error: T of "if T {" is not in the old text`},
	} {
		ms, err := Find(code, x.old)
		if err != nil || len(ms) != 1 {
			t.Fatalf("%q: %v %v", x.old, ms, err)
		}
		got, err := ms[0].Replacement(x.new, names)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != x.want && (err == nil || !strings.HasPrefix(got, x.want)) {
			t.Errorf("%q, %q: %q, want %q", x.old, x.new, got, x.want)
		}
	}
}
