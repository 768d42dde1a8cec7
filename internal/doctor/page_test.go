// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const page = "../../docs/DOCTOR.md"

// The page has every check, and the screen that TestGolden makes.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Checks {
		if !strings.Contains(string(text), "`"+c+"`") {
			t.Errorf("%s does not have the check %s", page, c)
		}
	}
	screen, err := os.ReadFile("testdata/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)(<!-- screen: report.txt -->\n```\n).*?(```\n)")
	now := block.ReplaceAllString(string(text), "${1}"+strings.ReplaceAll(string(screen), "$", "$$")+"${2}")
	if now == string(text) {
		return
	}
	if !*rewrite {
		t.Errorf("%s does not have the screen as it is: go test ./internal/doctor -run 'Golden|Page' -rewrite", page)
	} else if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checked are all checks of a report in the list.
func checked(t *testing.T, r *Report) {
	t.Helper()
	known := make(map[string]bool)
	for _, c := range Checks {
		known[c] = true
	}
	for _, c := range r.Checks {
		if !known[c.Check] {
			t.Errorf("Checks does not have %s", c.Check)
		}
	}
}
