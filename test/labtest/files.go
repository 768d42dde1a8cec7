// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Files makes a folder with files that have these lines, by name, such as those of /proc and /sys.
func Files(t testing.TB, lines map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, line := range lines {
		p := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
