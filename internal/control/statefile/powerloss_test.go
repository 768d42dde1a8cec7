// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

const sector = 512

// script commits changes of many kinds and sizes, and calls step before and after each one.
func script(t *testing.T, l *log, step func(commit func())) {
	big := bytes.Repeat([]byte("large "), 500)
	for i := range 12 {
		var b batch
		switch i % 6 {
		case 0:
			b.set("a", "", []byte{byte(i)})
		case 1:
			b.set("b", "", big[:700*i%len(big)])
			b.set("b", "part", []byte("x"))
			b.set("c", "", nil)
		case 2:
			b.drop("a")
			b.set("c", "", []byte{})
		case 3:
			b.set("b", "part", nil)
			b.set("a", "other", []byte(frameMagic))
		case 4:
			b.drop("b")
			b.set("b", "", []byte("anew"))
		case 5: // nothing
		}
		step(func() {
			if err := l.commit(&b); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// After a loss of power at any byte of an append, with the sectors that were not made durable
// in any order, the state is that before or that after the change, and what is lost is reported.
func TestPowerLossWhileAppending(t *testing.T) {
	d := new(fakeDisk)
	l := newLog(d)
	mustCommit(t, l, "a", "", []byte("first"))
	random := rand.New(rand.NewPCG(1, 2))
	images, lost := 0, 0
	script(t, l, func(commit func()) {
		before, old := clone(l.table), slices.Clone(d.state.b)
		commit()
		after, full := clone(l.table), slices.Clone(d.state.b)
		check := func(what string, image []byte) {
			images++
			got, _, torn, err := readFile(image)
			switch {
			case err != nil:
				t.Fatalf("%s: %v", what, err)
			case bytes.Equal(image, full):
				if !same(got, after) || torn != 0 {
					t.Fatalf("%s: a complete change is not there, %d bytes torn", what, torn)
				}
			case !same(got, before):
				t.Fatalf("%s: neither the state before nor that after: %q", what, got)
			case len(image) > len(old) && torn != int64(len(image)-len(old)):
				t.Fatalf("%s: %d bytes lost, and %d reported", what, len(image)-len(old), torn)
			}
			if torn > 0 {
				lost++
			}
		}
		garbage := make([]byte, len(full)-len(old))
		for cut := len(old); cut <= len(full); cut++ {
			check(fmt.Sprintf("cut at %d of %d", cut, len(full)), full[:cut:cut])
			for i := range garbage {
				garbage[i] = byte(random.Uint32())
			}
			check("then zeros", append(full[:cut:cut], make([]byte, len(full)-cut)...))
			check("then garbage", append(full[:cut:cut], garbage[cut-len(old):]...))
		}
		first, last := len(old)/sector, (len(full)-1)/sector
		for missing := range 1 << min(last-first+1, 8) { // sectors that are not on the disk
			for _, fill := range [][]byte{make([]byte, len(garbage)), garbage} {
				image := slices.Clone(full)
				for s := first; s <= last; s++ {
					if missing>>(s-first)&1 != 0 {
						from, to := max(s*sector, len(old)), min((s+1)*sector, len(full))
						copy(image[from:to], fill[from-len(old):])
					}
				}
				check(fmt.Sprintf("sectors %b missing", missing), image)
			}
		}
	})
	if images < 5000 || lost < images/2 {
		t.Errorf("%d images, %d with a loss: the test does not test", images, lost)
	}
}

// A process that fails or loses power at any operation, after any number of bytes, leaves the
// state before or after the change. If it goes on, nothing is lost.
func TestFailureOfAnyOperation(t *testing.T) {
	boom := errors.New("no")
	for _, restart := range []bool{true, false} {
		for failAt := 1; ; failAt++ {
			failed := false
			for _, bytes := range []int{0, 1, 31, 32, 33, 100, 1 << 20} {
				d := &fakeDisk{failAt: failAt, failBytes: bytes, err: boom, dead: restart}
				l := newLog(d)
				l.limit = 1
				for i := range 8 {
					var b batch
					b.set("n", "", []byte{byte(i)})
					b.set("m", "", []byte{byte(i)})
					b.set(fmt.Sprint(i), "", make([]byte, 300))
					before := clone(l.table)
					if i == 4 && l.file != nil {
						l.limit = 1 // the next one writes the file anew
					}
					err := l.commit(&b)
					if err == nil {
						continue
					}
					failed = true
					got, _, _, rerr := readOrEmpty(d)
					if rerr != nil || !same(got, before) && !same(got, l.table) {
						t.Fatalf("operation %d, %d bytes, change %d: %v, %q", failAt, bytes, i, rerr, got)
					}
					if restart {
						break
					}
				}
				for _, file := range d.files {
					if !file.closed && diskFile(file) != l.file {
						t.Fatalf("operation %d: a file is still open", failAt)
					}
				}
				got, _, torn, err := readOrEmpty(d)
				if !restart && (err != nil || torn != 0 || !same(got, l.table)) {
					t.Fatalf("operation %d, %d bytes: the file is not complete at the end: %v, %d bytes torn", failAt, bytes, err, torn)
				}
			}
			if !failed {
				if failAt < 10 {
					t.Fatalf("only %d operations", failAt)
				}
				break
			}
		}
	}
}

func readOrEmpty(d *fakeDisk) (table, header, int64, error) {
	if d.state == nil {
		return table{}, header{}, 0, nil
	}
	return readFile(d.state.b)
}

// A file in which any one bit has changed does not pass for what was written.
func TestEveryFlippedBitIsNoticed(t *testing.T) {
	d := new(fakeDisk)
	l := newLog(d)
	mustCommit(t, l, "a", "", bytes.Repeat([]byte("0123456789"), 20))
	mustCommit(t, l, "b", "", []byte("second"))
	mustCommit(t, l, "c", "", []byte(frameMagic+"third"))
	before, last := clone(l.table), int(l.end)
	mustCommit(t, l, "b", "", []byte("fourth"))
	whole := d.state.b
	for i := range whole {
		for bit := range 8 {
			image := slices.Clone(whole)
			image[i] ^= 1 << bit
			got, _, torn, err := readFile(image)
			switch {
			case err != nil && got != nil:
				t.Fatalf("bit %d of byte %d: a state, and the error %v", bit, i, err)
			case err == nil && i < last:
				t.Fatalf("bit %d of byte %d, in what was durable: %d bytes torn and no error", bit, i, torn)
			case i >= last && (err != nil || torn != int64(len(whole)-last) || !same(got, before)):
				t.Fatalf("bit %d of byte %d, in the last batch: %d bytes torn, %v", bit, i, torn, err)
			}
		}
	}
}

// A file that has been cut inside of its checkpoint was not cut by a loss of power: files take
// their place when they are durable.
func TestCheckpointIsComplete(t *testing.T) {
	d := new(fakeDisk)
	l := newLog(d)
	for i := range 3 {
		var b batch
		b.set(fmt.Sprint(i), "", make([]byte, checkpointPayload))
		l.table.apply(&b)
	}
	if err := l.checkpoint(); err != nil {
		t.Fatal(err)
	}
	_, h, _, err := readFile(d.state.b)
	if err != nil || h.checkpoint != int64(len(d.state.b)) {
		t.Fatal(err, h.checkpoint)
	}
	frames := 0
	for at := int64(headerLen); at < h.checkpoint; frames++ {
		f, ok := h.frameAt(d.state.b, at)
		if !ok {
			t.Fatalf("no frame at %d", at)
		}
		at = f.end
		if at == h.checkpoint {
			continue
		}
		if _, _, _, err := readFile(d.state.b[:at]); err == nil {
			t.Errorf("cut at %d of %d, between two frames: no error", at, h.checkpoint)
		}
	}
	if len(d.state.b) > 4*checkpointPayload {
		t.Errorf("%d bytes for three nodes of %d", len(d.state.b), checkpointPayload)
	}
	last := slices.Clone(d.state.b)
	last[len(last)-1]++
	if _, _, torn, err := readFile(last); err == nil {
		t.Errorf("the last frame has changed: %d bytes torn, no error", torn)
	}
	if frames != 3 {
		t.Errorf("%d frames, not 3", frames)
	}
}

// Frames of an older file that are on the same blocks do not count.
func TestFramesOfAnotherFile(t *testing.T) {
	d := new(fakeDisk)
	l := newLog(d)
	mustCommit(t, l, "a", "", []byte("1"))
	mustCommit(t, l, "a", "", []byte("2"))
	old := slices.Clone(d.state.b)
	l.limit = 0
	mustCommit(t, l, "a", "", []byte("3"))
	young := slices.Clone(d.state.b)
	if len(young) >= len(old) {
		t.Fatal("the file was not written anew")
	}
	got, _, torn, err := readFile(append(young, old[len(young):]...))
	if err != nil || torn != int64(len(old)-len(young)) || string(got.node("a")[""]) != "3" {
		t.Errorf("%q, %d bytes torn, %v", got, torn, err)
	}
	moved := append(slices.Clone(old), old[headerLen:]...) // right frames at a wrong place
	if got, _, torn, err := readFile(moved); err != nil || torn == 0 || string(got.node("a")[""]) != "2" {
		t.Errorf("%q, %d bytes torn, %v", got, torn, err)
	}
}

// A frame behind a broken one shows damage only if it was written when that one was durable.
func TestFramesWrittenTogether(t *testing.T) {
	h := header{version: version, id: 1, checkpoint: headerLen}
	edits := appendEdit(nil, &edit{name: "a", parts: node{"": []byte("1")}})
	for _, durable := range []int64{headerLen, headerLen + 1} {
		b := h.append(nil)
		b = h.appendFrame(b, edits, headerLen, headerLen)
		b = h.appendFrame(b, edits, int64(len(b)), durable)
		b[headerLen]++
		table, _, torn, err := readFile(b)
		if together := durable == headerLen; together != (err == nil) || together && (torn != int64(len(b)-headerLen) || len(table) != 0) {
			t.Errorf("durable to %d: %v, %d bytes torn, %v", durable, table, torn, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	good := header{version: version, id: 1, checkpoint: headerLen}
	if _, _, _, err := readFile(good.append(nil)); err != nil {
		t.Error(err)
	}
	for i := range headerLen {
		if _, _, _, err := readFile(good.append(nil)[:i]); err == nil {
			t.Errorf("%d bytes of a header: no error", i)
		}
	}
	for _, h := range []header{{version: 0, checkpoint: headerLen}, {version: version, checkpoint: headerLen - 1}, {version: version, checkpoint: -1}} {
		if _, _, _, err := readFile(h.append(nil)); err == nil {
			t.Errorf("%+v: no error", h)
		}
	}
}
