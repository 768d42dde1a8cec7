// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var writeWords = flag.Bool("write-words", false, "TestFastWordsAreDocumented writes its table into docs/FAST-PATH.md")

// Each word that keeps a group off the fast path is one word, has a meaning and a remedy, and a row of
// docs/FAST-PATH.md.
func TestFastWordsAreDocumented(t *testing.T) {
	const file, begin = "../docs/FAST-PATH.md", "| word | the group is off the fast path: | remedy |\n|---|---|---|\n"
	seen, rows := make(map[string]bool), ""
	for w := OnFastPath + 1; w < NumFastWords; w++ {
		name := w.String()
		if name == "" || strings.ContainsAny(name, " ,:") || seen[name] {
			t.Errorf("word %d is %q", w, name)
		}
		if seen[name] = true; w.Text() == "" || w.Remedy() == "" {
			t.Errorf("%s: text %q, remedy %q", name, w.Text(), w.Remedy())
		}
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", name, w.Text(), w.Remedy())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	if !ok {
		t.Fatalf("%s has no table of words", file)
	}
	was, tail, _ := strings.Cut(rest, "\n\n")
	if was+"\n" == rows {
		return
	}
	if *writeWords {
		if err := os.WriteFile(file, []byte(head+begin+rows+"\n"+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s does not have the words of the code: go test ./dataplane -run TestFastWordsAreDocumented -write-words", file)
}

// A Why says what its word does, if nothing more is known of the group.
func TestWhy(t *testing.T) {
	if y := (Why{}); y.Word != OnFastPath || y.Word.String() != "" || y.Text() != "" || y.Remedy() != "" {
		t.Errorf("nothing keeps the group off, because %q: %q", y.Text(), y.Remedy())
	}
	if y := (Why{Word: fastRate}); y.Text() != fastRate.Text() || y.Remedy() != fastRate.Remedy() {
		t.Errorf("%q: %q", y.Text(), y.Remedy())
	}
	if y := (Why{Word: fastRate, detail: "port p2 has a rate", helps: "x"}); y.Text() != "port p2 has a rate" || y.Remedy() != "x" {
		t.Errorf("%q: %q", y.Text(), y.Remedy())
	}
}
