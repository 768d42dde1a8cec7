// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write the diagram of RC.md §9.2, which is made of the code")

var rcDocument = filepath.Join("..", "docs", "RC.md")

// documentTable returns the cells of the table in a section of RC.md, without its head.
func documentTable(t *testing.T, from, to string) (rows [][]string) {
	t.Helper()
	b, err := os.ReadFile(rcDocument)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), from)
	text, _, _ = strings.Cut(text, to)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " *")
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("RC.md has no table between %q and %q", from, to)
	}
	return rows[2:]
}

// TestRecoveryStatesAreDocumented: the states of RC.md §9.1 are those of the code, and the
// document says in which of them resumeAt is set and a probe is outstanding.
func TestRecoveryStatesAreDocumented(t *testing.T) {
	rows := documentTable(t, "### 9.1 ", "### 9.2 ")
	if len(rows) != int(numRecoveryStates) {
		t.Fatalf("RC.md §9.1 has %d states, the code %d", len(rows), numRecoveryStates)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	for i, row := range rows {
		s := recoveryState(i)
		if want := []string{s.String(), yes[s != inSync], yes[s.awaitsAnswer()], yes[s.holds()]}; !slices.Equal(row[:4], want) {
			t.Errorf("RC.md §9.1 has %q, the code %q", row[:4], want)
		}
	}
}

// cell is the form that a transition has in RC.md.
func (x transition) cell(from recoveryState) string {
	switch {
	case x == transition{from, nothing}:
		return "-"
	case x.do == nothing:
		return x.to.String()
	}
	return fmt.Sprintf("%v: %v", x.to, x.do)
}

// TestRecoveryTableIsDocumented: each event in each state has the effect that the table of
// RC.md §9.2 says.
func TestRecoveryTableIsDocumented(t *testing.T) {
	rows := documentTable(t, "### 9.2 ", "### 9.3 ")
	if len(rows) != int(numRecoveryEvents) {
		t.Errorf("RC.md §9.2 has %d events, the code %d", len(rows), numRecoveryEvents)
	}
	for i, row := range rows[:min(len(rows), int(numRecoveryEvents))] {
		e := recoveryEvent(i)
		if row[0] != e.String() || len(row) != 2+int(numRecoveryStates) {
			t.Errorf("RC.md §9.2: row %q with %d cells, want %q with %d", row[0], len(row), e, 2+numRecoveryStates)
			continue
		}
		for s := range numRecoveryStates {
			if want := recoveryTable[e][s].cell(s); row[1+s] != want {
				t.Errorf("RC.md §9.2: %q in %v: %q, the code has %q", e, s, row[1+s], want)
			}
		}
	}
	used := make(map[recoveryAction]bool)
	for e := range recoveryTable {
		for _, x := range recoveryTable[e] {
			used[x.do] = true
		}
	}
	for a := range numRecoveryActions {
		if !used[a] {
			t.Errorf("no event leads to action %q", a)
		}
	}
}

// TestRecoveryDeliver walks every event in every state: the leg is in the state of the
// table afterwards, and what deliver keeps with the state agrees with it.
func TestRecoveryDeliver(t *testing.T) {
	for e := range numRecoveryEvents {
		for s := range numRecoveryStates {
			g := &group{acks: make([]ackState, 1), activity: make([]legActivity, 1)}
			g.fwd.nxt = 9
			b, m := &g.acks[0], &g.activity[0].recovery
			*m = recovery{state: s, cursor: 5, firstUnsent: 7, probeEvery: 4, untilProbe: 2}
			if s == inSync {
				m.firstUnsent, m.probeEvery, m.untilProbe = 0, 0, 0
			} else {
				b.flags, g.repair.numRecovering = recovering, 1
			}
			if s.holds() {
				m.resumeAt = 1
			}
			do := g.deliver(0, e)
			want := recoveryTable[e][s]
			at := fmt.Sprintf("%q in %v", e, s)
			if do != want.do || m.state != want.to {
				t.Errorf("%s: %v, %v; want %v, %v", at, m.state, do, want.to, want.do)
			}
			if yes := b.flags&recovering != 0; yes != (m.state != inSync) || yes != (g.repair.numRecovering == 1) {
				t.Errorf("%s: %v with flags %02x, %d recovering legs", at, m.state, b.flags, g.repair.numRecovering)
			}
			if m.escalated != (do == escalate) {
				t.Errorf("%s: escalated %v, action %v", at, m.escalated, do)
			}
			if m.resumeAt > 0 && !m.state.holds() {
				t.Errorf("%s: %v with resumeAt", at, m.state)
			}
			switch {
			case m.state == inSync && (m.probeEvery > 0 || m.untilProbe > 0):
				t.Errorf("%s: InSync with probes", at)
			case s == inSync && m.state != inSync && m.firstUnsent != g.fwd.nxt:
				t.Errorf("%s: firstUnsent is %d, nxt %d", at, m.firstUnsent, g.fwd.nxt)
			case s != inSync && m.firstUnsent != 7:
				t.Errorf("%s: firstUnsent has changed to %d", at, m.firstUnsent)
			}
		}
	}
}

// recoveryDiagram draws the table: an arrow for each pair of states, with its events.
func recoveryDiagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> InSync\n")
	for from := range numRecoveryStates {
		for to := range numRecoveryStates {
			var events []string
			for e := range numRecoveryEvents {
				if from != to && recoveryTable[e][from].to == to {
					events = append(events, e.String())
				}
			}
			if len(events) > 0 {
				fmt.Fprintf(&b, "    %v --> %v: %s\n", from, to, strings.Join(events, "<br/>"))
			}
		}
	}
	return b.String()
}

// TestRecoveryDiagram: the diagram of RC.md §9.2 is the table's; -write makes it so.
func TestRecoveryDiagram(t *testing.T) {
	b, err := os.ReadFile(rcDocument)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "```mermaid\n", "```\n"
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("RC.md has no diagram")
	}
	text := before + begin + recoveryDiagram() + end + after
	if text == string(b) {
		return
	}
	if !*write {
		t.Fatal("the diagram of RC.md §9.2 is not the table's; go test ./mcast -run TestRecoveryDiagram -write")
	}
	if err := os.WriteFile(rcDocument, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// awaitsAnswer reports whether a probe is outstanding, or was answered last.
func (s recoveryState) awaitsAnswer() bool { return s == probing || s == settling }
