// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/gleam-rdma/gleam/docs"
)

// ruleNames are the rules of docs/AGGREGATION.md.
func ruleNames() map[string]bool {
	found := map[string]bool{}
	for _, r := range docs.Rules() {
		found[r.Name] = true
	}
	return found
}

// TestEveryRuleHasATest compares the rules of docs/AGGREGATION.md with the names of the
// tests.
func TestEveryRuleHasATest(t *testing.T) {
	rules := ruleNames()
	if len(rules) == 0 {
		t.Fatal("no rules found")
	}
	tests := map[string]bool{}
	files, _ := filepath.Glob("*_test.go")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func Test(R\d{2,3})_`).FindAllStringSubmatch(string(b), -1) {
			tests[m[1]] = true
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
