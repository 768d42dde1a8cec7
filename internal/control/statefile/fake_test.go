// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"io/fs"
	"reflect"
	"slices"
	"testing"
)

// fakeDisk is a folder in memory. It stands for what a disk has after a loss of power: what
// was written and not yet made durable may be lost.
type fakeDisk struct {
	state, temp *fakeFile
	aside       *fakeFile
	failAt      int   // the operation, counted from 1, that fails; 0: none
	failBytes   int   // the bytes of a write that fails that are written all the same
	err         error // the error of what fails
	dead        bool  // all operations fail after the first failure
	operations  int
	files       []*fakeFile // all that were created
	discards    int
	closes      int
}

type fakeFile struct {
	disk    *fakeDisk
	b       []byte
	durable int // bytes
	closed  bool
}

// fails counts an operation, and reports whether it is to fail.
func (d *fakeDisk) fails() bool {
	d.operations++
	return d.operations == d.failAt || d.dead && d.failAt > 0 && d.operations > d.failAt
}

func (d *fakeDisk) read() ([]byte, error) {
	if d.state == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(d.state.b), nil
}

func (d *fakeDisk) create() (diskFile, error) {
	if d.fails() {
		return nil, d.err
	}
	d.temp = &fakeFile{disk: d}
	d.files = append(d.files, d.temp)
	return d.temp, nil
}

func (d *fakeDisk) discard() { d.discards++; d.temp = nil }

func (d *fakeDisk) replace() error {
	if d.fails() {
		return d.err
	}
	if d.temp.durable != len(d.temp.b) {
		panic("a file that is not durable takes the place of the state file")
	}
	d.state, d.temp = d.temp, nil
	if d.fails() { // the folder
		return d.err
	}
	return nil
}

func (d *fakeDisk) setAside() (string, error) {
	if d.fails() {
		return "", d.err
	}
	d.aside, d.state = d.state, nil
	return "aside", nil
}

func (d *fakeDisk) close() error { d.closes++; return nil }

func (f *fakeFile) write(b []byte) error {
	if f.disk.fails() {
		f.b = append(f.b, b[:min(len(b), f.disk.failBytes)]...)
		return f.disk.err
	}
	f.b = append(f.b, b...)
	return nil
}

func (f *fakeFile) sync() error {
	if f.disk.fails() {
		return f.disk.err
	}
	f.durable = len(f.b)
	return nil
}

func (f *fakeFile) close() error { f.closed = true; return nil }

// newLog returns a log that writes to d, with the ids 1, 2, ...
func newLog(d disk) *log {
	id := uint64(0)
	return &log{disk: d, table: make(table), draw: func() uint64 { id++; return id }}
}

func clone(t table) table {
	c := make(table)
	for name, n := range t {
		c[name] = slices.Clone(n)
	}
	return c
}

// set gives a part of a node a value.
func (t table) set(name, part string, v []byte) {
	var b batch
	b.set(name, part, v)
	t.apply(&b)
}

// mustCommit commits an edit that sets one part of a node.
func mustCommit(t *testing.T, l *log, name, part string, v []byte) {
	t.Helper()
	var b batch
	b.set(name, part, v)
	if err := l.commit(&b); err != nil {
		t.Fatal(err)
	}
}

// same reports whether two tables have the same contents.
func same(a, b table) bool { return reflect.DeepEqual(a, b) }
