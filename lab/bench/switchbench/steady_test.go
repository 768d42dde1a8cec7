// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

// Rounds that lie far apart are no basis for a ratio: the row is named, in a warning
// and in the table.
func TestUnsteadyRowsAreNamed(t *testing.T) {
	r := sample()
	r.Rows[0].In = []float64{290_000, 300_000, 310_000}
	r.Rows[1].In = []float64{120_000, 280_000, 290_000}
	got := r.unsteady()
	if len(got) != 1 || !strings.Contains(got[0], r.Rows[1].Name) || !strings.Contains(got[0], "120.0 to 290.0 kpps") {
		t.Errorf("unsteady: %q", got)
	}
	var said string
	r.warn(func(f string, a ...any) { said += fmt.Sprintf(f, a...) }, got[0])
	var table bytes.Buffer
	if err := r.writeTable(&table); err != nil || !strings.Contains(table.String(), "WARNING: "+got[0]) || said != "WARNING: "+got[0] {
		t.Errorf("said %q, %v, in the table:\n%s", said, err, &table)
	}
}

func TestTaken(t *testing.T) {
	const before = "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3\n"
	for after, want := range map[string]float64{
		"cpu  100 0 100 900 100 0 0 0 0 0\n": 0,
		"cpu  150 0 100 850 0 0 0 0 50 0\n":  0.5,
		"cpu  100 0 125 850 0 0 20 5 0 0\n":  0.5,
		before:                               0,
		"nothing of the kind":                0,
	} {
		if got := cpuShare(before, after); math.Abs(got-want) > 1e-9 {
			t.Errorf("%q: %v, want %v", after, got, want)
		}
	}
	if load, err := machineLoad(t.Context()); err != nil || load < 0 || load > 1 {
		t.Errorf("this machine: %v, %v", load, err)
	}
}
