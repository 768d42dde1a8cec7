// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// tour are the documents that describe the files.
var tour = []string{"docs/ARCHITECTURE.md", "docs/RC.md", "docs/GLOSSARY.md", "CONTRIBUTING.md"}

var fileNames = regexp.MustCompile(`(?:[\w-]+/)*[\w.-]*\w\.(?:go|c|h|sh|yaml|txt)\b`)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every file that these documents name exists, by its path from the top.
func TestNamedFilesExist(t *testing.T) {
	for _, doc := range tour {
		names := fileNames.FindAllString(read(t, doc), -1)
		if len(names) < 10 {
			t.Errorf("%s names %d files: is this test still looking for the right thing?", doc, len(names))
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s names %s, which does not exist", doc, name)
			}
		}
	}
}

// Each word of the glossary is defined once.
func TestGlossaryDefinesOnce(t *testing.T) {
	text, _, ok := strings.Cut(read(t, "docs/GLOSSARY.md"), "## Words that meant two things")
	if !ok {
		t.Fatal("docs/GLOSSARY.md has no section of words that meant two things")
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.Trim(cells[1], "- ") == "" || strings.TrimSpace(cells[1]) == "word" {
			continue
		}
		word := strings.TrimSpace(cells[1])
		if seen[word] {
			t.Errorf("docs/GLOSSARY.md defines %s twice", word)
		}
		seen[word] = true
	}
	if len(seen) < 50 {
		t.Errorf("docs/GLOSSARY.md defines %d words: is this test still looking for the right thing?", len(seen))
	}
}

// A target of the Makefile has one row in the tables of CONTRIBUTING.md and docs/TESTING.md. Neither document names a
// target that does not exist.
func TestMakeTargetsAreExplained(t *testing.T) {
	rows := make(map[string]int)
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		rows[m[1]] = 0
	}
	if len(rows) < 20 {
		t.Fatalf("the Makefile has %d targets: is this test still looking for the right thing?", len(rows))
	}
	target := regexp.MustCompile("`make ([a-z0-9-]+)")
	for _, doc := range []string{"CONTRIBUTING.md", "docs/TESTING.md"} {
		for line := range strings.Lines(read(t, doc)) {
			for _, m := range target.FindAllStringSubmatch(line, -1) {
				if _, ok := rows[m[1]]; !ok {
					t.Errorf("%s names make %s, which is no target", doc, m[1])
				}
			}
			if cells := strings.Split(line, "|"); len(cells) > 2 && cells[0] == "" {
				for _, m := range target.FindAllStringSubmatch(cells[1], -1) {
					rows[m[1]]++
				}
			}
		}
	}
	for name, n := range rows {
		if n != 1 {
			t.Errorf("make %s has %d rows in the tables of CONTRIBUTING.md and docs/TESTING.md, want one", name, n)
		}
	}
}

// A document that is read first, or often, stays short: README fits a few screens, a release of the changelog one.
func TestDocumentsAreShort(t *testing.T) {
	for doc, limit := range map[string]int{
		"README.md": 7 << 10, "SECURITY.md": 6 << 10, "docs/TESTING.md": 8 << 10, "docs/PERFORMANCE.md": 8 << 10, "docs/ARCHITECTURE.md": 12 << 10,
	} {
		if n := len(read(t, doc)); n > limit {
			t.Errorf("%s has %d bytes, want %d at most: details belong into the documents that it links to", doc, n, limit)
		}
	}
	releases := strings.Split(read(t, "CHANGELOG.md"), "\n## ")[1:]
	if len(releases) == 0 {
		t.Error("CHANGELOG.md has no releases")
	}
	for _, r := range releases {
		name, text, _ := strings.Cut(r, "\n")
		n := 0
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" {
				n++
			}
			if c := utf8.RuneCountInString(line); c > 120 {
				t.Errorf("CHANGELOG.md, %s: a line has %d characters, want 120 at most: %s", name, c, line)
			}
		}
		if n > 25 {
			t.Errorf("CHANGELOG.md, %s: %d lines, want 25 at most", name, n)
		}
	}
}

// Every folder has its place in the tables of folders: those at the top in CONTRIBUTING.md,
// those of tools and tests in docs/TESTING.md.
func TestFoldersAreExplained(t *testing.T) {
	for _, c := range []struct{ doc, parent string }{
		{"CONTRIBUTING.md", ""}, {"docs/TESTING.md", "test"}, {"docs/TESTING.md", "lab"}, {"CONTRIBUTING.md", "internal"},
	} {
		_, table, ok := strings.Cut(read(t, c.doc), "\n## Folders\n")
		if !ok {
			t.Fatalf("%s has no section of folders", c.doc)
		}
		table, _, _ = strings.Cut(table, "\n## ")
		named := make(map[string]bool)
		for line := range strings.Lines(table) {
			if cells := strings.Split(line, "|"); len(cells) == 4 {
				for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
					named[m[1]] = true
					if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
						t.Errorf("%s explains %s, which does not exist", c.doc, m[1])
					}
				}
			}
		}
		entries, err := os.ReadDir(filepath.Join(root, c.parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := path.Join(c.parent, e.Name())
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && name != "bin" && !named[name] {
				t.Errorf("%s does not explain the folder %s", c.doc, name)
			}
		}
	}
}
