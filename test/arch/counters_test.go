// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/mcast"
)

var write = flag.Bool("write", false, "write the documents that are made of the code")

// counters generates docs/COUNTERS.md from the descriptions in the code.
func counters() string {
	var b strings.Builder
	b.WriteString(`# Counters

<!-- Made of the descriptions in the code: go test ./test/arch -run TestCountersDocument -write -->

What is not served has a counter and a reason. ` + "`gleam stats`" + ` prints those of the whole switch in two sections (` + "`normal` and `drops`" + ` in the API);
` + "`gleam group show`" + ` those of one group, ` + "`gleam port show`" + ` the exits of a port's XDP program. ` + "`gleam explain counter NAME`" + ` prints a row of this page.

Explanations and traces link a reason of the core to the rules of [AGGREGATION.md](AGGREGATION.md) that it comes from. No rule is about `)
	var outside []string
	for r := mcast.None + 1; r < mcast.NumReasons; r++ {
		if len(r.Rules()) == 0 {
			outside = append(outside, "`"+r.String()+"`")
		}
	}
	b.WriteString(strings.Join(outside, " and ") + ".\n\n")
	for _, section := range []struct {
		normal      bool
		title, text string
	}{
		{true, "Normal", "The protocol has no further use for these, or brings them again by itself. A healthy switch has them, and many of them after losses."},
		{false, "Lost or refused", "These were lost here, or are a mistake of somebody's, or an attack."},
	} {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n| reason | what it means |\n|---|---|\n", section.title, section.text)
		for _, r := range control.Reasons() {
			if r.Normal == section.normal {
				fmt.Fprintf(&b, "| `%s` | %s |\n", r.Name, r.Text)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("## Exits of the XDP program\n\nEvery frame that a port receives counts for exactly one.\n\n| exit | what it means |\n|---|---|\n")
	for r := range bpf.NumReasons {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r, r.Text())
	}
	b.WriteString("\n## Packets that the fast path left to the workers\n\nFor groups that may take the fast path (`fast_path: auto` or `require`), packets to the group that XDP did not replicate, by the first condition that they did not meet: `gleam group show` has them for a group.\n\n| reason | the packet was |\n|---|---|\n")
	for r := range fastpath.NumReasons {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r, r.Text())
	}
	return b.String()
}

// TestCountersDocument checks that docs/COUNTERS.md has the code's text of every reason,
// and that every reason has a text.
func TestCountersDocument(t *testing.T) {
	for _, r := range control.Reasons() {
		if r.Text == "" {
			t.Errorf("%s has no text: add one beside its name", r.Name)
		}
	}
	for r := range bpf.NumReasons {
		if r.Text() == "" {
			t.Errorf("%s has no text: add one beside its name", r)
		}
	}
	for r := range fastpath.NumReasons {
		if r.Text() == "" {
			t.Errorf("%s has no text: add one beside its name", r)
		}
	}
	file := filepath.Join(root, "docs/COUNTERS.md")
	want := counters()
	if *write {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("docs/COUNTERS.md is not what the code says (%v): go test ./test/arch -run TestCountersDocument -write", err)
	}
}
