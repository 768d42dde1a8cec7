// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// CreateFile makes a file, or empties one of this user's. Who may write to the file's folder, such as /tmp, can put a link, a
// pipe or a file of their own where the file will be: none of them is written to.
func CreateFile(path string, mode fs.FileMode) (*os.File, error) {
	switch filepath.Dir(path) {
	case "/dev", "/dev/fd": // standard output by another name
		return os.OpenFile(path, os.O_WRONLY, 0)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode) // a pipe must not block
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s is a symbolic link: name the file itself", path)
	case err != nil:
		return nil, err
	}
	if err = own(f); err == nil {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// own refuses what is no file of this user's alone.
func own(f *os.File) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	st := fi.Sys().(*syscall.Stat_t) // as on all Linux
	switch {
	case !fi.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: name another one", f.Name())
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, who could read what is written: remove it, or name another one", f.Name(), st.Uid)
	case st.Nlink > 1:
		return fmt.Errorf("%s has %d names (hard links): remove it, or name another one", f.Name(), st.Nlink)
	}
	return nil
}
