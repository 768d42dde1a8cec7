// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"bytes"
	"os"
	"testing"
)

// FuzzReadFile reads any bytes as a file.
func FuzzReadFile(f *testing.F) {
	d := new(fakeDisk)
	l := newLog(d)
	for _, c := range []*Change{whole().change(), epochChange(1, 1)} {
		if err := l.commit(&c.edits); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(d.state.b)
	f.Add(d.state.b[:len(d.state.b)-1])
	golden, err := os.ReadFile("testdata/version5")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Fuzz(func(t *testing.T, b []byte) {
		table, _, torn, err := readFile(b)
		if err == nil && (torn < 0 || torn > int64(len(b))) {
			t.Errorf("%d bytes torn of %d", torn, len(b))
		}
		if err != nil && table != nil {
			t.Errorf("a state with the error %v", err)
		}
	})
}

// FuzzEdits reads any bytes as what a frame with right checksums holds. What can be read is
// the same after it has been written again.
func FuzzEdits(f *testing.F) {
	for _, c := range []*Change{whole().change(), epochChange(1, 1), epochChange(2, 0)} {
		var b []byte
		for _, e := range c.edits.edits {
			b = appendEdit(b, e)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		edits, err := parseEdits(b)
		if err != nil {
			return
		}
		first := make(table)
		first.apply(edits)
		s, err := first.state()
		if err != nil {
			return
		}
		second := newLog(new(fakeDisk))
		second.table.apply(&s.change().edits)
		again, err := second.table.state()
		if err != nil {
			t.Fatalf("%v, after it was written again", err)
		}
		third := newLog(new(fakeDisk))
		third.table.apply(&again.change().edits)
		if !bytes.Equal(second.encode(new(header)), third.encode(new(header))) {
			t.Errorf("%+v was written, and reads as %+v", s, again)
		}
	})
}
