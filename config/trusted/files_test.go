// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A file that cannot be read any more is what it was while nobody has touched it.
func TestFilesAreRemembered(t *testing.T) {
	const most = 100
	for _, c := range []struct {
		name  string
		touch func(path string) error
		known bool
	}{
		{"untouched", func(string) error { return nil }, true},
		{"written to", func(p string) error { return os.WriteFile(p, []byte("other"), 0o600) }, false},
		{"written to, with the time of before", func(p string) error {
			st, err := os.Stat(p)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(p, []byte("other"), 0o600), os.Chtimes(p, time.Time{}, st.ModTime()))
		}, false},
		{"replaced", func(p string) error {
			return errors.Join(os.WriteFile(p+"2", []byte("first"), 0o600), os.Rename(p+"2", p))
		}, false},
		{"another mode", func(p string) error { return errors.Join(os.Chmod(p, 0o644), os.Chmod(p, 0o600)) }, false},
		{"removed", os.Remove, false},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte("first"), 0o600); err != nil {
			t.Fatal(err)
		}
		var x Files
		if text, err := x.Read(path, most, Secret); err != nil || string(text) != "first" {
			t.Fatalf("%s: %q, %v", c.name, text, err)
		}
		time.Sleep(5 * time.Millisecond) // the file system's clock ticks
		if err := c.touch(path); err != nil {
			t.Fatal(err)
		}
		k := x.known[path]
		if got := k.unchanged(path); got != c.known {
			t.Errorf("%s: known %v", c.name, got)
		}
	}
	if os.Geteuid() == 0 {
		return // root may read everything: TestReloadOfRootsKey has a user that may not
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, nil, 0); err != nil {
		t.Fatal(err)
	}
	var x Files
	if _, err := x.Read(path, most, Secret); !errors.Is(err, fs.ErrPermission) || !slices.Equal(x.TakeDenied(), []string{path}) || x.TakeDenied() != nil {
		t.Errorf("%v, denied %v", err, x.denied)
	}
}
