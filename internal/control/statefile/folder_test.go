// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// path returns the name of a state file in an empty folder that belongs to nobody else.
func newPath(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "state")
}

func mustOpen(t *testing.T, path string) (*File, *Found) {
	t.Helper()
	f, found, err := Open(path, Options{Report: func(err error) { t.Errorf("reported: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	return f, found
}

func mustClose(t *testing.T, f *File) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFileIsPrivate(t *testing.T) {
	path := newPath(t)
	f, found := mustOpen(t, path)
	if !found.New || found.State.Switch.Boots != 1 {
		t.Errorf("%+v", found)
	}
	mustClose(t, f)
	for _, name := range []string{path, path + lockSuffix} {
		st, err := os.Stat(name)
		if err != nil || st.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, st.Mode(), err)
		}
	}
	f, found = mustOpen(t, path)
	if found.New || found.State.Switch.Boots != 2 {
		t.Errorf("%+v", found)
	}
	mustClose(t, f)
}

// refused opens path, which must be refused with all of words in the error, and must change
// nothing.
func refused(t *testing.T, path string, words ...string) {
	t.Helper()
	before, _ := os.ReadFile(path)
	f, _, err := Open(path, Options{})
	if err == nil {
		f.Close()
		t.Errorf("%v: not refused", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q: without %q", err, w)
		}
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Errorf("%v: the file was changed", words)
	}
}

func TestFilesOfOthersAreRefused(t *testing.T) {
	path := newPath(t)
	f, _ := mustOpen(t, path)
	mustClose(t, f)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o610, 0o601} {
		must(os.Chmod(path, mode))
		refused(t, path, path, "can read or change it", "chmod 600")
	}
	must(os.Chmod(path, 0o600))
	must(os.Link(path, path+"2"))
	refused(t, path, "2 names")
	must(os.Remove(path + "2"))
	if os.Geteuid() == 0 {
		must(os.Chown(path, 4711, 0))
		refused(t, path, "belongs to user 4711", "chown 0")
		must(os.Chown(path, 0, 4712))
		f, _ := mustOpen(t, path) // the group has no rights
		mustClose(t, f)
		must(os.Chown(filepath.Dir(path), 4711, 0))
		refused(t, path, "folder", "belongs to user 4711", "chown 0")
		must(os.Chown(filepath.Dir(path), 0, 0))
	}
	for _, mode := range []fs.FileMode{0o775, 0o757} {
		must(os.Chmod(filepath.Dir(path), mode))
		refused(t, path, "folder", "chmod go-w")
	}
	must(os.Chmod(filepath.Dir(path), 0o755))

	must(os.Rename(path, path+"2"))
	must(os.Symlink(path+"2", path))
	refused(t, path, "symbolic link")
	must(os.Remove(path))
	must(os.Mkdir(path, 0o700))
	refused(t, path, "no regular file")
	must(os.Remove(path))
	must(os.Rename(path+"2", path))

	must(os.Remove(path + lockSuffix))
	must(os.Symlink("/dev/null", path+lockSuffix))
	refused(t, path, "lock of the state file", path)
	must(os.Remove(path + lockSuffix))
	must(os.WriteFile(path+lockSuffix, nil, 0o666))
	must(os.Chmod(path+lockSuffix, 0o666))
	refused(t, path, "chmod 600")
	must(os.Remove(path + lockSuffix))

	victim := path + "victim" // what a link in the place of the new file names is not written
	must(os.WriteFile(victim, []byte("x"), 0o600))
	must(os.Symlink(victim, path+tempSuffix))
	f, found := mustOpen(t, path)
	mustClose(t, f)
	if b, _ := os.ReadFile(victim); string(b) != "x" || found.New {
		t.Errorf("%q through a link, %+v", b, found)
	}
	if _, err := os.Lstat(path + tempSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the new file is still there: %v", err)
	}
	dir := filepath.Join(filepath.Dir(path), "missing")
	refused(t, filepath.Join(dir, "more", "state"), "folder of the state file", "mkdir -p "+filepath.Join(dir, "more"), "chmod 700")
	must(os.WriteFile(dir, nil, 0o600))
	refused(t, filepath.Join(dir, "state"), "folder of the state file", "name another one")
}

// A folder that is missing is made, for this process and the one that it becomes alone.
func TestFolderIsMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "state")
	owner := os.Geteuid()
	if owner == 0 {
		owner = 4711
	}
	if fatal, err := Check(path, owner); fatal || err != nil {
		t.Errorf("Check: %v, %v", fatal, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Check has made the folder: %v", err)
	}
	f, _, err := Open(path, Options{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, f)
	st, err := os.Stat(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if s := st.Sys().(*syscall.Stat_t); int(s.Uid) != owner || st.Mode().Perm() != dirMode {
		t.Errorf("it belongs to user %d, want %d, with mode %04o", s.Uid, owner, st.Mode().Perm())
	}
}

func TestTwoProcesses(t *testing.T) {
	path := newPath(t)
	f, _ := mustOpen(t, path)
	refused(t, path, path, "in use by another process")
	other, _ := mustOpen(t, path+"-other")
	mustClose(t, other)
	mustClose(t, f)
	f, _ = mustOpen(t, path)
	mustClose(t, f)
}

// written makes a state file with one change, and returns its path and contents.
func written(t *testing.T) (path string, contents []byte) {
	t.Helper()
	path = newPath(t)
	f, _ := mustOpen(t, path)
	var c Change
	c.SetEpoch(addr(1), 5)
	f.Append(&c)
	mustClose(t, f)
	contents, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, contents
}

func TestDamagedFileIsSetAside(t *testing.T) {
	path, b := written(t)
	b[headerLen+frameLen]++
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, found := mustOpen(t, path)
	if found.Damaged == nil || !strings.Contains(found.Damaged.Error(), path+" is damaged: byte 32") || found.DamagedFile != path+damagedSuffix || len(found.State.Epochs) != 0 {
		t.Errorf("%+v", found)
	}
	if kept, err := os.ReadFile(found.DamagedFile); err != nil || string(kept) != string(b) {
		t.Errorf("the damaged file was not kept: %v", err)
	}
	mustClose(t, f)
	f, found = mustOpen(t, path)
	if found.Damaged != nil || found.State.Switch.Boots != 2 {
		t.Errorf("%+v", found)
	}
	mustClose(t, f)
}

func TestTornFileIsReported(t *testing.T) {
	path, b := written(t)
	if err := os.Truncate(path, int64(len(b)-1)); err != nil {
		t.Fatal(err)
	}
	f, found := mustOpen(t, path)
	if found.Torn == 0 || len(found.State.Epochs) != 0 || found.State.Switch.Boots != 2 {
		t.Errorf("%+v", found)
	}
	mustClose(t, f)
}
