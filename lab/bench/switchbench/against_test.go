// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeProgram is a program whose rounds have these rates of one row; 0: it was not measured.
func fakeProgram(t *testing.T, rates ...float64) string {
	t.Helper()
	dir := t.TempDir()
	for i, v := range rates {
		row := Row{Name: gleamdRow2, Payload: targetCase.payload, Legs: targetCase.legs, InPPS: v, CPU: 1000}
		if v == 0 {
			row.Reason = "it failed"
		}
		text, err := json.Marshal(Result{Rows: []Row{row}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "program")
	script := fmt.Sprintf("#!/bin/sh\nfor f in %s/[0-9]; do cat $f; mv $f %s/done; exit; done\n", dir, dir)
	if err := os.WriteFile(file, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	return file
}

// A row that has fallen is named, whatever the machine did in one turn, or in both
// programs at once.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		what        string
		self, other []float64
		fallen      string
	}{
		{"as fast", []float64{200e3, 200e3, 200e3}, []float64{200e3, 200e3, 200e3}, ""},
		{"noise", []float64{170e3, 180e3, 160e3}, []float64{200e3, 200e3, 200e3}, ""},
		{"a third", []float64{72e3, 72e3, 72e3}, []float64{200e3, 200e3, 200e3}, "0.36 of the other's"},
		{"one turn disturbed", []float64{200e3, 20e3, 200e3}, []float64{200e3, 200e3, 200e3}, ""},
		{"both disturbed", []float64{72e3, 7e3, 72e3}, []float64{200e3, 20e3, 200e3}, "0.36 of the other's"},
		{"not measured any more", []float64{0, 0, 0}, []float64{200e3, 200e3, 200e3}, "cannot be measured"},
		{"new", []float64{200e3, 200e3, 200e3}, []float64{0, 0, 0}, ""},
	} {
		o := Default()
		o.Quick()
		o.Rounds = len(c.self)
		var out strings.Builder
		err := o.compare(t.Context(), fakeProgram(t, c.self...), fakeProgram(t, c.other...), &out)
		if (err != nil) != (c.fallen != "") || err != nil && !strings.Contains(err.Error(), c.fallen) {
			t.Errorf("%s: error %v, want %q; output:\n%s", c.what, err, c.fallen, out.String())
		}
	}
}
