// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The path MTUs, their codes and their text agree; nothing else is one.
func TestPathMTUs(t *testing.T) {
	all := PathMTUs()
	var text []string
	for i, n := range all {
		if code := PathMTUCode(n); code != uint32(i+1) || PathMTUOfCode(code) != n {
			t.Errorf("%d has code %d, which is %d", n, code, PathMTUOfCode(code))
		}
		text = append(text, fmt.Sprint(n))
	}
	last := len(text) - 1
	if want := strings.Join(text[:last], ", ") + " or " + text[last]; PathMTUText != want {
		t.Errorf("text %q, want %q", PathMTUText, want)
	}
	for n := -4096; n <= 9000; n++ {
		if ValidPathMTU(n) != slices.Contains(all, n) {
			t.Errorf("%d is valid: %v", n, ValidPathMTU(n))
		}
	}
	if !ValidPathMTU(DefaultPathMTU) || PathMTUOfCode(0) != 0 || PathMTUOfCode(6) != 0 {
		t.Error("the default, or the bounds of codes")
	}
}
