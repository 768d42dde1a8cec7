// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// recoveryRow is a row of the table in RC.md §9.1: the predicates of a state.
type recoveryRow struct{ name, late, probing, hold, led, pend string }

// recoveryRows reads the table.
var recoveryRows = sync.OnceValues(func() (rows []recoveryRow, err error) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "RC.md"))
	_, text, _ := strings.Cut(string(b), "### 9.1 ")
	text, _, _ = strings.Cut(text, "### 9.2 ")
	for line := range strings.Lines(text) {
		c := strings.Split(line, "|")
		if len(c) != 9 || !strings.Contains(c[1], "**") {
			continue
		}
		for i := range c {
			c[i] = strings.Trim(c[i], " *")
		}
		rows = append(rows, recoveryRow{c[1], c[2], c[3], c[4], c[5], c[6]})
	}
	return rows, err
})

// documentedStates returns the states of RC.md §9.1 that a leg is in.
func documentedStates(t fatalReporter, b *ackState, m *recovery) (names []string) {
	rows, err := recoveryRows()
	if err != nil {
		t.Fatalf("%v", err)
	}
	is := func(cell string, yes bool) bool {
		return cell == "any" || (cell == "yes" || cell == "set") == yes
	}
	for _, r := range rows {
		if is(r.late, b.flags&recovering != 0) && is(r.probing, m.probeOutstanding) && is(r.hold, m.resumeAt > 0) && is(r.led, m.escalated) && is(r.pend, b.pending != sevNone) {
			names = append(names, r.name)
		}
	}
	return names
}

// TestRecoveryStatesAreDocumented: each combination of predicates that a leg may have is
// exactly one state of RC.md.
func TestRecoveryStatesAreDocumented(t *testing.T) {
	seen := make(map[string]bool)
	for i := range 1 << 5 {
		b, m := &ackState{}, &recovery{probeOutstanding: i&2 != 0, escalated: i&8 != 0}
		if i&1 != 0 {
			b.flags = recovering
		}
		if i&4 != 0 {
			m.resumeAt = 1
		}
		if i&16 != 0 {
			b.pending = sevSequence
		}
		if b.flags&recovering == 0 && (m.probeOutstanding || m.resumeAt > 0) {
			continue // endRecovery ends both
		}
		names := documentedStates(t, b, m)
		if len(names) != 1 {
			t.Errorf("late %v, probing %v, hold %v, led %v, pend %v is %q in RC.md §9.1, want one state",
				b.flags&recovering != 0, m.probeOutstanding, m.resumeAt, m.escalated, b.pending, names)
			continue
		}
		seen[names[0]] = true
	}
	rows, _ := recoveryRows()
	for _, r := range rows {
		if !seen[r.name] {
			t.Errorf("nothing is %s, a state of RC.md §9.1", r.name)
		}
	}
	if len(rows) != 7 {
		t.Errorf("RC.md §9.1 has %d states, the predicates make 7", len(rows))
	}
}
