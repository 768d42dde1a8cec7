// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// drawing is what writes escape sequences, or over what is there.
var drawing = regexp.MustCompile(`charm\.land/bubbletea|schollz/progressbar|"\\x1b\[|"\\r%|"\\033`)

// TestDrawingAsksFirst: a package that draws asks terminal.Drawable, so that it draws on no terminal
// without escape sequences, and nobody asks otherwise.
func TestDrawingAsksFirst(t *testing.T) {
	draws, asks := map[string]bool{}, map[string]bool{}
	for name, src := range goFiles(t) {
		dir, text := filepath.ToSlash(filepath.Dir(name)), string(src)
		if strings.HasSuffix(name, "_test.go") || !strings.Contains(dir, "internal/") && !strings.Contains(dir, "cmd/") && !strings.Contains(dir, "lab/") {
			continue
		}
		if strings.Contains(text, ".IsTerminal(") && !strings.HasSuffix(dir, "internal/cli/terminal") {
			t.Errorf("%s asks whether it writes to a terminal: terminal.Of and terminal.Drawable answer that", name)
		}
		draws[dir] = draws[dir] || drawing.MatchString(text)
		asks[dir] = asks[dir] || strings.Contains(text, "terminal.Drawable(")
	}
	n := 0
	for dir, is := range draws {
		if is {
			n++
		}
		if is && !asks[dir] {
			t.Errorf("%s draws, and does not ask terminal.Drawable", dir)
		}
	}
	if n < 4 { // top, cp, demo, sim
		t.Errorf("%d packages draw", n)
	}
}
