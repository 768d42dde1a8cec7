// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")

// TestThreatsNameTests checks that the attack tables of docs/THREATS.md name tests that
// exist. An attack without a test is marked as open. Each section has a table, and each row
// is in one.
func TestThreatsNameTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/THREATS.md"))
	if err != nil {
		t.Fatal(err)
	}
	files := goFiles(t)
	exists := func(name string) bool {
		for file, src := range files {
			if strings.HasSuffix(file, "_test.go") && bytes.Contains(src, []byte("func "+name+"(")) {
				return true
			}
		}
		return false
	}
	_, tables, found := strings.Cut(string(text), "\n## Attacks\n")
	if !found {
		t.Fatal("docs/THREATS.md has no section Attacks")
	}
	tables, _, _ = strings.Cut(tables, "\n## ")
	rows, section, table := 0, "", false
	for _, line := range append(strings.Split(tables, "\n"), "### the end") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "### "):
			if section != "" && rows == 0 {
				t.Errorf("%s: no attacks", section)
			}
			section, rows = line, 0
			continue
		case strings.HasPrefix(line, "|---"):
			table = true
			continue
		case !strings.HasPrefix(line, "|"):
			table = false
			continue
		case strings.HasPrefix(line, "| attack |") || strings.HasPrefix(line, "| what "):
			continue
		case !table:
			t.Errorf("%s: it is in no table: %s", section, line)
		}
		rows++
		names := namedTest.FindAllStringSubmatch(line, -1)
		if len(names) == 0 && !strings.Contains(line, "open") {
			t.Errorf("neither a test nor open: %s", line)
		}
		for _, n := range names {
			if !exists(n[1]) {
				t.Errorf("there is no test %s: %s", n[1], line)
			}
		}
	}
}
