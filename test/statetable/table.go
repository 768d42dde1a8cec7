// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package statetable is for tests of a whole state machine: the effect of each event in
// each situation of the machine. A test makes the situations and the events, and describes
// each effect in text; the table is compared with the stored table in testdata. Events with
// the same effect in a situation share a line.
//
//	go test ./host/rc -run Table -tables
//
// writes the tables anew. Their difference is reviewed like a change of the code.
package statetable

import (
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var write = flag.Bool("tables", false, "write the tables of testdata anew")

// Table is a table under construction.
type Table struct {
	t       testing.TB
	path    string
	kept    string // the stored table
	text    strings.Builder
	results []string
	events  map[string][]string
	details map[string]string // details by result
}

// New begins the table that is stored in testdata/tables/name.
func New(t testing.TB, name string) *Table {
	t.Helper()
	s := &Table{t: t, path: filepath.Join("testdata", "tables", name)}
	if !*write {
		b, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		s.kept = string(b)
	}
	return s
}

// Situation begins a part of the table.
func (s *Table) Situation(name, state string) {
	s.t.Helper()
	s.flush()
	fmt.Fprintf(&s.text, "\n== %s\n", name)
	if state = oneLine(state); state != "" {
		s.text.WriteString(state + "\n")
	}
	s.results, s.events, s.details = nil, map[string][]string{}, map[string]string{}
}

// Event adds an event of the situation with its effect. Of the details the table has a
// checksum only; they are printed when it differs.
func (s *Table) Event(name, result, details string) {
	result = oneLine(result)
	if details != "" {
		result = fmt.Sprintf("%s #%08x", result, crc32.ChecksumIEEE([]byte(details)))
		s.details[result] = details
	}
	if s.events[result] == nil {
		s.results = append(s.results, result)
	}
	s.events[result] = append(s.events[result], name)
}

func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	return strings.Join(lines, "; ")
}

// flush writes the lines of a situation, and compares the table so far with the stored
// table.
func (s *Table) flush() {
	s.t.Helper()
	for _, r := range s.results {
		fmt.Fprintf(&s.text, "%s\n\t%s\n", ranges(s.events[r]), r)
	}
	s.results = nil
	if *write || strings.HasPrefix(s.kept, s.text.String()) {
		return
	}
	have, kept := strings.Split(s.text.String(), "\n"), strings.Split(s.kept, "\n")
	at := ""
	for i := range have {
		if strings.HasPrefix(have[i], "==") {
			at = have[i]
		}
		if i >= len(kept) || have[i] != kept[i] {
			s.t.Fatalf("%s:%d, %s:\n%s\nwant\n%s\n%s", s.path, i+1, at, have[i], kept[min(i, len(kept)-1)], s.details[strings.TrimPrefix(have[i], "\t")])
		}
	}
}

// ranges writes ACK 1, ACK 2, ACK 3 as ACK 1..3, and Leave/a, Leave/b as Leave/ab.
func ranges(events []string) string {
	var out []string
	first, at, what := 0, 0, ""
	for _, e := range events {
		if what == variantOf(e) && what != "" {
			out[len(out)-1] += e[len(e)-1:]
			continue
		}
		i, n := strings.LastIndexByte(e, ' '), 0
		if _, err := fmt.Sscanf(e[i+1:], "%d", &n); i < 0 || err != nil {
			i = 0
		}
		if i > 0 && e[:i] == what && n == at+1 {
			at = n
			out[len(out)-1] = fmt.Sprintf("%s %d..%d", what, first, at)
			continue
		}
		out, what, first, at = append(out, e), e[:i], n, n
		if v := variantOf(e); v != "" {
			what = v
		}
	}
	return strings.Join(out, ", ")
}

// variantOf returns Leave/ of Leave/a.
func variantOf(event string) string {
	if i := strings.LastIndexByte(event, '/'); i > 0 && i == len(event)-2 {
		return event[:i+1]
	}
	return ""
}

// Legend explains the letters of variants; the first variant has none.
func (s *Table) Legend(variants []string) {
	for i, v := range variants {
		fmt.Fprintf(&s.text, "%s %s\n", Variant(i), v)
	}
}

// Variant returns the end of the name of an event that is the variant with this number.
func Variant(i int) string { return "/" + string(rune('a'+i)) }

// End compares, or writes, the whole table.
func (s *Table) End() {
	s.t.Helper()
	s.flush()
	if *write {
		if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(s.path, []byte(s.text.String()), 0o644); err != nil {
			s.t.Fatal(err)
		}
	} else if s.text.Len() != len(s.kept) {
		s.t.Fatalf("%s has %d bytes more", s.path, len(s.kept)-s.text.Len())
	}
}
