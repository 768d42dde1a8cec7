// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// program writes a program that takes a time for a case, another one in each round.
func benchProgram(t *testing.T, name string, seconds ...float64) string {
	t.Helper()
	dir := t.TempDir()
	for i, s := range seconds {
		line, err := json.Marshal(speed{Case: "case", Hops: 1e6, Events: 1e6, User: s})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), line, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, name)
	script := fmt.Sprintf("#!/bin/sh\nfor f in %s/[0-9]; do cat $f; mv $f %s/done; exit; done\n", dir, dir)
	if err := os.WriteFile(file, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBenchComparesPrograms: the median of the rounds decides, and a single slow round does not.
func TestBenchComparesPrograms(t *testing.T) {
	for _, c := range []struct {
		what        string
		self, other []float64
		slower      bool
	}{
		{"as fast", []float64{1, 1, 1}, []float64{1, 1, 1}, false},
		{"within the tolerance", []float64{1.1, 1.1, 1.1}, []float64{1, 1, 1}, false},
		{"slower", []float64{1.2, 1.2, 1.2}, []float64{1, 1, 1}, true},
		{"one slow round", []float64{1, 3, 1}, []float64{1, 1, 1}, false},
		{"a round in which both are slow", []float64{1.2, 3.6, 1.2}, []float64{1, 3, 1}, true},
	} {
		o := benchOptions{only: "unicast-1024", rounds: len(c.self), partitions: 1, tolerance: 0.1, against: benchProgram(t, "other", c.other...)}
		var out strings.Builder
		err := o.compare(t.Context(), benchProgram(t, "self", c.self...), &out)
		if (err != nil) != c.slower {
			t.Errorf("%s: error %v, output:\n%s", c.what, err, out.String())
		}
	}
}

// TestBenchCasesAreValid: each case has one point and one phase.
func TestBenchCasesAreValid(t *testing.T) {
	names, err := benchCases("")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		text, err := benchFiles.ReadFile("bench/" + n + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		file, err := spec.Parse(n, text)
		if err != nil {
			t.Fatal(err)
		}
		if points, err := file.Points(); err != nil || len(points) != 1 || points[0].Phases() != 1 {
			t.Errorf("%s: %d points, error %v; want one with one phase", n, len(points), err)
		}
	}
}
