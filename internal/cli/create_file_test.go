// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
)

// What a stranger has put where a file will be is not written to, and what it leads to stays as it was.
func TestFilesOfOthersAreNotWrittenTo(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	for name, c := range map[string]struct {
		put  func(path string) error
		want string
	}{
		"link":     {func(p string) error { return os.Symlink(other, p) }, "is a symbolic link"},
		"dangling": {func(p string) error { return os.Symlink(filepath.Join(dir, "new"), p) }, "is a symbolic link"},
		"hard":     {func(p string) error { return os.Link(other, p) }, "hard links"},
		"folder":   {func(p string) error { return os.Mkdir(p, 0o700) }, "is a directory"},
		"file":     {func(p string) error { return os.WriteFile(p, []byte("of before"), 0o600) }, ""},
		"stranger": {func(p string) error {
			if os.Geteuid() != 0 {
				return os.Symlink(other, p)
			}
			return errors.Join(os.WriteFile(p, []byte("of a stranger"), 0o666), os.Chown(p, 12345, -1))
		}, map[bool]string{true: "belongs to user 12345", false: "is a symbolic link"}[os.Geteuid() == 0]},
		"pipe with a reader": {func(p string) error {
			err := unix.Mkfifo(p, 0o600)
			if err == nil {
				r, e := os.OpenFile(p, os.O_RDONLY|unix.O_NONBLOCK, 0)
				t.Cleanup(func() { r.Close() })
				err = e
			}
			return err
		}, "is no regular file"},
		"pipe": {func(p string) error { return unix.Mkfifo(p, 0o600) }, "no such device"},
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(other, []byte("secret"), 0o600), c.put(path)); err != nil {
			t.Fatal(name, err)
		}
		f, err := CreateFile(path, 0o600)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil {
			if fi, err := f.Stat(); err != nil || fi.Size() != 0 {
				t.Errorf("%s: %v, %v: want an empty file", name, fi, err)
			}
			f.Close()
		}
		if b, err := os.ReadFile(other); err != nil || string(b) != "secret" {
			t.Errorf("%s: the other file has %q, %v", name, b, err)
		}
		os.RemoveAll(path)
	}
	if _, err := os.Lstat(filepath.Join(dir, "new")); err == nil {
		t.Error("a file was made behind a link")
	}
	f, err := CreateFile("/dev/null", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// The names of a trace's ring can be guessed: a link that waits under one of them ends the trace.
func TestTraceWritesToNoLink(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := errors.Join(os.WriteFile(other, []byte("secret"), 0o600), os.Symlink(other, filepath.Join(dir, "ring-000002.pcapng"))); err != nil {
		t.Fatal(err)
	}
	f := traceFile{name: filepath.Join(dir, "ring.pcapng"), ring: 2, size: 1}
	if err := f.start(&api.TraceStart{Ports: []string{"p1"}}); err != nil {
		t.Fatal(err)
	}
	f.bytes = f.size * 1e6
	err := f.packet(&api.TracePacket{Port: "p1", Direction: api.TraceIn, Data: make([]byte, 60)}, false)
	if b, _ := os.ReadFile(other); err == nil || string(b) != "secret" {
		t.Errorf("%v, and the other file has %q", err, b)
	}
}
