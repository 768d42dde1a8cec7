// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package trusted reads files that decide who is trusted: secrets, private keys, certificates,
// and a configuration with secrets. One that others may read or change is refused.
package trusted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Mode bits that a file may not have. The group of a file may read it: that is how operators'
// programs, and a gleamd that is not root, get a secret.
const (
	Secret fs.FileMode = 0o027 // read or changed by others
	Public fs.FileMode = 0o022 // changed by others
)

// Read reads a regular file of at most most bytes that has none of the mode bits closed.
func Read(path string, most int, closed fs.FileMode) ([]byte, error) {
	text, _, err := read(path, most, closed)
	return text, err
}

func read(path string, most int, closed fs.FileMode) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe must not block until it has a writer
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat() // of the open file, not of the name's present one
	switch {
	case err != nil:
		return nil, nil, err
	case !st.Mode().IsRegular():
		return nil, nil, errors.New("not a regular file")
	}
	if err := Check(path, st, closed); err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(text) > most {
		return nil, nil, fmt.Errorf("has %d bytes; want at most %d", max(int64(len(text)), st.Size()), most)
	}
	return bytes.TrimPrefix(text, mark), st, err
}

// mark is the byte order mark that editors, Windows' above all, put before text in UTF-8.
var mark = []byte("\ufeff")

// Check refuses a file that belongs to another user than root and that of this process, or
// that has one of the mode bits closed.
func Check(path string, st fs.FileInfo, closed fs.FileMode) error {
	if s, ok := st.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to user %d, who may change it; run: chown root %s", s.Uid, path)
	}
	if mode := st.Mode().Perm(); mode&closed != 0 {
		fault := "may be changed by others"
		if closed == Secret {
			fault = "may be read or changed by others"
		}
		return fmt.Errorf("%s (mode %04o); run: chmod %04o %s", fault, mode, mode&^closed, path)
	}
	return nil
}
