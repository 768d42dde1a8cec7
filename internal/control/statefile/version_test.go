// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A file of this version is read as it was written.
func TestVersionIsRead(t *testing.T) {
	name := fmt.Sprintf("testdata/version%d", version)
	want := whole()
	if *rewrite {
		d := new(fakeDisk)
		l := newLog(d)
		mustCommit(t, l, string(kindSwitch), "", []byte{1, 1})
		if err := l.commit(&want.change().edits); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.FromSlash(name), d.state.b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := load(&fakeDisk{state: &fakeFile{b: b}}, "state")
	if err != nil || found.Damaged != nil || !reflect.DeepEqual(found.State, want) {
		t.Errorf("%v, %+v; the form of the file has changed without a new version", err, found)
	}
}

func TestOtherVersionsAreRefused(t *testing.T) {
	for _, v := range []uint16{0, version - 1, version + 1} {
		d := new(fakeDisk)
		mustCommit(t, newLog(d), "a", "", nil)
		h := header{version: v, id: 1, checkpoint: 1 << 40}
		copy(d.state.b, h.append(nil))
		_, _, err := load(d, "/var/state")
		if err == nil || !strings.Contains(err.Error(), "/var/state: written by another version") || d.aside != nil {
			t.Errorf("version %d: %v", v, err)
		}
	}
}
