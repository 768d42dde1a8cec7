// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/mutation/module"
)

func rootOf(t *testing.T) string {
	t.Helper()
	root, err := module.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func allOf(t *testing.T) []mutant {
	t.Helper()
	ms, err := declared(rootOf(t))
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// Every mutant fits the present code, and is valid Go. The test is fast, so that a change
// which a mutant no longer fits shows at once.
func TestMutantsFitTheCode(t *testing.T) {
	s := &sources{root: rootOf(t)}
	names := map[string]bool{}
	for _, m := range allOf(t) {
		if names[m.name] {
			t.Errorf("two are named %q", m.name)
		}
		names[m.name] = true
		files, err := m.changed(s)
		if err != nil {
			t.Error(err)
			continue
		}
		for path, src := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), path, src, 0); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
}

// A rename of anything leaves every mutant working: with all names of the packages
// changed, and those of the Go expressions in the mutants, as a rename changes them, each
// mutant makes the same mistake.
func TestMutantsSurviveRenames(t *testing.T) {
	s := &sources{root: rootOf(t)}
	renamed := &sources{root: s.root, dirs: map[string][]*source{}}
	for _, m := range allOf(t) {
		files, err := s.at(m.dir)
		if err != nil {
			t.Fatal(err)
		}
		if renamed.dirs[m.dir] == nil {
			for _, f := range files {
				r, err := parse(f.path, []byte(rename(string(f.src))))
				if err != nil {
					t.Fatal(err)
				}
				renamed.dirs[m.dir] = append(renamed.dirs[m.dir], r)
			}
		}
		want, err := m.changed(s)
		if err != nil {
			t.Error(err)
			continue
		}
		m.changes = slices.Clone(m.changes)
		for i := range m.changes {
			c := &m.changes[i]
			c.of = renamedExpr(t, c.of)
			names := map[string]ast.Expr{}
			for k, e := range c.names {
				names[k] = renamedExpr(t, e)
			}
			c.names = names
		}
		got, err := m.changed(renamed)
		if err != nil {
			t.Error(err)
			continue
		}
		for path := range want {
			if string(got[path]) == rename(string(want[path])) {
				continue
			}
			if back := strings.ReplaceAll(string(got[path]), suffix, ""); back != string(want[path]) {
				t.Errorf("%s: another mistake after a rename", m.name)
			}
		}
	}
}

const suffix = "_Renamed"

// rename gives all identifiers in source other names.
func rename(src string) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, []byte(src), nil, 0)
	var out strings.Builder
	from := 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return out.String() + src[from:]
		}
		if tok == token.IDENT && text != "_" && types.Universe.Lookup(text) == nil {
			end := file.Offset(pos) + len(text)
			out.WriteString(src[from:end] + suffix)
			from = end
		}
	}
}

func renamedExpr(t *testing.T, e ast.Expr) ast.Expr {
	t.Helper()
	x, err := parser.ParseExpr(rename(types.ExprString(e)))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// docs/TESTING.md gives the number of mutants: no more than there are, and no fewer than
// two thirds.
func TestTheDocumentCountsMutants(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(rootOf(t), "docs", "TESTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("`make mutants` plants over ([0-9]+) mistakes").FindSubmatch(b)
	if m == nil {
		t.Fatal("docs/TESTING.md does not say how many mutants there are")
	}
	n, err := strconv.Atoi(string(m[1]))
	if have := len(allOf(t)); err != nil || have < n || have > n+n/3 {
		t.Errorf("docs/TESTING.md says over %s, there are %d", m[1], have)
	}
}

// The test tries one mutant in 200, as far as its time allows; CI tries one in 160, others at each commit, and
// `make mutants` all. With -short the test tries none.
func TestSomeMutantsAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("tries nothing with -short")
	}
	if os.Getenv("CI") != "" {
		t.Skip("CI plants more of them: .ci/run")
	}
	s := &sources{root: rootOf(t), limits: usual}
	var some []mutant
	for i, m := range allOf(t) {
		if i%200 == 0 && !m.root {
			some = append(some, m)
		}
	}
	end, limited := t.Deadline()
	for i := 0; i < len(some); i += 4 {
		if limited && time.Until(end) < 3*time.Minute { // most mutants take less, with their build
			t.Logf("no time for %d of %d mutants", len(some)-i, len(some))
			break
		}
		for r := range runAll(s, some[i:min(i+4, len(some))], 2) {
			if r.err != nil || len(r.killers) == 0 {
				t.Error(r.line())
			}
		}
	}
}

// weights is a module with mistakes to be made in it. What the tests below quote of its text
// does not change with the code of this module.
func weights(t *testing.T) *sources {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("testdata", "weights"))
	if err != nil {
		t.Fatal(err)
	}
	return &sources{root: root, limits: usual, every: true}
}

