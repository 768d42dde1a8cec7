// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// store has the files of one transfer at a receiver. All names are those below root, which
// symbolic links do not lead out of. One goroutine at a time uses it.
type store struct {
	root    *os.Root
	m       *manifest
	missing bitmap
	lack    map[*entry]int // chunks of a file that are missing; none: it is not begun, or whole
	left    int            // chunks
	bytes   int64          // verified
	from    map[*entry]string

	open *entry // whose file is
	file *os.File
}

func newStore(root *os.Root, m *manifest) *store {
	s := &store{root: root, m: m, missing: newBitmap(m.chunks), lack: make(map[*entry]int), left: m.chunks, from: make(map[*entry]string)}
	for i := range m.chunks {
		s.missing.set(i)
	}
	return s
}

// partName is the name of a file that is not whole. A later run finds it by the path.
func partName(path string) string {
	h := sha256.Sum256([]byte(path))
	return filepath.Join(filepath.Dir(path), partPrefix+hex.EncodeToString(h[:12]))
}

// begin makes the directories.
func (s *store) begin() error {
	for _, e := range s.m.entries {
		dir := filepath.Dir(e.path())
		if e.Dir {
			dir = e.path()
		}
		if err := s.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if e.Dir { // its own permissions come last
			if err := s.root.Chmod(dir, 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

// regular opens a file for reading, if it is one.
func (s *store) regular(name string) (*os.File, int64) {
	i, err := s.root.Lstat(name)
	if err != nil || !i.Mode().IsRegular() {
		return nil, 0
	}
	f, err := s.root.Open(name)
	if err != nil {
		return nil, 0
	}
	return f, i.Size()
}

// hashes calls f with hashes of what is there already: of an unfinished file, or of a file
// with the right name and size.
func (s *store) hashes(f func(first int, sums []byte) error) error {
	buf := make([]byte, s.m.chunk)
	for _, i := range s.m.files {
		e := s.m.entries[i]
		name := partName(e.path())
		file, size := s.regular(name)
		if file == nil {
			name = e.path()
			if file, size = s.regular(name); file != nil && size != e.Size {
				_ = file.Close()
				file = nil
			}
		}
		if file == nil {
			continue
		}
		s.from[e] = name
		err := s.hashFile(e, file, min(size, e.Size), buf, f)
		_ = file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// hashBatch is the number of hashes in a frame.
const hashBatch = 1024

func (s *store) hashFile(e *entry, file io.Reader, size int64, buf []byte, f func(int, []byte) error) error {
	var sums []byte
	first := e.first
	for off := int64(0); off < size; {
		n := int(min(int64(s.m.chunk), e.Size-off))
		if off+int64(n) > size {
			break // the file ends within the chunk
		}
		if _, err := io.ReadFull(file, buf[:n]); err != nil {
			break // it has become shorter; what is not hashed is sent
		}
		sum := sha256.Sum256(buf[:n])
		sums = append(sums, sum[:]...)
		off += int64(n)
		if len(sums) == hashBatch*sha256.Size {
			if err := f(first, sums); err != nil {
				return err
			}
			first, sums = first+hashBatch, sums[:0]
		}
	}
	if len(sums) == 0 {
		return nil
	}
	return f(first, sums)
}

// resume takes over the chunks whose hashes were right. A file under its own name counts
// only as a whole: it may be in use.
func (s *store) resume(right bitmap) error {
	for _, i := range s.m.files {
		e := s.m.entries[i]
		n := 0
		for c := e.first; c < e.first+e.count; c++ {
			if right.has(c) {
				n++
			}
		}
		name, some := s.from[e]
		if n > 0 && !some {
			return fmt.Errorf("the sender finds chunks of %q right that this receiver has not", e.path())
		}
		s.lack[e] = e.count
		if n == 0 || name == e.path() && n < e.count {
			continue
		}
		for c := e.first; c < e.first+e.count; c++ {
			if right.has(c) {
				s.got(e, c)
			}
		}
		if s.lack[e] == 0 {
			if err := s.complete(e); err != nil {
				return err
			}
		}
	}
	for _, e := range s.m.entries {
		if !e.Dir && e.count == 0 {
			if err := s.complete(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *store) got(e *entry, chunk int) {
	s.missing[chunk/8] &^= 1 << (chunk % 8)
	s.lack[e]--
	s.left--
	_, _, n := s.m.place(chunk)
	s.bytes += int64(n)
}

// put writes a verified chunk.
func (s *store) put(chunk int, data []byte) error {
	if !s.missing.has(chunk) {
		return nil
	}
	e, off, _ := s.m.place(chunk)
	if err := s.use(e); err != nil {
		return err
	}
	if _, err := s.file.WriteAt(data, off); err != nil {
		return err
	}
	s.got(e, chunk)
	if s.lack[e] == 0 {
		return s.complete(e)
	}
	return nil
}

// use opens the unfinished file of e.
func (s *store) use(e *entry) error {
	if s.open == e {
		return nil
	}
	s.close()
	name := partName(e.path())
	if i, err := s.root.Lstat(name); err == nil && !i.Mode().IsRegular() {
		return fmt.Errorf("%s: it is there, and no regular file: remove it", name)
	}
	f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	s.open, s.file = e, f
	return nil
}

func (s *store) close() {
	if s.file != nil {
		_ = s.file.Close()
		s.open, s.file = nil, nil
	}
}

// complete gives a whole file its permissions, its time and its name.
func (s *store) complete(e *entry) error {
	if s.from[e] == e.path() && s.open != e { // it was whole before
		if err := s.root.Chmod(e.path(), fs.FileMode(e.Mode)); err != nil {
			return err
		}
		return s.root.Chtimes(e.path(), e.modified(), e.modified())
	}
	if err := s.use(e); err != nil {
		return err
	}
	err := errors.Join(s.file.Truncate(e.Size), s.file.Chmod(fs.FileMode(e.Mode)), s.file.Sync())
	s.close()
	if err != nil {
		return err
	}
	name := partName(e.path())
	if err := s.root.Chtimes(name, e.modified(), e.modified()); err != nil {
		return err
	}
	if i, err := s.root.Lstat(e.path()); err == nil && i.IsDir() {
		return fmt.Errorf("%s is a directory here, and a file at the sender: remove it", e.path())
	}
	return s.root.Rename(name, e.path())
}

// finish gives directories their permissions and times, the deepest first.
func (s *store) finish() error {
	for i := len(s.m.entries) - 1; i >= 0; i-- {
		e := s.m.entries[i]
		if !e.Dir {
			continue
		}
		if err := s.root.Chtimes(e.path(), e.modified(), e.modified()); err != nil {
			return err
		}
		if err := s.root.Chmod(e.path(), fs.FileMode(e.Mode)); err != nil {
			return err
		}
	}
	return nil
}
