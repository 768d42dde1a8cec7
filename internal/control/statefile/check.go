// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Check looks for what keeps a process that becomes user owner from using the state file, as
// far as that can be found out without changing anything. Open returns a fatal error; with
// others it works, and groups are lost at a restart. The file may be in use.
func Check(path string, owner int) (fatal bool, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return true, err
	}
	stranger := os.Geteuid() != 0 && os.Geteuid() != owner // may not look everywhere
	f := &folder{path: abs, name: filepath.Base(abs), uid: owner}
	at := filepath.Dir(abs)
	f.dir, err = openDir(at, owner)
	switch {
	case errors.Is(err, fs.ErrNotExist) && unix.Access(filepath.Dir(at), unix.W_OK) == nil:
		return false, nil // Open makes it
	case err != nil:
		return true, unlessHidden(err, stranger)
	}
	defer f.dir.Close()
	given, err := f.inspect()
	if err != nil {
		return true, err
	}
	if err := f.writable(given); err != nil {
		return false, err
	}
	b, err := f.read()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return true, unlessHidden(err, stranger)
	}
	switch _, _, _, err := readFile(b); {
	case errors.Is(err, ErrVersion):
		return true, otherVersion(abs, err)
	case err != nil:
		return false, fmt.Errorf("state file %s is damaged: %w; gleamd moves it to %s%s, and begins without groups", abs, err, abs, damagedSuffix)
	}
	return false, nil
}

// unlessHidden is err, unless the cause is that a stranger may not look.
func unlessHidden(err error, stranger bool) error {
	if stranger && errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// writable returns why the user of f cannot write in its folder, which root gives to that
// user if given is set.
func (f *folder) writable(given bool) error {
	var st unix.Stat_t
	var fsys unix.Statfs_t
	fd, name := int(f.dir.Fd()), f.dir.Name()
	if err := errors.Join(unix.Fstat(fd, &st), unix.Fstatfs(fd, &fsys)); err != nil {
		return fmt.Errorf("folder %s: %w", name, err)
	}
	const lost = "groups would not be kept over a restart"
	switch {
	case fsys.Flags&unix.ST_RDONLY != 0:
		return fmt.Errorf("folder %s is on a file system that is mounted read-only: %s; mount it for writing, or name another folder", name, lost)
	case fsys.Blocks > 0 && fsys.Bavail == 0:
		return fmt.Errorf("folder %s is on a file system without free space: %s; make room", name, lost)
	case f.uid == 0:
		return nil
	case int(st.Uid) != f.uid && !given, st.Mode&0o300 != 0o300:
		return fmt.Errorf("folder %s, with owner %d and mode %04o, cannot be written by user %d: %s; chown %d %s; chmod 700 %s", name, st.Uid, st.Mode&0o7777, f.uid, lost, f.uid, name, name)
	}
	return nil
}
