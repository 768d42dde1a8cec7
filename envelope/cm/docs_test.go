// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var writeTable = flag.Bool("write", false, "write the table of transitions into docs/CM.md")

// table returns the transitions as docs/CM.md has them.
func table() string {
	var b strings.Builder
	b.WriteString("| event |")
	for s := range closed {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", int(closed)) + "\n")
	for e := range numEvents {
		fmt.Fprintf(&b, "| %s |", e)
		for s := range closed {
			t := s.next(e)
			var words []string
			if t.do != nothing {
				words = append(words, t.do.String())
			}
			if t.to != s {
				words = append(words, "*"+t.to.String()+"*")
			}
			if len(words) == 0 {
				words = []string{"="}
			}
			fmt.Fprintf(&b, " %s |", strings.Join(words, ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The table of docs/CM.md is that of the code. With -write it is written.
func TestTableInDocument(t *testing.T) {
	const file = "../../docs/CM.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin := strings.Index(string(text), "| event |")
	if begin < 0 {
		t.Fatal("docs/CM.md has no table of transitions")
	}
	have, rest, _ := strings.Cut(string(text[begin:]), "\n\n")
	if want := strings.TrimSuffix(table(), "\n"); have != want && *writeTable {
		if err := os.WriteFile(file, []byte(string(text[:begin])+want+"\n\n"+rest), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if have != want {
		t.Errorf("docs/CM.md has another table than the code (go test ./envelope/cm -run Table -write):\n%s", want)
	}
}
