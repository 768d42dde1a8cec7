// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// source has the sender's files.
type source struct {
	m     *manifest
	local map[*entry]*origin
	tops  []beneath // folders of what was named

	mu   sync.Mutex
	sums map[int][sha256.Size]byte // the sums of chunks that some receiver has
	r    reader
	buf  []byte
}

// gather lists files and directories with all below them. Symbolic links that are named
// are followed, others are skipped, as is what is neither file nor directory.
func gather(files []string, chunk int, say func(string)) (*source, error) {
	s := &source{m: newManifest(chunk), local: make(map[*entry]*origin), sums: make(map[int][sha256.Size]byte), buf: make([]byte, chunk)}
	s.r.source = s
	for _, name := range files {
		if err := s.add(name, say); err != nil {
			s.close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
}

// add lists what is named. Who may change folders below it cannot lead the sender out of it.
func (s *source) add(name string, say func(string)) error {
	at, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	base := filepath.Base(at)
	if at, err = filepath.EvalSymlinks(at); err != nil {
		return err
	}
	top, err := openBeneath(filepath.Dir(at))
	if err != nil {
		return err
	}
	s.tops = append(s.tops, top)
	start := filepath.Base(at)
	return fs.WalkDir(top, start, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(start, path)
		if err != nil {
			return err
		}
		i, is, err := top.lstat(path)
		if err != nil {
			return err
		}
		o := &origin{in: top, name: path, inode: is}
		if !i.IsDir() && !i.Mode().IsRegular() {
			say(fmt.Sprintf("%s is skipped: neither a regular file nor a directory", o.path()))
			return nil
		}
		e := &entry{Path: []byte(filepath.ToSlash(filepath.Join(base, below))), Dir: i.IsDir(), Mode: uint32(i.Mode().Perm()), Time: i.ModTime().UnixNano()}
		if !e.Dir {
			e.Size = i.Size()
		}
		s.local[e] = o
		return s.m.add(e)
	})
}

func (s *source) close() {
	s.r.close()
	for _, t := range s.tops {
		_ = t.dir.Close()
	}
}

// sum returns the hash of a chunk.
func (s *source) sum(chunk int) ([sha256.Size]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.sums[chunk]; ok {
		return h, nil
	}
	n, err := s.r.read(chunk, s.buf)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	h := sha256.Sum256(s.buf[:n])
	s.sums[chunk] = h
	return h, nil
}

// changed reports a file that is not any more what it was when it was listed.
func (s *source) changed() error {
	for e, o := range s.local {
		i, is, err := o.in.lstat(o.name)
		switch {
		case err != nil:
			return fmt.Errorf("%w: it was there when the copy began", err)
		case is != o.inode:
			return o.replaced()
		case !e.Dir && (i.Size() != e.Size || i.ModTime().UnixNano() != e.Time):
			return fmt.Errorf("%s has changed while it was copied: copy it again", o.path())
		}
	}
	return nil
}

// reader reads chunks; one goroutine uses it.
type reader struct {
	source *source
	entry  *entry
	file   *os.File
}

// read reads a chunk into b, and returns its length.
func (r *reader) read(chunk int, b []byte) (int, error) {
	e, off, n := r.source.m.place(chunk)
	if r.entry != e {
		r.close()
		f, err := r.source.local[e].open()
		if err != nil {
			return 0, err
		}
		r.entry, r.file = e, f
	}
	if _, err := r.file.ReadAt(b[:n], off); errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%s has become shorter while it was copied: copy it again", r.file.Name())
	} else if err != nil {
		return 0, err
	}
	return n, nil
}

func (r *reader) close() {
	if r.file != nil {
		_ = r.file.Close()
		r.entry, r.file = nil, nil
	}
}
