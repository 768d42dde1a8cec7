// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/token"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/dataplane"
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

// No counter has a banned word.
func TestCountersAreTheFields(t *testing.T) {
	check := func(name string) {
		before := ""
		for _, w := range strings.Split(name, "_") {
			for _, word := range []string{w, before + w} {
				if instead, bad := banned[word]; bad {
					t.Errorf("the counter %s has the word %q: use %q", name, word, instead)
				}
			}
			before = w
		}
	}
	for _, r := range dataplane.Reasons() {
		check(r.Name)
	}
	for r := range bpf.NumReasons {
		check(r.String())
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
	var names []string
	src := "package p\ntype T struct{ Led, own int }\ntype u struct{ Led int }\nfunc (t *T) Mend() {}\nfunc Doze() {}\nconst Crew = 1\n"
	if err := exported("p.go", []byte(src), func(full string, _ token.Position) { names = append(names, full) }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "p.T p.T.Led p.T.Mend p.Doze p.Crew" {
		t.Errorf("exported names are %s", got)
	}
}
