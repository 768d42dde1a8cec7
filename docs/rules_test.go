// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxRule is the most words that a rule may have.
const maxRule = 60

// TestRules checks the form of each rule: a number of its own, a chapter, a title, a text that is
// short, and tests that exist. What is longer belongs into a section with details, whose rules exist.
func TestRules(t *testing.T) {
	list := Rules()
	if anchors := strings.Count(page(rulesPage), `<a id="r`); len(list) < 100 || len(list) != anchors {
		t.Fatalf("%d rules of %d anchors", len(list), anchors)
	}
	tests := testFunctions(t)
	names := map[string]bool{}
	for _, r := range list {
		if names[r.Name] {
			t.Errorf("there are two rules %s", r.Name)
		}
		names[r.Name] = true
		if r.Chapter == "" || r.Title == "" || r.Text == "" || strings.Contains(r.Text, "\n") {
			t.Errorf("%s needs a chapter, a title and a text of one paragraph: %+v", r.Name, r)
		}
		if n := len(strings.Fields(r.Text)); n > maxRule {
			t.Errorf("%s has %d words, want %d at most: put details into a section of its chapter, with the rule's number in the title", r.Name, n, maxRule)
		}
		if len(r.Tests) == 0 {
			t.Errorf("%s names no test to read first", r.Name)
		}
		for _, test := range r.Tests {
			_, err := os.Stat(filepath.Join("..", "mcast", "testdata", test))
			if !strings.HasPrefix(strings.TrimPrefix(test, "Test"), r.Name+"_") || err != nil && !tests[test] {
				t.Errorf("%s names %s, which is no test of it", r.Name, test)
			}
		}
	}
	for _, name := range append([]string{rulesPage}, morePages...) {
		text := page(name)
		if text == "" {
			t.Errorf("%s is not embedded", name)
		}
		for _, rule := range regexp.MustCompile(`\bR\d{2,3}\b`).FindAllString(text, -1) {
			if !names[rule] {
				t.Errorf("%s names %s, which is no rule", name, rule)
			}
		}
	}
}

// testFunctions returns the names of the tests of package mcast.
func testFunctions(t *testing.T) map[string]bool {
	files, _ := filepath.Glob(filepath.Join("..", "mcast", "*_test.go"))
	found := map[string]bool{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(b), -1) {
			found[m[1]] = true
		}
	}
	return found
}

// TestSections finds the sections about rules in each document.
func TestSections(t *testing.T) {
	for rule, want := range map[string]string{
		"R43": "AGGREGATION.md: Tries and bursts", "R38": "AGGREGATION.md: Policies", "R32": "AGGREGATION.md: Weights",
		"R55": "RC.md: 8.1 Probes", "R105": "TREES.md: Joining in doubt", "R103": "FAST-PATH.md: Who forwards", "R01": "",
	} {
		i := slices.IndexFunc(Rules(), func(r Rule) bool { return r.Name == rule })
		if i < 0 {
			t.Fatalf("there is no rule %s", rule)
		}
		got := ""
		for _, s := range Rules()[i].Sections {
			got += s.Page + ": " + s.Title + "\n"
			if s.Text == "" || strings.Contains(s.Text, "\n#") {
				t.Errorf("%s: %q has the text %q", s.Page, s.Title, s.Text)
			}
		}
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s has the sections %q, want %q", rule, got, want)
		}
	}
	for title, want := range map[string]string{"Policies (R23, R36-R38)": "R23 R36 R37 R38", "9.4 Legs (R106)": "R106", "R12 is first": "", "Words": "", "Of (R12) too": ""} {
		if got := strings.Join(rulesNamed(title), " "); got != want {
			t.Errorf("%q names %q, want %q", title, got, want)
		}
	}
}
