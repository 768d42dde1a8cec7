// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

//go:generate go test . -run TestTable -update

var update = flag.Bool("update", false, "write the table into docs/EVIDENCE.md")

const (
	root  = "../.."
	doc   = root + "/docs/EVIDENCE.md"
	begin = "<!-- conformance: made by go generate ./test/conformance -->\n"
	end   = "<!-- conformance: end -->\n"
)

// found returns the tests of each check, as package.Test. A number without a check is an
// error.
func found(t *testing.T) map[int][]string {
	t.Helper()
	tests := map[int][]string{}
	named := regexp.MustCompile(`(?m)^func (Test|Fuzz)C(\d+)_(\w+)\(`)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		for _, m := range named.FindAllSubmatch(src, -1) {
			n, err := strconv.Atoi(string(m[2]))
			if err != nil || n < 1 || n > len(checks) {
				t.Errorf("%s: there is no check %s", rel, m[2])
				continue
			}
			tests[n] = append(tests[n], fmt.Sprintf("`%s`: `%sC%s_%s`", filepath.ToSlash(rel), m[1], m[2], m[3]))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range tests {
		slices.Sort(names)
	}
	return tests
}

func table(tests map[int][]string) string {
	var b strings.Builder
	n := 0
	for i := range checks {
		if len(tests[i+1]) > 0 {
			n++
		}
	}
	fmt.Fprintf(&b, "%d of %d checks have tests.\n\n| | check | where | state |\n|---|---|---|---|\n", n, len(checks))
	for i, what := range checks {
		where, state := strings.Join(tests[i+1], "<br>"), "tested"
		if where == "" {
			state = "open: " + open[i+1]
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", i+1, what, where, state)
	}
	return b.String()
}

// Every check has a test or a reason, and docs/EVIDENCE.md says which.
func TestTable(t *testing.T) {
	if len(checks) != 72 {
		t.Fatalf("%d checks, of 72", len(checks))
	}
	tests := found(t)
	for n := 1; n <= len(checks); n++ {
		switch {
		case len(tests[n]) == 0 && open[n] == "":
			t.Errorf("check %d (%s) has no test and is not known to be open", n, checks[n-1])
		case len(tests[n]) > 0 && open[n] != "":
			t.Errorf("check %d is said to be open (%s), but has a test: take it from the list", n, open[n])
		}
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(text, []byte(begin))
	old, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q to write between", doc, begin, end)
	}
	want := table(tests)
	if string(old) == want {
		return
	}
	if !*update {
		t.Fatalf("the table in %s is out of date; type: go generate ./test/conformance", doc)
	}
	if err := os.WriteFile(doc, slices.Concat(before, []byte(begin+want+end), after), 0o644); err != nil {
		t.Fatal(err)
	}
}
