// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// segment is an Ethernet segment with links on it: each hears the others.
type segment struct {
	t      testing.TB
	now    time.Duration
	links  []*Link
	queue  []frame
	events []string // events of all links
	frames int
	lose   func(from, to *Link) bool
	delay  func() time.Duration
	wire   [][]byte // every hello that was sent
}

type frame struct {
	at   time.Duration
	from rocev2.MAC
	to   *Link
	b    []byte
}

func newSegment(t testing.TB, links ...*Link) *segment {
	return &segment{
		t: t, links: links, lose: func(_, _ *Link) bool { return false },
		delay: func() time.Duration { return 100 * time.Microsecond },
	}
}

func (s *segment) took(l *Link, out *Output) {
	for _, e := range out.Events {
		s.events = append(s.events, fmt.Sprintf("%v: %v %v %v", l.config.ID, e.State, e.Reason, e.Neighbour.Speaker))
	}
	for _, b := range out.Packets {
		s.frames++
		s.wire = append(s.wire, b)
		for _, to := range s.links {
			if to != l && !s.lose(l, to) {
				s.queue = append(s.queue, frame{s.now + s.delay(), l.config.MAC, to, b})
			}
		}
	}
}

// run plays d.
func (s *segment) run(d time.Duration) {
	var out Output
	for end := s.now + d; ; {
		at, what := end, -1
		for i, l := range s.links {
			if next, ok := l.NextDeadline(); ok && next < at {
				at, what = max(next, s.now), i
			}
		}
		slices.SortStableFunc(s.queue, func(a, b frame) int { return int(a.at - b.at) })
		if len(s.queue) > 0 && s.queue[0].at <= at {
			f := s.queue[0]
			s.now, s.queue = f.at, s.queue[1:]
			f.to.Input(s.now, f.from, f.b, &out)
			if out.Drop != NoDrop && out.Drop != Replayed {
				s.t.Fatalf("dropped: %v", out.Drop)
			}
			s.took(f.to, &out)
			continue
		}
		if s.now = at; what < 0 {
			return
		}
		s.links[what].Advance(s.now, &out)
		s.took(s.links[what], &out)
	}
}

// up reports whether two links are up with each other.
func up(a, b *Link) bool {
	x, okA := a.Neighbour()
	y, okB := b.Neighbour()
	return okA && okB && x.Speaker == b.config.Speaker && y.Speaker == a.config.Speaker
}

// TestComesUp: two switches are up within half an interval, know each other, stay so, and
// send no more than their interval says.
func TestComesUp(t *testing.T) {
	c := config(2, 1)
	c.Capabilities, c.MaxVersion, c.Interval = 0x80000001, 7, 200*time.Millisecond
	c.API = netip.MustParseAddrPort("10.0.0.9:4798")
	a, b := link(t, 0, config(1, 1)), link(t, 0, c)
	s := newSegment(t, a, b)
	s.run(50 * time.Millisecond)
	if !up(a, b) {
		t.Fatal(a.State())
	}
	n, _ := a.Neighbour()
	if want := (Neighbour{c.Speaker, c.Address, c.Capabilities, 1, c.Interval, c.API, n.Session}); n != want || n.Session == 0 {
		t.Errorf("%+v, want %+v", n, want)
	}
	s.frames, s.events = 0, nil
	s.run(20 * time.Second)
	if len(s.events) > 0 || s.frames < 300 || s.frames > 400 {
		t.Errorf("%d hellos in 20 s, events %v", s.frames, s.events)
	}
	s.lose = func(from, _ *Link) bool { return from == b }
	s.run(399 * time.Millisecond) // the hold time is 600 ms, and the last hello 200 ms old at most
	if !up(a, b) {
		t.Error("down before the hold time")
	}
	s.run(202 * time.Millisecond)
	if state, reason := a.State(); state != Down || reason != Silent {
		t.Errorf("%v %v after the hold time", state, reason)
	}
	if state, reason := b.State(); state != Init || reason != OneWay {
		t.Errorf("the other end: %v %v; it hears, and is not heard", state, reason)
	}
}

