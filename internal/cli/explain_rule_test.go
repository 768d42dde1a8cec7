// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/docs"
)

// TestRules finds each rule of the document by its name, and prints it with its chapter, its
// tests and the sections that are about it.
func TestRules(t *testing.T) {
	list := docs.Rules()
	for _, rule := range list {
		for _, name := range []string{rule.Name, strings.ToLower(rule.Name), rule.Name[1:]} {
			if r, err := findRule(list, name); err != nil || r.Name != rule.Name || r.Text != rule.Text {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
	}
	for _, name := range []string{"R0", "R999", "R94", "x", "", "-43"} {
		if r, err := findRule(list, name); err == nil {
			t.Errorf("%q is found as %s", name, r.Name)
		}
	}
	var out, messages strings.Builder
	env := &Env{Stdout: &out, Stderr: &messages, Socket: "/nonexistent"}
	if code := Run(t.Context(), env, []string{"explain", "rule", "R43"}); code != 0 {
		t.Errorf("exit %d, %s%s", code, out.String(), messages.String())
	}
	for _, part := range []string{
		"R43    A NAK is served from the store (Repair from the store)\n\n       A sequence NAK(e) ", "\n\ntests  R43_NakServedHere, ",
		"docs/AGGREGATION.md: Tries and bursts (R43, R45, R49)\n\n  After `tries` resends ", "the leg is escalated: ",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in %s", part, out.String())
		}
	}
	out.Reset()
	env.Stdout = &out
	var some []docs.Rule
	if code := Run(t.Context(), env, []string{"explain", "rule", "R1", "57", "-o", "json"}); code != 0 || json.Unmarshal([]byte(out.String()), &some) != nil || len(some) != 2 || some[1].Name != "R57" || some[1].Chapter != "Silence" || some[1].Tests == nil {
		t.Errorf("exit %d, %s", code, out.String())
	}
}

// TestPlainText: links and emphasis go, products, globs and code stay.
func TestPlainText(t *testing.T) {
	for text, want := range map[string]string{
		"*Paper:* a **cursor**, see [RC.md](RC.md#9)": "Paper: a cursor, see RC.md", "2 * 3 * 4": "2 * 3 * 4", "`acked_i` is [x]": "`acked_i` is [x]",
	} {
		if got := plainText(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
