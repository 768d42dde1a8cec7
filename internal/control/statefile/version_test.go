// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Files of each version are read by all later ones: what a version lacks is not in the state. Version 1
// has neither identities nor places, version 2 does not say which members are joining, version 3 has no groups that
// members connect to, and version 4 has one location for a host, without its next hop, and
// does not say how far back duplicates may be.
func TestVersionsAreRead(t *testing.T) {
	for v := 1; v <= version; v++ {
		name := fmt.Sprintf("testdata/version%d", v)
		want := whole()
		if v < 4 {
			clear(want.Created)
		}
		if v < 5 {
			singleLocations(want)
		}
		for _, g := range want.Groups {
			if v < 2 {
				g.Identity, g.Place = nil, nil
			}
			if g.Turn != nil && v < 3 {
				g.Turn.Joining = nil
			}
			if g.Turn != nil && v < 5 {
				g.Turn.Positions[len(g.Turn.Positions)-1].FullHistory = false
			}
		}
		if *rewrite && v == version {
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
			t.Errorf("version %d: %v, %+v; the form of the file has changed without a new version", v, err, found)
		}
	}
}

// singleLocations makes the hosts of s those of a file of before version 5.
func singleLocations(s *State) {
	for _, h := range s.Hosts {
		h.Locations, h.Pinned.Hop = nil, netip.Addr{}
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	d := new(fakeDisk)
	mustCommit(t, newLog(d), "a", "", nil)
	h := header{version: version + 1, id: 1, checkpoint: 1 << 40}
	copy(d.state.b, h.append(nil))
	_, _, err := load(d, "/var/state")
	if err == nil || !strings.Contains(err.Error(), "/var/state: written by a newer version") || d.aside != nil {
		t.Errorf("%v", err)
	}
}
