// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/cli"
)

// explainCounter executes gleam explain counter.
func explainCounter(t *testing.T, name string) (string, bool) {
	t.Helper()
	var out, msg bytes.Buffer
	code := cli.Run(t.Context(), &cli.Env{Stdout: &out, Stderr: &msg, Counters: Counters}, []string{"explain", "counter", name, "-o", "json"})
	return out.String() + msg.String(), code == cli.ExitOK
}

// TestCountersAreExplained checks that gleam explain counter knows each row of docs/COUNTERS.md, with
// its text, and no other reasons; and that it says of each reason whether it is normal.
func TestCountersAreExplained(t *testing.T) {
	b, err := os.ReadFile("../../docs/COUNTERS.md")
	if err != nil {
		t.Fatal(err)
	}
	section, rows := "", 0
	classes := map[string]string{"Normal": cli.CounterNormal, "Lost or refused": cli.CounterLoss}
	for line := range strings.Lines(string(b)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 2 || !strings.HasPrefix(strings.TrimSpace(cells[0]), "`") {
			continue
		}
		rows++
		name, text := strings.Trim(cells[0], " `"), strings.TrimSpace(cells[1])
		found := false
		for _, k := range Counters() {
			class := classes[section]
			if class == "" {
				class = cli.CounterTotal
			}
			found = found || k.Name == name && strings.TrimPrefix(k.Text, "the packet was ") == text && k.Class == class
		}
		if !found {
			t.Errorf("%s of %q is not explained by its text", name, section)
		}
		if s, ok := explainCounter(t, name); !ok {
			t.Errorf("gleam explain counter %s: %s", name, s)
		}
	}
	if n := len(Counters()); rows != n || n < 100 {
		t.Errorf("docs/COUNTERS.md has %d rows, %d counters are explained", rows, n)
	}
}

// TestTotalsAreExplained checks that each number of gleam stats is explained by its name in JSON.
func TestTotalsAreExplained(t *testing.T) {
	s := reflect.TypeFor[api.Stats]()
	for i := range s.NumField() {
		f := s.Field(i)
		switch f.Type.Kind() {
		case reflect.Uint64, reflect.Int, reflect.Float64:
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if out, ok := explainCounter(t, name); !ok {
				t.Errorf("%s: %s", f.Name, out)
			}
		}
	}
}

// TestMeaningsNameCounters checks that the counters that gleam explain status names exist.
func TestMeaningsNameCounters(t *testing.T) {
	n := 0
	for _, m := range append(append([]cli.ErrorMeaning{}, cli.Statuses...), cli.LibraryErrors...) {
		for _, c := range m.Counters {
			n++
			if out, ok := explainCounter(t, c); !ok {
				t.Errorf("%s: %s", m.Name, out)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d counters are named", n)
	}
}
