// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Reader reads a file as Read does.
type Reader func(path string, most int, closed fs.FileMode) ([]byte, error)

// Files reads files for a process that reads them first with more rights than later. A file
// that it may not read any more, and that has not changed since, is what it was: root's key
// with mode 0600 needs no other owner for a reload. The zero value has read nothing.
type Files struct {
	known  map[string]known
	denied []string
}

// known is a file as it was read.
type known struct {
	st   fs.FileInfo
	text []byte
}

// Read is a Reader.
func (x *Files) Read(path string, most int, closed fs.FileMode) ([]byte, error) {
	text, st, err := read(path, most, closed)
	switch {
	case errors.Is(err, fs.ErrPermission):
		if k, has := x.known[path]; has && k.unchanged(path) {
			return k.text, nil
		}
		x.denied = append(x.denied, path)
	case err == nil:
		if x.known == nil {
			x.known = make(map[string]known)
		}
		x.known[path] = known{st, text}
	}
	return text, err
}

// TakeDenied returns the files that this process may not read, of those that were to be read
// since the last call.
func (x *Files) TakeDenied() (paths []string) {
	paths, x.denied = x.denied, nil
	return paths
}

// unchanged reports whether path is the file that was read, with nothing written to it, and
// with the owner and mode of then. Only the kernel sets the time of the last change of these.
func (k *known) unchanged(path string) bool {
	now, err := os.Stat(path)
	if err != nil || !os.SameFile(now, k.st) || now.Size() != k.st.Size() {
		return false
	}
	a, ok := now.Sys().(*syscall.Stat_t)
	b, was := k.st.Sys().(*syscall.Stat_t)
	return ok && was && a.Ctim == b.Ctim
}
