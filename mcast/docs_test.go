// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestEveryRuleHasATest compares the rules of docs/AGGREGATION.md with the names of the
// tests.
func TestEveryRuleHasATest(t *testing.T) {
	find := func(file, expr string) map[string]bool {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, m := range regexp.MustCompile(expr).FindAllStringSubmatch(string(b), -1) {
			found[m[1]] = true
		}
		return found
	}
	rules := find(filepath.Join("..", "docs", "AGGREGATION.md"), `(?m)^\| (R\d{2,3}) \|`)
	if len(rules) == 0 {
		t.Fatal("no rules found")
	}
	tests := map[string]bool{}
	files, _ := filepath.Glob("*_test.go")
	for _, f := range files {
		for r := range find(f, `(?m)^func Test(R\d{2,3})_`) {
			tests[r] = true
		}
	}
	for r := range rules {
		if !tests[r] {
			t.Errorf("rule %s has no test", r)
		}
	}
	for r := range tests {
		if !rules[r] {
			t.Errorf("test of %s, which is no rule", r)
		}
	}
}
