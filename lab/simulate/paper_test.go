// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// TestPaperFiles builds the first point of each study.
func TestPaperFiles(t *testing.T) {
	files, err := paperFiles.ReadDir("paper")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		p := paperPoints(t, f.Name())[0]
		net, err := p.Network()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Phase(net, 0); err != nil {
			t.Error(err)
		}
	}
}

func paperPoints(t *testing.T, name string) []*spec.Point {
	t.Helper()
	text, err := paperFiles.ReadFile("paper/" + name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := spec.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	points, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// TestTable simulates the smallest study: its rows have values, and all others are not run.
func TestTable(t *testing.T) {
	var all results
	for _, p := range paperPoints(t, "latency.yaml") {
		r, err := runPoint(t.Context(), p, options{partitions: 1, stderr: &bytes.Buffer{}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	rows, err := all.table()
	if err != nil {
		t.Fatal(err)
	}
	verdicts := make(map[string]int)
	for i := range rows {
		verdicts[rows[i].verdict()]++
	}
	if verdicts["pass"] != 3 || verdicts["**fail**"] != 0 || verdicts["not run"] != len(rows)-3 {
		t.Errorf("verdicts %v\n%s", verdicts, markdown(rows))
	}
	bad := acceptance{ours: 2, low: 3, high: 4}
	if bad.verdict() != "**fail**" {
		t.Error("a value out of range passes")
	}
	dir := t.TempDir()
	var out bytes.Buffer
	if err := writePaper(&cli.Env{Stdout: &out}, all, dir); err == nil {
		t.Error("charts of studies that are not there are drawn")
	}
	text, err := os.ReadFile(filepath.Join(dir, tableName))
	if err != nil || !strings.Contains(string(text), "| flows of 128x128 |") || !strings.Contains(string(text), "| latency | algorithm=group bytes=524288 |") {
		t.Errorf("%s, error %v", text, err)
	}
}
