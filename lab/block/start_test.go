// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const gen = 1 << generation

// said is a replica's hello: its store, entries applied, stores that were current, and whether it has run on.
func said(store string, seq uint64, live bool, members ...string) *hello {
	l := Label{Store: store, Seq: seq, Members: members, Consistent: true}
	if members != nil {
		l.Device = "d"
	}
	return &hello{Applied: seq, Live: live, Label: l}
}

func TestChoose(t *testing.T) {
	behind := said("b", 5*gen+9, true, "a", "b")
	behind.Consistent = false
	other := said("b", 5*gen+9, true, "b")
	other.Device = "e"
	for _, c := range []struct {
		name          string
		hs            []*hello
		create, force bool
		current       []int
		err           string
	}{
		{name: "all that ran on are equal", hs: []*hello{said("a", 5*gen+3, true, "a", "b"), said("b", 5*gen+3, true, "a", "b")}, current: []int{0, 1}},
		{name: "one lacks the last entry", hs: []*hello{said("a", 5*gen+3, true, "a", "b"), said("b", 5*gen+4, true, "a", "b")}, current: []int{1}},
		{name: "two that were killed may differ in what was not flushed", hs: []*hello{said("a", 5*gen+3, false, "a", "b"), said("b", 5*gen+3, false, "a", "b")}, current: []int{0}},
		{name: "one that went on alone needs nobody", hs: []*hello{nil, said("b", 5*gen+8, false, "b")}, current: []int{1}},
		{name: "one that was left behind waits", hs: []*hello{said("a", 5*gen+3, false, "a", "b"), nil}, err: "waiting for the replicas with the stores b"},
		{name: "it is forced", hs: []*hello{said("a", 5*gen+3, false, "a", "b"), nil}, force: true, current: []int{0}},
		{name: "one that was left behind, and the newer one", hs: []*hello{said("a", 5*gen+3, true, "a", "b"), said("b", 5*gen+8, false, "b")}, current: []int{1}},
		{name: "an empty file is not the store that was current", hs: []*hello{said("a", 5*gen+3, false, "a", "b"), said("x", 0, false)}, err: "waiting for the replicas with the stores b"},
		{name: "in the middle of being brought up to date", hs: []*hello{said("a", 5*gen+3, true, "a", "b"), behind}, current: []int{0}},
		{name: "the next generation is above what is behind, too", hs: []*hello{said("a", 5*gen+3, true, "a"), behind}, current: []int{0}},
		{name: "nobody has it", hs: []*hello{said("a", 0, false), said("b", 0, false)}, err: "make the device by -create"},
		{name: "a copy of a file", hs: []*hello{said("a", 5*gen, true, "a"), said("a", 5*gen, true, "a")}, err: "two replicas have store a"},
		{name: "another device", hs: []*hello{said("a", 5*gen, true, "a"), other}, err: "different devices"},
		{name: "create over a device", hs: []*hello{said("a", 5*gen, true, "a"), said("b", 0, false)}, create: true, err: "exists already"},
		{name: "create with one that is silent", hs: []*hello{said("a", 0, false), nil}, create: true, err: "waiting for 1"},
		{name: "create", hs: []*hello{said("a", 0, false), said("b", 0, false)}, create: true, current: []int{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := choose(c.hs, c.create, c.force)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || !slices.Equal(got.current, c.current) {
				t.Fatalf("current %v, error %v; want %v", got.current, err, c.current)
			}
			if !c.create && got.seq != 6*gen {
				t.Errorf("generation %d, want 6", got.seq>>generation)
			}
		})
	}
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	s, err := OpenStore(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(path, 1<<20); err == nil || !strings.Contains(err.Error(), "running already") {
		t.Errorf("a second replica with the file: %v", err)
	}
	for seq := range uint64(5) {
		if err := s.Relabel(func(l *Label) { l.Seq = seq }); err != nil {
			t.Fatal(err)
		}
	}
	want := s.Label()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	reopen := func(size int64) (Label, error) {
		s, err := OpenStore(path, size)
		if err != nil {
			return Label{}, err
		}
		defer s.Close()
		return s.Label(), nil
	}
	if got, err := reopen(1 << 20); err != nil || got.Store != want.Store || got.Seq != 4 {
		t.Errorf("label %+v, error %v; want %+v", got, err, want)
	}
	if _, err := reopen(2 << 20); err == nil || !strings.Contains(err.Error(), "name the device's size") {
		t.Errorf("another size: %v", err)
	}
	// A power failure in the middle of a label leaves the one before.
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("torn"), 1<<20+int64(want.Version%2)*slotSize+100); err != nil {
		t.Fatal(err)
	}
	if got, err := reopen(1 << 20); err != nil || got.Seq != 3 {
		t.Errorf("label %+v, error %v; want the one before, of entry 3", got, err)
	}
	if _, err := f.WriteAt([]byte("torn"), 1<<20+int64((want.Version+1)%2)*slotSize+100); err != nil {
		t.Fatal(err)
	}
	if _, err := reopen(1 << 20); err == nil || !strings.Contains(err.Error(), "no label") {
		t.Errorf("somebody else's file: %v", err)
	}
}

func TestExtents(t *testing.T) {
	const size = 200*blockSize + 1000
	x := newExtents(size)
	x.mark(3*blockSize-1, 2)
	x.mark(200*blockSize+10, 5)
	x.mark(7*blockSize, 0)
	if x.count() != 3 {
		t.Errorf("%d blocks, want 2, 3 and 200", x.count())
	}
	for _, want := range []span{{2 * blockSize, 2 * blockSize}, {200 * blockSize, 1000}, {}} {
		if off, n := x.take(4, size); (span{off, n}) != want {
			t.Errorf("%d bytes at %d, want %+v", n, off, want)
		}
	}
}

// A replica that says that it has applied an entry that there is not, does not join.
func TestReplicaAheadOfTheGateway(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	g := &Gateway{seq: 7}
	m := &member{g: g, addr: "replica", role: current, link: &link{wire: newWire(a), pending: make(map[uint64]chan *frame), gone: make(chan struct{})}}
	l := &lane{g: g, members: []*member{m}}
	for seq, joins := range map[uint64]bool{7: true, 8: false} {
		m.joined = false
		go func() {
			f, err := newWire(b).receive()
			if err == nil && f.kind == frameJoin {
				m.link.answered(&frame{kind: frameAnswer, id: f.id, seq: seq})
			}
		}()
		if err := l.ask(m); (err == nil) != joins || m.joined != joins {
			t.Errorf("entry %d of 7: joined %v, %v", seq, m.joined, err)
		}
	}
}

func TestRetired(t *testing.T) {
	g := &Gateway{seq: 7, entries: []*entry{{header: header{seq: 5}}, {header: header{seq: 6}}, {header: header{seq: 7}}}}
	for seq, want := range map[uint64]bool{4: true, 5: false, 7: false, 8: false} {
		if g.retired(seq) != want {
			t.Errorf("entry %d: %v", seq, !want)
		}
	}
	if g.entries = nil; !g.retired(7) || g.retired(8) {
		t.Error("an empty ring has entry 7, or had entry 8")
	}
}
