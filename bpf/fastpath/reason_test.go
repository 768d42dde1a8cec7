// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The enum in the program's source and the rows in Go agree.
func TestReasonsMatchProgram(t *testing.T) {
	source, err := os.ReadFile("../fast.h")
	if err != nil {
		t.Fatal(err)
	}
	enum := regexp.MustCompile(`(?s)enum fast_reason \{(.*?)\n\};`).FindSubmatch(source)
	if enum == nil {
		t.Fatal("../fast.h has no enum fast_reason")
	}
	want := []string{"NUM_FAST_REASONS"}
	for r := NumReasons; r > 0; r-- {
		want = append([]string{"FAST_" + strings.ToUpper((r - 1).String())}, want...)
		if (r - 1).Text() == "" {
			t.Errorf("%s has no text", r-1)
		}
	}
	got := regexp.MustCompile(`\b(NUM_)?FAST_[A-Z_]+`).FindAllString(string(enum[1]), -1)
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the program has\n%q, Go has\n%q", got, want)
	}
}
