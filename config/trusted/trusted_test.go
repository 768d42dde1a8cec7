// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// described is a file of an owner and a mode.
type described struct {
	fs.FileInfo
	uid  int
	mode fs.FileMode
}

func (d described) Mode() fs.FileMode { return d.mode }
func (d described) Sys() any          { return &syscall.Stat_t{Uid: uint32(d.uid)} }

// A file is taken from root and from the daemon's user alone, and only if others may not change it.
func TestCheck(t *testing.T) {
	us, other := os.Geteuid(), os.Geteuid()+4711
	for _, c := range []struct {
		uid    int
		mode   fs.FileMode
		closed fs.FileMode
		remedy string // "": it is taken
	}{
		{us, 0o640, Secret, ""}, {0, 0o400, Secret, ""}, {us, 0o644, Public, ""},
		{other, 0o600, Secret, "chown root FILE"}, {other, 0o600, Public, "chown root FILE"},
		{us, 0o660, Secret, "chmod 0640 FILE"}, {us, 0o664, Public, "chmod 0644 FILE"},
		{us, 0o644, Secret, "chmod 0640 FILE"}, {us, 0o646, Public, "chmod 0644 FILE"},
	} {
		err := Check("FILE", described{uid: c.uid, mode: c.mode}, c.closed)
		if (err == nil) != (c.remedy == "") || err != nil && !strings.HasSuffix(err.Error(), "run: "+c.remedy) {
			t.Errorf("user %d, mode %04o, closed %04o: %v, want %q", c.uid, c.mode, c.closed, err, c.remedy)
		}
	}
}

// A pipe without a writer is refused at once.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := Read(path, 100, Secret)
		result <- err
	}()
	select {
	case err := <-result:
		if err == nil || err.Error() != "not a regular file" {
			t.Errorf("%v, want that it is not a regular file", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a pipe is waited for")
	}
}
