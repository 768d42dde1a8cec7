// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// textFiles returns all files of the repository that people write, by path relative to
// root: no hidden folders, no built or vendored ones, no corpora of fuzz tests.
func textFiles(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch n := d.Name(); {
			case p != root && strings.HasPrefix(n, "."), n == "vendor", n == "fuzz" && strings.Contains(p, "testdata"), n == "bin", n == "build":
				return fs.SkipDir
			}
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil || !d.Type().IsRegular() || bytes.IndexByte(b, 0) >= 0 {
			return err
		}
		rel, err := filepath.Rel(root, p)
		files[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func pagesOf(files map[string]string) map[string]page {
	pages := make(map[string]page)
	for name, text := range files {
		if strings.HasSuffix(name, ".md") {
			pages[name] = newPage(text)
		}
	}
	return pages
}

// Every section that is cited exists, and every document.
func TestCitationsLeadSomewhere(t *testing.T) {
	files := textFiles(t)
	pages := pagesOf(files)
	for _, must := range []string{"docs/RC.md", "docs/PROTOCOL.md"} {
		if len(pages[must]) < 5 {
			t.Fatalf("%s has %d numbered sections; looked at %d files", must, len(pages[must]), len(files))
		}
	}
	for name, text := range files {
		if name == "test/arch/citations_test.go" || name == "LICENSE" {
			continue // the faults that are planted below; a text that cites itself
		}
		for _, wrong := range citations(name, text, pages) {
			t.Error(wrong)
		}
	}
}

func TestCitationsFindsWhatItIsFor(t *testing.T) {
	pages := map[string]page{
		"docs/A.md": newPage("# A\n\n## 1. One\n\n### 1.2 Two\n\n## No number\n"),
		"B.md":      newPage("# B\n"),
	}
	for _, tt := range []struct{ name, text, want string }{
		{"x.go", "// as A.md §1 says, and docs/A.md §1.2, §1", ""},
		{"x.go", "// long ago (A.md\n\t// §1.2; elsewhere)", ""},
		{"x.go", "// (RFC 791 §3.1), IBTA §9.2-9.3, IEEE 802.3 §3.1.1, §4.4.2", ""},
		{"x.go", "// section 1.2 of A.md", ""},
		{"B.md", "as in [A.md](docs/A.md), §1.2", ""},
		{"docs/A.md", "see §1.2, and B.md", ""},
		{"x.go", "\n// see §1", "x.go:2: §1 of what?"},
		{"x.go", "// of the notes (section 3.2)", "§3.2 of what?"},
		{"x.go", "// A.md §2", "A.md has no section 2"},
		{"x.go", "// A.md §1, §3", "A.md has no section 3"},
		{"x.go", "// section 4 of A.md", "A.md has no section 4"},
		{"x.go", "// notes.txt §2", "notes.txt §2: there is no such document"},
		{"x.c", "/* see gone.md */", "gone.md is not in the repository"},
		{"B.md", "see §1", "B.md has no section 1"},
	} {
		got := strings.Join(citations(tt.name, tt.text, pages), "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%q in %s: got %q, want %q", tt.text, tt.name, got, tt.want)
		}
	}
}
