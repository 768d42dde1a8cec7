// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/mutants/module"
)

func rootOf(t *testing.T) string {
	t.Helper()
	root, err := module.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// Every mutant fits the code as it is, and is Go. This takes no time: who
// changes the core learns at once which entries to bring up to date.
func TestMutantsFitTheCode(t *testing.T) {
	root := rootOf(t)
	names := map[string]bool{}
	for _, m := range all() {
		if names[m.name] {
			t.Errorf("two are named %q", m.name)
		}
		names[m.name] = true
		src, err := m.apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.where, src, 0); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// docs/TESTING.md says how many there are: not more than there are, nor fewer by a
// third.
func TestTheDocumentCountsMutants(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(rootOf(t), "docs", "TESTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("`make mutants` plants more than ([0-9]+) small mistakes").FindSubmatch(b)
	if m == nil {
		t.Fatal("docs/TESTING.md does not say how many mutants there are")
	}
	n, err := strconv.Atoi(string(m[1]))
	if have := len(all()); err != nil || have < n || have > n+n/3 {
		t.Errorf("docs/TESTING.md says more than %s, there are %d", m[1], have)
	}
}

// Some of them are killed, one in forty; CI plants one in eight, and `make mutants` all. With
// -short none is tried.
func TestSomeMutantsAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("tries nothing with -short")
	}
	if os.Getenv("CI") != "" {
		t.Skip("CI plants more of them: .ci/run")
	}
	root := rootOf(t)
	var some []mutant
	for i, m := range all() {
		if i%40 == 0 && !m.needsRoot() {
			some = append(some, m)
		}
	}
	for r := range runAll(root, some, 2) {
		if r.err != nil || len(r.killers) == 0 {
			t.Error(r.line(true))
		}
	}
}

// What is no mistake survives; what does not build, or does not fit, is an error;
// a panic is a kill.
func TestVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds mcast, which -short does not")
	}
	const old = "	if d <= 0 {\n		return w\n	}"
	try1 := func(name, file, old, new string) result {
		return try(rootOf(t), mutant{name, "R00", file, []edit{{old, new}}})
	}
	if r := try1("nothing is wrong", "rocev2/psn.go", "p.Sub(q) < 0", "0 > p.Sub(q)"); r.err != nil || len(r.killers) > 0 || !strings.HasPrefix(r.line(false), "SURVIVED") {
		t.Error(r.line(true))
	}
	if r := try1("does not build", "rocev2/psn.go", "p.Sub(q) < 0", "p.Sub(q)"); r.err == nil || !strings.Contains(r.err.Error(), "build failed") {
		t.Error(r.line(true))
	}
	if r := try1("does not fit", "rocev2/psn.go", "p.Sub(q) << 0", "true"); r.err == nil || !strings.Contains(r.err.Error(), "0 times in rocev2/psn.go") {
		t.Error(r.line(true))
	}
	if r := try1("panics", "mcast/cnp.go", old, "	if d > 0 {\n		panic(\"now\")\n	}"); !slices.Contains(r.killers, "TestC63_OnlyTheHottestBranch") {
		t.Error(r.line(true))
	}
}
