// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Files of version 1 are read by all later versions: they have neither identities nor places.
func TestVersion1IsRead(t *testing.T) {
	b, err := os.ReadFile("testdata/version1")
	if err != nil {
		t.Fatal(err)
	}
	want := whole()
	clear(want.Created)
	singleLocations(want)
	for _, g := range want.Groups {
		if g.Identity, g.Place = nil, nil; g.Turn != nil {
			g.Turn.Joining = nil
		}
	}
	found, _, err := load(&fakeDisk{state: &fakeFile{b: b}}, "state")
	if err != nil || found.Damaged != nil || !reflect.DeepEqual(found.State, want) {
		t.Errorf("%v, %+v; the form of the file has changed without a new version", err, found)
	}
}

// Later versions read files of version 2. The turns in such a file do not say which members are joining.
func TestVersion2IsRead(t *testing.T) {
	b, err := os.ReadFile("testdata/version2")
	if err != nil {
		t.Fatal(err)
	}
	want := whole()
	clear(want.Created)
	singleLocations(want)
	for _, g := range want.Groups {
		if g.Turn != nil {
			g.Turn.Joining = nil
		}
	}
	found, _, err := load(&fakeDisk{state: &fakeFile{b: b}}, "state")
	if err != nil || found.Damaged != nil || !reflect.DeepEqual(found.State, want) {
		t.Errorf("%v, %+v; the form of the file has changed without a new version", err, found)
	}
}

// Later versions read files of version 3, which have no groups that members connect to.
func TestVersion3IsRead(t *testing.T) {
	b, err := os.ReadFile("testdata/version3")
	if err != nil {
		t.Fatal(err)
	}
	want := whole()
	clear(want.Created)
	singleLocations(want)
	found, _, err := load(&fakeDisk{state: &fakeFile{b: b}}, "state")
	if err != nil || found.Damaged != nil || !reflect.DeepEqual(found.State, want) {
		t.Errorf("%v, %+v; the form of the file has changed without a new version", err, found)
	}
}

// Later versions read files of version 4, which have one location for a host, without its next hop.
func TestVersion4IsRead(t *testing.T) {
	b, err := os.ReadFile("testdata/version4")
	if err != nil {
		t.Fatal(err)
	}
	want := whole()
	singleLocations(want)
	found, _, err := load(&fakeDisk{state: &fakeFile{b: b}}, "state")
	if err != nil || found.Damaged != nil || !reflect.DeepEqual(found.State, want) {
		t.Errorf("%v, %+v; the form of the file has changed without a new version", err, found)
	}
}

// singleLocations makes the hosts of s those of a file of before version 5.
func singleLocations(s *State) {
	for _, h := range s.Hosts {
		h.Locations, h.Pinned.Hop = nil, netip.Addr{}
	}
}

// Files of version 5 are read by all later versions.
func TestVersion5IsRead(t *testing.T) {
	const name = "testdata/version5"
	if *rewrite {
		d := new(fakeDisk)
		l := newLog(d)
		mustCommit(t, l, string(kindSwitch), "", []byte{1, 1})
		if err := l.commit(&whole().change().edits); err != nil {
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
	if err != nil || found.Damaged != nil || !reflect.DeepEqual(found.State, whole()) {
		t.Errorf("%v, %+v; the form of the file has changed without a new version", err, found)
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