// A mutant without a mistake survives. A mutant that does not build, or does not fit, is
// an error. All tests that fail are named, and the one that a panic ends.
func TestVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs tests, which -short does not")
	}
	s := weights(t)
	for _, c := range []struct {
		name, of, old, new string
		killers            []string
		err                string
	}{
		{"nothing is wrong", "Weight.Less", "w < v", "v > w", nil, ""},
		{"two tests fail", "After", "w >>= n", "w = 0", []string{"TestAfterATime", "TestAfterMore"}, ""},
		{"one test fails", "Weight.Less", "w < v", "w <= v", []string{"TestLess"}, ""},
		{"panics", "After", "w >>= n", `panic("now")`, []string{"TestAfterATime"}, ""},
		{"does not build", "Weight.Less", "w < v", "w - v", nil, "build failed"},
		{"does not fit", "Weight.Less", "w << v", "true", nil, "decay/decay.go: the shape of its old text is there 0 times"},
		{"fits twice", "After", "w", "0", nil, "decay/decay.go: the shape of its old text is there"},
		{"of nothing", "Before", "w", "0", nil, "Before is declared nowhere in its package"},
	} {
		e, err := parser.ParseExpr(c.of)
		if err != nil {
			t.Fatal(err)
		}
		r := try(s, mutant{name: c.name, dir: "decay", changes: []change{{of: e, old: c.old, new: c.new}}})
		switch {
		case c.err != "":
			if r.err == nil || !strings.Contains(r.err.Error(), c.err) || !strings.HasPrefix(r.line(), "ERROR") {
				t.Errorf("%s, want an error with %q", r.line(), c.err)
			}
		case r.err != nil || !slices.Equal(r.killers, c.killers) || strings.HasPrefix(r.line(), "SURVIVED") != (len(c.killers) == 0):
			t.Errorf("%s: %s, want killers %v", c.name, r.line(), c.killers)
		}
	}
}

// A suite that outlasts its limit with a mutant is no verdict: the mutant survives where the tests are slow, and is
// killed where one of them hangs.
func TestSlowTestsAreNoVerdict(t *testing.T) {
	of := ast.NewIdent("After")
	for _, c := range []struct {
		name, new string
		more      time.Duration
		killers   []string
	}{
		{"slow", "for range 1 << 29 { n += 0 }; w >>= n", 10 * time.Minute, nil},
		{"hangs", "for n > 0 { n += 0 }; w >>= n", time.Second, []string{"TestAfterATime (hangs)"}},
	} {
		s := weights(t)
		s.limits = limits{suite: 50 * time.Millisecond, more: c.more}
		r := try(s, mutant{name: c.name, dir: "decay", changes: []change{{of: of, old: "w >>= n", new: c.new}}})
		if r.err != nil || !slices.Equal(r.killers, c.killers) {
			t.Errorf("%s, want killers %v", r.line(), c.killers)
		}
	}
}

// Only with every, the tests after the first that fails run too.
func TestFirstFailureEndsTheTests(t *testing.T) {
	s := weights(t)
	s.every = false
	r := try(s, mutant{name: "two tests fail", dir: "decay", changes: []change{{of: ast.NewIdent("After"), old: "w >>= n", new: "w = 0"}}})
	if want := []string{"TestAfterATime"}; r.err != nil || !slices.Equal(r.killers, want) {
		t.Errorf("%s, want killers %v", r.line(), want)
	}
}

// A mutant is in one sample whatever others there are; a sample of one in 1 is all.
func TestSampleIsStable(t *testing.T) {
	ms := allOf(t)
	few := 0
	for _, m := range ms {
		if !sampled(m, 1, 7) {
			t.Errorf("%s is not in the sample of one in 1", m.name)
		}
		of := 0
		for sample := range uint(10) {
			if sampled(m, 10, sample+70) {
				of++
			}
		}
		if of != 1 {
			t.Errorf("%s is in %d of 10 samples", m.name, of)
		}
		if sampled(m, 10, 3) {
			few++
		}
	}
	if few < len(ms)/20 || few > len(ms)/5 {
		t.Errorf("%d of %d mutants in the sample of one in 10", few, len(ms))
	}
}

// A mutant that the tests of its package do not notice is tried with those of other packages, which exist.
func TestSuites(t *testing.T) {
	root := rootOf(t)
	for _, c := range []struct {
		m    mutant
		want []string
	}{
		{mutant{dir: "mcast"}, []string{"mcast", "test/model"}},
		{mutant{dir: "host/rc"}, []string{"host/rc", "test/model"}},
		{mutant{dir: "mcast/token"}, []string{"mcast/token", "test/model"}},
		{mutant{dir: "internal/control/location"}, []string{"internal/control/location", "internal/control"}},
		{mutant{dir: "config", rule: "user"}, []string{"config", "test/arch"}},
	} {
		got := suites(&c.m)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.m.dir, got, c.want)
		}
		for _, dir := range got {
			if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
				t.Error(err)
			}
		}
	}
}
