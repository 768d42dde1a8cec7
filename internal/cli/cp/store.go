// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// store has the files of one transfer at a receiver. All names are those below root, which
// symbolic links do not lead out of. One goroutine at a time uses it.
//
// Others may have rights in folders below root: a file is used if it is the regular one that
// its name has, and an unfinished one if it is this user's alone.
type store struct {
	root    *os.Root
	m       *manifest
	missing bitmap
	lack    map[*entry]int // chunks of a file that are missing; none: it is not begun, or whole
	left    int            // chunks
	bytes   int64          // verified
	from    map[*entry]string
	parts   map[string]string // names of unfinished files that were found, by partName
	made    []*entry          // directories that have not their own permissions yet

	open *entry // the entry whose file is open
	file *os.File
	name string // the name of file
}

func newStore(root *os.Root, m *manifest) *store {
	s := &store{
		root: root, m: m, missing: newBitmap(m.chunks), lack: make(map[*entry]int), left: m.chunks,
		from: make(map[*entry]string), parts: make(map[string]string),
	}
	for i := range m.chunks {
		s.missing.set(i)
	}
	return s
}

// partName is the beginning of the name of a file that is not whole. A later run finds it by
// the path.
func partName(path string) string {
	h := sha256.Sum256([]byte(path))
	return filepath.Join(filepath.Dir(path), partPrefix+hex.EncodeToString(h[:12]))
}

// partLen is the length of partName, without the directory.
const partLen = len(partPrefix) + 24

// begin makes the directories, and looks for unfinished files. A directory has its own
// permissions at once, and beside them the owner's right to it, until settle.
func (s *store) begin() error {
	looked := make(map[string]bool)
	for _, e := range s.m.entries {
		dir := filepath.Dir(e.path())
		if e.Dir {
			dir = e.path()
		}
		if looked[dir] && !e.Dir {
			continue
		}
		if err := s.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if e.Dir {
			s.made = append(s.made, e)
			if err := s.permit(e, fs.FileMode(e.Mode)|0o700); err != nil {
				return err
			}
		}
		if !looked[dir] {
			looked[dir] = true
			if err := s.findParts(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// permit gives a directory permissions, if it has not.
func (s *store) permit(e *entry, mode fs.FileMode) error {
	f, i, err := s.same(e.path(), os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	switch {
	case !i.IsDir():
		return fmt.Errorf("%s is no directory any more", e.path())
	case i.Mode().Perm() == mode:
		return nil
	}
	return f.Chmod(mode)
}

// findParts looks for unfinished files of an earlier run in a directory.
func (s *store) findParts(dir string) error {
	d, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	for _, n := range names {
		if !strings.HasPrefix(n, partPrefix) || len(n) < partLen {
			continue
		}
		name := filepath.Join(dir, n)
		if i, err := s.root.Lstat(name); err == nil && ours(i) {
			s.parts[filepath.Join(dir, n[:partLen])] = name
		}
	}
	return err
}

// same opens the file that a name has: nothing that a symbolic link leads to. A pipe does not
// block.
func (s *store) same(name string, flags int) (*os.File, fs.FileInfo, error) {
	at, err := s.root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := s.root.OpenFile(name, flags|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	i, err := f.Stat()
	if err == nil && !os.SameFile(at, i) {
		err = fmt.Errorf("%s is a symbolic link, or is being replaced", name)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, i, nil
}

// regular opens a file, if it is one.
func (s *store) regular(name string, flags int) (*os.File, fs.FileInfo) {
	f, i, err := s.same(name, flags)
	if err == nil && !i.Mode().IsRegular() {
		_ = f.Close()
		f = nil
	}
	return f, i
}

// ours reports whether a file is a regular one of this user, under one name.
func ours(i fs.FileInfo) bool {
	st := i.Sys().(*syscall.Stat_t) // that of Linux
	return i.Mode().IsRegular() && int(st.Uid) == os.Geteuid() && st.Nlink == 1
}

// part opens the unfinished file of e that an earlier run has left; nil: there is none. One
// that is another user's, or has other names, is none.
func (s *store) part(e *entry) (f *os.File, name string) {
	name, ok := s.parts[partName(e.path())]
	if !ok {
		return nil, ""
	}
	f, i := s.regular(name, os.O_RDWR)
	if f == nil {
		return nil, ""
	}
	if !ours(i) || f.Chmod(0o600) != nil {
		_ = f.Close()
		return nil, ""
	}
	return f, name
}

// hashes calls f with hashes of what is there already: of an unfinished file, or of a file
// with the right name and size.
func (s *store) hashes(f func(first int, sums []byte) error) error {
	buf := make([]byte, s.m.chunk)
	for _, i := range s.m.files {
		e := s.m.entries[i]
		file, name := s.part(e)
		if file == nil {
			name = e.path()
			var i fs.FileInfo
			if file, i = s.regular(name, os.O_RDONLY); file != nil && i.Size() != e.Size {
				_ = file.Close()
				file = nil
			}
		}
		if file == nil {
			continue
		}
		size := e.Size
		if i, err := file.Stat(); err == nil {
			size = min(size, i.Size())
		}
		s.from[e] = name
		err := s.hashFile(e, file, size, buf, f)
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

// use opens the unfinished file of e: that of an earlier run, or one under a name that nobody
// could guess.
func (s *store) use(e *entry) error {
	if s.open == e {
		return nil
	}
	s.close()
	f, name := s.part(e)
	if f == nil {
		var random [8]byte
		_, _ = rand.Read(random[:]) // never fails
		name = partName(e.path()) + "." + hex.EncodeToString(random[:])
		var err error
		if f, err = s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return err
		}
		s.parts[partName(e.path())] = name
	}
	s.open, s.file, s.name = e, f, name
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
		f, i := s.regular(e.path(), os.O_RDONLY)
		if f == nil {
			return fmt.Errorf("%s has been replaced", e.path())
		}
		defer f.Close()
		if i.Mode().Perm() != fs.FileMode(e.Mode) {
			if err := f.Chmod(fs.FileMode(e.Mode)); err != nil {
				return err
			}
		}
		if i.ModTime().Equal(e.modified()) {
			return nil
		}
		return setTime(f, e)
	}
	if err := s.use(e); err != nil {
		return err
	}
	err := errors.Join(s.file.Truncate(e.Size), s.file.Chmod(fs.FileMode(e.Mode)), setTime(s.file, e), s.file.Sync())
	name := s.name
	s.close()
	if err != nil {
		return err
	}
	if i, err := s.root.Lstat(e.path()); err == nil && i.IsDir() {
		return fmt.Errorf("%s is a directory here, and a file at the sender: remove it", e.path())
	}
	return s.root.Rename(name, e.path())
}

// setTime gives an open file the time of its last modification.
func setTime(f *os.File, e *entry) error {
	return os.Chtimes(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), e.modified(), e.modified())
}

// finish gives directories their times and permissions, the deepest first.
func (s *store) finish() error {
	for _, e := range slices.Backward(s.made) {
		f, _, err := s.same(e.path(), os.O_RDONLY)
		if err != nil {
			return err
		}
		err = setTime(f, e)
		_ = f.Close()
		if err != nil {
			return err
		}
	}
	return s.settle()
}

// settle gives directories their own permissions, the deepest first, also of a copy that has
// broken off.
func (s *store) settle() (err error) {
	for _, e := range slices.Backward(s.made) {
		err = errors.Join(err, s.permit(e, fs.FileMode(e.Mode)))
	}
	s.made = nil
	return err
}
