// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/docs"
)

// TestRules finds each rule of the document by its name, with the document's words and the
// sections that are about it.
func TestRules(t *testing.T) {
	b, err := os.ReadFile("../../docs/AGGREGATION.md")
	if err != nil {
		t.Fatal(err)
	}
	list := rulesOf(docs.Aggregation)
	rows := regexp.MustCompile(`(?m)^\| (R\d+) \| (.*)$`).FindAllStringSubmatch(string(b), -1)
	if len(rows) < 100 || len(list) != len(rows) {
		t.Fatalf("%d rules of %d rows", len(list), len(rows))
	}
	for _, row := range rows {
		for _, name := range []string{row[1], strings.ToLower(row[1]), row[1][1:]} {
			if r, err := findRule(list, name); err != nil || r.Name != row[1] || r.Text+" | "+r.Reason+" |" != row[2] || r.Text == "" {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
	}
	for name, want := range map[string]string{
		"R43": "", "R12": "Details of R12, R28 and R32: **R12.** A *rewind*", "R32": "Details of R12, R28 and R32: **R32.** Every leg",
		"R38": "Policies: what a completion promises (R23, R25, R26, R36-R40): ", "R98": "Who forwards (R97, R98): ",
	} {
		r, err := findRule(list, name)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range r.Sections {
			got += s.Title + ": " + s.Text
		}
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s has the sections %.80q, want %q", name, got, want)
		}
		if name == "R12" && strings.Contains(got, "R28.**") || name == "R32" && !strings.Contains(got, "| margin |") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, name := range []string{"R0", "R999", "R94", "x", "", "-43"} {
		if r, err := findRule(list, name); err == nil {
			t.Errorf("%q is found as %s", name, r.Name)
		}
	}
	var out, messages strings.Builder
	env := &Env{Stdout: &out, Stderr: &messages, Socket: "/nonexistent"}
	if code := Run(t.Context(), env, []string{"explain", "rule", "R43"}); code != 0 || !strings.HasPrefix(out.String(), "R43    A sequence NAK(e) of a leg is served from the store,") || !strings.Contains(out.String(), "\nreason ") {
		t.Errorf("exit %d, %s%s", code, out.String(), messages.String())
	}
	out.Reset()
	env.Stdout = &out
	var some []rule
	if code := Run(t.Context(), env, []string{"explain", "rule", "R1", "57", "-o", "json"}); code != 0 || json.Unmarshal([]byte(out.String()), &some) != nil || len(some) != 2 || some[1].Name != "R57" {
		t.Errorf("exit %d, %s", code, out.String())
	}
}