// TestRestart: a switch that starts anew is up again before the hold time of its former life
// has passed, and the neighbour is told of both lives.
func TestRestart(t *testing.T) {
	a, b := link(t, 0, config(1, 1)), link(t, 0, config(2, 1))
	s := newSegment(t, a, b)
	s.run(time.Second)
	for had := s.frames; s.frames == had || !slices.ContainsFunc(s.queue, func(f frame) bool { return f.from == a.config.MAC }); {
		s.run(50 * time.Microsecond) // until a has just said a hello
	}
	again := link(t, s.now, config(2, 2))
	s.links[1], s.queue, s.events = again, nil, nil
	s.run(2 * time.Millisecond) // each waits for the other, and not for an interval
	if !up(a, again) {
		t.Fatal(a.State())
	}
	got := strings.Join(slices.DeleteFunc(s.events, func(e string) bool { return !strings.HasPrefix(e, "0000000000000001") }), "\n")
	if want := fmt.Sprintf("0000000000000001: Down the neighbour has started anew %v\n0000000000000001: Up  %v", speaker(2, 1), speaker(2, 2)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.events = nil
	s.run(time.Second)
	if len(s.events) > 0 {
		t.Errorf("later: %v", s.events)
	}
}

// TestHeldBack: a hello of a former life that was held back on its way, and never heard
// before, does not prove that life anew.
func TestHeldBack(t *testing.T) {
	r := newRig(t)
	r.prove(a)
	c := r.challenge(a)
	held := r.hello(a, &c)
	r.prove(aNext)
	if r.input(a, held); r.describe() != "Up, with A's next" || r.out.Drop != NoDrop {
		t.Errorf("%s, drop %v", r.describe(), r.out.Drop)
	}
}

// TestCarrier: what was heard before the carrier was lost counts no more.
func TestCarrier(t *testing.T) {
	r := newRig(t)
	r.prove(a)
	c := r.challenge(a)
	r.l.SetLink(r.now, false, &r.out)
	n, _ := r.l.Neighbour()
	if e := r.out.Events; len(e) != 1 || e[0].State != Down || e[0].Reason != LinkDown || e[0].Neighbour.Speaker != a || n.ID != 0 {
		t.Errorf("events %v, neighbour %v", e, n)
	}
	if r.l.Advance(r.now, &r.out); len(r.out.Packets) != 0 {
		t.Error("a hello without a carrier")
	}
	if r.l.SetLink(r.now, true, &r.out); r.describe() != "Down, silent" {
		t.Error(r.describe())
	}
	if r.l.Advance(r.now, &r.out); len(r.out.Packets) != 1 {
		t.Errorf("%d hellos with the carrier back", len(r.out.Packets))
	}
	if r.input(a, r.hello(a, &c)); r.describe() != "Init" {
		t.Errorf("%s by a former challenge", r.describe())
	}
}

// TestBridge: with a third switch on the segment no adjacency is up, and with the third
// gone both others are up again. So it is with two switches of one ID.
func TestBridge(t *testing.T) {
	for name, third := range map[string]Config{"three switches": config(3, 1), "one ID twice": config(2, 2)} {
		t.Run(name, func(t *testing.T) {
			third.Address = address(3)
			a, b, c := link(t, 0, config(1, 1)), link(t, 0, config(2, 1)), link(t, 0, third)
			s := newSegment(t, a, b, c)
			hidden := func(from, to *Link) bool { return b.config.ID == c.config.ID && from != a && to != a } // they drop own_id
			s.lose = hidden
			s.run(time.Second)
			s.events = nil
			s.run(10 * time.Second)
			if state, reason := a.State(); state != Down || reason != TwoNeighbours || len(s.events) > 0 {
				t.Errorf("%v %v, events %v", state, reason, s.events)
			}
			s.lose = func(from, to *Link) bool { return from == c || to == c || hidden(from, to) }
			s.run(time.Second)
			if !up(a, b) {
				t.Error("not up without the third")
			}
		})
	}
}

// TestReplaysProveNothing: recorded hellos, also those of a switch before its restart, neither
// bring an adjacency up nor take one down when an attacker sends them again, in any number.
func TestReplaysProveNothing(t *testing.T) {
	a := link(t, 0, config(1, 1))
	var record [][]byte
	now := time.Duration(0)
	for life := 1; life <= 6; life++ {
		s := newSegment(t, a, link(t, now, config(2, life)))
		s.now = now
		s.run(time.Second)
		if !up(a, s.links[1]) {
			t.Fatal("not up")
		}
		s.links = s.links[:1]
		s.queue = nil
		s.run(time.Second) // the neighbour is off
		record, now = append(record, s.wire...), s.now
	}
	if len(record) < 60 {
		t.Fatalf("%d hellos recorded", len(record))
	}
	random := rand.New(rand.NewPCG(1, 2))
	var out Output
	play := func(n int, wantUp bool) {
		t.Helper()
		for range n {
			a.Input(now, address(2).MAC, record[random.IntN(len(record))], &out)
			now += time.Millisecond
			a.Advance(now, &out)
			if state, reason := a.State(); (state == Up) != wantUp {
				t.Fatalf("%v %v by replayed hellos", state, reason)
			}
		}
	}
	play(2000, false)
	s := newSegment(t, a, link(t, now, config(2, 7)))
	s.now = now
	s.run(time.Second)
	for range 50 { // while the neighbour lives
		now = s.now
		play(20, true)
		s.now = now
		s.run(20 * time.Millisecond)
		if !up(a, s.links[1]) {
			t.Fatal("replayed hellos have ended an adjacency")
		}
	}
}

// TestPropertyLossyLinks: two switches on a segment that loses and delays frames are adjacent
// soon after the segment delivers all frames again, and never adjacent to a third one.
func TestPropertyLossyLinks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		a, b := link(t, 0, config(1, 1)), link(t, 0, config(2, 1))
		s := newSegment(t, a, b)
		s.delay = func() time.Duration { return time.Duration(random.IntN(int(30 * time.Millisecond))) }
		for life := 2; life < 6; life++ {
			loss := rapid.Float64Range(0, 1).Draw(rt, "loss")
			s.lose = func(_, _ *Link) bool { return random.Float64() < loss }
			s.run(time.Duration(rapid.IntRange(0, 2000).Draw(rt, "ms")) * time.Millisecond)
			if rapid.Bool().Draw(rt, "restart") {
				b = link(t, s.now, config(2, life))
				s.links[1] = b
				s.queue = slices.DeleteFunc(s.queue, func(f frame) bool { return f.to != a })
			}
			for _, l := range s.links {
				if n, ok := l.Neighbour(); ok && n.ID+l.config.ID != 3 {
					rt.Fatalf("up with %v", n.Speaker)
				}
			}
		}
		s.lose = func(_, _ *Link) bool { return false }
		s.run(time.Second)
		if !up(a, b) {
			sa, ra := a.State()
			sb, rb := b.State()
			rt.Fatalf("%v %v and %v %v a second after the last loss", sa, ra, sb, rb)
		}
	})
}

