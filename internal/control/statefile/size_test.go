// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"testing"
)

// However often things change, the file stays in proportion to what it holds, and is written
// anew for many changes at a time only.
func TestFileStaysSmall(t *testing.T) {
	d := new(fakeDisk)
	l := newLog(d)
	anew, before := 0, d.state
	for i := range 20000 {
		mustCommit(t, l, string(rune('a'+i%20)), "", make([]byte, 1000))
		if d.state != before {
			if before != nil && !before.closed {
				t.Fatal("the old file is still open")
			}
			anew, before = anew+1, d.state
		}
		if l.end > l.limit {
			t.Fatalf("%d bytes, and the limit is %d", l.end, l.limit)
		}
		if most := 2*l.size + minLog + 4096; len(d.state.b) > most {
			t.Fatalf("%d bytes for %d bytes of state", len(d.state.b), l.size)
		}
	}
	if anew < 10 || anew > 25 {
		t.Errorf("written anew %d times", anew)
	}
	if l.written < 20000*1000 || l.written > 2*20000*1100 {
		t.Errorf("%d bytes written for 20000 changes of 1000 bytes", l.written)
	}
}

// The file is written anew when it would exceed its limit, and not before.
func TestLimit(t *testing.T) {
	d := new(fakeDisk)
	l := newLog(d)
	mustCommit(t, l, "a", "", []byte("1"))
	end, file := l.end, d.state
	mustCommit(t, l, "a", "", []byte("2"))
	growth := l.end - end
	l.limit = l.end + growth
	if mustCommit(t, l, "a", "", []byte("3")); d.state != file {
		t.Error("written anew with room")
	}
	l.limit = l.end + growth - 1
	if mustCommit(t, l, "a", "", []byte("4")); d.state == file {
		t.Error("not written anew")
	}
}
