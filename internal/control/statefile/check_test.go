// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// Check says beforehand what Open would, and what Open would only report. It changes nothing.
func TestCheckFindsWhatOpenWould(t *testing.T) {
	labtest.Require(t)
	const user = 4711
	for _, c := range []struct {
		what  string
		spoil func(path string) error
		fatal bool
		words string // a part of the error; "": none
	}{
		{"no file", func(string) error { return nil }, false, ""},
		{"no folder", func(p string) error { return os.Remove(filepath.Dir(p)) }, false, ""},
		{"no folder, and a file in its place", func(p string) error {
			return errors.Join(os.Remove(filepath.Dir(p)), os.WriteFile(filepath.Dir(p), nil, 0o600))
		}, true, "name another one"},
		{"a folder of another user", func(p string) error { return os.Chown(filepath.Dir(p), 4712, 0) }, true, "belongs to user 4712"},
		{"a folder that all may write", func(p string) error { return os.Chmod(filepath.Dir(p), 0o777) }, true, "chmod go-w"},
		{"a folder of root for other things", func(p string) error { return os.Chmod(filepath.Dir(p), 0o755) }, true, "mode 0700"},
		{"a folder that its user may not write", func(p string) error {
			return errors.Join(os.Chown(filepath.Dir(p), user, 0), os.Chmod(filepath.Dir(p), 0o500))
		}, false, "cannot be written by user 4711"},
		{"a file that others may read", func(p string) error { return os.WriteFile(p, nil, 0o644) }, true, "chmod 600"},
		{"a damaged file", func(p string) error { return os.WriteFile(p, []byte("x"), 0o600) }, false, "damaged"},
		{"a file of another version", func(p string) error {
			b := (&header{version: version + 1, checkpoint: headerLen}).append(nil)
			return os.WriteFile(p, b, 0o600)
		}, true, "another version"},
		{"a file with a wrong checksum", func(p string) error {
			b := (&header{version: version, checkpoint: headerLen}).append(nil)
			binary.BigEndian.PutUint32(b[12:], crc32.Checksum(b, castagnoli)+1)
			return os.WriteFile(p, b, 0o600)
		}, false, "damaged"},
	} {
		path := filepath.Join(t.TempDir(), "folder", "state")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.spoil(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(path)
		fatal, err := Check(path, user)
		if fatal != (c.fatal && c.words != "") || (err != nil) != (c.words != "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: fatal %v, %v; want %v, %q", c.what, fatal, err, c.fatal, c.words)
		}
		if after, _ := os.ReadFile(path); string(after) != string(before) {
			t.Errorf("%s: the file has changed", c.what)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err == nil && len(entries) > 1 {
			t.Errorf("%s: there are %v", c.what, entries)
		}
		f, _, err := Open(path, Options{Owner: user})
		if err == nil {
			f.Close()
		}
		if c.fatal != (err != nil) {
			t.Errorf("%s: Check says fatal %v, Open says %v", c.what, c.fatal, err)
		}
	}
}

// A file system that is full: writes fail and are counted, all is stored when there is room.
func TestFullFileSystem(t *testing.T) {
	labtest.Require(t)
	dir := t.TempDir()
	ended := make(chan struct{})
	go func() { // its thread ends with it, and the mount with the thread
		defer close(ended)
		runtime.LockOSThread()
		if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700")); err != nil {
			t.Error(err)
			return
		}
		testFull(t, dir)
	}()
	<-ended
}

func testFull(t *testing.T, dir string) {
	path, filler := filepath.Join(dir, "state"), filepath.Join(dir, "filler")
	f, _, err := Open(path, Options{})
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	f.Append(epochChange(1, 1))
	if err := f.Flush(); err != nil {
		t.Error(err)
	}
	if s := f.Status(); s.Err != nil || s.Errors != 0 || s.Writes == 0 || s.Waiting {
		t.Errorf("at first: %+v", s)
	}
	if fatal, err := Check(path, 0); fatal || err != nil {
		t.Errorf("Check at first: %v, %v", fatal, err)
	}
	if err := os.WriteFile(filler, make([]byte, 64<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("the filler: %v", err)
	}
	for i := 2; i < 5000 && err == nil; i++ { // what is left of the last block of the file
		f.Append(epochChange(i, 1))
		err = f.Flush()
	}
	if s := f.Status(); !errors.Is(err, unix.ENOSPC) || !errors.Is(s.Err, unix.ENOSPC) || s.Errors == 0 || !s.Waiting {
		t.Errorf("full: %v, %+v", err, s)
	}
	if fatal, err := Check(path, 0); fatal || err == nil || !strings.Contains(err.Error(), "without free space") {
		t.Errorf("Check when full: %v, %v", fatal, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Error(err)
	}
	if err := f.Flush(); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if s := f.Status(); s.Err != nil || s.Waiting {
		t.Errorf("with room again: %+v", s)
	}
}
