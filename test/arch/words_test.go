// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/token"
	"path"
	"strings"
	"testing"
)

// No exported name has a banned word.
func TestExportedNamesAreTheFields(t *testing.T) {
	for name, src := range goFiles(t) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if err := exported(name, src, func(full string, at token.Position) {
			word, instead, bad := bannedIn(full[strings.LastIndexByte(full, '.')+1:])
			if !bad {
				return
			}
			t.Errorf("%s: %s has the word %q: use %q, or a word of docs/GLOSSARY.md", at, full, word, instead)
		}); err != nil {
			t.Error(err)
		}
	}
}

// No string that is printed, logged or sent has a banned word, and no counter, JSON
// member, flag or key. The model, whose traces are for its authors, has names of its own
// for scenarios.
func TestPrintedWordsAreTheFields(t *testing.T) {
	for name, src := range goFiles(t) {
		if strings.HasSuffix(name, "_test.go") || path.Dir(name) == "test/arch" {
			continue
		}
		if err := printed(name, src, func(text string, wire bool, at token.Position) {
			lists := []map[string]string{bannedPrinted}
			if wire && path.Dir(name) != "test/model" && wordsOnTheWire[text] == "" {
				lists = append(lists, banned, bannedOnTheWire)
			}
			if word, instead, bad := bannedText(text, lists...); bad {
				t.Errorf("%s: %.60q has %q: use %q, or a word of docs/GLOSSARY.md", at, text, word, instead)
			}
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestBannedWordsAreFound(t *testing.T) {
	for name, want := range map[string]string{
		"Late": "late", "NumLate": "late", "LateACK": "late", "PutOff": "putoff", "PutOffTwice": "putoff", "ACKPatience": "patience",
		"Latency": "", "Relate": "", "Settled": "", "Intended": "", "Template": "", "ACKs": "",
	} {
		if word, _, _ := bannedIn(name); word != want {
			t.Errorf("%s: %q, want %q", name, word, want)
		}
	}
	for _, name := range []string{
		"out_of_window", "group_dead", "bad_update", "updates_full", "awaits_members", "handover_full", "wrong_place",
		"not_kept", "most_bytes", "longest_turn", "questions", "asked", "put_off", "separated", "gone", "mr-update", "udp-relay",
	} {
		if _, _, ok := bannedText(name, banned, bannedPrinted, bannedOnTheWire); !ok || !wireName.MatchString(name) {
			t.Errorf("%s is not found", name)
		}
	}
	for _, name := range []string{"psn_out_of_range", "max_bytes", "window_violation", "turn_over", "dead_after", "target_messages_full"} {
		if word, _, ok := bannedText(name, banned, bannedPrinted, bannedOnTheWire); ok {
			t.Errorf("%s has %q", name, word)
		}
	}
	var texts []string
	tagged := "package p\nimport \"relay\"\ntype t struct{ f int `json:\"put_off,omitempty\"` }\nvar x = f(\"not_kept\", \"a text\")\n"
	if err := printed("p.go", []byte(tagged), func(text string, wire bool, _ token.Position) {
		if text != "" {
			texts = append(texts, fmt.Sprint(text, wire))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(texts, "; "); got != "put_offtrue; not_kepttrue; a textfalse" {
		t.Errorf("strings are %s", got)
	}
	var names []string
	src := "package p\ntype T struct{ Led, own int }\ntype u struct{ Led int }\nfunc (t *T) Mend() {}\nfunc Doze() {}\nconst Crew = 1\n"
	if err := exported("p.go", []byte(src), func(full string, _ token.Position) { names = append(names, full) }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "p.T p.T.Led p.T.Mend p.Doze p.Crew" {
		t.Errorf("exported names are %s", got)
	}
}
