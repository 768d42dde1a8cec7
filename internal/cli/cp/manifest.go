// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of a manifest.
const (
	maxEntries  = 1 << 20
	maxManifest = 256 << 20 // bytes of all entries
	maxPath     = 4096      // bytes
	maxName     = 255       // bytes of a component
	maxChunks   = 1 << 23   // one bit each is a frame
	minChunk    = 4 << 10
	maxChunk    = 4 << 20
	maxWindow   = 256 // chunks
	maxRing     = 64 << 20
)

// partPrefix begins the names of files that are not whole.
const partPrefix = ".gleam-cp."

// entry is a file or directory below the receiver's directory.
type entry struct {
	Path []byte `json:"path"` // any bytes but NUL, separated by slashes
	Dir  bool   `json:"dir,omitempty"`
	Mode uint32 `json:"mode"` // permissions
	Size int64  `json:"size,omitempty"`
	Time int64  `json:"time"` // the time of the last modification, in ns since 1970

	first, count int // its chunks
}

func (e *entry) path() string { return string(e.Path) }

func (e *entry) modified() time.Time { return time.Unix(0, e.Time) }

// check reports the reason why a receiver does not make e.
func (e *entry) check() error {
	p := e.path()
	switch {
	case len(p) == 0 || len(p) > maxPath:
		return fmt.Errorf("a path of %d bytes: want 1 to %d", len(p), maxPath)
	case strings.IndexByte(p, 0) >= 0 || !filepath.IsLocal(p) || filepath.Clean(p) != p || p == ".":
		return fmt.Errorf("path %.80q leads out of the directory, or is not in its shortest form", p)
	case e.Mode > 0o777:
		return fmt.Errorf("%.80q: mode %o is not one of permissions", p, e.Mode)
	case e.Size < 0 || e.Dir && e.Size != 0:
		return fmt.Errorf("%.80q: %d bytes", p, e.Size)
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > maxName {
			return fmt.Errorf("%.80q: a name of %d bytes: the limit is %d", p, len(name), maxName)
		}
		if strings.HasPrefix(name, partPrefix) {
			return fmt.Errorf("%.80q: names that begin with %s are those of unfinished files", p, partPrefix)
		}
	}
	return nil
}

// manifest is what is copied. Chunks are numbered through all files.
type manifest struct {
	chunk   int // bytes of a chunk; the last one of a file may be shorter
	entries []*entry
	files   []int // entries that have chunks
	paths   map[string]bool
	chunks  int
	bytes   int64 // bytes of all files
	size    int   // bytes of the entries
}

func newManifest(chunk int) *manifest { return &manifest{chunk: chunk, paths: make(map[string]bool)} }

// add appends an entry.
func (m *manifest) add(e *entry) error {
	if err := e.check(); err != nil {
		return err
	}
	n := (e.Size + int64(m.chunk) - 1) / int64(m.chunk)
	m.size += len(e.Path) + 64
	switch {
	case m.paths[e.path()]:
		return fmt.Errorf("%.80q comes twice: two sources have that name", e.path())
	case len(m.entries) == maxEntries || m.size > maxManifest:
		return fmt.Errorf("more than %d files, or paths of %d bytes in all: copy them in parts", maxEntries, maxManifest)
	case n > int64(maxChunks-m.chunks):
		return fmt.Errorf("more than %d chunks of %d bytes: give a larger --chunk, or copy in parts", maxChunks, m.chunk)
	}
	e.first, e.count = m.chunks, int(n)
	if n > 0 {
		m.files = append(m.files, len(m.entries))
	}
	m.paths[e.path()] = true
	m.entries = append(m.entries, e)
	m.chunks += int(n)
	m.bytes += e.Size
	return nil
}

// place returns the file of a chunk, and the chunk's place in it.
func (m *manifest) place(chunk int) (e *entry, off int64, n int) {
	lo, hi := 0, len(m.files)
	for hi-lo > 1 { // the last file that begins at chunk or before
		if mid := (lo + hi) / 2; m.entries[m.files[mid]].first <= chunk {
			lo = mid
		} else {
			hi = mid
		}
	}
	e = m.entries[m.files[lo]]
	off = int64(chunk-e.first) * int64(m.chunk)
	return e, off, int(min(int64(m.chunk), e.Size-off))
}

// batch takes entries, from the i-th on, as many as fit into a frame.
func (m *manifest) batch(i int) (text []byte, next int) {
	var b bytes.Buffer
	for ; i < len(m.entries) && b.Len() < maxFrame/2; i++ {
		line, _ := json.Marshal(m.entries[i]) // numbers and bytes
		b.Write(append(line, '\n'))
	}
	return b.Bytes(), i
}

// addBatch is the opposite of batch.
func (m *manifest) addBatch(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	for d.More() {
		e := &entry{}
		if err := d.Decode(e); err != nil {
			return errors.New("a list of files that is not JSON")
		}
		if err := m.add(e); err != nil {
			return err
		}
	}
	return nil
}

// bitmap is a set of chunks.
type bitmap []byte

func newBitmap(n int) bitmap { return make(bitmap, (n+7)/8) }

func (b bitmap) has(i int) bool { return b[i/8]>>(i%8)&1 != 0 }

func (b bitmap) set(i int) { b[i/8] |= 1 << (i % 8) }

// parseBitmap checks a set of n chunks that the other side sends.
func parseBitmap(data []byte, n int) (bitmap, error) {
	if len(data) != (n+7)/8 || n%8 != 0 && data[len(data)-1]>>(n%8) != 0 {
		return nil, fmt.Errorf("a set of %d bytes for %d chunks", len(data), n)
	}
	return data, nil
}

// members returns the chunks of the set, of n chunks, in order.
func (b bitmap) members(n int) (list []int) {
	for i := range n {
		if b.has(i) {
			list = append(list, i)
		}
	}
	return list
}
