// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
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

// TestFlakyCase: a second run excuses what took too long, and never wrong bytes.
func TestFlakyCase(t *testing.T) {
	late, wrong := errors.New("not done after 3m0s"), fmt.Errorf("two receivers: %w", wrongBytes{fmt.Errorf("host 1: %w", errEarly)})
	if !errors.Is(wrong, errEarly) {
		t.Error("wrong bytes hide their cause")
	}
	if !isFlaky(late, nil) || isFlaky(late, late) || isFlaky(wrong, nil) {
		t.Errorf("late %v, late twice %v, wrong bytes %v; want true, false, false", isFlaky(late, nil), isFlaky(late, late), isFlaky(wrong, nil))
	}
}
