// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

// The table of programs in docs/CM.md is that which the rxe machine checks.
func TestProgramTable(t *testing.T) {
	text, err := os.ReadFile("../../../docs/CM.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := programTable(); !strings.Contains(string(text), want) {
		t.Errorf("docs/CM.md has another table of programs than this:\n%s", want)
	}
}