// TestKeysAreReplaced: one switch after the other, without an adjacency going down; a
// switch that has not got the new key is heard no more.
func TestKeysAreReplaced(t *testing.T) {
	old, both, fresh := testKeys(), testKeys(), testKeys()
	delete(old, 2)
	delete(fresh, 1)
	ca, cb := config(1, 1), config(2, 1)
	ca.Keys, cb.Keys = old, old
	a, b := link(t, 0, ca), link(t, 0, cb)
	s := newSegment(t, a, b)
	s.run(time.Second)
	s.events = nil
	for _, step := range []struct {
		l    *Link
		keys envelope.Keys
		send envelope.KeyID
	}{{a, both, 1}, {b, both, 2}, {a, both, 2}, {a, fresh, 2}, {b, fresh, 2}} {
		if err := step.l.SetKeys(step.keys, step.send); err != nil {
			t.Fatal(err)
		}
		s.run(time.Second)
	}
	if len(s.events) > 0 || !up(a, b) {
		t.Errorf("events %v", s.events)
	}
	for _, b := range s.wire[len(s.wire)-10:] {
		if m, drop := Open(b, fresh); drop != NoDrop || m.KeyID != 2 {
			t.Errorf("key %d after all: %v", m.KeyID, drop)
		}
	}
	var out Output
	if a.Input(s.now, address(2).MAC, s.wire[0], &out); out.Drop != UnknownKey {
		t.Errorf("a hello under the former key: %v", out.Drop)
	}
	for _, bad := range []struct {
		keys envelope.Keys
		send envelope.KeyID
		want string
	}{{fresh, 1, "key 1 to authenticate with"}, {envelope.Keys{1: make([]byte, 31)}, 1, "31 bytes"}, {envelope.Keys{0: make([]byte, 32)}, 0, "other than 0"}, {nil, 0, "key 0 to"}} {
		if err := a.SetKeys(bad.keys, bad.send); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %q", err, bad.want)
		}
	}
	if s.run(time.Second); !up(a, b) {
		t.Error("a refused key has ended the adjacency")
	}
}

// TestWire: the bytes of a hello are those of testdata/hello.hex.
func TestWire(t *testing.T) {
	m := Message{
		KeyID: 2, MaxVersion: 3, Interval: 250 * time.Millisecond, Capabilities: 0x01020304, Speaker: Speaker{0x1111111122222222, 0x3333333344444444},
		Address: address(7), Seq: 0x55, Neighbour: []Heard{{Speaker{0x66, 0x77}, 0x88, 0x99}, {Speaker{0xaa, 0xbb}, 0xcc, 0}},
	}
	b, err := m.Append(nil, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/hello.hex")
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b); got != strings.Join(strings.Fields(string(want)), "") {
		t.Errorf("%s", got)
	}
	back, drop := Open(b, testKeys())
	if drop != NoDrop || fmt.Sprint(back) != fmt.Sprint(m) {
		t.Errorf("%v %+v", drop, back)
	}
}
