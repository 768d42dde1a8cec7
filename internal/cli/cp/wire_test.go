// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestPaths(t *testing.T) {
	for path, ok := range map[string]bool{
		"a": true, "a/b": true, "..a": true, "a..": true, "a\xff": true, "-": true, "...": true,
		"": false, ".": false, "..": false, "/": false, "/a": false, "../a": false, "a/..": false, "a/../b": false, "a/../../b": false,
		"./a": false, "a/": false, "a//b": false, "a/./b": false, "a\x00b": false, ".gleam-cp.": false, "a/.gleam-cp.00/b": false,
		strings.Repeat("x", maxName): true, strings.Repeat("x", maxName+1): false, strings.Repeat("x/", maxPath/2) + "x": false,
	} {
		e := entry{Path: []byte(path), Mode: 0o644}
		if err := e.check(); (err == nil) != ok {
			t.Errorf("%.40q: %v", path, err)
		}
	}
	for name, e := range map[string]entry{
		"a setuid bit":       {Path: []byte("a"), Mode: 0o4755},
		"a negative size":    {Path: []byte("a"), Size: -1},
		"a directory's size": {Path: []byte("a"), Dir: true, Size: 1},
	} {
		if e.check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestPlaces(t *testing.T) {
	m := newManifest(minChunk)
	for i, size := range []int64{0, 1, minChunk, 0, minChunk + 1, 3 * minChunk} {
		if err := m.add(&entry{Path: []byte{byte('a' + i)}, Size: size}); err != nil {
			t.Fatal(err)
		}
	}
	got := make(map[string]int64)
	for c := range m.chunks {
		e, off, n := m.place(c)
		if off != got[e.path()] || n < 1 || n > minChunk {
			t.Errorf("chunk %d: %s, %d bytes at %d", c, e.path(), n, off)
		}
		got[e.path()] += int64(n)
	}
	for _, e := range m.entries {
		if got[e.path()] != e.Size {
			t.Errorf("%s: chunks have %d bytes of %d", e.path(), got[e.path()], e.Size)
		}
	}
	if m.add(&entry{Path: []byte("b")}) == nil {
		t.Error("two files of one name")
	}
	if m.add(&entry{Path: []byte("z"), Size: 1 << 60}) == nil {
		t.Error("a file of 2^60 bytes has too many chunks, and is taken")
	}
	var again manifest = *newManifest(minChunk)
	for i := 0; i < len(m.entries); {
		var text []byte
		text, i = m.batch(i)
		if err := again.addBatch(text); err != nil {
			t.Fatal(err)
		}
	}
	if again.chunks != m.chunks || again.bytes != m.bytes || len(again.entries) != len(m.entries) {
		t.Errorf("%d chunks, %d bytes after the way", again.chunks, again.bytes)
	}
}

func TestSeal(t *testing.T) {
	m := newManifest(minChunk)
	if err := m.add(&entry{Path: []byte("a"), Size: minChunk + 10}); err != nil {
		t.Fatal(err)
	}
	key := bytes.Repeat([]byte{7}, keySize)
	s := newSeal(key)
	msg := make([]byte, chunkHead+10)
	s.close(msg, 1)
	if n, data, err := s.open(m, msg); n != 1 || len(data) != 10 || err != nil {
		t.Fatal(n, len(data), err)
	}
	for i := range msg {
		bad := slices.Clone(msg)
		bad[i] ^= 1
		if _, _, err := s.open(m, bad); err == nil {
			t.Errorf("bit 0 of byte %d may change", i)
		}
	}
	if _, _, err := newSeal(bytes.Repeat([]byte{8}, keySize)).open(m, msg); err != errForged {
		t.Errorf("under another key: %v", err)
	}
	for _, n := range []int{0, 2, 1 << 40} { // of another length, or none of the manifest's
		s.close(msg, n)
		if _, _, err := s.open(m, msg); err == nil {
			t.Errorf("chunk %d of %d bytes is taken", n, len(msg)-chunkHead)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		args  string
		files int
	}{
		{"a b 10.0.0.1", 2}, {"a 10.0.0.1 10.0.0.2:99 host:1 [fd00::1]:7 fd00::2", 1}, {"./10.0.0.1 10.0.0.1", 1}, {"10.0.0.1", 0}, {"a b", 2},
		{"a host:x", 2}, {"dir/host:1 host:1", 1}, {"10.0.0.9 a 10.0.0.1", 2},
	} {
		files, hosts := split(strings.Fields(c.args))
		if len(files) != c.files || len(files)+len(hosts) != len(strings.Fields(c.args)) {
			t.Errorf("%s: files %v, hosts %v", c.args, files, hosts)
		}
	}
}

// FuzzFrames reads what comes from the network, as both sides do.
func FuzzFrames(f *testing.F) {
	m := newManifest(minChunk)
	if err := m.add(&entry{Path: []byte("a/b"), Size: 9 * minChunk}); err != nil {
		f.Fatal(err)
	}
	text, _ := m.batch(0)
	h, _ := json.Marshal(hello{Chunk: minChunk, Window: 2, Key: make([]byte, keySize)})
	for kind, data := range map[byte][]byte{
		frameHello: h, frameEntries: text, frameHave: appendHave(3, make([]byte, 2*sha256.Size)), frameMissing: {0xff, 1},
		frameDone: done{3, 4}.encode(), frameChunk: make([]byte, chunkHead+minChunk), frameFailed: []byte("\x1b[1m\n"),
	} {
		f.Add(append([]byte{kind, 0, 0, byte(len(data) >> 8), byte(len(data))}, data...))
	}
	s := newSeal(make([]byte, keySize))
	f.Fuzz(func(t *testing.T, wire []byte) {
		var buf []byte
		kind, data, err := readFrame(bytes.NewReader(wire), &buf)
		if err != nil {
			return
		}
		switch kind {
		case frameHello:
			var h hello
			if json.Unmarshal(data, &h) == nil && h.check() == nil && h.Window*(h.Chunk+chunkHead) > maxRing {
				t.Errorf("%+v", h)
			}
		case frameEntries:
			n := newManifest(minChunk)
			_ = n.addBatch(data)
			for _, e := range n.entries {
				if err := e.check(); err != nil {
					t.Errorf("an entry that is not checked: %v", err)
				}
			}
			for c := range min(n.chunks, 100) {
				if e, off, size := n.place(c); size < 1 || off+int64(size) > e.Size {
					t.Errorf("chunk %d: %d bytes at %d of %d", c, size, off, e.Size)
				}
			}
		case frameHave:
			first, sums, err := parseHave(data, m.chunks)
			if err == nil && (first < 0 || first+len(sums) > m.chunks) {
				t.Errorf("%d hashes from %d", len(sums), first)
			}
		case frameMissing:
			if b, err := parseBitmap(data, m.chunks); err == nil {
				b.members(m.chunks)
			}
		case frameDone:
			if d, err := parseDone(data); err == nil && (d.messages < 0 || d.bytes < 0) {
				t.Errorf("%+v", d)
			}
		case frameChunk:
			if n, _, err := s.open(m, data); err == nil && n >= m.chunks {
				t.Errorf("chunk %d", n)
			}
		case frameFailed:
			if strings.ContainsAny(printable(string(data)), "\x1b\n\x00") {
				t.Error("not printable")
			}
		}
	})
}
